use emmc_port::{
    Containers, HostTotals, Journald, Layer, LayerKind, Machine, MountedOn, SwapSpace, WatchedWrites, Writer,
    WrittenFolder,
};
use jiff::Timestamp;

use super::*;
use crate::health::HistoryPoint;

fn mounted(point: &str, fstype: &str, options: &str) -> MountedOn {
    let options = options.split(',').map(str::to_owned).collect();
    MountedOn { point: point.into(), fstype: fstype.into(), options, ..MountedOn::default() }
}

fn stack(root: MountedOn) -> Stack {
    let disk = Layer { name: "mmcblk0".into(), kind: LayerKind::Disk, ..Layer::default() };
    let part = Layer {
        name: "mmcblk0p2".into(),
        kind: LayerKind::Partition,
        below: vec!["mmcblk0".into()],
        start_sectors: Some(8192),
        mounted: Some(root),
        ..Layer::default()
    };
    Stack { layers: vec![disk, part], ..Stack::default() }
}

fn activity(days: u64, written_bytes: u64) -> Activity {
    let machine = Machine { uptime_s: Some(days * 86_400), ..Machine::default() };
    Activity { machine, totals: Some(HostTotals { written_bytes, ..HostTotals::default() }), ..Activity::default() }
}

fn advice(stack: &Stack, system: &SystemUse, activity: &Activity, left: Option<&WrittenForecast>) -> SystemAdvice {
    system_advice(&AdviseFacts { disk: "mmcblk0", stack, system, activity, card: None, left, now: None })
}

fn ids(advice: &SystemAdvice) -> Vec<&str> {
    let all = advice.findings.iter().map(|advised| advised.finding.id);
    all.filter(|id| id.starts_with("advise-")).collect()
}

const GOOD: &str = "rw,noatime,commit=30";

#[test]
fn a_system_that_spares_its_card_gets_no_advice() {
    let stack = stack(mounted("/", "ext4", GOOD));
    let found = advice(&stack, &SystemUse::default(), &activity(10, 10_000_000_000), None);
    assert_eq!(ids(&found), [""; 0]);
    let rate = found.rate.unwrap();
    assert!((rate.bytes_per_day - 1e9).abs() < 1.0 && rate.from == "since the boot", "{rate:?}");
    assert_eq!((found.years_left, found.unknown.len()), (None, 3));
}

#[test]
fn mount_options_that_cost_are_named() {
    for (fstype, options, expected) in [
        ("ext4", "rw,relatime,commit=30", vec!["advise-atime"]),
        ("ext4", "rw,commit=30", vec!["advise-atime"]),
        ("ext4", "rw,noatime", vec!["advise-commit"]),
        ("ext4", "rw,noatime,commit=30,sync", vec!["advise-sync"]),
        ("ext4", "rw,noatime,commit=30,data=journal", vec!["advise-data-journal"]),
        ("ext4", "rw,noatime,commit=30,nobarrier", vec!["advise-barrier"]),
        ("ext4", "rw,noatime,commit=30,barrier=0", vec!["advise-barrier"]),
        ("ext4", "rw,noatime,commit=30,barrier=1", vec![]),
        ("ext4", "ro,sync", vec![]),
        ("f2fs", "rw,noatime", vec![]),
        ("vfat", "rw", vec!["advise-fat"]),
        ("ext2", "rw,noatime", vec!["advise-ext2"]),
    ] {
        let found = advice(&stack(mounted("/", fstype, options)), &SystemUse::default(), &activity(1, 0), None);
        assert_eq!(ids(&found), expected, "{fstype} {options}");
    }
}

