//! Registers as hexadecimal digits: with a label, alone as sysfs and debugfs print them, or as a dump with addresses.
//!
//! U-Boot's `mmc reg read` is one of these. Absent on purpose: words about registers; those are other forms.

use std::collections::BTreeMap;

use emmc_regs::CardKind;
use emmc_regs::cid::Cid;
use emmc_regs::ext_csd::{ExtCsd, reg};

use super::hex_meaning::{self, Meaning, bytes_of};
use super::hex_scan;
use super::identify;
use super::labels::{Labelled, Register};
use super::register_bits::RegisterBits;
use super::text::{Text, excerpt};
use super::vendor_reply;
use crate::{CardData, Format, SourceError};

/// Whether the text has registers in hexadecimal, or is hexadecimal and little else.
pub(super) fn recognises(text: &Text) -> bool {
    match collect(text) {
        Ok(collected) => !collected.tells_nothing() || (collected.alone && !collected.unclear.is_empty()),
        // Two values for one register, or a broken dump: recognised, so that the error is reported.
        Err(_) => true,
    }
}

/// Reads the registers.
///
/// Errors: two values for one register; and where the text has little else, another number of digits than any
/// register's, digits that make no sense as one, or a known piece of junk.
pub(super) fn import(text: &Text) -> Result<CardData, SourceError> {
    let mut collected = collect(text)?;
    // Among other text unclear digits may be anything: a checksum, a key.
    let fatal = collected.alone || collected.tells_nothing();
    for unclear in std::mem::take(&mut collected.unclear) {
        if fatal {
            return Err(unclear.error);
        }
        unclear.note.into_iter().for_each(|note| collected.data.note(note));
    }
    Ok(collected.data)
}

/// The first digits of a text that are no register but resemble one.
pub(super) fn nearly(text: &Text) -> Option<SourceError> {
    collect(text).ok()?.unclear.into_iter().next().map(|unclear| unclear.error)
}

/// The number of those that are kept; a few are enough.
const UNCLEAR_MAX: usize = 16;

/// Digits that are no register but resemble one.
struct Unclear {
    /// The note for the reader if they are ignored.
    note: Option<String>,
    error: SourceError,
}

/// What is hexadecimal in a text.
struct Collected {
    data: CardData,
    unclear: Vec<Unclear>,
    /// Whether the text is little else.
    alone: bool,
}

impl Collected {
    fn tells_nothing(&self) -> bool {
        CardData { origins: Vec::new(), ..self.data.clone() } == CardData::default()
    }
}

fn collect(text: &Text) -> Result<Collected, SourceError> {
    let scan = hex_scan::scan(text)?;
    let mut found = Found::new(text);
    let mut unclear = Vec::new();
    let mut keep = |note, error| {
        if unclear.len() < UNCLEAR_MAX {
            unclear.push(Unclear { note, error });
        }
    };
    for (line, labelled) in scan.labelled {
        match labelled {
            Labelled::Part(register, index, value) => found.take_part(line, register, index, value)?,
            Labelled::BrokenPart(register, index) => {
                let (name, digits) = (register.name(), register.part_digits());
                let expected = format!("{digits} digits after 0x for {name}[{index}]");
                let error = text.malformed(line, expected, "a different number of digits");
                if !text.is_cut(line) {
                    return Err(error);
                }
                keep(Some(format!("line {line} ends inside its value, which is left out")), error);
            }
            Labelled::Whole(register, digits) => match hex_meaning::of_label(text, line, register, &digits) {
                Ok(meaning) => found.take(line, meaning)?,
                Err(error) => {
                    let note = format!("line {line}: {} of {} digits is left out", register.name(), digits.len());
                    keep(Some(note), error);
                }
            },
        }
    }
    for block in &scan.blocks {
        match hex_meaning::of_block(text, block) {
            Ok(meanings) => meanings.into_iter().try_for_each(|(line, meaning)| found.take(line, meaning))?,
            Err(error) => keep(None, error),
        }
    }
    for dump in &scan.dumps {
        match hex_meaning::of_dump(text, dump) {
            Ok(meaning) => found.take(dump.line, meaning)?,
            Err(error) => keep(None, error),
        }
        if dump.radix == 10 && dump.colon {
            found.format = Format::UBootRegRead;
        }
    }
    let first_word = found.words.iter().map(|((name, _), (line, _))| (*line, *name)).min();
    let mut collected = Collected { data: found.finish(), unclear, alone: scan.alone };
    if let (Some((line, name)), true) = (first_word, collected.tells_nothing()) {
        let error = text.malformed(line, format!("all four words, {name}[0] to {name}[3]"), "less");
        collected.unclear.push(Unclear { note: None, error });
    }
    Ok(collected)
}

/// The registers found so far, each with its line.
struct Found<'t> {
    text: &'t Text<'t>,
    format: Format,
    registers: BTreeMap<&'static str, (u64, String)>,
    words: BTreeMap<(&'static str, u16), (u64, u32)>,
    bits: RegisterBits<'t>,
    data: CardData,
}

impl<'t> Found<'t> {
    fn new(text: &'t Text<'t>) -> Self {
        Self {
            text,
            format: Format::RegisterHex,
            registers: BTreeMap::new(),
            words: BTreeMap::new(),
            bits: RegisterBits::new(text),
            data: CardData::new(text.name, Format::RegisterHex),
        }
    }

