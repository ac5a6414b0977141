use emmc_regs::CardKind;
use emmc_regs::cid::Cid;
use emmc_regs::ext_csd::ExtCsd;

use crate::{CardData, Format};

fn emmc(name: &str, registers: &[(u16, u8)]) -> CardData {
    let mut ext_csd = ExtCsd::unknown();
    registers.iter().for_each(|&(offset, value)| ext_csd.set_bits(offset, 0xff, value));
    CardData { ext_csd: Some(ext_csd), ..CardData::new(name, Format::ExtCsdHex) }
}

fn with_cid(name: &str, digits: &str) -> CardData {
    CardData { cid: Cid::parse_hex(digits).ok(), ..CardData::new(name, Format::RegisterHex) }
}

fn stated(name: &str, manufacturer_id: Option<u8>, serial: Option<u32>) -> CardData {
    let mut data = CardData::new(name, Format::MmcUtilsIds);
    (data.stated.manufacturer_id, data.stated.serial) = (manufacturer_id, serial);
    data
}

fn merged(mut first: CardData, second: CardData) -> Result<CardData, String> {
    first.merge(second).map_err(|error| error.to_string())?;
    Ok(first)
}

const SAMSUNG: &str = "1501004d384731474303dc0db061506f";

#[test]
fn another_family_or_identity_is_refused() {
    let ssr = CardData { ssr: Some([0; 64]), ..CardData::new("sd", Format::RegisterHex) };
    let said_sd = CardData { kind: Some(CardKind::Sd), ..CardData::new("sd", Format::UBootInfo) };
    let emmc_named = CardData { kind: Some(CardKind::Emmc), ..with_cid("a", SAMSUNG) };
    let sysfs = |name: &str, value: &str| {
        let mut data = CardData::new("sys", Format::SysRoot);
        data.sysfs.insert(name.into(), value.into());
        data
    };
    for (first, second, message) in [
        (emmc("k", &[(192, 8)]), ssr, "sd: not the same card as k: expected an eMMC, found an SD card"),
        (emmc("k", &[(192, 8)]), said_sd, "sd: not the same card as k: expected an eMMC, found an SD card"),
        (
            with_cid("a", SAMSUNG),
            with_cid("b", "90014a484247346505814afb2d634400"),
            "b: not the same card as a: expected CID 1501004d384731474303dc0db061506f, \
             found CID 90014a484247346505814afb2d634400",
        ),
        (
            with_cid("a", SAMSUNG),
            stated("b", Some(0x90), None),
            "b: not the same card as a: expected manufacturer id 0x15, found 0x90",
        ),
        (
            stated("a", Some(0x13), None),
            stated("b", Some(0x90), None),
            "b: not the same card as a: expected manufacturer id 0x13, found 0x90",
        ),
        (
            stated("a", None, Some(7)),
            CardData { kind: Some(CardKind::Emmc), ext_csd: Some(ExtCsd::unknown()), ..with_cid("b", SAMSUNG) },
            "b: not the same card as a: expected serial number 0x00000007, found 0xdc0db061",
        ),
        (
            emmc_named,
            sysfs("manfid", "0x000013"),
            "sys: not the same card as a: expected manufacturer id 0x15, found 0x13",
        ),
    ] {
        assert_eq!(merged(first, second), Err(message.into()));
    }
}

#[test]
fn another_name_is_another_card_and_a_truncated_name_is_not() {
    let named = |name: &str| {
        let mut data = CardData { kind: Some(CardKind::Emmc), ..CardData::new("info", Format::UBootInfo) };
        data.stated.name = Some(name.into());
        data
    };
    assert!(merged(with_cid("a", SAMSUNG), named("M8G1G")).is_ok());
    assert!(merged(with_cid("a", SAMSUNG), named("\u{fffd}\u{1}x")).is_ok());
    assert_eq!(
        merged(with_cid("a", SAMSUNG), named("4FTE4")),
        Err("info: not the same card as a: expected product name \"M8G1GC\", found \"4FTE4\"".into())
    );
}

