//! `/sys/block/mmcblkN/device`: the kernel's data from probing the card.
//!
//! Absent on purpose: OCR as a register. The attribute `ocr` holds the two voltage bits that the kernel chose, not the
//! card's response, and is stored as an attribute only.

use std::collections::BTreeMap;
use std::io;

use emmc_port::CardData;
use emmc_regs::CardKind;
use emmc_regs::cid::Cid;
use emmc_regs::csd::Csd;
use emmc_regs::ext_csd::{ExtCsd, reg};
use emmc_regs::scr::Scr;
use emmc_regs::ssr::Ssr;

use crate::tree::Tree;

/// -EINVAL, printed as a number without a sign: the enhanced area is not set.
///
/// Source: Linux `drivers/mmc/core/mmc.c`, `mmc_manage_enhanced_area`.
const UNSET: [(&str, &str); 2] =
    [("enhanced_area_offset", "18446744073709551594"), ("enhanced_area_size", "4294967274")];

/// Reads every attribute of a card.
///
/// Errors: the folder cannot be read; a single attribute that cannot is left out.
pub(crate) fn attributes(tree: &Tree, disk: &str) -> io::Result<BTreeMap<String, String>> {
    let folder = tree.block(disk).join("device");
    let mut attributes = BTreeMap::new();
    for name in tree.names(&folder)? {
        if let Some(value) = tree.attribute(&folder, &name) {
            attributes.insert(name, value);
        }
    }
    attributes.retain(|name, value| !UNSET.contains(&(name.as_str(), value.as_str())));
    Ok(attributes)
}

/// Takes the registers out of the attributes, which stay unchanged.
pub(crate) fn apply(attributes: BTreeMap<String, String>, data: &mut CardData) {
    let mut notes = Vec::new();
    let text = |name: &str| attributes.get(name).map(String::as_str);
    data.kind = data.kind.or(text("type").and_then(kind));
    data.cid = register(text("cid"), Cid::parse_hex, &mut notes);
    // The bytes are the same in either layout.
    let parse_csd = |text: &str| Csd::parse_hex(data.kind.unwrap_or(CardKind::Emmc), text);
    data.csd = register(text("csd"), parse_csd, &mut notes).map(|csd| csd.bytes);
    data.scr = register(text("scr"), Scr::parse_hex, &mut notes).map(|scr| scr.0);
    data.ssr = register(text("ssr"), Ssr::parse_hex, &mut notes).map(|ssr| ssr.0);
    data.rca = text("rca").and_then(hex).and_then(|rca| u16::try_from(rca).ok());
    data.sysfs = attributes;
    note(data, notes);
}

/// Which family a card belongs to.
pub(crate) fn kind_of(tree: &Tree, disk: &str) -> Option<CardKind> {
    kind(&tree.attribute(&tree.block(disk).join("device"), "type")?)
}

/// Adds notes for the reader.
pub(crate) fn note(data: &mut CardData, notes: impl IntoIterator<Item = String>) {
    if let Some(origin) = data.origins.first_mut() {
        origin.notes.extend(notes);
    }
}

/// The bits of EXT_CSD in the kernel's attributes, as of the last probe.
///
/// The kernel sets fields to zero that a part of an earlier revision does not have: those stay unknown.
pub(crate) fn ext_csd(attributes: &BTreeMap<String, String>) -> Option<ExtCsd> {
    let number = |name: &str| attributes.get(name).and_then(|text| hex(text));
    let mut ext_csd = ExtCsd::unknown();
    let rev = number("rev").filter(|&rev| rev <= 0xff);
    if let Some(rev) = rev {
        ext_csd.set_raw(reg::EXT_CSD_REV, rev);
    }
    let rev_known = |least: u64| rev.is_some_and(|rev| rev >= least);
    let byte = |name: &str, least: u64| number(name).filter(|&value| value <= 0xff && rev_known(least));
    if let Some(mult) = byte("raw_rpmb_size_mult", 5) {
        ext_csd.set_raw(reg::RPMB_SIZE_MULT, mult);
    }
    if let Some(sectors) = byte("rel_sectors", 3) {
        ext_csd.set_raw(reg::REL_WR_SEC_C, sectors);
    }
    if let Some(info) = attributes.get("pre_eol_info").and_then(|text| whole_byte(text)).filter(|_| rev_known(7)) {
        ext_csd.set_raw(reg::PRE_EOL_INFO, u64::from(info));
    }
    if let Some([a, b]) = life_time(attributes).filter(|_| rev_known(7)) {
        ext_csd.set_raw(reg::DEVICE_LIFE_TIME_EST_TYP_A, u64::from(a));
        ext_csd.set_raw(reg::DEVICE_LIFE_TIME_EST_TYP_B, u64::from(b));
    }
    if let Some(version) = number("fwrev").filter(|_| rev_known(7)) {
        // The attribute prints the bytes in order, a number has its lowest byte first.
        ext_csd.set_raw(reg::FIRMWARE_VERSION, version.swap_bytes());
    }
    if let Some(enabled) = byte("cmdq_en", 8) {
        ext_csd.set_bits(reg::CMDQ_MODE_EN, 1, enabled as u8);
    }
    if let Some(supported) = byte("enhanced_rpmb_supported", 8) {
        ext_csd.set_bits(reg::WR_REL_PARAM, 1 << 4, (supported as u8 & 1) << 4);
    }
    // 0 could mean either of the two bits.
    if byte("ffu_capable", 7) == Some(1) {
        ext_csd.set_bits(reg::SUPPORTED_MODES, 1, 1);
        ext_csd.set_bits(reg::FW_CONFIG, 1, 0);
    }
    (ext_csd != ExtCsd::unknown()).then_some(ext_csd)
}