#[test]
fn swap_on_the_card_costs_what_was_swapped_out() {
    let stack = stack(mounted("/", "ext4", GOOD));
    let file =
        SwapSpace { name: "/swapfile".into(), on_mount: Some("/".into()), size_bytes: 1 << 30, used_bytes: 1 << 20 };
    let mut system = SystemUse { swaps: vec![file], swapped_out_bytes: Some(5_000_000_000), ..SystemUse::default() };
    let left = WrittenForecast { remaining_lower_bytes: 365_250_000_000, remaining_upper_bytes: Some(730_500_000_000) };
    let found = advice(&stack, &system, &activity(10, 10_000_000_000), Some(&left));
    assert_eq!((ids(&found), found.severity), (vec!["advise-swap"], Severity::Warning));
    let swap = &found.findings[0];
    assert!((swap.saves_bytes_per_day.unwrap() - 5e8).abs() < 1.0);
    let (now, then) = (found.years_left.unwrap(), swap.years_then.unwrap());
    assert!((now.at_least - 1.0).abs() < 1e-9 && (now.at_most.unwrap() - 2.0).abs() < 1e-9);
    assert!((then.at_least - 2.0).abs() < 1e-9, "half of the writes are gone");
    assert!(
        found.verdict.contains("1.0 GB a day are written, at which the card has 1.0 to 2.0 years left"),
        "{found:?}"
    );

    // The kernel does not say to which of several swap spaces it wrote.
    system.swaps.push(SwapSpace { name: "/dev/zram0".into(), ..SwapSpace::default() });
    assert_eq!(advice(&stack, &system, &activity(10, 1), None).findings[0].saves_bytes_per_day, None);
    // Swap that is not on this card.
    system.swaps.remove(0);
    assert_eq!(ids(&advice(&stack, &system, &activity(10, 1), None)), [""; 0]);
    // A partition of the card.
    system.swaps = vec![SwapSpace { name: "/dev/mmcblk0p2".into(), ..SwapSpace::default() }];
    assert_eq!(ids(&advice(&stack, &system, &activity(10, 1), None)), ["advise-swap"]);
}

#[test]
fn logs_and_temporary_files_count_where_they_are_on_the_card() {
    let folder =
        |path: &str, mount: &str| WrittenFolder { path: path.into(), mount: mount.into(), fstype: "ext4".into() };
    let system = |mount: &str, storage: &str| SystemUse {
        folders: vec![folder("/var/log", mount), folder("/tmp", mount)],
        journald: Some(Journald { storage: storage.into(), has_folder: false }),
        ..SystemUse::default()
    };
    let stack = stack(mounted("/", "ext4", GOOD));
    let of = |system: &SystemUse| ids(&advice(&stack, system, &activity(1, 0), None)).join(" ");
    assert_eq!(of(&system("/", "persistent")), "advise-journal advise-tmp");
    assert_eq!(of(&system("/", "auto")), "advise-tmp");
    assert_eq!(of(&system("/tmpfs", "persistent")), "");
    assert_eq!(of(&SystemUse { journald: None, ..system("/", "") }), "advise-logs advise-tmp");
}

#[test]
fn writers_are_named_by_their_share_and_the_journal_by_its_cause() {
    let writer = |name: &str, mb: u64| Writer { name: name.into(), processes: 1, written_bytes: mb * 1_000_000 };
    let watched = WatchedWrites {
        seconds: 60.0,
        disk_bytes: Some(100_000_000),
        writers: vec![writer("database", 70), writer("systemd-journal", 25), writer("sshd", 5)],
    };
    let system = SystemUse {
        watched: Some(watched),
        folders: vec![WrittenFolder { path: "/var/log".into(), mount: "/".into(), fstype: "ext4".into() }],
        journald: Some(Journald { storage: "persistent".into(), has_folder: true }),
        ..SystemUse::default()
    };
    // Just booted: what was watched counts.
    let found = advice(&stack(mounted("/", "ext4", GOOD)), &system, &activity(0, 0), None);
    assert_eq!(ids(&found), ["advise-journal", "advise-writer"]);
    assert_eq!(found.rate.unwrap().from, "while it was watched");
    let saves: Vec<f64> = found.findings.iter().filter_map(|advised| advised.saves_bytes_per_day).collect();
    assert_eq!(saves, [25e6 * 1440.0, 70e6 * 1440.0]);
    let writer = found.findings.iter().find(|advised| advised.finding.id == "advise-writer").unwrap();
    assert!(writer.finding.what.starts_with("database writes 101 GB a day, 70 %"));
}

