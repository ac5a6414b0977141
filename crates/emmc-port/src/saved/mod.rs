//! Saved forms: every form in which users save a card's registers, recognised by content.
//!
//! One file per form, each with `recognises` and `import`; a console log may hold several, and each adds its values. A
//! form reads one line at a time, records the line of each value, and never guesses a value. Absent on purpose: opening
//! files (the caller does), and the meaning of registers (`emmc-analysis`).

mod binary;
mod block_layer;
mod dump;
mod ext_csd_bytes;
mod ext_csd_text;
mod health_parts;
mod hex_meaning;
mod hex_scan;
mod identify;
mod kernel_log;
mod labels;
mod mmc_utils_ids;
mod one_card;
mod register_bits;
mod register_hex;
mod report_json;
mod sd_partition;
mod sysfs_text;
mod text;
mod uboot_info;
mod uboot_size;
mod vendor_reply;
mod vendor_text;

use crate::{CardData, Place, SourceError};
pub(crate) use ext_csd_bytes::fault as ext_csd_fault;
use health_parts::HealthPart;
use text::{Text, excerpt};

/// Bytes that [`read`] accepts at most; callers need not read further.
pub const SOURCE_BYTES_MAX: usize = 8 << 20;

/// The content of a saved file or of standard input.
#[derive(Clone, Debug)]
pub struct SavedSource {
    name: String,
    bytes: Vec<u8>,
}

impl SavedSource {
    /// The content `bytes` of the source that the user named `name`.
    pub fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), bytes: bytes.into() }
    }

    /// Reads all data.
    ///
    /// Errors: an unknown form, or two cards.
    pub fn read(&self) -> Result<CardData, SourceError> {
        read(&self.name, &self.bytes)
    }
}

/// One form of text.
struct Form {
    recognises: fn(&Text) -> bool,
    import: fn(&Text) -> Result<CardData, SourceError>,
    /// Whether its data is ignored if it belongs to another card than the rest: a log of the whole machine.
    by_the_way: bool,
}

impl Form {
    const fn new(recognises: fn(&Text) -> bool, import: fn(&Text) -> Result<CardData, SourceError>) -> Self {
        Self { recognises, import, by_the_way: false }
    }
}

/// The forms that one text may hold side by side; values of an earlier form take precedence.
const FORMS: [Form; 11] = [
    Form::new(ext_csd_text::recognises, ext_csd_text::import),
    Form::new(sysfs_text::recognises, sysfs_text::import),
    Form::new(register_hex::recognises, register_hex::import),
    Form::new(sd_partition::recognises, sd_partition::import),
    Form::new(uboot_info::recognises, uboot_info::import),
    Form::new(mmc_utils_ids::recognises, mmc_utils_ids::import),
    Form::new(vendor_text::recognises_emmcparm, vendor_text::import_emmcparm),
    Form::new(vendor_text::recognises_sdmon, vendor_text::import_sdmon),
    Form::new(vendor_reply::recognises, vendor_reply::import),
    Form::new(block_layer::recognises, block_layer::import),
    Form { by_the_way: true, ..Form::new(kernel_log::recognises, kernel_log::import) },
];

/// Text that users paste but that holds no registers, and a description of it.
const TELLS_NOTHING: [(&str, &str); 5] = [
    ("Could not read EXT_CSD", "a tool's message that it could not read EXT_CSD"),
    ("Partition configuration:", "U-Boot's plan of `mmc hwpartition`, which reads no register; save `mmc info` too"),
    ("mmc enh_area set", "commands without their output"),
    ("mmc extcsd read", "a command without its output"),
    ("records in", "the output of dd"),
];

/// Reads a saved source of any form.
///
/// Errors: [`SourceError::Malformed`] with the offset or line, when the content is of no known form, broken, or larger
/// than [`SOURCE_BYTES_MAX`].
pub fn read(name: &str, bytes: &[u8]) -> Result<CardData, SourceError> {
    let wrong = |at, expected: &str, found: String| Err(SourceError::malformed(name, at, expected, found));
    if bytes.is_empty() {
        return wrong(Place::Byte(0), "saved data of a card", "an empty file".into());
    }
    if bytes.len() > SOURCE_BYTES_MAX {
        let found = format!("{} bytes", bytes.len());
        return wrong(Place::Byte(SOURCE_BYTES_MAX as u64), "at most 8 MiB", found);
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return wrong(Place::Line(1), "saved data of a card", "only whitespace".into());
    }
    match Text::new(name, bytes)? {
        Some(text) if binary::other_file(bytes).is_none() => read_text(&text),
        _ => binary::import(name, bytes),
    }
}

fn read_text(text: &Text) -> Result<CardData, SourceError> {
    if report_json::recognises(text) {
        return report_json::import(text);
    }
    if sysfs_text::is_bare(text) {
        return sysfs_text::import(text);
    }
    one_card::check(text)?;
    let mut data: Option<CardData> = None;
    for form in FORMS.iter().filter(|form| (form.recognises)(text)) {
        data = Some(match data {
            None => (form.import)(text)?,
            Some(mut known) => {
                let before = form.by_the_way.then(|| known.clone());
                let merged = (form.import)(text).and_then(|found| {
                    one_health(text, &known, &found)?;
                    known.merge(found)
                });
                match (merged, before) {
                    (Ok(()), _) => known,
                    (Err(error), Some(mut before)) => {
                        before.note(format!("the kernel log in the same file is left out: {error}"));
                        before
                    }
                    (Err(error), None) => return Err(error),
                }
            }
        });
    }
    data.ok_or_else(|| unknown(text))
}

/// Errors: two forms give different registers of health, so that each may be of another card.
fn one_health(text: &Text, known: &CardData, found: &CardData) -> Result<(), SourceError> {
    let (before, other) = (HealthPart::of(known), HealthPart::of(found));
    if before.agrees_with(&other) {
        return Ok(());
    }
    Err(SourceError::OtherCard {
        name: format!("another part of {}", text.name),
        other: format!("one part of {}", text.name),
        expected: format!("one form with all registers of health, as {} before; save each card apart", before.words()),
        found: other.words(),
    })
}

/// The error for a text of unknown form.
fn unknown(text: &Text) -> SourceError {
    if let Some(error) = register_hex::nearly(text) {
        return error;
    }
    let expected = "a saved form: EXT_CSD as bytes, hexadecimal digits or mmc-utils' text, U-Boot's mmc info or mmc reg \
                    read, CID or CSD digits, files of sysfs, udevadm info, the kernel's log, vendor health, lsblk, fdisk, \
                    df or a snapshot";
    let first = text.lines().find(|line| !line.text.trim().is_empty());
    let known = TELLS_NOTHING.iter().find(|(said, _)| text.as_str().contains(said));
    let found = match (known, first) {
        (Some((_, what)), _) => what.to_string(),
        (None, Some(line)) if is_json(text) => {
            format!("JSON or similar text that is not a snapshot: {}", excerpt(line.text))
        }
        (None, Some(line)) => format!("text that begins with {}", excerpt(line.text)),
        (None, None) => "only whitespace".into(),
    };
    text.malformed(first.map_or(1, |line| line.number), expected, found)
}

/// Whether a text is JSON, whole or cut: a line of a log may begin with a bracket, too.
fn is_json(text: &Text) -> bool {
    let all = text.as_str().trim();
    let whole = || serde_json::from_str::<serde::de::IgnoredAny>(all).is_ok();
    all.starts_with('{')
        || (all.starts_with('[') && (whole() || all.trim_start_matches('[').trim_start().starts_with(['{', '"'])))
}

#[cfg(test)]
mod tests;
