use emmc_port::{CardData, Format};
use emmc_regs::CardKind;
use emmc_regs::ext_csd::ExtCsd;

use super::*;

/// An eMMC 5.1 of which all registers are 0 but those given.
pub(super) fn emmc(registers: &[(u16, u8)]) -> CardData {
    let mut csd = ExtCsd::from_bytes([0; 512]);
    csd.set_uint(192, 1, 8);
    registers.iter().for_each(|&(offset, value)| csd.set_uint(offset, 1, value.into()));
    CardData { kind: Some(CardKind::Emmc), ext_csd: Some(csd), ..CardData::new("part", Format::ExtCsdBinary) }
}

fn of(card: &CardData) -> Health {
    health(card, &HealthOptions::default())
}

#[test]
fn life_is_a_range_and_its_lower_bound_sets_the_severity() {
    for (raw, lower, upper, severity) in [
        (0x01, Some(0), Some(10), Severity::Good),
        (0x02, Some(10), Some(20), Severity::Good),
        (0x07, Some(60), Some(70), Severity::Good),
        (0x08, Some(70), Some(80), Severity::Notice),
        (0x09, Some(80), Some(90), Severity::Notice),
        (0x0a, Some(90), Some(100), Severity::Warning),
        (0x0b, Some(100), None, Severity::Critical),
        (0x00, None, None, Severity::Unknown),
        (0x0c, None, None, Severity::Unknown),
        (0xff, None, None, Severity::Unknown),
    ] {
        let life = of(&emmc(&[(268, raw)])).life_a;
        assert_eq!((life.used_lower_percent, life.used_upper_percent), (lower, upper), "{raw:#x}");
        assert_eq!((life.reading.severity, life.reading.raw), (severity, Some(raw.into())), "{raw:#x}");
    }
}

#[test]
fn unknown_values_have_a_reason() {
    let reading = |card: &CardData| {
        let reading = of(card).life_b.reading;
        (reading.absent, reading.text)
    };
    let zero = "unknown: the part reports 0, not defined";
    assert_eq!(reading(&emmc(&[])), (Some(Absent::NotDefined), zero.into()));
    let (absent, text) = reading(&emmc(&[(269, 0x40)]));
    assert!(absent == Some(Absent::NotAssigned) && text.contains("0x40"), "{text}");
    let old = "the part does not report it (EXT_CSD_REV < 7)";
    assert_eq!(reading(&emmc(&[(192, 6), (269, 3)])), (Some(Absent::PartTooOld), old.into()));
    assert_eq!(reading(&CardData::default()), (Some(Absent::NotInSource), "not in this source".into()));
    let stated = |version: &str| {
        let mut card = CardData::default();
        card.stated.mmc_version = Some(version.into());
        reading(&card).0
    };
    assert_eq!(
        ["4.41", "4.5", "5.0", "5.1B", "junk"].map(stated).map(|absent| absent == Some(Absent::PartTooOld)),
        [true, true, false, false, false]
    );
}

/// Good below 70 %, notice from 70 %, warning from 90 %, critical past 100 %: more wear is never judged better.
#[test]
fn more_used_life_is_never_less_severe() {
    let severity = |life: u8| of(&emmc(&[(268, life), (269, 1), (267, 1)])).verdict.severity;
    let severities: Vec<Severity> = (1..=11).map(severity).collect();
    assert!(severities.windows(2).all(|pair| pair[1] <= pair[0]), "{severities:?}");
    let of_band = |used: usize| severities[used / 10];
    assert_eq!([0, 60, 70, 80].map(of_band), [Severity::Good, Severity::Good, Severity::Notice, Severity::Notice]);
    assert_eq!([90, 100].map(of_band), [Severity::Warning, Severity::Critical]);
}

#[test]
fn the_verdict_is_the_worst_known_value() {
    for (registers, severity, sentence) in [
        (&[(268, 2), (269, 1), (267, 1)][..], Severity::Good, "10 % to 20 % of life used (type A cells), 0 % to 10 %"),
        (&[(268, 2), (267, 3)], Severity::Critical, "90 % of reserved blocks consumed"),
        (&[(268, 2), (267, 2)], Severity::Warning, "80 % of reserved blocks consumed"),
        (&[(269, 0x0b)], Severity::Critical, "past 100 % of life used (type B cells)"),
        (
            &[(267, 1)],
            Severity::Unknown,
            "life used is not known: type A not defined, type B not defined; reserved blocks",
        ),
        (&[], Severity::Unknown, "leaves its health registers undefined"),
        (&[(268, 1), (502, 1), (246, 3)], Severity::Warning, "background operations outstanding: critical"),
        (&[(268, 1), (502, 1), (246, 1)], Severity::Good, "0 % to 10 % of life used (type A cells)"),
        (&[(268, 1), (54, 1)], Severity::Warning, "URGENT_BKOPS"),
        (&[(268, 1), (54, 4)], Severity::Notice, "SYSPOOL_EXHAUSTED"),
        (&[(192, 5), (268, 1)], Severity::Unknown, "older than eMMC 5.0"),
    ] {
        let verdict = of(&emmc(registers)).verdict;
        assert!(verdict.severity == severity && verdict.sentence.contains(sentence), "{registers:?} {verdict:?}");
    }
}

