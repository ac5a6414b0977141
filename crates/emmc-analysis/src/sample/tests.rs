use emmc_port::{Format, Machine};
use emmc_regs::ext_csd::ExtCsd;

use super::*;

/// A card with this much life used, at a time.
fn card(time: &str, life_a: u8) -> CardData {
    let mut card = CardData::new("mmcblk0", Format::Live);
    card.kind = Some(CardKind::Emmc);
    card.origins[0].taken_at = Some(time.into());
    let mut ext_csd = ExtCsd::from_bytes([0; 512]);
    ext_csd.set_raw(reg::EXT_CSD_REV, 8);
    ext_csd.set_raw(reg::SEC_COUNT, 15_269_888);
    ext_csd.set_raw(reg::DEVICE_LIFE_TIME_EST_TYP_A, life_a.into());
    ext_csd.set_raw(reg::PRE_EOL_INFO, 1);
    card.ext_csd = Some(ext_csd);
    card
}

fn sample(time: &str, life_a: u8) -> Sample {
    let totals = HostTotals { read_bytes: 1, written_bytes: 2, discarded_bytes: Some(3), flushes: Some(4) };
    let machine = Machine { boot_id: Some("0f".into()), board: Some("gw\u{9b}-200".repeat(20)), ..Machine::default() };
    let activity = Activity { machine, totals: Some(totals), read_only: Some(false), io_errors: Some(0) };
    let identity = SampleIdentity { cid_hash: Some("5f3c".into()), emmclab: "0.1.0", ..SampleIdentity::default() };
    Sample::of(&card(time, life_a), &[], Some("mmcblk0"), &activity, identity).unwrap()
}

#[test]
fn a_line_has_the_registers_and_what_is_unknown_is_null() {
    let line = sample("2026-11-22T03:10:00Z", 2).line();
    assert!(line.starts_with("{\"schema\":\"emmclab.sample/1\",\"time\":\"2026-11-22T03:10:00Z\",\"device_id\":null"));
    assert!(line.ends_with("}\n") && line.len() <= LINE_BYTES_MAX, "{line}");
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&value["life_a_raw"], &value["life_b_raw"], &value["pre_eol_raw"]), (&2.into(), &0.into(), &1.into()));
    assert_eq!((&value["source"], &value["card"]["bytes"]), (&"ext_csd".into(), &7_818_182_656u64.into()));
    assert_eq!((&value["host"]["written_bytes"], &value["errors"]), (&2.into(), &serde_json::Value::Null));
    // A board's name is no way to send control characters to a terminal, or to make a line long.
    assert!(value["board"].as_str().is_some_and(|board| board.len() <= 48 && !board.contains('\u{9b}')));
    assert!(
        Sample::of(&CardData::new("x", Format::Live), &[], None, &Activity::default(), SampleIdentity::default())
            .is_err()
    );
}

#[test]
fn values_of_a_vendor_that_do_not_fit_are_left_out() {
    let mut sample = sample("2026-11-22T03:10:00Z", 2);
    let values = (0..100).map(|index| (format!("erase_max_area_{index:03}"), 1441.into())).collect();
    sample.vendor = Some(SampledVendor { family: "micron".into(), values });
    let line = sample.line();
    assert!((LINE_BYTES_MAX - 40..=LINE_BYTES_MAX).contains(&line.len()), "{} bytes", line.len());
    assert!(line.contains("erase_max_area_000") && !line.contains("erase_max_area_099"), "{line}");
}

#[test]
fn only_news_are_recorded() {
    let first = sample("2026-11-01T00:00:00Z", 2);
    let log = format!("no sample\n{}{{\"half\": ", first.line());
    let recorded = last_of(&log, &first).unwrap();
    let is_news = |time, life| sample(time, life).is_news_after(&recorded, 30);
    assert!(!is_news("2026-11-01T00:00:00Z", 2) && !is_news("2026-11-30T23:59:59Z", 2));
    assert!(is_news("2026-12-01T00:00:00Z", 2) && is_news("2026-10-01T00:00:00Z", 2));
    assert!(is_news("2026-11-02T00:00:00Z", 3));
    let mut broken = sample("2026-11-02T00:00:00Z", 2);
    broken.read_only = Some(true);
    assert!(broken.is_news_after(&recorded, 30));
    let mut other = first;
    other.card.cid_hash = Some("0000".into());
    assert_eq!(last_of(&log, &other), None);
}

#[test]
fn metrics_have_help_type_and_every_card() {
    let mut unknown = sample("2026-11-22T03:10:00Z", 0);
    unknown.pre_eol_raw = None;
    let worn = sample("2026-11-22T03:10:00Z", 11);
    let used = sample("2026-11-22T03:10:00Z", 2);
    let text = metrics(&[
        ("mmcblk0".into(), Some(used)),
        ("mmcblk1".into(), Some(worn)),
        ("mmc\"blk2".into(), None),
        ("mmcblk3".into(), Some(unknown)),
    ]);
    for line in [
        "# TYPE emmc_life_used_ratio gauge",
        "emmc_life_used_ratio{device=\"mmcblk0\",area=\"a\",bound=\"lower\"} 0.1",
        "emmc_life_used_ratio{device=\"mmcblk0\",area=\"a\",bound=\"upper\"} 0.2",
        "emmc_life_used_ratio{device=\"mmcblk1\",area=\"a\",bound=\"lower\"} 1",
        "emmc_life_used_ratio{device=\"mmcblk1\",area=\"a\",bound=\"upper\"} +Inf",
        "emmc_pre_eol_state{device=\"mmcblk0\",state=\"normal\"} 1",
        "emmc_pre_eol_state{device=\"mmcblk3\",state=\"unknown\"} 1",
        "emmc_health_known{device=\"mmcblk3\"} 0",
        "emmc_host_written_bytes_total{device=\"mmcblk0\"} 2",
        "emmc_observed_timestamp_seconds{device=\"mmcblk0\"} 1795317000",
        "emmc_collector_success{device=\"mmc\\\"blk2\"} 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("emmc_host_errors_total"), "{text}");
}
