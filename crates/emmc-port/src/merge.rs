//! Merges the data of two sources of one card, and refuses sources of two cards.
//!
//! Values that never change in a part distinguish two parts. Other differences mean that the sources were read at
//! different times; each becomes a sentence. Absent on purpose: which of the two values is right.

mod layers;
mod registers;
#[cfg(test)]
mod tests;

use std::fmt::Display;

use emmc_regs::CardKind;
use emmc_regs::cid::Cid;
use emmc_regs::ext_csd::{ExtCsd, reg};

use crate::{CardData, Format, Origin, SourceError, Stated};

impl CardData {
    /// Adds the data of another source of the same card; known values stay, unless they were only inferred.
    ///
    /// Errors: [`SourceError::OtherCard`] when the other source is of another card.
    pub fn merge(&mut self, other: Self) -> Result<(), SourceError> {
        self.same_card(&other)?;
        let mut conflicts = registers::conflicts(self, &other);
        self.kind = self.certain_kind().or(other.certain_kind()).or(self.kind).or(other.kind);
        self.cid = self.cid.take().or(other.cid);
        self.csd = self.csd.or(other.csd);
        let (ext_csd, inferred) = overlay(self, &other);
        (self.ext_csd, self.inferred) = (ext_csd, inferred);
        self.ocr = self.ocr.or(other.ocr);
        self.rca = self.rca.or(other.rca);
        self.status = self.status.or(other.status);
        self.scr = self.scr.or(other.scr);
        self.ssr = self.ssr.or(other.ssr);
        for (key, value) in other.sysfs {
            self.sysfs.entry(key).or_insert(value);
        }
        if self.host.is_empty() {
            self.host = other.host;
        }
        self.blocks.merge(other.blocks);
        self.stated.merge(other.stated);
        self.reports.extend(other.reports);
        self.origins.extend(other.origins);
        self.conflicts.append(&mut conflicts);
        self.conflicts.extend(other.conflicts);
        Ok(())
    }

    /// Checks that no value that distinguishes cards differs.
    fn same_card(&self, other: &Self) -> Result<(), SourceError> {
        let differ = |expected: String, found: String| {
            let (name, other) = labels(self, other);
            Err(SourceError::OtherCard { name: other, other: name, expected, found })
        };
        if let (Some(ours), Some(theirs)) = (self.certain_kind(), other.certain_kind()) {
            if ours != theirs {
                return differ(kind_name(ours).into(), kind_name(theirs).into());
            }
        }
        if let (Some(ours), Some(theirs)) = (&self.cid, &other.cid) {
            // Some hosts strip the last byte, the checksum.
            if ours.0.iter().take(15).ne(theirs.0.iter().take(15)) {
                return differ(format!("CID {}", digits(&ours.0)), format!("CID {}", digits(&theirs.0)));
            }
        }
        let kind = self.certain_kind().or(other.certain_kind());
        let (ours, theirs) = (Identity::of(self, kind), Identity::of(other, kind));
        if let Some((ours, theirs)) = unequal(ours.manufacturer_id, theirs.manufacturer_id) {
            return differ(format!("manufacturer id {ours:#04x}"), format!("{theirs:#04x}"));
        }
        if let Some((ours, theirs)) = unequal(ours.serial, theirs.serial) {
            return differ(format!("serial number {ours:#010x}"), format!("{theirs:#010x}"));
        }
        if let Some((ours, theirs)) = ours.name.zip(theirs.name).filter(|(ours, theirs)| !same_name(ours, theirs)) {
            return differ(format!("product name {ours:?}"), format!("{theirs:?}"));
        }
        match registers::fixed_difference(self, other) {
            Some((name, ours, theirs)) => differ(format!("{name} {ours:#04x}"), format!("{theirs:#04x}")),
            None => Ok(()),
        }
    }

    /// The family, unless it was only guessed from the CID.
    fn certain_kind(&self) -> Option<CardKind> {
        let digits = [Format::RegisterHex, Format::UBootRegRead, Format::Snapshot];
        let cid_alone = self.cid.is_some() && self.csd.is_none() && self.stated == Stated::default();
        match self.sysfs.get("type").map(String::as_str) {
            Some("MMC") => Some(CardKind::Emmc),
            Some("SD") => Some(CardKind::Sd),
            _ if self.ext_csd.is_some() => Some(CardKind::Emmc),
            _ if self.scr.is_some() || self.ssr.is_some() => Some(CardKind::Sd),
            _ if cid_alone && self.origins.iter().flat_map(Origin::forms).all(|form| digits.contains(form)) => None,
            _ => self.kind,
        }
    }
}

/// The numbers that a source gives the card in words, or in its CID.
struct Identity {
    manufacturer_id: Option<u64>,
    serial: Option<u64>,
    name: Option<String>,
}