#[test]
fn a_good_link_leaves_an_unknown_card_unknown() {
    let mut card = emmc(&[]);
    card.host.err_stats.insert("Data CRC Errors Occurred".into(), 0);
    assert_eq!(of(&card).verdict.severity, Severity::Unknown);
    card.host.err_stats.insert("Data CRC Errors Occurred".into(), 5000);
    assert_eq!(of(&card).verdict.severity, Severity::Warning);
}

#[test]
fn sysfs_replaces_a_missing_ext_csd_and_its_age_is_reported() {
    let mut card = CardData::new("/sys", Format::SysRoot);
    for (key, value) in [("life_time", "0x01 0x02\n"), ("pre_eol_info", "0x01"), ("rev", "0x8")] {
        card.sysfs.insert(key.into(), value.into());
    }
    let health = of(&card);
    assert_eq!((health.life_b.used_lower_percent, health.life_b.reading.read_from), (Some(10), Some(ReadFrom::Sysfs)));
    assert_eq!(health.verdict.severity, Severity::Good);
    assert!(health.notes[0].contains("from the last probe"), "{:?}", health.notes);
    card.sysfs.insert("rev".into(), "0x6".into());
    assert_eq!(of(&card).life_b.reading.absent, Some(Absent::PartTooOld));

    let mut both = emmc(&[(268, 3), (269, 2), (267, 1)]);
    both.sysfs.insert("life_time".into(), "0x02 0x02".into());
    let health = of(&both);
    assert_eq!(health.life_a.used_lower_percent, Some(20));
    assert!(health.notes.len() == 1 && health.notes[0].contains("0x03, sysfs 0x02"), "{:?}", health.notes);
}

#[test]
fn a_missing_health_register_of_an_sd_card_is_no_fault() {
    let health = of(&CardData { kind: Some(CardKind::Sd), ..CardData::default() });
    assert_eq!((health.verdict.severity, health.life_a.reading.absent), (Severity::Unknown, Some(Absent::SdCard)));
    assert!(health.cannot_tell.iter().any(|cannot| cannot.why.contains("CMD56")));
}

#[test]
fn invalid_thresholds_are_refused() {
    assert!(HealthOptions::new(50, 80).is_ok() && HealthOptions::new(100, 100).is_ok());
    for (warn, crit) in [(0, 50), (90, 80), (90, 101)] {
        let refused = HealthError::Thresholds { warn: Some(warn), crit: Some(crit) };
        assert_eq!(HealthOptions::new(warn, crit), Err(refused));
    }
}

#[test]
fn one_given_threshold_adjusts_the_other_default() {
    let given = |warn, crit| {
        let options = HealthOptions::from_given(warn, crit).map_err(|error| error.to_string())?;
        Ok((options.warn_percent(), options.crit_percent()))
    };
    assert_eq!(given(None, None), Ok((90, 100)));
    assert_eq!(given(None, Some(50)), Ok((50, 50)));
    assert_eq!(given(None, Some(95)), Ok((90, 95)));
    assert_eq!(given(Some(95), None), Ok((95, 100)));
    let rest = "; expected 1 to 100 %, the warning not above the critical one";
    assert_eq!(given(Some(60), Some(50)), Err(format!("warning at 60 % and critical at 50 %{rest}")));
    assert_eq!(given(None, Some(0)), Err(format!("critical at 0 %{rest}")));
    assert_eq!(given(Some(101), None), Err(format!("warning at 101 %{rest}")));
}

#[test]
fn the_json_keeps_its_keys() {
    let json = serde_json::to_value(of(&emmc(&[(268, 2)]))).unwrap();
    assert_eq!(json["verdict"]["severity"], "good");
    assert_eq!(json["life_a"]["register"], "DEVICE_LIFE_TIME_EST_TYP_A");
    assert_eq!(
        (json["life_a"]["used_upper_percent"].as_u64(), json["life_a"]["read_from"].as_str()),
        (Some(20), Some("ext-csd"))
    );
    assert_eq!(
        (json["life_b"]["absent"].as_str(), json["life_b"]["used_lower_percent"].is_null()),
        (Some("not-defined"), true)
    );
}
