//! The shapes in which tools print sysfs files: `PATH:VALUE`, `==> PATH <==`, a command's echo, `name = value`, alone.

use super::Attribute;
use super::path::{self, Ids, Place};
use crate::saved::text::{Line, Text};

/// Attributes that only a card has, whose values prove that a bare line is one.
const PROOF: [&str; 12] = [
    "life_time",
    "pre_eol_info",
    "manfid",
    "oemid",
    "hwrev",
    "fwrev",
    "prv",
    "preferred_erase_size",
    "raw_rpmb_size_mult",
    "enhanced_area_offset",
    "rel_sectors",
    "ffu_capable",
];

/// The other attributes of a card, whose names are common words.
const OTHERS: [&str; 18] = [
    "cid",
    "csd",
    "scr",
    "ssr",
    "date",
    "name",
    "serial",
    "type",
    "rev",
    "ocr",
    "rca",
    "dsr",
    "erase_size",
    "enhanced_area_size",
    "enhanced_rpmb_supported",
    "cmdq_en",
    "cache_ctrl",
    "cache_size",
];

/// `0x01 0x0b`: two numbers of two digits.
pub(super) fn is_life_time(value: &str) -> bool {
    value.split_once(' ').is_some_and(|(a, b)| is_byte(a) && is_byte(b))
}

/// `0x01`, or `01` of older kernels.
pub(super) fn is_pre_eol(value: &str) -> bool {
    is_byte(value) || is_byte(&format!("0x{value}"))
}

fn is_byte(text: &str) -> bool {
    text.strip_prefix("0x").is_some_and(|digits| digits.len() == 2 && digits.bytes().all(|d| d.is_ascii_hexdigit()))
}

/// The attribute of which the whole text is the content: `cat life_time` or `cat pre_eol_info`.
pub(super) fn bare<'t>(text: &'t Text) -> Option<Attribute<'t>> {
    let mut lines = text.lines().filter(|line| !line.text.trim().is_empty());
    let (line, None) = (lines.next()?, lines.next()) else { return None };
    let value = line.text.trim();
    let number = || value.strip_prefix("0x").and_then(|digits| u8::from_str_radix(digits, 16).ok());
    // A lone number may be the cut start of a life time: a whole file ends its line, and has an assigned value.
    let whole =
        text.as_str().ends_with('\n') && is_byte(value) && number().is_some_and(|number| (1..=3).contains(&number));
    let name = match (is_life_time(value), whole) {
        (true, _) => "life_time",
        (false, true) => "pre_eol_info",
        _ => return None,
    };
    Some(Attribute { line: line.number, ids: Ids::default(), place: Place::Card, name, value })
}

/// Each attribute on its own line or two.
pub(super) fn attributes<'t>(text: &'t Text) -> Vec<Attribute<'t>> {
    if let Some(bare) = bare(text) {
        return vec![bare];
    }
    let (mut found, mut relative, mut run) = (Vec::new(), Vec::new(), Vec::new());
    let mut heading: Option<&str> = None;
    for line in text.lines() {
        let trimmed = line.text.trim();
        if trimmed.is_empty() {
            flush(&mut run, &mut found);
        } else if let Some(path) = heading_path(trimmed).or_else(|| asked_path(trimmed)) {
            heading = Some(path);
        } else if let Some(attribute) = grepped(line) {
            heading = None;
            if attribute.ids == Ids::default() { relative.push(attribute) } else { found.push(attribute) }
        } else if let Some(path) = heading {
            let attribute = headed(path, line);
            let list = if path.contains("mmc") { &mut found } else { &mut relative };
            list.extend(attribute);
            // Only an uevent has more than one line.
            heading = heading.filter(|path| path.ends_with("uevent"));
        } else {
            run.extend(assigned(line));
        }
    }
    flush(&mut run, &mut found);
    flush(&mut relative, &mut found);
    found
}

