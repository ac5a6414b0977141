//! A field with its value, as printed and compared.

use std::borrow::Cow;

use super::field::{Bits, Field, Unit};
use super::{ExtCsd, device_info, fields};
use crate::row::FieldValue;

/// A field, or one byte of an array field, with what is in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The field of the table.
    pub field: &'static Field,
    /// The standard's name, with the byte's number for an element of an array: `VENDOR_SPECIFIC_FIELD[64]`.
    pub name: Cow<'static, str>,
    /// First byte.
    pub offset: u16,
    /// Bytes.
    pub width: u16,
    /// The number in the register.
    pub raw: u64,
    /// Its decoded value, in `unit`.
    pub value: FieldValue,
    /// Unit of `value`; empty for names and flags.
    pub unit: &'static str,
    /// EXT_CSD_REV of the part, where that revision has no such field: what is in it means nothing.
    pub not_in_rev: Option<u8>,
}

pub(super) fn rows(ext_csd: &ExtCsd, reserved: bool) -> impl Iterator<Item = Row> + '_ {
    fields().filter(move |field| reserved || !field.is_reserved()).flat_map(move |field| {
        let step = if field.is_array() { 1 } else { field.width };
        (field.offset..field.offset + field.width)
            .step_by(usize::from(step))
            .filter_map(move |offset| row(ext_csd, field, offset, step))
    })
}

fn row(ext_csd: &ExtCsd, field: &'static Field, offset: u16, width: u16) -> Option<Row> {
    let raw = ext_csd.uint(offset, width)?;
    let name = if field.is_array() { format!("{}[{offset}]", field.name).into() } else { field.name.into() };
    let (value, unit) = meaning(ext_csd, field, raw);
    let not_in_rev = ext_csd.byte(super::reg::EXT_CSD_REV).filter(|rev| field.is_newer_than(*rev));
    let value = if not_in_rev.is_some() { FieldValue::Undefined } else { value };
    Some(Row { field, name, offset, width, raw, value, unit, not_in_rev })
}

fn meaning(ext_csd: &ExtCsd, field: &'static Field, raw: u64) -> (FieldValue, &'static str) {
    let product = |factor: Option<u64>, unit: &'static str| match factor.and_then(|factor| raw.checked_mul(factor)) {
        Some(number) => (FieldValue::Number(number), unit),
        None => (FieldValue::Undefined, unit),
    };
    match field.unit {
        Unit::None => (name_or_flags(field, raw), ""),
        // The one named value of a quantity is that it is not defined.
        Unit::Linear(_, unit) if field.values.iter().any(|(value, _)| *value == raw) => (FieldValue::Undefined, unit),
        Unit::Linear(step, unit) => product(Some(step), unit),
        Unit::PlusOne(step, unit) => {
            let counted = field.bits.first().map_or(raw, |bits| raw & bits.mask());
            (FieldValue::Number(counted.saturating_add(1).saturating_mul(step)), unit)
        }
        Unit::Exp2 { step, unit, bias, raw_max } => {
            let counted = field.bits.first().map_or(raw, |bits| raw & bits.mask());
            let defined = counted >= u64::from(bias) && counted <= u64::from(raw_max) && (counted > 0 || unit == "B");
            let value = defined.then(|| step << (counted - u64::from(bias)));
            (value.map_or(FieldValue::Undefined, FieldValue::Number), unit)
        }
        Unit::WpGroups => product(device_info::hc_wp_group_bytes(ext_csd), "B"),
        Unit::EraseGroups => product(device_info::hc_erase_group_bytes(ext_csd), "B"),
        Unit::StartAddress => match device_info::is_sector_addressed(ext_csd) {
            Some(true) => product(Some(512), "B"),
            Some(false) => product(Some(1), "B"),
            None => (FieldValue::Undefined, "B"),
        },
        Unit::DataSectors => match ext_csd.byte(61) {
            Some(0) => product(Some(512), "B"),
            Some(1) => product(Some(4096), "B"),
            _ => (FieldValue::Undefined, "B"),
        },
        Unit::SecureTimeout => product(ext_csd.byte(223).map(|mult| 300 * u64::from(mult)), "ms"),
        Unit::LifeBand => (FieldValue::text(device_info::LifeTime(raw as u8).to_string()), ""),
        Unit::PowerClass => {
            (FieldValue::text(format!("8-bit class {}, 4-bit class {}", raw >> 4 & 0xf, raw & 0xf)), "")
        }
    }
}

