//! Each finding has a source that gives it and a similar, clean one that does not.
//!
//! The ids come from the code itself, so a new finding without a case fails here.

use std::collections::BTreeSet;
use std::path::Path;

use emmc_port::{Disk, Filesystem, Format, Partition, SavedReport, TrimSetup, VendorFormat};
use emmc_regs::CardKind;
use emmc_regs::cid::Cid;
use emmc_regs::ext_csd::{DeviceInfo, LifeTime, PreEol};
use emmc_units::{Bytes, Sectors};

use super::tests::{RULES, emmc, found};
use super::*;
use crate::capacity::capacity;
use crate::health::HealthOptions;
use crate::hwpart::{LayoutRequest, plan};
use crate::maker_health::{Family, Value, VendorHealth, consistency, decode_reply, parse_emmcparm};
use crate::{trim, trust};

/// An id, and the findings of a source with the fault or without it.
type Case = (&'static str, fn(bool) -> Vec<Finding>);

const CASES: [Case; 37] = [
    ("bus-narrow", |fault| found(&with_ios("bus width", if fault { "2 (4 bits)" } else { "3 (8 bits)" }))),
    ("bus-slower-than-offered", |fault| {
        found(&with_ios("timing spec", if fault { "1 (mmc high-speed)" } else { "10 (mmc HS400 enhanced strobe)" }))
    }),
    ("command-queue-off", |fault| {
        let mut card = emmc(&[(308, 1, 1), (307, 1, 31)]);
        card.sysfs.insert("cmdq_en".into(), if fault { "0\n" } else { "1\n" }.into());
        found(&card)
    }),
    ("sources-conflict", |fault| {
        let conflicts = if fault { vec!["REV is 7 in a, 8 in b".into()] } else { Vec::new() };
        found(&CardData { conflicts, ..emmc(&[]) })
    }),
    ("checksum-wrong", |fault| {
        let cid = Cid::parse_hex(&format!("1501004d384731474303dc0db061{}6f", if fault { 51 } else { 50 })).ok();
        found(&CardData { cid, ..emmc(&[]) })
    }),
    ("sysfs-stale", |fault| {
        let mut card = emmc(&[(268, 1, 3), (269, 1, 3), (267, 1, 1)]);
        card.sysfs.insert("life_time".into(), if fault { "0x02 0x03" } else { "0x03 0x03" }.into());
        found(&card)
    }),
    ("identity-marks", |fault| {
        let cid = if fault { "0000000000000000000000375600ea00" } else { "275048534431364730da89b82900fb61" };
        found(&CardData { cid: Cid::parse_hex(cid).ok(), kind: Some(CardKind::Sd), ..CardData::default() })
    }),
    ("card-protected-for-good", |fault| found(&protected(if fault { 0x20 } else { 0 }))),
    ("card-protected", |fault| found(&protected(if fault { 0x10 } else { 0 }))),
    ("card-locked", |fault| found(&CardData { status: Some(u32::from(fault) << 25 | 0x900), ..emmc(&[]) })),
    ("disk-read-only", |fault| {
        let mut card = emmc(&[]);
        card.blocks.disks = vec![Disk { read_only: Some(fault), ..disk("mmcblk0", 4096, Vec::new()) }];
        found(&card)
    }),
    ("trim-off", |fault| {
        let mut card = emmc(&[]);
        card.blocks.trim =
            Some(TrimSetup { discard_max_bytes: Some(if fault { 0 } else { 1 << 30 }), ..TrimSetup::default() });
        found(&card)
    }),
    ("host-link-errors", |fault| {
        let mut card = emmc(&[]);
        card.host.err_stats.insert("Data CRC Errors Occurred".into(), if fault { 4711 } else { 0 });
        found(&card)
    }),
    ("sd-no-application-class", |fault| sd_status(21, if fault { 0 } else { 1 })),
    ("sd-a2-needs-queue", |fault| sd_status(21, if fault { 2 } else { 1 })),
    ("sd-slow-class", |fault| sd_status(8, if fault { 0 } else { 4 })),
    ("sd-one-line", |fault| sd_status(0, if fault { 0 } else { 0x80 })),
    ("vendor-report-refused", |fault| {
        let report = match fault {
            true => {
                SavedReport { format: VendorFormat::Reply { family: None, argument: None }, content: vec![0xff; 512] }
            }
            false => SavedReport { format: VendorFormat::Emmcparm, content: emmcparm_text("spare_block") },
        };
        found(&CardData { reports: vec![report], ..emmc(&[]) })
    }),
    ("vendor-report-damaged", |fault| {
        let text = String::from_utf8(testdata("sdmon/apacer-readme/sdmon.json.txt")).unwrap();
        let content = if fault { text.replace("\"success\":true", "\"success\":tru") } else { text };
        let report = SavedReport { format: VendorFormat::Sdmon, content: content.into_bytes() };
        found(&CardData { reports: vec![report], kind: Some(CardKind::Sd), ..CardData::default() })
    }),
    ("vendor-spare-agrees", |agrees| consistency(&emmcparm("spare_block"), &info(if agrees { 1 } else { 3 }, 2, 1))),
    ("vendor-spare-disagrees", |fault| consistency(&emmcparm("spare_block"), &info(if fault { 3 } else { 1 }, 2, 1))),
    ("vendor-life-disagrees", |fault| consistency(&sandisk(51), &info(1, 1, if fault { 2 } else { 5 }))),
    ("vendor-implied-rating", |known| consistency(&emmcparm("erase_count"), &info(1, u8::from(known), 0))),
    ("vendor-implausible", |fault| {
        let mut reply = [0; 512];
        (reply[1], reply[5]) = (if fault { 80 } else { 8 }, 72);
        consistency(&decode_reply(Some(Family::Micron), Some(0x11), &reply).unwrap(), &info(1, 1, 1))
    }),
    ("vendor-life-used", |fault| wear(&sandisk(if fault { 98 } else { 2 }))),
    ("vendor-spare-used", |fault| {
        let mut health = emmcparm("spare_block");
        let spares = health.spares.iter_mut().filter(|reading| reading.name == "spare_used_percent");
        spares.for_each(|reading| reading.value = Value::Integer(if fault { 95 } else { 5 }));
        wear(&health)
    }),
    ("which-disk", |fault| {
        let name = if fault { "mmcblk1" } else { "mmcblk0boot0" };
        sized(None, vec![disk("mmcblk0", 4096, Vec::new()), disk(name, 8192, Vec::new())])
    }),
    ("capacity-disagreement", |fault| {
        sized(Some(8192), vec![disk("mmcblk0", if fault { 4096 } else { 8192 * 512 }, Vec::new())])
    }),
    ("partition-past-end", |fault| partitioned(&[(8192, if fault { 1 << 30 } else { 16 << 20 })])),
    ("partition-larger-than-disk", |fault| {
        let part = Partition { start: None, ..partition(1, 0, if fault { 4096 } else { 512 }) };
        sized(None, vec![disk("mmcblk0", 2048, vec![part])])
    }),
    ("partition-overlap", |fault| partitioned(&[(16_384, 16 << 20), (if fault { 32_768 } else { 49_152 }, 16 << 20)])),
    ("partition-off-page", |fault| partitioned(&[(if fault { 63 } else { 16_384 }, 16 << 20)])),
    ("partition-off-group", |fault| partitioned(&[(if fault { 8 } else { 16_384 }, 16 << 20)])),
    ("filesystem-past-end", |fault| {
        let mut card = emmc(&[]);
        card.blocks.disks = vec![disk("mmcblk0", 1 << 20, vec![partition(1, 8, 1 << 16)])];
        let bytes = Bytes(if fault { 1 << 17 } else { 1 << 16 });
        let (used, available) = (Bytes(0), Bytes(0));
        let (device, mount) = ("/dev/mmcblk0p1".into(), "/".into());
        card.blocks.filesystems = vec![Filesystem { device, fstype: None, bytes, used, available, mount }];
        capacity(&card).findings
    }),
    ("gp-gap", |fault| planned(&[], "", &[if fault { "2:8MiB" } else { "1:8MiB" }], None)),
    ("wrrel-unused", |fault| planned(&[], "max", &[], Some(if fault { "gp1=off" } else { "on" }))),
    ("wrrel-off", |fault| planned(&[], "max", &[], Some(if fault { "off" } else { "on" }))),
];

/// Plans on a part of which one register is as it is or otherwise.
const PLANS: [Case; 6] = [
    ("wrrel-last-chance", |fault| planned(if fault { &[(167, 1, 0x1e)] } else { &[] }, "max", &[], None)),
    ("commits-only-wrrel", |fault| planned(&[], if fault { "" } else { "max" }, &[], Some("on"))),
    ("pending-overwritten", |fault| planned(if fault { &[(140, 3, 9)] } else { &[] }, "max", &[], None)),
    ("cost-unclear", |fault| planned(if fault { &[(157, 3, 100)] } else { &[] }, "max", &[], None)),
    ("wait-unknown", |fault| planned(if fault { &[(241, 1, 0)] } else { &[] }, "max", &[], None)),
    ("small-user-area", |fault| planned(&[], "", &[if fault { "1:max" } else { "1:8MiB" }], None)),
];

fn with_ios(key: &str, value: &str) -> CardData {
    let mut card = emmc(&[(196, 1, 0x57), (185, 1, 1)]);
    card.host.ios.insert(key.into(), value.into());
    card
}

fn protected(bits: u8) -> CardData {
    let mut csd = [0; 16];
    csd[14] = bits;
    CardData { kind: Some(CardKind::Emmc), csd: Some(csd), ..CardData::default() }
}

/// A card of class 10 and A1 on four lines, with one byte of its status changed.
fn sd_status(index: usize, value: u8) -> Vec<Finding> {
    let mut ssr = [0; 64];
    (ssr[0], ssr[8], ssr[21]) = (0x80, 4, 1);
    ssr[index] = value;
    let scr = Some([0x02, 0x35, 0x80, 0x02, 0x01, 0, 0, 0]);
    found(&CardData { kind: Some(CardKind::Sd), ssr: Some(ssr), scr, ..CardData::default() })
}

fn info(pre_eol: u8, life_a: u8, life_b: u8) -> DeviceInfo {
    let (life_a, life_b) = (Some(LifeTime(life_a)), Some(LifeTime(life_b)));
    DeviceInfo { pre_eol: Some(PreEol(pre_eol)), life_a, life_b, ..DeviceInfo::default() }
}

fn testdata(path: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)).unwrap()
}

