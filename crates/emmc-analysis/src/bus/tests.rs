use std::collections::BTreeMap;

use super::*;

fn bus(mode: &str, mhz: u64) -> BusInUse {
    BusInUse { mode: mode.into(), lines: 8, clock_hz: mhz * 1_000_000, mb_per_s_max: mhz as f64 }
}

fn round(mhz: u64, data_crc: Option<u64>) -> BusRound {
    BusRound {
        bus: [Some(bus("mmc HS200", mhz)), Some(bus("mmc HS200", mhz))],
        seconds: 10.0,
        reads: 30_000,
        bytes: 8192 * 10_000,
        counted: data_crc.map(|count| BTreeMap::from([("Data CRC Errors Occurred".to_string(), count)])),
        ..BusRound::default()
    }
}

fn report(rounds: &[BusRound]) -> BusReport {
    bus_report("mmcblk0", rounds, &["mmcblk0".into(), "mmc0".into()], &Host::default(), None)
}

#[test]
fn a_clean_bus_has_a_bound_and_no_advice() {
    let found = report(&[round(200, Some(0))]);
    assert_eq!(
        found.verdict,
        "The bus is clean at 200 MHz (mmc HS200, 8 lines): no error in 30000 reads; with 95 % confidence at most one \
         in 10014"
    );
    assert_eq!((found.shown, found.pins.len(), found.notes.len()), (Shown::Clean, 0, 0));
    // The bound is the one where none is seen once in twenty times.
    let none = (1.0 - 1.0 / 10_014.0_f64).powi(30_000);
    assert!((none - 0.05).abs() < 0.001, "{none}");
}

#[test]
fn errors_lead_to_the_clock_without_and_to_the_lines_that_pin_it() {
    let found = report(&[round(200, Some(37)), round(150, Some(1)), round(100, Some(0))]);
    assert_eq!(
        found.verdict,
        "The bus has errors at 200 MHz (mmc HS200, 8 lines): 37 data CRC errors in 30000 reads; clean at 100 MHz (at \
         most 100 MB/s)"
    );
    assert_eq!(found.pins[0].line, "max-frequency = <100000000>;");
    let lines: Vec<(&str, bool)> = found.pins[1..].iter().map(|pin| (pin.line.as_str(), pin.remove)).collect();
    assert_eq!(lines, [("mmc-hs200-1_8v;", true), ("no-1-8-v;", false), ("sdhci.debug_quirks2=0x40", false)]);
    assert!(report(&[round(200, Some(1))]).verdict.ends_with("lower clocks were not tried (--lower)"));
    let none = report(&[round(200, Some(1)), round(100, Some(2))]);
    assert!(none.verdict.ends_with("no lower clock that was tried is clean"));
    assert_eq!(none.clean, None);
}

#[test]
fn without_counters_only_errors_can_be_told() {
    let found = report(&[round(200, None)]);
    assert_eq!((found.shown, found.clean), (Shown::CannotTell, None));
    assert!(found.verdict.starts_with("Cannot tell: 30000 reads"), "{}", found.verdict);
    let with = |change: fn(&mut BusRound)| {
        let mut round = round(200, None);
        change(&mut round);
        report(&[round])
    };
    assert!(with(|round| round.failed = 2).verdict.contains("2 failed reads"));
    let differs = with(|round| round.differing = 3);
    assert!(differs.verdict.contains("3 pairs of reads that differ") && differs.notes.len() == 1);
    let logged = with(|round| {
        let other = "mmcblk1: response CRC error sending r/w cmd command";
        round.log = Some(format!("mmcblk0: response CRC error sending r/w cmd command, card status 0x900\n{other}\n"));
    });
    assert!(logged.verdict.contains("1 line of bus errors in the kernel's log"), "{}", logged.verdict);
}

#[test]
fn what_limits_the_result_is_said() {
    let mut empty = round(200, Some(0));
    empty.uniform_blocks = 9_900;
    empty.bus[1] = Some(bus("mmc HS200", 50));
    let mut before = Host::default();
    before.err_stats.insert("Tuning Error Occurred".into(), 2);
    let found = bus_report("mmcblk0", &[empty], &[], &before, Some("the clock cannot be set: why".into()));
    assert!((found.uniform_percent - 99.0).abs() < 1e-9);
    let starts = ["99 % of what was read", "the kernel changed the clock from 200 MHz to 50 MHz", "before the test"];
    for (note, start) in found.notes.iter().zip(starts) {
        assert!(note.starts_with(start), "{note}");
    }
    assert_eq!(found.notes.len(), 4);
    assert_eq!(report(&[]).verdict, "Nothing was read");
}

#[test]
fn every_fast_mode_has_a_way_out() {
    for (mode, expected) in [
        ("mmc HS400 enhanced strobe", "no-mmc-hs400;"),
        ("mmc DDR52", "mmc-ddr-1_8v;"),
        ("sd uhs SDR104", "sd-uhs-sdr104;"),
        ("sd uhs DDR50", "sd-uhs-ddr50;"),
    ] {
        let mut round = round(50, Some(9));
        round.bus = [Some(bus(mode, 50)), None];
        assert_eq!(report(&[round]).pins[0].line, expected, "{mode}");
    }
}

#[test]
fn keys_of_the_document_are_kept() {
    let document = serde_json::to_value(report(&[round(200, Some(37)), round(100, Some(0))])).unwrap();
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(keys(&document), "bus clean disk notes pins rounds shown uniform_percent verdict");
    assert_eq!(keys(&document["bus"]), "clock_hz lines mb_per_s_max mode");
    assert_eq!(keys(&document["clean"]), "clock_hz mb_per_s_max");
    assert_eq!(keys(&document["pins"][0]), "effect line place remove");
    assert_eq!(
        keys(&document["rounds"][0]),
        "asked_hz bytes changed_to_hz clock_hz counted differing errors failed log_lines one_error_in_at_least reads \
         seconds shown"
    );
    assert_eq!((&document["shown"], &document["rounds"][1]["shown"]), (&"errors".into(), &"clean".into()));
}
