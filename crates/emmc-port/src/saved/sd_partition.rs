//! The `sd_partition` tool of Cisco's field notices: a check that names some registers and their present settings.
//!
//! Source: testdata/hwpartition/cisco-hynix-hbg4e, the only published output.

use emmc_regs::CardKind;
use emmc_regs::ext_csd::{field_at, reg};

use super::register_bits::RegisterBits;
use super::text::{Text, decimal_number, excerpt, hex_of_width};
use crate::{CardData, Format, SourceError};

/// What the tool was going to write, and so no reading.
const TO_BE_SET: &str = "EXT_CSD registers to be set";

/// Whether the text is the tool's.
pub(super) fn recognises(text: &Text) -> bool {
    text.as_str().contains(TO_BE_SET)
}

/// Reads the registers before the planned ones, and the bits that the check found set.
///
/// Errors: a value that its register cannot have, or two values for one.
pub(super) fn import(text: &Text) -> Result<CardData, SourceError> {
    let mut data = CardData::new(text.name, Format::SdPartition);
    let mut bits = RegisterBits::new(text);
    let mut planned = false;
    for line in text.lines() {
        let said = line.text.trim();
        planned |= said.starts_with(TO_BE_SET);
        match said.strip_prefix("!!! ") {
            Some("Partition Setting already set?") => {
                bits.set_field_bits(line.number, reg::PARTITION_SETTING_COMPLETED, 1, 1)?;
            }
            Some("Partitions Attribute already set for ENH_USR?") => {
                bits.set_field_bits(line.number, reg::PARTITIONS_ATTRIBUTE, 1, 1)?;
            }
            Some("Enhanced user data area size already set?") => {
                data.note("ENH_SIZE_MULT is not zero; its value is not printed");
            }
            _ if planned => {}
            _ => read_register(text, line.number, said, &mut bits)?,
        }
    }
    data.kind = Some(CardKind::Emmc);
    data.ext_csd = bits.finish();
    Ok(data)
}

/// `Max Enhanced Area Size [157-159] 0x000748` or `Partitioning initialization timeout [241] 1000 ms`.
fn read_register(text: &Text, line: u64, said: &str, bits: &mut RegisterBits) -> Result<(), SourceError> {
    let Some((offsets, value)) = said.split_once('[').and_then(|(_, rest)| rest.split_once("] ")) else {
        return Ok(());
    };
    let offset = offsets.split('-').next().and_then(|first| first.parse::<u16>().ok());
    let Some(field) = offset.and_then(field_at).filter(|field| Some(field.offset) == offset) else { return Ok(()) };
    let raw = match value.strip_suffix(" ms") {
        // The one register printed as time counts steps of 100 ms.
        Some(ms) if field.name == "INI_TIMEOUT_AP" => decimal_number(ms).filter(|ms| ms % 100 == 0).map(|ms| ms / 100),
        _ => hex_of_width(value, 2 * usize::from(field.width)..=2 * usize::from(field.width)),
    };
    let Some(raw) = raw else {
        // A last line without a line end may continue in the source.
        let error = text.malformed(line, format!("a value of {}", field.name), excerpt(value));
        return if text.is_cut(line) { Ok(()) } else { Err(error) };
    };
    bits.set(line, field.name, field.offset, field.width, raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planned_values_are_not_read() {
        let log = "Partitioning Support [160] 0x07\nPartitioning initialization timeout [241] 1000 ms\n\
                   EXT_CSD registers to be set:\n  Partitioning Setting [155] 0x01\n";
        let text = Text::new("log", log.as_bytes()).unwrap().unwrap();
        assert!(recognises(&text));
        let ext_csd = import(&text).unwrap().ext_csd.unwrap();
        assert_eq!((ext_csd.byte(160), ext_csd.byte(241), ext_csd.byte(155)), (Some(7), Some(10), None));
    }

    #[test]
    fn wrong_values_are_refused() {
        let log = "Partitioning Support [160] 0x107\nEXT_CSD registers to be set:\n";
        let text = Text::new("log", log.as_bytes()).unwrap().unwrap();
        let message = import(&text).unwrap_err().to_string();
        assert_eq!(message, "log: at line 1: expected a value of PARTITIONING_SUPPORT, found \"0x107\"");
        let log = "x [241] 1050 ms\nEXT_CSD registers to be set:\n";
        let text = Text::new("log", log.as_bytes()).unwrap().unwrap();
        assert!(import(&text).is_err());
    }
}
