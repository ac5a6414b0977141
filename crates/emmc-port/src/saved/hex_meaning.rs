//! The meaning of bytes without a label, from their number and plausibility.

use emmc_regs::ext_csd::{EXT_CSD_BYTES, ExtCsd, reg};

use super::dump::{Dump, reversed_words};
use super::ext_csd_bytes;
use super::hex_scan::Block;
use super::identify;
use super::labels::Register;
use super::text::{Text, excerpt};
use super::vendor_reply;
use crate::SourceError;

/// The largest score of implausibility at which words still count as a register.
const UNLIKENESS_MAX: usize = 4;

/// By how much the score of the other byte order must be larger.
const UNLIKENESS_APART: usize = 2;

/// The meaning of bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Meaning {
    /// A register, as its digits.
    Register(Register, String),
    /// All of EXT_CSD; whether byte 511 came first.
    ExtCsd { ext_csd: ExtCsd, reversed: bool },
    /// Some bytes of EXT_CSD, from the first given one on.
    ExtCsdPart {
        /// What is known of it.
        ext_csd: ExtCsd,
        /// The first byte that is.
        start: usize,
        /// Whether addresses say where the bytes lie.
        placed: bool,
    },
    /// A vendor's reply.
    Reply(Vec<u8>),
}

/// The register that a label names.
///
/// Errors: another number of digits than the register's, or digits that make no sense as EXT_CSD.
pub(super) fn of_label(text: &Text, line: u64, register: Register, digits: &str) -> Result<Meaning, SourceError> {
    let name = register.name();
    let is_number = matches!(register, Register::Ocr | Register::Rca);
    if digits.len() != register.digits() && !(is_number && digits.len() < register.digits()) {
        let expected = format!("{} hexadecimal digits of {name}", register.digits());
        return Err(text.malformed(line, expected, format!("{} digits", digits.len())));
    }
    if register == Register::Rca && u16::from_str_radix(digits, 16).is_err() {
        return Err(text.malformed(line, "16 bits of RCA", format!("0x{digits}")));
    }
    match register {
        Register::ExtCsd => of_512(text, line, &bytes_of(digits)),
        _ => Ok(Meaning::Register(register, digits.to_string())),
    }
}

/// The registers in a block of bare digits, each with its line.
///
/// Errors: no register has that many digits, or they make no sense as one.
pub(super) fn of_block(text: &Text, block: &Block) -> Result<Vec<(u64, Meaning)>, SourceError> {
    if let (Some(register), [digits]) = (block.asked, block.rows.as_slice()) {
        return Ok(vec![(block.line, of_label(text, block.line, register, digits)?)]);
    }
    let row_digits = block.rows.first().map_or(0, String::len);
    let dump_like = block.rows.len() > 2 && block.rows.iter().all(|row| row.len() == row_digits);
    let registers = block.rows.iter().all(|row| matches!(row.len(), 16 | 32 | 128 | 1024));
    if registers && !dump_like && block.digits != 1024 {
        return block.rows.iter().zip(block.line..).map(|(row, line)| Ok((line, of_row(text, line, row)?))).collect();
    }
    let bytes = block_bytes(text, block)?;
    let meaning = match block.digits {
        1024 => of_512(text, block.line, &bytes)?,
        count if count == 2 * bytes.len() && vendor_reply::has_signature(&bytes) => Meaning::Reply(bytes),
        count => {
            let known: Vec<_> = bytes.iter().copied().map(Some).collect();
            let few = count % 2 == 0 && count < 1024;
            match ext_csd_bytes::known_junk(&bytes) {
                Some(junk) => return Err(text.malformed(block.line, "a register", junk)),
                None if few && ext_csd_bytes::fault(&bytes).is_none() => unplaced(&known),
                None if block.starred => {
                    let found = "rows of digits with * for omitted rows; print all rows, with -v";
                    return Err(text.malformed(block.line, DIGITS, found));
                }
                None => return Err(text.malformed(block.line, DIGITS, format!("{count} digits"))),
            }
        }
    };
    Ok(vec![(block.line, meaning)])
}

