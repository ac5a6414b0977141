use emmc_port::Format;
use emmc_regs::CardKind;
use emmc_regs::ext_csd::{EXT_CSD_BYTES, ExtCsd, field_named};

use super::*;

fn card(bytes: [u8; EXT_CSD_BYTES]) -> CardData {
    let mut card = CardData::new("", Format::RegisterHex);
    card.kind = Some(CardKind::Emmc);
    card.ext_csd = Some(ExtCsd::from_bytes(bytes));
    card
}

/// An image with something in every byte, of a part whose sizes are in sectors.
fn image() -> [u8; EXT_CSD_BYTES] {
    let mut bytes = [0; EXT_CSD_BYTES];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = (index * 37 % 251) as u8;
    }
    (bytes[192], bytes[61]) = (8, 0);
    bytes
}

fn flipped(byte: u16, mask: u8) -> CardData {
    let mut bytes = image();
    bytes[usize::from(byte)] ^= mask;
    card(bytes)
}

/// The bits of EXT_CSD that differ, by their persistence.
fn differing(comparison: &Comparison, byte: u16) -> Vec<(u16, u16, Persistence)> {
    let covers =
        |one: &&Difference| field_at(one.offset).map(|field| field.offset) == field_at(byte).map(|field| field.offset);
    comparison
        .differences
        .iter()
        .filter(covers)
        .flat_map(|one| {
            let to_byte = |bits: &BitDifference| (one.offset * 8 + bits.hi, one.offset * 8 + bits.lo, bits.persistence);
            one.bits.iter().map(to_byte).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn every_flipped_bit_is_found_with_the_persistence_of_its_table() {
    let whole = card(image());
    for byte in 0..EXT_CSD_BYTES as u16 {
        let field = field_at(byte).unwrap();
        for bit in 0..8 {
            let expected = field.persistence_of_bit(byte - field.offset, bit);
            let comparison = compare(&whole, &flipped(byte, 1 << bit));
            let found = differing(&comparison, byte);
            let [(hi, lo, persistence)] = found[..] else { panic!("{field} bit {bit} of byte {byte}: {found:?}") };
            let at = byte * 8 + u16::from(bit);
            assert!((lo..=hi).contains(&at), "{field} bit {bit} of byte {byte}: found {hi}:{lo}");
            assert_eq!(persistence, expected, "{field} bit {bit} of byte {byte}");
            let is_listed = !differing(&comparison.persistent(), byte).is_empty();
            assert_eq!(is_listed, expected.is_persistent(), "{field} bit {bit} of byte {byte}");
        }
    }
}

#[test]
fn bits_of_one_register_are_judged_separately() {
    use Persistence::*;
    let whole = card(image());
    for (name, mask, bits, persistence) in [
        ("PARTITION_CONFIG", 0x01, "PARTITION_ACCESS", UntilReset),
        ("PARTITION_CONFIG", 0x08, "BOOT_PARTITION_ENABLE", Kept),
        ("PARTITION_CONFIG", 0x40, "BOOT_ACK", Kept),
        ("BOOT_WP", 0x01, "B_PWR_WP_EN", UntilPowerCycle),
        ("BOOT_WP", 0x04, "B_PERM_WP_EN", OneTime),
        ("BOOT_WP", 0x10, "B_PERM_WP_DIS", OneTime),
        ("USER_WP", 0x01, "US_PWR_WP_EN", UntilReset),
        ("USER_WP", 0x10, "US_PERM_WP_DIS", OneTime),
        ("USER_WP", 0x40, "CD_PERM_WP_DIS", OneTime),
        ("BOOT_CONFIG_PROT", 0x01, "PWR_BOOT_CONFIG_PROT", UntilPowerCycle),
        ("BOOT_CONFIG_PROT", 0x10, "PERM_BOOT_CONFIG_PROT", OneTime),
        ("BKOPS_EN", 0x01, "MANUAL_EN", OneTime),
        ("BKOPS_EN", 0x02, "AUTO_EN", Kept),
        ("BKOPS_STATUS", 0x01, "OUTSTANDING", NotSpecified),
        ("EXCEPTION_EVENTS_STATUS", 0x01, "URGENT_BKOPS", NotSpecified),
        ("VENDOR_SPECIFIC_FIELD", 0x01, "VENDOR_SPECIFIC_FIELD[64]", NotSpecified),
        ("CACHE_CTRL", 0x01, "CACHE_EN", UntilReset),
        ("CONTEXT_CONF", 0x04, "LARGE_UNIT_CONTEXT", UntilReset),
    ] {
        let byte = field_named(name).unwrap().offset;
        let comparison = compare(&whole, &flipped(byte, mask));
        let one = comparison.differences.iter().find(|one| one.offset == byte).unwrap();
        assert_eq!(one.bits.len(), 1, "{name} {mask:#x}");
        assert_eq!((one.bits[0].name.as_deref(), one.persistence), (Some(bits), persistence), "{name} {mask:#x}");
        assert_eq!(one.volatile, matches!(persistence, UntilReset | UntilPowerCycle), "{name} {mask:#x}");
        assert_eq!(one.one_time, persistence == OneTime, "{name} {mask:#x}");
    }
}

#[test]
fn a_field_with_persistent_and_volatile_differences_is_split() {
    // The accessed area and the boot partition.
    let comparison = compare(&card(image()), &flipped(179, 0x0b));
    let [one] = &comparison.differences[..] else { panic!("{comparison:?}") };
    assert_eq!((one.volatile, one.one_time, one.persistence), (false, false, Persistence::Kept));
    let names = |one: &Difference| one.bits.iter().filter_map(|bits| bits.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(one), ["BOOT_PARTITION_ENABLE", "PARTITION_ACCESS"]);
    let persistent = comparison.persistent();
    assert_eq!(persistent.differences.iter().map(names).collect::<Vec<_>>(), [["BOOT_PARTITION_ENABLE"]]);
    assert_eq!(persistent.left_out.iter().map(names).collect::<Vec<_>>(), [["PARTITION_ACCESS"]]);
    assert!(persistent.left_out[0].volatile);
}

#[test]
fn bits_of_other_registers_persist_as_the_standard_says() {
    let with = |csd_bit: usize| {
        let mut card = card(image());
        let mut csd = [0; 16];
        csd[15 - csd_bit / 8] = 1 << (csd_bit % 8);
        card.csd = Some(csd);
        card
    };
    let empty = {
        let mut card = card(image());
        card.csd = Some([0; 16]);
        card
    };
    for (bit, name, persistence) in [
        (12, "TMP_WRITE_PROTECT", Persistence::Kept),
        (13, "PERM_WRITE_PROTECT", Persistence::OneTime),
        (14, "COPY", Persistence::OneTime),
    ] {
        let comparison = compare(&empty, &with(bit));
        let found = comparison.differences.iter().find(|one| one.name == name).unwrap();
        assert_eq!((found.register, found.persistence), ("CSD", persistence), "{name}");
    }
}

#[test]
fn a_field_known_to_one_source_has_no_differing_bits() {
    let mut part = ExtCsd::unknown();
    part.set_uint(192, 1, 8);
    let mut few = card(image());
    few.ext_csd = Some(part);
    let comparison = compare(&card(image()), &few);
    assert_eq!((comparison.compared, comparison.differences.len(), comparison.only_b.len()), (1, 0, 0));
    assert!(comparison.only_a.iter().all(|one| one.bits.is_empty() && one.raw_b.is_none()));
}