#[test]
fn a_stripped_checksum_and_a_guessed_family_are_the_same_card() {
    let stripped = format!("{}00", &SAMSUNG[..30]);
    let both = merged(with_cid("a", SAMSUNG), with_cid("b", &stripped)).unwrap();
    assert_eq!((both.cid, both.conflicts.len()), (Cid::parse_hex(SAMSUNG).ok(), 0));
    // An old MMC whose maker wrote two letters: a guess by them must not outweigh EXT_CSD.
    let letters = CardData { kind: Some(CardKind::Sd), ..with_cid("cid", "02544d384731474303dc0db061506f00") };
    let both = merged(letters, emmc("k", &[(192, 5)])).unwrap();
    assert_eq!(both.kind, Some(CardKind::Emmc));
    let both = merged(with_cid("a", SAMSUNG), stated("b", Some(0x15), None)).unwrap();
    assert_eq!(both.origins.len(), 2);
}

#[test]
fn fields_fixed_by_the_maker_distinguish_two_parts() {
    for (offset, name) in [
        (192, "EXT_CSD_REV"),
        (196, "DEVICE_TYPE"),
        (221, "HC_WP_GRP_SIZE"),
        (224, "HC_ERASE_GRP_SIZE"),
        (225, "ACC_SIZE"),
        (231, "SEC_FEATURE_SUPPORT"),
        (241, "INI_TIMEOUT_AP"),
    ] {
        let message = format!("b: not the same card as a: expected {name} 0x05, found 0x07");
        assert_eq!(merged(emmc("a", &[(offset, 5)]), emmc("b", &[(offset, 7)])), Err(message));
        let mut inferred = emmc("b", &[(offset, 7)]);
        inferred.inferred = vec![offset];
        let both = merged(inferred.clone(), emmc("a", &[(offset, 5)])).unwrap();
        assert_eq!(both.conflicts, [format!("{name} is 0x07 in b and 0x05 in a; the value that was read is used")]);
        assert_eq!((both.ext_csd.as_ref().unwrap().byte(offset), both.is_inferred(offset)), (Some(5), false));
        let both = merged(emmc("a", &[(offset, 5)]), inferred).unwrap();
        assert_eq!((both.ext_csd.as_ref().unwrap().byte(offset), both.is_inferred(offset)), (Some(5), false));
    }
    let cache = |name, high| emmc(name, &[(249, 0), (250, high), (251, 0), (252, 0)]);
    assert!(merged(cache("a", 1), cache("b", 2)).unwrap_err().ends_with("expected CACHE_SIZE 0x100, found 0x200"));
    // Kilobits taken for KiB by an older tool.
    assert_eq!(merged(cache("a", 1), cache("b", 8)).unwrap().conflicts.len(), 1);
}

#[test]
fn values_that_can_change_give_a_sentence() {
    // DEVICE_LIFE_TIME_EST_TYP_A; HS_TIMING, which a power cycle clears; PARTITION_ACCESS beside BOOT_PARTITION_ENABLE.
    let mut earlier = emmc("monday", &[(268, 1), (185, 1), (179, 0x08)]);
    let mut later = emmc("friday", &[(268, 5), (185, 3), (179, 0x09)]);
    earlier.csd = Cid::parse_hex("d02701320f5903fff6dbffef8e40400d").ok().map(|cid| cid.0);
    later.csd = Cid::parse_hex("d02701320f5903fff6dbffef8e404000").ok().map(|cid| cid.0);
    let both = merged(earlier, later).unwrap();
    assert_eq!(
        both.conflicts,
        [
            "DEVICE_LIFE_TIME_EST_TYP_A is 0x01 in monday and 0x05 in friday; the higher is used, because wear never falls"
        ]
    );
    assert_eq!(both.ext_csd.unwrap().byte(268), Some(5));
    let partly = emmc("a", &[(179, 0x08)]);
    let both = merged(partly, emmc("b", &[(179, 0x10)])).unwrap();
    assert_eq!(both.conflicts, ["PARTITION_CONFIG is 0x08 in a and 0x10 in b; the first is used"]);
}

#[test]
fn two_sizes_of_one_family_are_two_cards_until_one_is_partitioned() {
    let part = |name: &str, sectors: u32, completed: u8| {
        let mut data = emmc(name, &[(155, completed)]);
        data.ext_csd.iter_mut().for_each(|ext_csd| ext_csd.set_uint(212, 4, u64::from(sectors)));
        data
    };
    assert_eq!(
        merged(part("8g", 15_269_888, 0), part("32g", 61_071_360, 0)),
        Err("32g: not the same card as 8g: expected SEC_COUNT 0xe90000, found 0x3a3e000".into())
    );
    let both = merged(part("before", 15_269_888, 0), part("after", 7_634_944, 1)).unwrap();
    assert_eq!(both.conflicts.len(), 2);
}