/// Samples of every day: these bytes each.
fn samples(per_day: &[u64]) -> Vec<HistoryPoint> {
    let mut written = 0;
    let point = |day: i64, written_bytes| HistoryPoint {
        time: Timestamp::from_second(1_700_000_000 + day * 86_400).unwrap(),
        life_a: Some(2),
        life_b: None,
        pre_eol: None,
        read_only: None,
        written_bytes: Some(written_bytes),
        cid: None,
    };
    let mut points = vec![point(0, 0)];
    for (day, bytes) in (1..).zip(per_day) {
        written += bytes;
        points.push(point(day, written));
    }
    points
}

fn day(day: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + day * 86_400).unwrap()
}

#[test]
fn a_change_was_worth_it_if_it_stands_out_from_the_days() {
    let days: Vec<u64> =
        (0..20).map(|day| if day < 10 { 1000 + day % 3 * 50 } else { 400 + day % 3 * 30 } * 1_000_000).collect();
    let found = worth(&samples(&days), day(10)).unwrap();
    assert!(found.is_clear && (found.saved_percent - 59.0).abs() < 1.5, "{found:?}");
    assert!(found.saved_interval_percent[0] > 50.0 && found.saved_interval_percent[1] < 65.0, "{found:?}");
    assert!(found.verdict.starts_with("Yes: 59 % less is written"), "{}", found.verdict);
    let back = worth(&samples(&days.iter().rev().copied().collect::<Vec<_>>()), day(10)).unwrap();
    assert!(back.is_clear && back.verdict.starts_with("No: "), "{}", back.verdict);

    let noisy: Vec<u64> = (0..20).map(|day| [900, 100, 2000, 50][day % 4] * 1_000_000).collect();
    let found = worth(&samples(&noisy), day(10)).unwrap();
    assert!(!found.is_clear && found.verdict.starts_with("Not to be told yet"), "{}", found.verdict);
}

#[test]
fn the_interval_holds_what_it_states() {
    // 400 changes that bring nothing: about one in twenty may look clear.
    let mut rng = emmc_units::Rng::new(7);
    let clear = (0..400).filter(|_| {
        let days: Vec<u64> = (0..24).map(|_| 500_000_000 + rng.below(1_000_000_000)).collect();
        worth(&samples(&days), day(12)).unwrap().is_clear
    });
    let share = clear.count() as f64 / 400.0;
    assert!((0.02..0.08).contains(&share), "{share}");
}

#[test]
fn too_few_samples_are_refused() {
    let error = worth(&samples(&[1, 2, 3]), day(2)).unwrap_err().to_string();
    assert!(error.starts_with("after 2023-") && error.contains("expected at least 3"), "{error}");
    assert!(worth(&samples(&[1, 2, 3, 4]), day(9)).unwrap_err().to_string().starts_with("after"));
    assert!(worth(&[], day(1)).is_err());
    let mut reset = samples(&[5, 5, 5, 5, 5, 5]);
    reset[3].written_bytes = Some(1);
    assert!(worth(&reset, day(3)).unwrap_err().to_string().starts_with("written_bytes falls from 10 to 1 at"));
    let nothing = worth(&samples(&[0, 0, 0, 0, 7, 7, 7]), day(4)).unwrap_err();
    assert!(nothing.to_string().starts_with("nothing was written before"), "{nothing}");
}

/// The findings of a card whose root has these options, and of this system.
fn of(fstype: &str, options: &str, system: &SystemUse, card: Option<&CardData>) -> Vec<Finding> {
    let (stack, activity) = (stack(mounted("/", fstype, options)), activity(1, 0));
    let facts =
        AdviseFacts { disk: "mmcblk0", stack: &stack, system, activity: &activity, card, left: None, now: None };
    system_advice(&facts).findings.into_iter().map(|advised| advised.finding).collect()
}