fn name_or_flags(field: &'static Field, raw: u64) -> FieldValue {
    // Values may share their byte with other bits: HS_TIMING names its low nibble, the driver strength is above it.
    if let Some((_, name)) = field.values.iter().find(|(value, _)| *value == raw) {
        return FieldValue::text(*name);
    }
    if field.name == "FIRMWARE_VERSION" {
        return FieldValue::text(firmware_text(raw));
    }
    if field.bits.is_empty() {
        return if field.values.is_empty() { FieldValue::Number(raw) } else { FieldValue::text("not assigned") };
    }
    let named = field.bits.iter().filter_map(|bits| bits_text(field, bits, raw));
    let mask = field.bits.iter().fold(0, |mask, bits| mask | bits.mask());
    let rest = raw & !mask;
    FieldValue::Flags(named.chain((rest != 0).then(|| format!("unassigned bits {rest:#x}").into())).collect())
}

fn bits_text(field: &Field, bits: &Bits, raw: u64) -> Option<Cow<'static, str>> {
    let value = (raw & bits.mask()) >> bits.lo;
    if bits.hi == bits.lo {
        return (value == 1).then_some(bits.name.into());
    }
    let lowest = field.bits.iter().map(|other| other.lo).min() == Some(bits.lo);
    let name = field.values.iter().find(|(number, _)| lowest && *number == value).map(|(_, name)| *name);
    match name {
        Some(name) => Some(format!("{}={value} ({name})", bits.name).into()),
        None => Some(format!("{}={value}", bits.name).into()),
    }
}