fn emmcparm_text(name: &str) -> Vec<u8> {
    testdata(&format!("seeds_console/emmcparm_{name}.txt"))
}

fn emmcparm(name: &str) -> VendorHealth {
    parse_emmcparm(&emmcparm_text(name)).unwrap()
}

fn sandisk(used: u8) -> VendorHealth {
    let mut reply = [0; 512];
    (reply[8], reply[0xb8]) = (1, used);
    decode_reply(Some(Family::SandiskEmmc), None, &reply).unwrap()
}

fn wear(health: &VendorHealth) -> Vec<Finding> {
    let readings = health.life.iter().chain(&health.spares);
    readings.filter_map(|reading| vendor::wear(reading, &HealthOptions::default())).collect()
}

fn disk(name: &str, bytes: u64, partitions: Vec<Partition>) -> Disk {
    Disk { name: name.into(), bytes: Some(Bytes(bytes)), read_only: None, partitions }
}

fn partition(number: usize, start: u64, bytes: u64) -> Partition {
    let (start, bytes) = (Some(Sectors(start)), Some(Bytes(bytes)));
    Partition { name: format!("mmcblk0p{number}"), start, bytes, kind: None, mount: None }
}

fn sized(sec_count: Option<u64>, disks: Vec<Disk>) -> Vec<Finding> {
    let mut card = CardData { kind: Some(CardKind::Emmc), ..CardData::new("lsblk", Format::BlockLayerText) };
    if let Some(sec_count) = sec_count {
        card = emmc(&[(212, 4, sec_count)]);
    }
    card.blocks.disks = disks;
    capacity(&card).findings
}

