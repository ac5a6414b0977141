//! Other tools' health texts: Micron's emmcparm and sdmon.
//!
//! They are kept unchanged for `emmc-analysis`; only their data on the card itself is read here.

use emmc_regs::CardKind;
use emmc_regs::ext_csd::{field_at, reg};

use super::register_bits::RegisterBits;
use super::text::{Text, decimal_number, excerpt, hex_number};
use crate::{CardData, Format, SavedReport, SourceError, Stated, VendorFormat};

/// Whether the text is emmcparm's.
pub(super) fn recognises_emmcparm(text: &Text) -> bool {
    text.lines().any(|line| {
        let said = line.text.trim_start();
        said.starts_with("EXT_CSD revision [192]") || said.starts_with("Feature name:") || parameter(said).is_some()
    })
}

/// Reads emmcparm's statements and registers, and keeps the report.
///
/// Errors: a value that its register cannot have, or two values for one.
pub(super) fn import_emmcparm(text: &Text) -> Result<CardData, SourceError> {
    let mut data = CardData::new(text.name, Format::VendorReport);
    let mut bits = RegisterBits::new(text);
    for line in text.lines() {
        let said = line.text.trim();
        if let Some((offset, width, value)) = parameter(said) {
            bits.set(line.number, "EXT_CSD", offset, width, value)?;
        } else if let Some((label, value)) = said.split_once('=') {
            match (label.trim(), value.trim()) {
                ("EXT_CSD revision [192]", value) => {
                    let revision = value.strip_prefix("1.").and_then(decimal_number);
                    let wrong = || text.malformed(line.number, "a revision such as 1.8", excerpt(value));
                    bits.set_field(line.number, reg::EXT_CSD_REV, revision.ok_or_else(wrong)?)?;
                }
                (label, value) => state(&mut data.stated, label, value),
            }
        }
    }
    data.kind = Some(CardKind::Emmc);
    data.ext_csd = bits.finish();
    data.reports.push(SavedReport { format: VendorFormat::Emmcparm, content: text.raw.to_vec() });
    Ok(data)
}

fn state(stated: &mut Stated, label: &str, value: &str) {
    match label {
        "Name" => stated.name = Some(value.to_string()),
        // Printed as three bytes: MID is the lowest.
        "Manuf ID" => stated.manufacturer_id = hex_number(value).and_then(|id| u8::try_from(id).ok()),
        "Manufacturing Date" => stated.date = Some(value.to_string()),
        _ => {}
    }
}

/// `FIRMWARE_VERSION lo 32b[257-254]:   0x81 (?)`: lowest byte, width, value.
fn parameter(said: &str) -> Option<(u16, u16, u64)> {
    let (label, value) = said.split_once("]:")?;
    let (name, offsets) = label.rsplit_once('[')?;
    let (high, low) = offsets.split_once('-').unwrap_or((offsets, offsets));
    let (high, low): (u16, u16) = (high.trim().parse().ok()?, low.trim().parse().ok()?);
    let width = high.checked_sub(low)?.checked_add(1).filter(|&width| width <= 8)?;
    let field = field_at(low).filter(|_| high < 512)?;
    let named = name.split_whitespace().next()?.eq_ignore_ascii_case(field.name);
    hex_number(value.trim()).filter(|_| named).map(|value| (low, width, value))
}

/// Whether the text is sdmon's, which is JSON more or less.
pub(super) fn recognises_sdmon(text: &Text) -> bool {
    let all = text.as_str();
    let asked = ["\"read_via_cmd56_arg_1\"", "\"signature\"", "\"idata.response[]\"", "\"flashId\"", "\"error1\""];
    all.contains("\"version\"") && all.contains("\"device\"") && asked.iter().any(|key| all.contains(key))
}

/// Keeps sdmon's report.
pub(super) fn import_sdmon(text: &Text) -> Result<CardData, SourceError> {
    let mut data = CardData::new(text.name, Format::VendorReport);
    data.kind = Some(CardKind::Sd);
    data.reports.push(SavedReport { format: VendorFormat::Sdmon, content: text.raw.to_vec() });
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_by_name_and_offset() {
        for (said, expected) in [
            ("FIRMWARE_VERSION lo 32b[257-254]:   0x81 (?)", Some((254, 4, 0x81))),
            ("SEC_COUNT[215-212]: 0x00e90000", Some((212, 4, 0xe9_0000))),
            ("EXT_CSD_REV[192]: 0x8", Some((192, 1, 8))),
            ("OTHER[192]: 0x8", None),
            ("SEC_COUNT[212-215]: 0x1", None),
            ("EXT_CSD_REV[192]: eight", None),
            ("EXT_CSD_REV[999]: 0x1", None),
            ("RESERVED[14-0]: 0x1", None),
        ] {
            assert_eq!(parameter(said), expected, "{said}");
        }
    }

    #[test]
    fn a_wrong_revision_is_refused() {
        let text = Text::new("log", b"EXT_CSD revision [192] = 2.0").unwrap().unwrap();
        assert!(recognises_emmcparm(&text));
        let message = import_emmcparm(&text).unwrap_err().to_string();
        assert_eq!(message, "log: at line 1: expected a revision such as 1.8, found \"2.0\"");
    }

    #[test]
    fn other_json_is_not_taken_for_sdmon() {
        let sdmon = |text: &str| recognises_sdmon(&Text::new("log", text.as_bytes()).unwrap().unwrap());
        assert!(sdmon("{\"version\": \"v1\", \"device\":\"/dev/mmcblk0\", \"error1\":\"x\"}"));
        assert!(!sdmon("{\"version\": \"v1\", \"device\":\"/dev/mmcblk0\"}"));
    }
}