impl Identity {
    fn of(data: &CardData, kind: Option<CardKind>) -> Self {
        let attribute = |name: &str| {
            let digits = data.sysfs.get(name)?.trim().strip_prefix("0x")?;
            u64::from_str_radix(digits, 16).ok()
        };
        let cid = data.cid.as_ref();
        // The position of the serial number depends on the family.
        let serial = cid.zip(kind).map(|(cid, kind)| u64::from(cid.decode(kind, None).serial_number));
        Self {
            manufacturer_id: cid
                .map(|Cid([id, ..])| u64::from(*id))
                .or(data.stated.manufacturer_id.map(u64::from))
                .or_else(|| attribute("manfid")),
            name: cid.zip(kind).map_or_else(
                || data.stated.name.clone().or_else(|| data.sysfs.get("name").cloned()),
                |(cid, kind)| String::from_utf8(cid.decode(kind, None).product_name_raw).ok(),
            ),
            serial: serial.or(data.stated.serial.map(u64::from)).or_else(|| attribute("serial")),
        }
    }
}

/// Whether one product name is the other, perhaps without its last letters: older U-Boot prints five of an eMMC's six.
fn same_name(ours: &str, theirs: &str) -> bool {
    let plain = |name: &str| name.len() >= 3 && name.bytes().all(|letter| matches!(letter, b' '..=b'~'));
    let (ours, theirs) = (ours.trim_matches(['\0', ' ', '\n']), theirs.trim_matches(['\0', ' ', '\n']));
    !plain(ours) || !plain(theirs) || ours.starts_with(theirs) || theirs.starts_with(ours)
}

/// The names of two sources in a message: two forms in one file need more than its name.
fn labels(ours: &CardData, theirs: &CardData) -> (String, String) {
    // A dash would read as a mark in a sentence.
    let spoken = |name: String| if name == "-" { "standard input".to_owned() } else { name };
    let (name, other) = (spoken(ours.name()), spoken(theirs.name()));
    if name == other { (format!("one part of {name}"), format!("another part of {other}")) } else { (name, other) }
}

fn unequal<T: PartialEq>(ours: Option<T>, theirs: Option<T>) -> Option<(T, T)> {
    ours.zip(theirs).filter(|(ours, theirs)| ours != theirs)
}

fn kind_name(kind: CardKind) -> &'static str {
    match kind {
        CardKind::Emmc => "an eMMC",
        CardKind::Sd => "an SD card",
    }
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Which of two values is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Used {
    /// The one that was read; the other was inferred.
    Read,
    /// The higher one.
    Higher,
    /// The one of the first source.
    First,
}

/// Whether a byte only rises during a card's life: PRE_EOL_INFO and the two life times.
fn only_rises(offset: u16) -> bool {
    let fields = [reg::PRE_EOL_INFO, reg::DEVICE_LIFE_TIME_EST_TYP_A, reg::DEVICE_LIFE_TIME_EST_TYP_B];
    fields.iter().any(|field| field.bytes().any(|byte| byte == offset))
}

/// A sentence on a value that differs between two sources.
fn sentence(what: impl Display, ours: (&str, impl Display), theirs: (&str, impl Display), used: Used) -> String {
    let counts = match used {
        Used::Read => "the value that was read is used",
        Used::Higher => "the higher is used, because wear never falls",
        Used::First => "the first is used",
    };
    format!("{what} is {} in {} and {} in {}; {counts}", ours.1, ours.0, theirs.1, theirs.0)
}

/// EXT_CSD of both, and its inferred bytes: read values replace inferred ones.
fn overlay(ours: &CardData, theirs: &CardData) -> (Option<ExtCsd>, Vec<u16>) {
    let (Some(first), Some(second)) = (&ours.ext_csd, &theirs.ext_csd) else {
        let one = if ours.ext_csd.is_some() { ours } else { theirs };
        return (one.ext_csd.clone(), one.inferred.clone());
    };
    let (mut both, mut inferred) = (first.clone(), Vec::new());
    let masks = first.mask().iter().zip(second.mask()).zip(second.bytes());
    for (offset, ((&known, &new), &byte)) in (0u16..).zip(masks) {
        let (guess, other_guess) = (ours.is_inferred(offset), theirs.is_inferred(offset));
        let is_worse = first.bytes().get(usize::from(offset)).is_some_and(|&ours| byte > ours);
        let taken = match () {
            () if guess && !other_guess => new,
            () if only_rises(offset) && guess == other_guess && known == 0xff && new == 0xff && is_worse => new,
            () => new & !known,
        };
        both.set_bits(offset, taken, byte);
        let kept = known & !taken;
        if (guess && kept != 0) || (other_guess && taken != 0) {
            inferred.push(offset);
        }
    }
    (Some(both), inferred)
}