/// The bytes of a block; printed in words, in the byte order that makes sense.
fn block_bytes(text: &Text, block: &Block) -> Result<Vec<u8>, SourceError> {
    let bytes = bytes_of(&block.rows.concat());
    let may_be = (2 * IDS_BYTES..=EXT_CSD_BYTES).contains(&bytes.len());
    let Some(word) = block.word_digits.filter(|_| may_be) else {
        return Ok(bytes);
    };
    let first: Vec<_> = bytes.iter().copied().map(Some).collect();
    let second: Vec<_> = reversed_words(&bytes, word / 2).into_iter().map(Some).collect();
    let chosen = in_order(text, block.line, 0, &first, Some(&second))?;
    Ok(chosen.iter().map(|byte| byte.unwrap_or_default()).collect())
}

/// Bytes of CID and of CSD, whose checksum is a better proof than the order of words.
const IDS_BYTES: usize = 16;

const DIGITS: &str = "1024 hexadecimal digits of EXT_CSD, 32 of CID or CSD, 16 of SCR or 128 of SSR";

/// A line of as many digits as some register has.
fn of_row(text: &Text, line: u64, digits: &str) -> Result<Meaning, SourceError> {
    let bytes = bytes_of(digits);
    if let Some(junk) = ext_csd_bytes::known_junk(&bytes) {
        return Err(text.malformed(line, "a register", junk));
    }
    if bytes.len() == EXT_CSD_BYTES {
        return of_512(text, line, &bytes);
    }
    match identify::register(&bytes) {
        Some(register) => Ok(Meaning::Register(register, digits.to_string())),
        None => {
            let expected = "a label such as cid: before digits that are not clearly a CID, CSD, SCR or SSR";
            Err(text.malformed(line, expected, excerpt(digits)))
        }
    }
}

/// What a dump with addresses holds.
///
/// Errors: neither EXT_CSD nor a known reply.
pub(super) fn of_dump(text: &Text, dump: &Dump) -> Result<Meaning, SourceError> {
    let bytes = in_order(text, dump.line, dump.start, &dump.bytes, dump.swapped.as_deref())?;
    let given: Option<Vec<u8>> = bytes.iter().copied().collect();
    match given {
        Some(bytes) if dump.start == 0 && bytes.len() == EXT_CSD_BYTES => return of_512(text, dump.line, &bytes),
        Some(bytes) if vendor_reply::has_signature(&bytes) => return Ok(Meaning::Reply(bytes)),
        _ => {}
    }
    let flat: Vec<u8> = bytes.iter().map(|byte| byte.unwrap_or_default()).collect();
    if let Some(junk) = ext_csd_bytes::known_junk(&flat) {
        return Err(text.malformed(dump.line, "a register", junk));
    }
    // Bytes 192, 194 and 196 identify the register; a dump that begins later cannot be checked.
    let fault = if dump.start == 0 { ext_csd_bytes::fault(&flat) } else { None };
    let fits = dump.start.saturating_add(flat.len()) <= EXT_CSD_BYTES;
    match fault {
        None if fits => Ok(part(dump.start, bytes)),
        Some(fault) => Err(text.malformed(dump.line, fault.expected, fault.found)),
        None => Err(text.malformed(dump.line, "a dump of the 512 bytes of EXT_CSD", format!("{} bytes", flat.len()))),
    }
}