fn options_find(fault: bool, fstype: &str, options: &str) -> Vec<Finding> {
    let system = SystemUse::default();
    if fault { of(fstype, options, &system, None) } else { of("ext4", GOOD, &system, None) }
}

fn folder_finds(path: &str, mount: &str, journald: Option<&str>) -> Vec<Finding> {
    let folder = WrittenFolder { path: path.into(), mount: mount.into(), fstype: "ext4".into() };
    let journald = journald.map(|storage| Journald { storage: storage.into(), has_folder: false });
    of("ext4", GOOD, &SystemUse { folders: vec![folder], journald, ..SystemUse::default() }, None)
}

/// An id, and the findings of a system with the fault or without it.
type Case = (&'static str, fn(bool) -> Vec<Finding>);

pub(crate) const CASES: [Case; 17] = [
    ("advise-atime", |fault| options_find(fault, "ext4", "rw,relatime")),
    ("advise-commit", |fault| options_find(fault, "ext4", "rw,noatime")),
    ("advise-sync", |fault| options_find(fault, "ext4", "rw,sync")),
    ("advise-data-journal", |fault| options_find(fault, "ext4", "rw,data=journal")),
    ("advise-barrier", |fault| options_find(fault, "ext4", "rw,nobarrier")),
    ("advise-fat", |fault| options_find(fault, "vfat", "rw")),
    ("advise-ext2", |fault| options_find(fault, "ext2", "rw")),
    ("advise-btrfs-compress", |fault| {
        of("btrfs", if fault { "rw,noatime" } else { "rw,noatime,compress=zstd:1" }, &SystemUse::default(), None)
    }),
    ("advise-btrfs-defrag", |fault| {
        let option = if fault { ",autodefrag" } else { "" };
        of("btrfs", &format!("rw,noatime,compress=lzo{option}"), &SystemUse::default(), None)
    }),
    ("advise-containers", |fault| {
        let docker = Containers {
            engine: "docker".into(),
            folder: "/var/lib/docker".into(),
            mount: if fault { "/" } else { "/data" }.into(),
            running: 2,
            ..Containers::default()
        };
        of("ext4", GOOD, &SystemUse { containers: vec![docker], ..SystemUse::default() }, None)
    }),
    ("advise-journal", |fault| folder_finds("/var/log", "/", Some(if fault { "persistent" } else { "volatile" }))),
    ("advise-logs", |fault| folder_finds("/var/log", if fault { "/" } else { "/var/log" }, None)),
    ("advise-tmp", |fault| folder_finds("/tmp", if fault { "/" } else { "/tmp" }, None)),
    ("advise-scheduler", |fault| {
        let scheduler = Some(if fault { "bfq" } else { "mq-deadline" }.to_owned());
        of("ext4", GOOD, &SystemUse { scheduler, ..SystemUse::default() }, None)
    }),
    ("advise-swap", |fault| {
        let name = if fault { "/dev/mmcblk0p2" } else { "/dev/zram0" }.to_owned();
        let swaps = vec![SwapSpace { name, ..SwapSpace::default() }];
        of("ext4", GOOD, &SystemUse { swaps, ..SystemUse::default() }, None)
    }),
    ("advise-writer", |fault| {
        let written_bytes = if fault { 1000 } else { 0 };
        let writers = vec![Writer { name: "database".into(), processes: 1, written_bytes }];
        let watched = fault.then_some(WatchedWrites { seconds: 1.0, disk_bytes: None, writers });
        of("ext4", GOOD, &SystemUse { watched, ..SystemUse::default() }, None)
    }),
    ("advise-alignment", |fault| {
        // The partition begins at 4 MiB; HC_ERASE_GRP_SIZE in units of 512 KiB.
        let mut bytes = [0; 512];
        bytes[192] = 8;
        bytes[224] = if fault { 12 } else { 8 };
        let ext_csd = Some(emmc_regs::ext_csd::ExtCsd::from_bytes(bytes));
        of("ext4", GOOD, &SystemUse::default(), Some(&CardData { ext_csd, ..CardData::default() }))
    }),
];
