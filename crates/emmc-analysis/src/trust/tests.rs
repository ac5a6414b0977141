use emmc_port::Format;
use emmc_regs::ext_csd::ExtCsd;
use serde_json::json;

use super::*;

fn ids(trust: &Trust) -> Vec<&'static str> {
    trust.findings.iter().map(|finding| finding.id).collect()
}

fn of_log(log: &str) -> Trust {
    let names = ["mmcblk0".to_owned(), "mmc0".to_owned()];
    trust(&Witnesses { log: Some(log), names: &names, ..Witnesses::default() })
}

fn worn(life: u8, eol: u8) -> CardData {
    let mut csd = ExtCsd::unknown();
    csd.set_raw(reg::DEVICE_LIFE_TIME_EST_TYP_A, life.into());
    csd.set_raw(reg::PRE_EOL_INFO, eol.into());
    CardData { kind: Some(CardKind::Emmc), ext_csd: Some(csd), ..CardData::new("x", Format::Live) }
}

#[test]
fn each_line_of_a_kernel_names_what_it_is_about() {
    let cases = [
        ("[1.0] EXT4-fs (mmcblk0p2): Remounting filesystem read-only", vec!["trust-read-only"]),
        ("[1.0] I/O error, dev mmcblk0, sector 2048 op 0x1:(WRITE) flags 0x800 phys_seg 1", vec!["trust-writes-fail"]),
        ("blk_update_request: I/O error, dev mmcblk0, sector 9 op 0x0:(READ) flags 0x0", vec!["trust-bad-region"]),
        ("JBD2: I/O error when updating journal superblock for mmcblk0p2-8.", vec!["trust-writes-fail"]),
        ("EXT4-fs (mmcblk0p2): I/O error while writing superblock", vec!["trust-writes-fail"]),
        ("EXT4-fs (mmcblk0p2): previous I/O error to superblock detected", vec!["trust-writes-fail"]),
        ("Buffer I/O error on dev mmcblk0p2, logical block 1, lost sync page write", vec!["trust-writes-fail"]),
        ("Buffer I/O error on dev mmcblk0p2, logical block 1, async page read", vec!["trust-reads-fail"]),
        ("I/O error, dev mmcblk0, sector 2048 op 0x9:(WRITE_ZEROES) flags 0x0", vec!["trust-writes-fail"]),
        ("I/O error, dev mmcblk0, sector 2048 op 0x3:(DISCARD) flags 0x0", vec![]),
        ("mmc0: Card stuck being busy! __mmc_poll_for_busy", vec!["trust-stuck"]),
        ("mmc0: Timeout waiting for hardware interrupt.", vec!["trust-timeouts"]),
        ("mmc0: tuning execution failed: -5", vec!["trust-bus"]),
        ("mmcblk0: response CRC error sending r/w cmd command, card status 0x900", vec!["trust-bus"]),
        ("mmcblk1: response CRC error sending r/w cmd command", vec![]),
        ("mmcblk01: I/O error, dev mmcblk01, sector 1", vec![]),
        ("mmc0: new high speed MMC card at address 0001", vec![]),
    ];
    for (line, expected) in cases {
        assert_eq!(ids(&of_log(line)), expected, "{line}");
    }
}

#[test]
fn errors_near_each_other_are_one_region() {
    let line = |sector: u64| format!("I/O error, dev mmcblk0, sector {sector} op 0x0:(READ) flags 0x0\n");
    let near: String = (0..20).map(|at| line(100_000 + at * 8)).collect();
    assert!(of_log(&near).verdict.contains("sectors 100000 to 100152"));
    let far: String = (0..20).map(|at| line(at * 1_000_000)).collect();
    assert_eq!(ids(&of_log(&far)), ["trust-reads-fail"]);
}