/// Eight bytes, least significant first: as text where all of it is printable, else as hexadecimal digits in that
/// order.
fn firmware_text(raw: u64) -> String {
    let bytes = raw.to_le_bytes();
    let text = bytes.iter().rposition(|&byte| byte != 0).map_or(&bytes[..0], |last| &bytes[..=last]);
    if !text.is_empty() && text.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ') {
        return text.iter().map(|&byte| char::from(byte)).collect();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::field_named;
    use super::*;

    fn value_of(ext_csd: &ExtCsd, name: &str) -> (FieldValue, &'static str) {
        let row = ext_csd.rows(false).find(|row| row.name == name).unwrap();
        (row.value, row.unit)
    }

    fn with(bytes: &[(u16, u16, u64)]) -> ExtCsd {
        let mut ext_csd = ExtCsd::from_bytes([0; 512]);
        ext_csd.set_uint(192, 1, 8);
        bytes.iter().for_each(|&(offset, width, value)| ext_csd.set_uint(offset, width, value));
        ext_csd
    }

    #[test]
    fn units_are_applied() {
        let card = with(&[(224, 1, 1), (221, 1, 16), (212, 4, 31_080_448), (157, 3, 939), (249, 4, 65_536)]);
        for (name, number, unit) in [
            ("MAX_ENH_SIZE_MULT", 7512 << 20, "B"),
            ("HC_WP_GRP_SIZE", 8 << 20, "B"),
            ("HC_ERASE_GRP_SIZE", 512 << 10, "B"),
            ("SEC_COUNT", 31_080_448, "sectors"),
            ("CACHE_SIZE", 8 << 20, "B"),
            ("CMDQ_DEPTH", 1, "tasks"),
        ] {
            assert_eq!(value_of(&card, name), (FieldValue::Number(number), unit), "{name}");
        }
    }

    #[test]
    fn exponents_below_the_first_defined_value_are_undefined() {
        let card = with(&[(217, 1, 0x11), (225, 1, 7), (216, 1, 0x18), (498, 1, 3)]);
        assert_eq!(value_of(&card, "S_A_TIMEOUT"), (FieldValue::Number(100 << 17), "ns"));
        assert_eq!(value_of(&card, "ACC_SIZE"), (FieldValue::Number(32_768), "B"));
        assert_eq!(value_of(&card, "TAG_UNIT_SIZE"), (FieldValue::Number(4096), "B"));
        assert_eq!(value_of(&card, "SLEEP_NOTIFICATION_TIME").0, FieldValue::Undefined);
        assert_eq!(value_of(&card, "OPTIMAL_TRIM_UNIT_SIZE").0, FieldValue::Undefined);
    }

    #[test]
    fn codes_flags_and_life_bands_are_named() {
        let card = with(&[(192, 1, 8), (196, 1, 0x57), (268, 1, 2), (269, 1, 0xb), (185, 1, 0x13), (179, 1, 0x48)]);
        assert_eq!(value_of(&card, "EXT_CSD_REV").0.to_string(), "1.8 (5.1)");
        assert_eq!(value_of(&card, "DEVICE_LIFE_TIME_EST_TYP_A").0.to_string(), "10 % to 20 % of life used");
        assert_eq!(value_of(&card, "DEVICE_LIFE_TIME_EST_TYP_B").0.to_string(), "past 100 % of estimated life");
        assert_eq!(
            value_of(&card, "HS_TIMING").0.to_string(),
            "TIMING_INTERFACE=3 (HS400), SELECTED_DRIVER_STRENGTH=1"
        );
        assert!(value_of(&card, "DEVICE_TYPE").0.to_string().contains("HS400 1.8 V"));
        assert_eq!(
            value_of(&card, "PARTITION_CONFIG").0.to_string(),
            "BOOT_ACK, BOOT_PARTITION_ENABLE=1, PARTITION_ACCESS=0"
        );
    }

    #[test]
    fn best_sizes_of_zero_are_not_defined() {
        let card = with(&[(192, 1, 7), (264, 1, 0), (265, 1, 0), (266, 1, 8), (241, 1, 0)]);
        for name in ["OPTIMAL_TRIM_UNIT_SIZE", "OPTIMAL_WRITE_SIZE", "INI_TIMEOUT_AP"] {
            assert_eq!(value_of(&card, name).0, FieldValue::Undefined, "{name}");
        }
        assert_eq!(value_of(&card, "OPTIMAL_READ_SIZE"), (FieldValue::Number(32_768), "B"));
    }

    #[test]
    fn a_field_absent_from_the_revision_has_no_meaning() {
        let row = |rev: u64, name: &str| {
            let card = with(&[(192, 1, rev), (308, 1, 1), (493, 1, 1), (486, 1, 1), (64, 1, 7)]);
            let row = card.rows(true).find(|row| row.name == name).unwrap();
            (row.not_in_rev, row.raw, row.value)
        };
        for (rev, name) in [(5, "CMDQ_SUPPORT"), (5, "SUPPORTED_MODES"), (7, "BARRIER_SUPPORT"), (7, "CMDQ_SUPPORT")] {
            assert_eq!(row(rev, name), (Some(rev as u8), 1, FieldValue::Undefined), "{rev} {name}");
        }
        for (rev, name) in [(8, "CMDQ_SUPPORT"), (7, "SUPPORTED_MODES"), (8, "BARRIER_SUPPORT"), (9, "CMDQ_SUPPORT")] {
            assert_eq!(row(rev, name).0, None, "{rev} {name}");
        }
        assert_eq!((row(3, "VENDOR_SPECIFIC_FIELD[64]").0, row(0, "RESERVED[0]").0), (None, None));
        let mut unknown = ExtCsd::unknown();
        unknown.set_uint(308, 1, 1);
        assert_eq!(unknown.rows(false).next().unwrap().not_in_rev, None);
    }

    #[test]
    fn arrays_are_rows_of_bytes_and_reserved_bytes_only_on_request() {
        let card = with(&[(64, 1, 0x0f), (506, 1, 1)]);
        assert_eq!(card.rows(false).filter(|row| row.field.name == "VENDOR_SPECIFIC_FIELD").count(), 64);
        assert!(card.rows(false).all(|row| row.field.name != "RESERVED"));
        assert!(card.rows(true).any(|row| row.name == "RESERVED[506]" && row.raw == 1));
        let bytes: usize = card.rows(true).map(|row| usize::from(row.width)).sum();
        assert_eq!(bytes, 512);
        assert_eq!(field_named("FIRMWARE_VERSION").unwrap().width, 8);
    }

    #[test]
    fn firmware_is_text_only_if_all_bytes_are_printable() {
        assert_eq!(firmware_text(u64::from_le_bytes(*b"A1B2\0\0\0\0")), "A1B2");
        assert_eq!(firmware_text(0x81), "8100000000000000");
        assert_eq!(firmware_text(0), "0000000000000000");
    }
}