/// Partitions as start and bytes, on a part with erase groups of 512 KiB and write-protect groups of 8 MiB.
fn partitioned(parts: &[(u64, u64)]) -> Vec<Finding> {
    let mut card = emmc(&[(212, 4, 1_000_000), (224, 1, 1), (221, 1, 16), (175, 1, 1)]);
    let parts = parts.iter().zip(1..).map(|((start, bytes), number)| partition(number, *start, *bytes));
    card.blocks.disks = vec![disk("mmcblk0", 512_000_000, parts.collect())];
    capacity(&card).findings
}

/// The warnings of a plan for an MLC part of 14.8 GiB.
fn planned(changed: &[(u16, u16, u64)], enh_user: &str, gp: &[&str], wrrel: Option<&str>) -> Vec<Finding> {
    let sizes = [(224, 1, 1), (221, 1, 16), (212, 4, 31_080_448), (157, 3, 939), (226, 1, 252), (168, 1, 32)];
    let modes = [(160, 1, 7), (166, 1, 0x15), (167, 1, 0x1f), (494, 1, 3), (241, 1, 30), (222, 1, 1)];
    let card = emmc(&[&sizes[..], &modes, changed].concat());
    let enh_user = (!enh_user.is_empty()).then(|| enh_user.parse().unwrap());
    let wrrel = wrrel.map(|wrrel| wrrel.parse().unwrap());
    plan(&card, &LayoutRequest::new(enh_user, gp.iter().map(|gp| gp.parse().unwrap()), wrrel).unwrap()).warnings
}