#[test]
fn registers_speak_of_the_end() {
    let of = |card: &CardData| ids(&trust(&Witnesses { card: Some(card), ..Witnesses::default() }));
    assert_eq!(of(&worn(0x0b, 3)), ["trust-life", "trust-spare"]);
    assert_eq!(of(&worn(0x0a, 2)), ["trust-spare"]);
    assert_eq!(of(&worn(0x05, 1)), [] as [&str; 0]);
    assert_eq!(of(&worn(0, 0)), [] as [&str; 0], "unknown is not the end");
    let mut card = worn(1, 1);
    card.status = Some(0x0020_0900);
    assert_eq!(of(&card), ["trust-status"]);
    card.status = Some(0x900);
    card.host.err_stats.insert("Data CRC Errors Occurred".into(), 4000);
    assert_eq!(of(&card), ["trust-bus"]);
    card.host.err_stats.insert("Data CRC Errors Occurred".into(), 2);
    assert_eq!(of(&card), [] as [&str; 0]);
}

#[test]
fn probe_samples_and_test_are_witnesses() {
    let facts = ProbedFacts { capacity_is_there: Some((false, "x".into())), discards: Some((false, "y".into())) };
    let of = |witnesses: Witnesses<'_>| ids(&trust(&witnesses));
    assert_eq!(of(Witnesses { probed: Some(&facts), ..Witnesses::default() }), ["trust-capacity", "trust-discards"]);
    let good = ProbedFacts { capacity_is_there: Some((true, String::new())), discards: Some((true, String::new())) };
    assert_eq!(of(Witnesses { probed: Some(&good), ..Witnesses::default() }), [] as [&str; 0]);
    let samples = [
        json!({"time": "a", "vendor": {"bad_initial": 1, "bad_later": 2}, "io_errors": 0}),
        json!({"time": "b", "vendor": {"bad_initial": 3, "bad_later": 9}, "io_errors": 4}),
    ];
    assert_eq!(of(Witnesses { samples: &samples, ..Witnesses::default() }), ["trust-bad-blocks", "trust-io-errors"]);
    assert_eq!(of(Witnesses { samples: &samples[..1], ..Witnesses::default() }), [] as [&str; 0]);
    let whole = FileTest { file: "f".into(), blocks: 9, wrong: 0, unreadable: 0, elsewhere: 0, is_later: false };
    let tests = [
        (FileTest { wrong: 1, ..whole.clone() }, "trust-drops-writes"),
        (FileTest { wrong: 1, is_later: true, ..whole.clone() }, "trust-lost-cache"),
        (FileTest { wrong: 2, elsewhere: 2, ..whole.clone() }, "trust-wraps"),
        (FileTest { unreadable: 1, ..whole.clone() }, "trust-unreadable"),
    ];
    for (test, id) in tests {
        assert_eq!(of(Witnesses { test: Some(&test), ..Witnesses::default() }), [id]);
    }
    assert_eq!(of(Witnesses { test: Some(&whole), ..Witnesses::default() }), [] as [&str; 0]);
}

#[test]
fn the_verdict_is_as_severe_as_the_worst_finding() {
    assert!(of_log("mmc0: Card stuck being busy!").verdict.starts_with("Replace the card: The card stays busy"));
    assert!(of_log("mmc0: tuning execution failed: -5").verdict.starts_with("Do not rely on the card: "));
    let good = of_log("");
    assert_eq!((good.verdict.as_str(), good.severity), ("Nothing speaks against the card", Severity::Good));
    assert_eq!(good.witnesses, ["the kernel's log"]);
}

fn log_finds(fault: bool, line: &str) -> Vec<Finding> {
    // The same of another card.
    of_log(&if fault { line.to_owned() } else { line.replace("mmcblk0", "mmcblk1").replace("mmc0", "mmc1") }).findings
}

fn card_finds(card: &CardData) -> Vec<Finding> {
    trust(&Witnesses { card: Some(card), ..Witnesses::default() }).findings
}

fn probe_finds(capacity: bool, discards: bool) -> Vec<Finding> {
    let seen = |holds| Some((holds, "x".to_owned()));
    let facts = ProbedFacts { capacity_is_there: seen(capacity), discards: seen(discards) };
    trust(&Witnesses { probed: Some(&facts), ..Witnesses::default() }).findings
}

