//! Mutants of what a host checks of a card: its RPMB and its firmware update.

use super::Mutant;

const PORT: &str = "-p emmc-port --lib";

pub(super) const SECTORS_NOT_COUNTED: Mutant = Mutant {
    name: "sectors of firmware not counted",
    file: "crates/emmc-port/src/ffu/update.rs",
    anchor: "if !done.counts(image.len()) {",
    instead: "if !done.counts(image.len()) && done.programmed == Some(0) {",
    killer: (PORT, "ffu"),
};

pub(super) const MODE_NOT_LEFT: Mutant = Mutant {
    name: "firmware mode not left after an error",
    file: "crates/emmc-port/src/ffu/update.rs",
    anchor: "if run.may_be_in_mode {",
    instead: "if run.may_be_in_mode && ended == Ended::Stopped {",
    killer: (PORT, "ffu"),
};

pub(super) const MAC_NOT_CHECKED: Mutant = Mutant {
    name: "MAC of an RPMB reply not checked",
    file: "crates/emmc-port/src/rpmb/exchange.rs",
    anchor: "Some(key) if !is_authentic(key.bytes(), frames) => Err(RpmbError::Mac),",
    instead: "Some(key) if !is_authentic(key.bytes(), frames) && frames.len() > 99 => Err(RpmbError::Mac),",
    killer: (PORT, "rpmb"),
};

pub(super) const NONCE_NOT_COMPARED: Mutant = Mutant {
    name: "nonce of an RPMB reply not compared",
    file: "crates/emmc-port/src/rpmb/exchange.rs",
    anchor: "if frames.iter().all(|frame| frame.nonce() == nonce) {",
    instead: "if frames.iter().all(|frame| frame.nonce() == nonce || frame.nonce() != [0; 16]) {",
    killer: (PORT, "rpmb"),
};