/// DEVICE_LIFE_TIME_EST_TYP_A and B: `0x01 0x02`.
pub(crate) fn life_time(attributes: &BTreeMap<String, String>) -> Option<[u8; 2]> {
    let mut numbers = attributes.get("life_time")?.split_whitespace().map(whole_byte);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Some(a)), Some(Some(b)), None) => Some([a, b]),
        _ => None,
    }
}

/// A byte in the two digits that the kernel prints: fewer digits are a truncated value.
fn whole_byte(text: &str) -> Option<u8> {
    let text = text.trim();
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u8::try_from(hex(text)?).ok().filter(|_| digits.len() == 2)
}

/// A hexadecimal number with or without `0x`: kernels differ in that, not in the base.
pub(crate) fn hex(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.strip_prefix("0x").unwrap_or(text);
    // `from_str_radix` would take a sign.
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u64::from_str_radix(digits, 16).ok())?
}

fn kind(text: &str) -> Option<CardKind> {
    match text {
        "MMC" => Some(CardKind::Emmc),
        "SD" | "SDcombo" => Some(CardKind::Sd),
        _ => None,
    }
}

fn register<T>(
    text: Option<&str>,
    parse: impl Fn(&str) -> Result<T, emmc_regs::Error>,
    notes: &mut Vec<String>,
) -> Option<T> {
    parse(text?).map_err(|error| notes.push(format!("sysfs: {error}"))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use emmc_port::Format;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn registers_are_read_from_attributes() {
        let mut data = CardData::new("x", Format::SysRoot);
        let ssr = "00".repeat(64);
        apply(
            map(&[
                ("type", "SD"),
                ("cid", "275048534431364730da89b82900fb61"),
                ("csd", "short"),
                ("scr", "0235800300000000"),
                ("ssr", &ssr),
                ("rca", "0xe624"),
                ("ocr", "0x00300000"),
            ]),
            &mut data,
        );
        assert_eq!((data.kind, data.rca, data.ocr), (Some(CardKind::Sd), Some(0xe624), None));
        assert_eq!(data.cid, Cid::parse_hex("275048534431364730da89b82900fb61").ok());
        assert_eq!((data.csd, data.scr, data.ssr), (None, Some([2, 0x35, 0x80, 3, 0, 0, 0, 0]), Some([0; 64])));
        assert_eq!(data.sysfs.len(), 7);
        assert_eq!(data.origins[0].notes, ["sysfs: CSD has 's' at offset 0; expected a hexadecimal digit"]);
    }

    #[test]
    fn only_the_ext_csd_fields_kept_by_the_kernel_are_known() {
        let ext_csd = ext_csd(&map(&[
            ("rev", "0x8"),
            ("life_time", "0x01 0x0b"),
            ("pre_eol_info", "01"),
            ("fwrev", "0x0102030405060708"),
            ("raw_rpmb_size_mult", "0x20"),
            ("rel_sectors", "0x1"),
            ("cmdq_en", "1"),
            ("enhanced_rpmb_supported", "0"),
            ("ffu_capable", "1"),
        ]))
        .unwrap();
        let known = [(192, 8), (168, 0x20), (222, 1), (267, 1), (268, 1), (269, 0xb), (254, 1), (261, 8)];
        for (offset, value) in known {
            assert_eq!(ext_csd.byte(offset), Some(value), "{offset}");
        }
        assert_eq!(ext_csd.known_bytes(), 14);
        let bits = [ext_csd.bit(15, 0), ext_csd.bit(166, 4), ext_csd.bit(493, 0), ext_csd.bit(169, 0)];
        assert_eq!(bits, [Some(true), Some(false), Some(true), Some(false)]);
    }

    #[test]
    fn zeros_of_an_old_part_give_no_health() {
        let old = map(&[("rev", "0x6"), ("life_time", "0x00 0x00"), ("pre_eol_info", "0x00"), ("fwrev", "0x1")]);
        let ext_csd = ext_csd(&old).unwrap();
        assert_eq!((ext_csd.byte(192), ext_csd.known_bytes()), (Some(6), 1));
        assert_eq!(super::ext_csd(&map(&[("life_time", "0x01 0x01"), ("cid", "")])), None);
    }

    #[test]
    fn invalid_numbers_are_unknown() {
        for text in ["", "0x", "-1", "+1", "0x1g", "1 2", "0x10000000000000000"] {
            assert_eq!(hex(text), None, "{text:?}");
        }
        for text in ["0x01", "0x01 0x02 0x03", "0x01 0x100", "a b c", ""] {
            assert_eq!(life_time(&map(&[("life_time", text)])), None, "{text:?}");
        }
    }
}