fn samples_find(last: serde_json::Value) -> Vec<Finding> {
    let samples = [json!({"time": "a", "vendor": {"bad_later": 2}, "io_errors": 0}), last];
    trust(&Witnesses { samples: &samples, ..Witnesses::default() }).findings
}

fn test_finds((wrong, unreadable, elsewhere): (u64, u64, u64), is_later: bool) -> Vec<Finding> {
    let test = FileTest { file: "f".into(), blocks: 9, wrong, unreadable, elsewhere, is_later };
    trust(&Witnesses { test: Some(&test), ..Witnesses::default() }).findings
}

/// An id, and the findings with the fault or without it.
pub(crate) type Case = (&'static str, fn(bool) -> Vec<Finding>);

/// Each finding, with the fault and without it.
#[test]
fn a_stress_of_the_bus_speaks_only_with_errors() {
    for (shown, severity) in
        [(Shown::Errors, Severity::Warning), (Shown::Clean, Severity::Good), (Shown::CannotTell, Severity::Good)]
    {
        let bus = StressedBus { shown, verdict: "at 200 MHz".into() };
        let found = trust(&Witnesses { bus: Some(&bus), ..Witnesses::default() });
        assert_eq!((found.severity, found.witnesses), (severity, vec!["a stress of the bus"]));
    }
}

pub(crate) const CASES: [Case; 19] = [
    ("trust-bad-blocks", |fault| {
        samples_find(json!({"time": "b", "vendor": {"bad_later": if fault { 9 } else { 2 }}, "io_errors": 0}))
    }),
    ("trust-io-errors", |fault| {
        samples_find(json!({"time": "b", "vendor": {"bad_later": 2}, "io_errors": u8::from(fault)}))
    }),
    ("trust-bad-region", |fault| log_finds(fault, "I/O error, dev mmcblk0, sector 9 op 0x0:(READ) flags 0x0")),
    ("trust-reads-fail", |fault| {
        let line = |sector: u64| format!("I/O error, dev mmcblk0, sector {sector} op 0x0:(READ) flags 0x0\n");
        log_finds(fault, &(line(9) + &line(9_000_000)))
    }),
    ("trust-bus", |fault| log_finds(fault, "mmc0: tuning execution failed: -5")),
    ("trust-read-only", |fault| log_finds(fault, "EXT4-fs (mmcblk0p2): Remounting filesystem read-only")),
    ("trust-stuck", |fault| log_finds(fault, "mmc0: Card stuck being busy! __mmc_poll_for_busy")),
    ("trust-timeouts", |fault| log_finds(fault, "mmc0: Timeout waiting for hardware interrupt.")),
    ("trust-writes-fail", |fault| log_finds(fault, "I/O error, dev mmcblk0, sector 2048 op 0x1:(WRITE) flags 0x800")),
    ("trust-capacity", |fault| probe_finds(!fault, true)),
    ("trust-discards", |fault| probe_finds(true, !fault)),
    ("trust-life", |fault| card_finds(&worn(if fault { 0x0b } else { 0x0a }, 1))),
    ("trust-spare", |fault| card_finds(&worn(1, if fault { 2 } else { 1 }))),
    ("trust-status", |fault| {
        card_finds(&CardData { status: Some(if fault { 0x0020_0900 } else { 0x900 }), ..worn(1, 1) })
    }),
    ("trust-write-protected", |fault| {
        // CSD[12]: TMP_WRITE_PROTECT.
        let mut csd = [0; 16];
        csd[14] = if fault { 0x10 } else { 0 };
        card_finds(&CardData { csd: Some(csd), ..worn(1, 1) })
    }),
    ("trust-drops-writes", |fault| test_finds((u64::from(fault), 0, 0), false)),
    ("trust-lost-cache", |fault| test_finds((1, 0, 0), fault)),
    ("trust-wraps", |fault| test_finds((1, 0, u64::from(fault)), false)),
    ("trust-unreadable", |fault| test_finds((0, u64::from(fault), 0), false)),
];
