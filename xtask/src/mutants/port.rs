//! Mutants of what a host checks of a card: its RPMB, its firmware update, its lock; and of secure write protection.

use super::Mutant;

const PORT: &str = "-p emmc-port --lib";
const SIM: &str = "-p emmc-sim --lib";

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

pub(super) const FAILED_LOCK_TAKEN_FOR_DONE: Mutant = Mutant {
    name: "failed unlock taken for done",
    file: "crates/emmc-port/src/lock/work.rs",
    anchor: "if answer.status.contains(R1::LOCK_UNLOCK_FAILED) {",
    instead: "if answer.status.contains(R1::LOCK_UNLOCK_FAILED) && before == Some(false) {",
    killer: (PORT, "lock"),
};

pub(super) const PASSWORD_NOT_PROVED: Mutant = Mutant {
    name: "new password not proved by a lock",
    file: "crates/emmc-port/src/lock/work.rs",
    anchor: "            _ => self.send(&LockCommand::lock(new), Some(true))?,\n        }\n        self.worked.is_set",
    instead: "            _ => {}\n        }\n        self.worked.is_set",
    killer: (PORT, "lock"),
};

pub(super) const GROUPS_NOT_HELD: Mutant = Mutant {
    name: "secure write protection does not hold groups",
    file: "crates/emmc-card/src/card/write_protect_groups.rs",
    anchor: "if self.holds_write_protection() {",
    instead: "if self.holds_write_protection() && protects {",
    killer: (SIM, "secure_write_protection"),
};

pub(super) const BOOT_AREAS_NOT_HELD: Mutant = Mutant {
    name: "secure write protection does not hold boot areas",
    file: "crates/emmc-card/src/card/write_protect.rs",
    anchor: "    if holds {\n        return;",
    instead: "    if holds && ext_csd[reg::BOOT_WP_STATUS] == 0 {\n        return;",
    killer: (SIM, "secure_write_protection"),
};