/// Attributes without a card's path count when one of them can only be a card's.
fn flush<'t>(run: &mut Vec<Attribute<'t>>, found: &mut Vec<Attribute<'t>>) {
    let proven = run.iter().any(|attribute| is_proof(attribute.name, attribute.value));
    found.extend(run.drain(..).filter(|_| proven));
}

/// Whether a name and its value can only be an attribute of a card.
fn is_proof(name: &str, value: &str) -> bool {
    let hex = || value.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|d| d.is_ascii_hexdigit()));
    PROOF.contains(&name)
        && match name {
            "life_time" => is_life_time(value),
            "pre_eol_info" => is_pre_eol(value),
            _ => hex() || value.parse::<u64>().is_ok(),
        }
}

/// `==> PATH <==`, as head and tail print it for several files.
fn heading_path(line: &str) -> Option<&str> {
    line.strip_prefix("==> ")?.strip_suffix(" <==")
}

/// The file whose content a command at a prompt prints: `# cat /sys/block/mmcblk0/device/life_time`.
fn asked_path(line: &str) -> Option<&str> {
    let (before, path) = line.rsplit_once("cat ")?;
    let prompt = before.is_empty() || before.ends_with([' ', '#', '$', '>']);
    let path = path.trim();
    (prompt && !path.contains([' ', '*', '|', '{'])).then_some(path)
}

/// An attribute under a heading.
fn headed<'t>(path: &'t str, line: Line<'t>) -> Option<Attribute<'t>> {
    let (directory, name) = path.rsplit_once('/').unwrap_or((".", path));
    let (ids, place) = owned(directory, name)?;
    attribute(line.number, ids, place, name, line.text.trim())
}

/// `PATH:VALUE`, as grep prints it.
fn grepped(line: Line<'_>) -> Option<Attribute<'_>> {
    let text = line.text.trim();
    // A directory may have a colon (mmc0:0001), a value may have a slash (07/2016).
    text.match_indices(':').take(12).find_map(|(at, _)| {
        let (path, value) = (text.get(..at)?, text.get(at + 1..)?);
        let (directory, name) = path.rsplit_once('/')?;
        let plain = !name.is_empty() && name.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'_');
        if !plain || directory.contains([' ', '"', '\'']) {
            return None;
        }
        let (ids, place) = owned(directory, name)?;
        attribute(line.number, ids, place, name, value.trim())
    })
}

/// The owner of an attribute by its directory; without a path only names specific to cards are used.
fn owned<'t>(directory: &'t str, name: &str) -> Option<(Ids<'t>, Place<'t>)> {
    let relative = || (directory == "." && is_named(name)).then_some((Ids::default(), Place::Card));
    path::owner(directory).or_else(relative)
}

/// `life_time: 0x01 0x02`, `manfid=0x15`, `name : 008GE0`.
fn assigned(line: Line<'_>) -> Option<Attribute<'_>> {
    let (name, value) = line.text.trim().split_once([':', '='])?;
    let (name, value) = (name.trim(), value.trim());
    // mmc-utils' text has some of the names, followed by quotes.
    let known = is_named(name) && !value.is_empty() && !value.starts_with('\'');
    known.then_some(Attribute { line: line.number, ids: Ids::default(), place: Place::Card, name, value })
}

fn is_named(name: &str) -> bool {
    PROOF.contains(&name) || OTHERS.contains(&name) || name == "uevent"
}

/// The attribute, or the value of a line of uevent.
fn attribute<'t>(line: u64, ids: Ids<'t>, place: Place<'t>, name: &'t str, value: &'t str) -> Option<Attribute<'t>> {
    let (name, value) = match (name, place) {
        ("uevent", Place::Card) => match value.split_once('=')? {
            ("MMC_TYPE", value) => ("type", value),
            ("MMC_NAME", value) => ("name", value),
            _ => return None,
        },
        ("uevent", _) => return None,
        _ => (name, value),
    };
    (!name.starts_with("mmc") && !value.is_empty()).then_some(Attribute { line, ids, place, name, value })
}
