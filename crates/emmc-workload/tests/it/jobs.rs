//! Jobs on small cards: phases do the stated work, sums agree, registers step at the computed volumes, and the same
//! seed gives the same bytes.

mod amounts;
mod life;
mod speed;
mod wear;

use emmc_card::condition::Condition;
use emmc_card::device::{Device, DeviceOptions};
use emmc_card::nand::StoredContent;
use emmc_card::profile::{Profile, shipped};
use emmc_regs::CardKind;
use emmc_sim::SimTarget;
use emmc_units::Instant;
use emmc_workload::job::{Ended, RunResult, run};
use emmc_workload::{Job, Progress, Unwatched, Watch};

const MIB: u64 = 1 << 20;

/// A 64 MiB card of 512 KiB blocks: one die of two planes, pages of 16 KiB, a quarter of over-provisioning.
fn small() -> Profile {
    let mut profile = shipped::named("generic-8g").unwrap();
    profile.name = "small".into();
    profile.areas.user_bytes = 64 * MIB;
    profile.areas.boot_bytes = 128 << 10;
    profile.areas.rpmb_bytes = 128 << 10;
    profile.areas.enhanced_groups_max = 0;
    profile.nand.pages_per_block = 32;
    profile.nand.over_provisioning = 0.25;
    profile.nand.spare_blocks = 8;
    profile.nand.factory_bad_blocks = 0;
    profile.nand.native.endurance_spread = 0.0;
    profile.nand.native.time_spread = 0.0;
    profile.ftl.wear.static_gap = 0;
    profile
}

fn device(profile: Profile, keep: StoredContent) -> Device {
    Device::new(profile, DeviceOptions { keep, seed: 1 }).unwrap()
}

fn job(text: &str) -> Job {
    Job::from_json(text, &mut |name| Err(name.into())).unwrap()
}

/// A card with its cache and queue on.
fn target(device: Device, now: Instant) -> SimTarget {
    SimTarget::new(device, "sim:small", now, true)
}

/// A run and the condition of the card after it.
struct Found {
    run: RunResult,
    card: Condition,
}

/// Runs a job on a new card; the card's own invariants hold at the end.
fn run_on(profile: Profile, phases: &str) -> (Device, Found) {
    run_more(device(profile, StoredContent::Nothing), phases, Instant::START)
}

fn run_more(device: Device, phases: &str, now: Instant) -> (Device, Found) {
    let job = job(&format!("{{\"seed\": 3, \"phases\": [{phases}]}}"));
    let mut target = target(device, now);
    let run = run(&mut target, &job, &mut Unwatched).unwrap();
    let (device, _) = target.into_device();
    assert_eq!(device.audit(), Ok(()));
    assert_eq!(device.nand().counters().violations, 0);
    let card = Condition::of(&device);
    (device, Found { run, card })
}

const MANY: &str = r#"{"kind": "fill"}, {"kind": "random", "amount": "1x", "queue_depth": 4, "read_share": 0.3},
    {"kind": "hot_cold", "hot_share": 0.1, "write_share": 0.9, "amount": "0.5x"},
    {"kind": "zipf", "s": 1.0, "scrambled": true, "amount": "0.5x", "cache": false},
    {"kind": "mixed", "trim_share": 0.2, "amount": "0.5x"}, {"kind": "trim", "share": 0.1}, {"kind": "flush"},
    {"kind": "idle", "seconds": 1}, {"kind": "power_cycle"}, {"kind": "random_read", "amount": "8MiB"},
    {"kind": "trace", "records": "time_us,op,lba,sectors\n0,write,0,8\n50000,read,0,8\n50001,flush,0,0"}"#;

/// Checks that progress only grows, and counts the reports; stops the run after some of them.
#[derive(Default)]
struct Growing {
    at: (u32, f64),
    whole: f64,
    left: Option<u32>,
}