#[cfg(feature = "bench")]
mod bench {
    use emmc_port::TargetKind;
    use emmc_workload::context::BusFacts;
    use emmc_workload::{BenchResult, Context, Figure, Grid, GridLine, Measurement, Outcome, Stall, Stalls};

    use super::*;
    use crate::measured::findings;
    use crate::measured::tests::measurement;

    pub(super) const CASES: [Case; 5] = [
        ("slow-when-full", |fault| {
            let outcome = Outcome {
                suite: "trim".into(),
                figures: vec![
                    Figure::new("sequential writes, aged", if fault { 20.0 } else { 1.0 }, "x slower", ""),
                    Figure::new("sequential writes, trimmed", 98.0, "%", ""),
                ],
                ..Outcome::default()
            };
            of(outcome, None)
        }),
        ("slow-when-steady", |fault| {
            let mut rounds = Grid::new("rounds", "round", &[("random writes, 4 KiB", "IOPS")], "");
            for (round, iops) in [("1", 1000.0), ("2", if fault { 90.0 } else { 990.0 })] {
                rounds.lines.push(GridLine { row: round.into(), values: vec![Some(iops)] });
            }
            of(Outcome { suite: "steady-state".into(), grids: vec![rounds], ..Outcome::default() }, None)
        }),
        ("stalls", |fault| {
            let longest = vec![Stall { ms: 300.0, offset_bytes: 0, after_bytes: 0 }];
            let stalls = Stalls { over_100_ms: u64::from(fault), longest, ..Stalls::default() };
            of_speed([Measurement { stalls: Some(stalls), ..measurement("write", 1 << 19, 20.0) }], None)
        }),
        ("bus-bound", |fault| {
            let speed = if fault { 48.0 } else { 20.0 };
            of_speed([measurement("read", 1 << 19, speed)], Some(50.0))
        }),
        ("small-writes", |fault| {
            let small = if fault { 0.5 } else { 30.0 };
            of_speed([measurement("write", 1 << 19, 40.0), measurement("write", 4096, small)], None)
        }),
    ];

    fn of_speed<const N: usize>(measurements: [Measurement; N], bus_mb_per_s: Option<f64>) -> Vec<Finding> {
        of(Outcome { suite: "speed".into(), measurements: measurements.into(), ..Outcome::default() }, bus_mb_per_s)
    }