/// Which of two readings of a dump in words makes sense; the first unless there is a second.
///
/// Errors: both do, or neither.
fn in_order<'b>(
    text: &Text,
    line: u64,
    start: usize,
    first: &'b [Option<u8>],
    second: Option<&'b [Option<u8>]>,
) -> Result<&'b [Option<u8>], SourceError> {
    let Some(second) = second.filter(|second| *second != first) else { return Ok(first) };
    let flat = |bytes: &[Option<u8>]| -> Vec<u8> { bytes.iter().map(|byte| byte.unwrap_or_default()).collect() };
    let known = |bytes: &[Option<u8>]| {
        let bytes = flat(bytes);
        vendor_reply::has_signature(&bytes) || ext_csd_bytes::known_junk(&bytes).is_some()
    };
    match (known(first), known(second)) {
        (true, false) => return Ok(first),
        (false, true) => return Ok(second),
        _ => {}
    }
    let unlikeness = |bytes: &[Option<u8>]| {
        let forward = ext_csd_bytes::unlikeness(start, bytes);
        let reversed: Vec<_> = bytes.iter().rev().copied().collect();
        let whole = start == 0 && bytes.len() == EXT_CSD_BYTES;
        let backward = if whole { ext_csd_bytes::unlikeness(0, &reversed) } else { None };
        forward.into_iter().chain(backward).min().filter(|&unlikeness| unlikeness <= UNLIKENESS_MAX)
    };
    let clear = |less: usize, more: Option<usize>| more.is_none_or(|more| more >= less + UNLIKENESS_APART);
    match (unlikeness(first), unlikeness(second)) {
        (Some(ours), theirs) if clear(ours, theirs) => Ok(first),
        (ours, Some(theirs)) if clear(theirs, ours) => Ok(second),
        (ours, _) => {
            let found =
                if ours.is_some() { "words that are plausible in both" } else { "words that are plausible in neither" };
            let expected =
                "EXT_CSD in words that are plausible in one byte order; dump bytes instead, e.g. with xxd -p";
            Err(text.malformed(line, expected, found))
        }
    }
}

/// All of EXT_CSD in either order, or a vendor's reply.
fn of_512(text: &Text, line: u64, bytes: &[u8]) -> Result<Meaning, SourceError> {
    if let Some(junk) = ext_csd_bytes::known_junk(bytes) {
        return Err(text.malformed(line, "EXT_CSD", junk));
    }
    if vendor_reply::has_signature(bytes) {
        return Ok(Meaning::Reply(bytes.to_vec()));
    }
    let bytes = <[u8; EXT_CSD_BYTES]>::try_from(bytes)
        .map_err(|_| text.malformed(line, "512 bytes of EXT_CSD", format!("{} bytes", bytes.len())))?;
    let (ext_csd, reversed) = ext_csd_bytes::ordered(&bytes).map_err(|fault| {
        let expected = format!("{} (byte {} of EXT_CSD)", fault.expected, fault.offset);
        text.malformed(line, expected, fault.found)
    })?;
    Ok(Meaning::ExtCsd { ext_csd, reversed })
}

fn part(start: usize, bytes: &[Option<u8>]) -> Meaning {
    let mut ext_csd = ExtCsd::unknown();
    for (offset, byte) in (0..512u16).skip(start).zip(bytes) {
        if let Some(byte) = byte {
            ext_csd.set_bits(offset, 0xff, *byte);
        }
    }
    Meaning::ExtCsdPart { ext_csd, start, placed: true }
}

/// The first bytes of EXT_CSD without addresses: only a complete number of bytes proves that none is lost.
///
/// So it gives no capacity, and no health in the revisions that have registers for it.
fn unplaced(bytes: &[Option<u8>]) -> Meaning {
    let health = usize::from(reg::PRE_EOL_INFO.offset)..=usize::from(reg::DEVICE_LIFE_TIME_EST_TYP_B.offset);
    // Before revision 7 these bytes are reserved.
    let rev = bytes.get(usize::from(reg::EXT_CSD_REV.offset)).copied().flatten();
    let has_health = rev.is_none_or(|rev| rev >= 7);
    let size: Vec<usize> = reg::SEC_COUNT.bytes().map(usize::from).collect();
    let kept = |(index, byte): (usize, &Option<u8>)| {
        byte.filter(|_| !(size.contains(&index) || has_health && health.contains(&index)))
    };
    let bytes: Vec<Option<u8>> = bytes.iter().enumerate().map(kept).collect();
    match part(0, &bytes) {
        Meaning::ExtCsdPart { ext_csd, start, .. } => Meaning::ExtCsdPart { ext_csd, start, placed: false },
        other => other,
    }
}

/// The bytes of whole pairs of digits.
pub(super) fn bytes_of(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks_exact(2).filter_map(|pair| std::str::from_utf8(pair).ok());
    pairs.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect()
}
