//! Values that were lost or changed on their way from the card: they may alarm, and never calm.

use emmc_regs::ext_csd::ExtCsd;

use super::tests::emmc;
use super::*;

fn status(card: &CardData) -> (CheckStatus, String) {
    let result = check(card, &HealthOptions::default());
    (result.status, result.line)
}

/// An eMMC of whose EXT_CSD only these bytes are known.
fn known(registers: &[(u16, u8)]) -> CardData {
    let mut ext_csd = ExtCsd::unknown();
    registers.iter().for_each(|&(offset, value)| ext_csd.set_uint(offset, 1, value.into()));
    CardData { ext_csd: Some(ext_csd), ..emmc(&[]) }
}

#[test]
fn a_missing_register_makes_the_verdict_unknown_unless_another_alarms() {
    use CheckStatus::{Critical, Ok, Unknown, Warning};
    for (registers, expected) in [
        (&[(192, 8), (268, 1), (269, 1), (267, 1)][..], Ok),
        (&[(192, 8), (268, 1), (269, 0), (267, 1)], Ok),
        (&[(192, 8), (268, 1), (269, 1)], Unknown),
        (&[(192, 8), (268, 1), (267, 1)], Unknown),
        (&[(192, 8), (269, 8), (267, 1)], Unknown),
        (&[(268, 1)], Unknown),
        // Values that no part may hold.
        (&[(192, 8), (268, 0xff), (269, 1), (267, 1)], Unknown),
        (&[(192, 8), (268, 1), (269, 0x0c), (267, 1)], Unknown),
        (&[(192, 8), (268, 1), (269, 1), (267, 4)], Unknown),
        (&[(192, 8), (268, 0x0a)], Warning),
        (&[(192, 8), (269, 0x0b), (267, 1)], Critical),
        (&[(267, 3)], Critical),
        // An event that is only worth knowing does not turn unknown wear into a good part.
        (&[(192, 8), (268, 1), (54, 4)], Unknown),
    ] {
        let (found, line) = status(&known(registers));
        assert_eq!(found, expected, "{registers:?}: {line}");
    }
    let (_, line) = status(&known(&[(192, 8), (268, 1)]));
    let lost = "DEVICE_LIFE_TIME_EST_TYP_B, PRE_EOL_INFO missing in this source: save all of EXT_CSD";
    assert!(line.contains(lost), "{line}");
}

#[test]
fn a_cut_life_time_of_sysfs_is_unknown() {
    let of = |life_time: &str, pre_eol: &str| {
        let mut card = CardData { ext_csd: None, ..emmc(&[]) };
        card.sysfs.insert("life_time".into(), life_time.into());
        card.sysfs.insert("pre_eol_info".into(), pre_eol.into());
        status(&card)
    };
    assert_eq!(of("0x01 0x02\n", "0x01\n").0, CheckStatus::Ok);
    assert_eq!(of("0x01 0x02", "01").0, CheckStatus::Ok);
    for cut in ["0x01 0x0", "0x01 0x", "0x01", "0x01 ", "x01 0x01", "01 01", "0x01 0x001", "0x01 0x01 0x01", "0x0 0x01"]
    {
        let (found, line) = of(cut, "0x01");
        assert!(found == CheckStatus::Unknown && line.contains("damaged in this source"), "{cut:?}: {line}");
    }
    for cut in ["0x0", "0", "0x", "0x011", "0x01 0x01"] {
        assert_eq!(of("0x01 0x01", cut).0, CheckStatus::Unknown, "{cut:?}");
    }
    assert_eq!(of("0x01 0x0", "0x03").0, CheckStatus::Critical);
}

#[test]
fn health_in_an_impossible_ext_csd_is_unknown() {
    let whole = emmc(&[(268, 1), (269, 1), (267, 1), (196, 0x57), (212, 1), (221, 1), (224, 1), (504, 1)]);
    assert_eq!(status(&whole).0, CheckStatus::Ok);
    let mut bytes = *whole.ext_csd.as_ref().unwrap().bytes();
    [(308, 2), (499, 0x3f), (502, 0x3f)].into_iter().for_each(|(offset, value)| bytes[offset] = value);
    let (found, line) = status(&CardData { ext_csd: Some(ExtCsd::from_bytes(bytes)), ..whole });
    assert_eq!(found, CheckStatus::Unknown);
    assert!(line.contains("wear is unknown: EXT_CSD holds values that no part can have"), "{line}");
}

#[test]
fn the_higher_wear_of_two_sources_counts() {
    let mut card = known(&[(192, 8), (268, 1), (269, 1), (267, 1)]);
    card.sysfs.insert("life_time".into(), "0x0b 0x0b".into());
    card.sysfs.insert("pre_eol_info".into(), "0x03".into());
    assert_eq!(status(&card).0, CheckStatus::Critical);
    // An older reading of the same card is lower, and changes nothing.
    let mut card = known(&[(192, 8), (268, 5), (269, 5), (267, 1)]);
    card.sysfs.insert("life_time".into(), "0x04 0x05".into());
    assert_eq!(status(&card), status(&known(&[(192, 8), (268, 5), (269, 5), (267, 1)])));
}