    fn of(outcome: Outcome, bus_mb_per_s: Option<f64>) -> Vec<Finding> {
        let bus = bus_mb_per_s.map(|mb_per_s_max| BusFacts {
            mode: "mmc high-speed".into(),
            lines: 8,
            clock_hz: 50_000_000,
            mb_per_s_max,
            source: "ios".into(),
        });
        findings(&BenchResult {
            target: "x".into(),
            target_kind: TargetKind::Simulated,
            size_bytes: 1 << 30,
            engine: "simulated".into(),
            seed: 1,
            outcome,
            context: Context { bus, ..Context::default() },
            doubts: Vec::new(),
            causes: Vec::new(),
        })
    }
}

#[cfg(not(feature = "bench"))]
mod bench {
    pub(super) const CASES: [super::Case; 0] = [];
}

/// Ids in the crate's code: what looks like one in a file that makes findings, and the second argument of each.
fn ids_in_code(folder: &Path, ids: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        // Without the feature its findings have no cases.
        let is_left_out = !cfg!(feature = "bench") && ["advise", "measured.rs"].contains(&name);
        if is_left_out {
            continue;
        }
        if path.is_dir() {
            ids_in_code(&path, ids);
        } else if !name.contains("tests") {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            ids.extend(ids_in(code));
        }
    }
}

fn ids_in(code: &str) -> BTreeSet<String> {
    let quoted = |text: &str| text.split('"').nth(1).map(str::to_owned);
    let made = code.split("Finding::new(").skip(1);
    // `Finding::new(Severity::Notice, "stalls", ...)`, on one line or on several.
    let second = made.clone().filter_map(|arguments| {
        let (_, rest) = arguments.split_once(',')?;
        quoted(rest).filter(|_| rest.trim_start().starts_with('"'))
    });
    // Where the id is a variable it stands elsewhere in the file.
    let literals = code.split('"').skip(1).step_by(2).filter(|text| is_hyphenated(text)).map(str::to_owned);
    let mut ids: BTreeSet<String> = second.collect();
    if made.count() > 0 {
        ids.extend(literals);
    }
    ids
}

fn is_hyphenated(text: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    text.contains('-') && text.split('-').all(is_word)
}

fn all_cases() -> impl Iterator<Item = Case> {
    CASES
        .into_iter()
        .chain(PLANS)
        .chain(bench::CASES)
        .chain(trim::tests::CASES)
        .chain(trust::tests::CASES)
        .chain(advised())
}

#[cfg(feature = "bench")]
fn advised() -> impl Iterator<Item = Case> {
    crate::advise::tests::CASES.into_iter()
}

#[cfg(not(feature = "bench"))]
fn advised() -> impl Iterator<Item = Case> {
    std::iter::empty()
}

#[test]
fn each_finding_has_a_source_that_gives_it_and_a_clean_one_that_does_not() {
    let has = |findings: &[Finding], id: &str| findings.iter().any(|finding| finding.id == id);
    for (id, findings) in all_cases() {
        assert!(has(&findings(true), id), "{id} is missing: {:?}", findings(true));
        assert!(!has(&findings(false), id), "{id} of a clean source");
    }
}

#[test]
fn each_finding_in_the_code_has_a_case() {
    let mut in_code = BTreeSet::new();
    ids_in_code(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut in_code);
    let cases = all_cases().map(|(id, _)| id);
    let covered: BTreeSet<String> = RULES.into_iter().map(|(id, ..)| id).chain(cases).map(str::to_owned).collect();
    let without: Vec<&String> = in_code.difference(&covered).collect();
    let unknown: Vec<&String> = covered.difference(&in_code).collect();
    assert!(without.is_empty() && unknown.is_empty(), "without a case: {without:?}; not in the code: {unknown:?}");
}

#[test]
fn ids_are_found_in_every_form() {
    let code = "Finding::new(a.b, \"stalls\", what)\nFinding::new(\n    Severity::Notice,\n    \"two-words\",\n    x)\n\
                life(\"life-used-a\", \"A\")";
    assert_eq!(ids_in(code).into_iter().collect::<Vec<_>>(), ["life-used-a", "stalls", "two-words"]);
    assert!(ids_in("let unit = \"mmc-utils\";").is_empty());
}