    /// U-Boot's `EXT_CSD[192]: 0x08` or `CID[0]: 0x1501004d`.
    fn take_part(&mut self, line: u64, register: Register, index: u16, value: u64) -> Result<(), SourceError> {
        self.format = Format::UBootRegRead;
        match (register, index) {
            (Register::ExtCsd, offset) => self.bits.set(line, "EXT_CSD", offset, 1, value),
            (Register::Cid | Register::Csd, 0..=3) => self.take_word(line, register, index, value),
            _ => {
                let expected = "CID[0] to CID[3], CSD[0] to CSD[3] or EXT_CSD[0] to EXT_CSD[511]";
                Err(self.text.malformed(line, expected, format!("{}[{index}]", register.name())))
            }
        }
    }

    /// One of the four words in which U-Boot prints CID and CSD.
    fn take_word(&mut self, line: u64, register: Register, index: u16, value: u64) -> Result<(), SourceError> {
        let name = register.name();
        let Ok(word) = u32::try_from(value) else {
            return Err(self.text.malformed(line, format!("32 bits of {name}"), format!("{value:#x}")));
        };
        let (before, known) = *self.words.entry((name, index)).or_insert((line, word));
        if known != word {
            let expected = format!("{name}[{index}] to be {known:#010x} as line {before} says");
            return Err(self.text.malformed(line, expected, format!("{word:#010x}")));
        }
        let words: Option<Vec<u32>> = (0..4).map(|index| self.words.get(&(name, index)).map(|word| word.1)).collect();
        let digits = words.map(|words| words.iter().map(|word| format!("{word:08x}")).collect::<String>());
        digits.map_or(Ok(()), |digits| self.take_register(line, register, &digits))
    }

    fn take(&mut self, line: u64, meaning: Meaning) -> Result<(), SourceError> {
        match meaning {
            Meaning::Register(register, digits) => self.take_register(line, register, &digits),
            Meaning::ExtCsd { ext_csd, reversed } => {
                self.format = if reversed { Format::ExtCsdHexReversed } else { Format::ExtCsdHex };
                if reversed {
                    self.data.note("byte 511 is first, as printed by old kernels; the order was reversed");
                }
                self.take_ext_csd(line, &ext_csd)
            }
            Meaning::ExtCsdPart { ext_csd, start, placed } => {
                self.format = Format::ExtCsdHex;
                let count = ext_csd.known_bytes();
                self.data
                    .note(format!("{count} of the 512 bytes of EXT_CSD, from byte {start} on; the rest is unknown"));
                let (size, health) = (reg::SEC_COUNT.offset, reg::PRE_EOL_INFO.offset);
                if !placed && count > usize::from(health) && ext_csd.byte(health).is_none() {
                    self.data.note(
                        "EXT_CSD is incomplete and without addresses: its SEC_COUNT, life time and PRE_EOL_INFO are not used",
                    );
                } else if !placed && count >= usize::from(size) {
                    self.data.note("EXT_CSD is incomplete and without addresses: its SEC_COUNT is not used");
                }
                self.take_ext_csd(line, &ext_csd)
            }
            Meaning::Reply(bytes) => {
                self.format = Format::VendorReport;
                self.data.reports.extend(vendor_reply::data(self.text.name, bytes).reports);
                Ok(())
            }
        }
    }

    fn take_ext_csd(&mut self, line: u64, ext_csd: &ExtCsd) -> Result<(), SourceError> {
        let known = (0..).zip(ext_csd.bytes()).zip(ext_csd.mask()).filter(|(_, mask)| **mask != 0);
        known
            .into_iter()
            .try_for_each(|((offset, &byte), &mask)| self.bits.set_bits(line, "EXT_CSD", offset, mask, byte))
    }

    /// A register of which all digits are given.
    fn take_register(&mut self, line: u64, register: Register, digits: &str) -> Result<(), SourceError> {
        let name = register.name();
        let (before, known) = self.registers.entry(name).or_insert((line, digits.to_string()));
        if !known.eq_ignore_ascii_case(digits) {
            let expected = format!("the {name} of line {before}, {}", excerpt(known));
            return Err(self.text.malformed(line, expected, excerpt(digits)));
        }
        let bytes = bytes_of(digits);
        let number = u32::from_str_radix(digits, 16);
        match register {
            Register::Cid => self.data.cid = bytes.try_into().ok().map(Cid),
            Register::Csd => self.data.csd = bytes.try_into().ok(),
            Register::Scr => self.data.scr = bytes.try_into().ok(),
            Register::Ssr => self.data.ssr = bytes.try_into().ok(),
            Register::Ocr => self.data.ocr = number.ok(),
            Register::Rca => self.data.rca = number.ok().and_then(|rca| u16::try_from(rca).ok()),
            Register::ExtCsd => {}
        }
        Ok(())
    }

    fn finish(mut self) -> CardData {
        for name in ["CID", "CSD"] {
            if self.words.keys().any(|(word, _)| *word == name) && !self.registers.contains_key(name) {
                self.data.note(format!("{name} is left out: not all four words of it are given"));
            }
        }
        let mut data = self.data;
        data.ext_csd = self.bits.finish();
        data.kind = kind(&data);
        data.origins.iter_mut().for_each(|origin| origin.format = self.format);
        data
    }
}

/// The family: the one that has such a register, else by the form of CSD and CID.
fn kind(data: &CardData) -> Option<CardKind> {
    let by_csd = || data.csd.as_ref().and_then(identify::kind_of_csd);
    let by_cid = || data.cid.as_ref().and_then(|cid| identify::kind_of_cid(&cid.0));
    match (&data.ext_csd, data.scr.is_some() || data.ssr.is_some()) {
        (Some(_), _) => Some(CardKind::Emmc),
        (None, true) => Some(CardKind::Sd),
        (None, false) => by_csd().or_else(by_cid),
    }
}

#[cfg(test)]
mod tests;