impl Watch for Growing {
    fn progress(&mut self, progress: Progress<'_>) -> bool {
        let whole = progress.share().unwrap();
        assert!((self.whole..=1.0).contains(&whole), "{progress:?} after {}", self.whole);
        let at = (progress.number, progress.done_share);
        assert!(at.0 > self.at.0 || at.1 >= self.at.1, "{at:?} after {:?}", self.at);
        (self.whole, self.at) = (whole, at);
        self.left = self.left.map(|left| left - 1);
        self.left != Some(0)
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let bytes = |seed: u64| {
        let job = job(&format!("{{\"seed\": {seed}, \"phases\": [{MANY}]}}"));
        let mut target = target(device(small(), StoredContent::Nothing), Instant::START);
        let mut watch = Growing::default();
        let result = run(&mut target, &job, &mut watch).unwrap();
        assert!(watch.whole > 0.5, "{}", watch.whole);
        serde_json::to_string(&(result, Condition::of(target.device()))).unwrap()
    };
    let one = bytes(7);
    assert_eq!(one, bytes(7));
    assert_ne!(one, bytes(8));
}

#[test]
fn a_stopped_run_reports_the_work_so_far() {
    let job = job(r#"{"phases": [{"kind": "random", "amount": "10x"}, {"kind": "fill"}]}"#);
    let mut target = target(device(small(), StoredContent::Nothing), Instant::START);
    let result = run(&mut target, &job, &mut Growing { left: Some(3), ..Growing::default() }).unwrap();
    assert_eq!((result.ended, result.phases.len()), (Ended::Stopped, 1));
    let requests = result.work.host_requests;
    assert!((2 << 14..=3 << 14).contains(&requests), "{requests}");
    assert_eq!(result.series.written_bytes.iter().sum::<u64>(), requests * 4096);
}

#[test]
fn every_phase_runs_on_a_card_with_content() {
    let phases = MANY.replace("\"power_cycle\"", "\"power_cycle\", \"notify\": false");
    let (_, result) = run_more(device(small(), StoredContent::Data), &phases, Instant::START);
    assert_eq!(result.run.phases.len(), 11);
    let kinds: Vec<&str> = result.run.phases.iter().map(|phase| phase.kind).collect();
    assert_eq!(kinds[..5], ["fill", "random", "hot_cold", "zipf", "mixed"]);
    assert_eq!(result.run.read_errors, 0);
}

#[test]
fn invalid_jobs_are_refused_before_the_run() {
    for (phase, rule) in [
        (r#"{"kind": "fill", "area": "gp1"}"#, "phase 2 (fill): the card has no area Gp(0)"),
        (
            r#"{"kind": "random", "amount": "1x", "range": ["60MiB", "65MiB"]}"#,
            "phase 2 (random): the range is sectors 122880 to 133120; the area has 131072",
        ),
        (
            r#"{"kind": "random", "amount": "1x", "range": ["50%", "40%"]}"#,
            "phase 2 (random): the range is sectors 65536 to 52424; the area has 131072",
        ),
        (
            r#"{"kind": "random", "amount": "1x", "range": ["0B", "8KiB"], "block": "16KiB"}"#,
            "phase 2 (random): a request takes 32 sectors and the range has 16",
        ),
        (
            r#"{"kind": "trace", "records": "0 0 131065 8 0"}"#,
            "phase 2 (trace): request 1: 4096 bytes at byte 67105280; the area has 67108864 bytes; \"wrap\": true continues at its start",
        ),
        (
            r#"{"kind": "power_cycle", "notify": false}"#,
            "phase 2 (power_cycle): power that goes without notice needs a card that keeps its data",
        ),
    ] {
        let job = job(&format!("{{\"phases\": [{{\"kind\": \"flush\"}}, {phase}]}}"));
        let mut target = target(device(small(), StoredContent::Nothing), Instant::START);
        let error = run(&mut target, &job, &mut Unwatched).unwrap_err();
        assert_eq!(error.to_string(), format!("job: {rule}"), "{phase}");
    }
}

#[test]
fn the_example_jobs_are_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/jobs");
    let files = std::fs::read_dir(folder).unwrap();
    let read = files.map(|entry| job(&std::fs::read_to_string(entry.unwrap().path()).unwrap()));
    assert!(read.filter(|job| !job.phases.is_empty()).count() >= 1);
}

#[test]
fn every_shipped_profile_runs_every_phase_briefly() {
    let phases = r#"{"kind": "sequential", "amount": "16MiB", "block": "128KiB", "range": ["0%", "1%"]},
        {"kind": "random", "amount": "4MiB", "range": ["0%", "1%"], "read_share": 0.3, "queue_depth": 4},
        {"kind": "mixed", "trim_share": 0.2, "amount": "2MiB", "range": ["1%", "2%"]},
        {"kind": "trim", "range": ["0%", "1%"], "share": 0.5}, {"kind": "idle", "seconds": 1},
        {"kind": "power_cycle"}, {"kind": "random_read", "amount": "1MiB", "range": ["0%", "1%"]}"#;
    for name in shipped::names() {
        let profile = shipped::named(name).unwrap();
        let (_, result) = run_on(profile.clone(), phases);
        assert_eq!((result.run.ended, result.run.phases.len()), (Ended::Done, 7), "{name}");
        assert_eq!((result.run.read_errors, result.run.phases[6].work.host_read_bytes), (0, MIB), "{name}");
        let programmed = result.run.work.nand_programs * u64::from(result.run.unit_bytes);
        assert!(programmed >= 16 * MIB, "{name}: {programmed}");
        assert!(result.card.block_map.valid_share.iter().any(|share| *share > 0.0), "{name}: an empty map of blocks");
        assert_eq!(result.card.registers.pre_eol_info.is_none(), profile.kind == CardKind::Sd, "{name}");
    }
}
