//! Registers as hexadecimal digits: with a label, alone as sysfs and debugfs print them, or as a dump with addresses.
//!
//! U-Boot's `mmc reg read` is one of these. Absent on purpose: words about registers; those are other forms.

use std::collections::BTreeMap;

use emmc_regs::CardKind;
use emmc_regs::cid::Cid;
use emmc_regs::ext_csd::ExtCsd;

use super::hex_meaning::{self, Meaning, bytes_of};
use super::hex_scan;
use super::identify;
use super::labels::{Labelled, Register};
use super::register_bits::RegisterBits;
use super::text::{Text, excerpt};
use super::vendor_reply;
use crate::{CardData, Format, SourceError};

/// Whether the text has registers in hexadecimal, or is hexadecimal and nothing else.
pub(super) fn recognises(text: &Text) -> bool {
    // A broken dump is recognised, so that it is told what is broken.
    hex_scan::scan(text).map_or(true, |scan| scan.is_promising())
}

/// Reads the registers.
///
/// Errors: another number of digits than the register's, digits of which the register is unclear, a known piece of
/// junk, or two values for one register.
pub(super) fn import(text: &Text) -> Result<CardData, SourceError> {
    let scan = hex_scan::scan(text)?;
    let mut found = Found::new(text);
    for (line, labelled) in scan.labelled {
        found.take_labelled(line, labelled)?;
    }
    let mut unclear = Vec::new();
    for block in &scan.blocks {
        match hex_meaning::of_block(text, block) {
            Ok(meanings) => meanings.into_iter().try_for_each(|(line, meaning)| found.take(line, meaning))?,
            Err(error) => unclear.push(error),
        }
    }
    for dump in &scan.dumps {
        match hex_meaning::of_dump(text, dump) {
            Ok(meaning) => found.take(dump.line, meaning)?,
            Err(error) => unclear.push(error),
        }
        if dump.radix == 10 && dump.colon {
            found.format = Format::UBootRegRead;
        }
    }
    let data = found.finish(&scan.attributes);
    // Among other text unclear digits may be anything: a checksum, a key.
    match unclear.into_iter().next() {
        Some(error) if scan.alone || tells_nothing(&data) => Err(error),
        _ => Ok(data),
    }
}

fn tells_nothing(data: &CardData) -> bool {
    CardData { origins: Vec::new(), ..data.clone() } == CardData::default()
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

    fn take_labelled(&mut self, line: u64, labelled: Labelled) -> Result<(), SourceError> {
        match labelled {
            Labelled::Whole(Register::ExtCsd, digits) => {
                let block = hex_scan::Block { line, digits: digits.len(), rows: vec![digits], asked: None };
                let meanings = hex_meaning::of_block(self.text, &block)?;
                meanings.into_iter().try_for_each(|(line, meaning)| self.take(line, meaning))
            }
            Labelled::Whole(register, digits) => self.take_register(line, register, &digits),
            Labelled::Part(Register::ExtCsd, offset, value) => {
                self.format = Format::UBootRegRead;
                self.bits.set(line, "EXT_CSD", offset, 1, value)
            }
            Labelled::Part(register @ (Register::Cid | Register::Csd), index @ 0..=3, value) => {
                self.take_word(line, register, index, value)
            }
            Labelled::Part(register, index, _) => {
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
        self.format = Format::UBootRegRead;
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
                    self.data.note("byte 511 came first, as old kernels print EXT_CSD; the order was reversed");
                }
                self.take_ext_csd(line, &ext_csd)
            }
            Meaning::ExtCsdPart { ext_csd, start } => {
                self.format = Format::ExtCsdHex;
                let count = ext_csd.known_bytes();
                self.data
                    .note(format!("{count} of the 512 bytes of EXT_CSD, from byte {start} on; the rest is unknown"));
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
        let is_number = matches!(register, Register::Ocr | Register::Rca);
        if digits.len() != register.digits() && !(is_number && digits.len() < register.digits()) {
            let expected = format!("{} hexadecimal digits of {name}", register.digits());
            return Err(self.text.malformed(line, expected, format!("{} digits", digits.len())));
        }
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
            Register::Rca => match number.map(u16::try_from) {
                Ok(Ok(rca)) => self.data.rca = Some(rca),
                _ => return Err(self.text.malformed(line, "16 bits of RCA", format!("0x{digits}"))),
            },
            Register::ExtCsd => {}
        }
        Ok(())
    }

    fn finish(mut self, attributes: &[(&str, &str)]) -> CardData {
        for name in ["CID", "CSD"] {
            if self.words.keys().any(|(word, _)| *word == name) && !self.registers.contains_key(name) {
                self.data.note(format!("{name} is left out: not all four words of it are given"));
            }
        }
        let mut data = self.data;
        data.sysfs = attributes.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        data.ext_csd = self.bits.finish();
        data.kind = kind(&data);
        data.origins.iter_mut().for_each(|origin| origin.format = self.format);
        data
    }
}

/// The family: what sysfs says, else the one that has such a register, else what CSD and CID look like.
fn kind(data: &CardData) -> Option<CardKind> {
    let guess = || {
        let by_csd = data.csd.as_ref().and_then(identify::kind_of_csd);
        by_csd.or_else(|| data.cid.as_ref().and_then(|cid| identify::kind_of_cid(&cid.0)))
    };
    match data.sysfs.get("type").map(String::as_str) {
        Some("MMC") => Some(CardKind::Emmc),
        Some("SD") => Some(CardKind::Sd),
        _ if data.ext_csd.is_some() => Some(CardKind::Emmc),
        _ if data.scr.is_some() || data.ssr.is_some() => Some(CardKind::Sd),
        _ => guess(),
    }
}

#[cfg(test)]
mod tests;
