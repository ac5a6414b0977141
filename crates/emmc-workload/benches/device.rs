//! Host requests per second of real time through the whole device: bus, cache, translation layer, flash, latencies.
//!
//! `cargo bench -p emmc-workload --bench device [-- NAME...]`; no statistics, each figure is one long run. Processor
//! time is used if the kernel reports it, so that other load matters less. `life-generic-8g` runs only by its name: a
//! whole life of random writes takes minutes.

use emmc_card::device::{Device, DeviceOptions};
use emmc_card::nand::StoredContent;
use emmc_card::profile::{Profile, shipped};
use emmc_sim::SimTarget;
use emmc_units::Instant;
use emmc_workload::job::run;
use emmc_workload::{Job, Unwatched};

/// A page-mapped card with nine tenths of its blocks' units in use.
fn card(user_gib: u64) -> Profile {
    let mut profile = shipped::named("generic-8g").unwrap();
    profile.areas.user_bytes = user_gib << 30;
    profile.areas.enhanced_groups_max = 0;
    profile.nand.over_provisioning = 1.0 / 9.0;
    // Larger parts have larger blocks, or their log of trims has no room for a bit of every unit.
    profile.nand.pages_per_block *= (user_gib / 8).min(8) as u32;
    profile
}

/// Processor time of this thread (Linux), else real time. Unit: seconds.
fn seconds(since: std::time::Instant) -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok());
    nanos.map_or_else(|| since.elapsed().as_secs_f64(), |nanos| nanos / 1e9)
}

/// Brings the card into the state, then times the last phase.
fn time(name: &str, profile: Profile, before: &str, timed: &str) {
    let device = Device::new(profile, DeviceOptions { keep: StoredContent::Nothing, seed: 1 }).unwrap();
    let job = |phases: &str| Job::from_json(&format!("{{\"phases\": [{phases}]}}"), &mut |_| Err("no".into())).unwrap();
    let mut card = SimTarget::new(device, "sim:bench", Instant::START, true);
    run(&mut card, &job(before), &mut Unwatched).unwrap();
    let timed = job(timed);
    let clock = std::time::Instant::now();
    let begun = seconds(clock);
    let result = run(&mut card, &timed, &mut Unwatched).unwrap().work;
    let seconds = seconds(clock) - begun;
    let rate = |count: u64| count as f64 / seconds / 1e6;
    println!(
        "{name:32} {:7.2} M requests/s  {:7.2} M units/s  {:7.2} M programs/s  WA {:.3}  {seconds:.1} s",
        rate(result.host_requests),
        rate((result.host_written_bytes + result.host_read_bytes) / 4096),
        rate(result.nand_programs),
        result.write_amplification.unwrap_or(0.0),
    );
}

/// Creates a large card with 60 % of its life used, as `sim create` does: filled once, a tenth of it written again.
fn time_ageing(name: &str, profile: &str) {
    let clock = std::time::Instant::now();
    let begun = seconds(clock);
    let profile = shipped::named(profile).unwrap();
    let units = profile.areas.user_bytes / u64::from(profile.ftl.unit_bytes) * 11 / 10;
    let mut device = Device::new(profile, DeviceOptions { keep: StoredContent::Orders, seed: 1 }).unwrap();
    device.age(0.6, Instant::START).unwrap();
    let seconds = seconds(clock) - begun;
    println!("{name:32} {seconds:7.2} s           {:9.2} M units/s", units as f64 / seconds / 1e6);
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let steady = r#"{"kind": "fill"}, {"kind": "random", "amount": "3x"}"#;
    let runs = [
        ("random-8g", 8, steady, r#"{"kind": "random", "amount": "3x"}"#),
        ("random-8g-depth-32", 8, steady, r#"{"kind": "random", "amount": "2x", "queue_depth": 32}"#),
        ("random-8g-uncached", 8, steady, r#"{"kind": "random", "amount": "0.2x", "cache": false}"#),
        ("zipf-8g", 8, steady, r#"{"kind": "zipf", "s": 0.99, "amount": "2x"}"#),
        ("read-8g", 8, steady, r#"{"kind": "random_read", "amount": "2x"}"#),
        (
            "sequential-8g-512k",
            8,
            r#"{"kind": "fill"}"#,
            r#"{"kind": "sequential", "amount": "20x", "block": "512KiB"}"#,
        ),
        ("sequential-8g-4k", 8, r#"{"kind": "fill"}"#, r#"{"kind": "sequential", "amount": "5x"}"#),
        (
            "random-64g",
            64,
            r#"{"kind": "fill"}, {"kind": "random", "amount": "1x"}"#,
            r#"{"kind": "random", "amount": "0.5x"}"#,
        ),
    ];
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    for (name, gib, before, timed) in runs {
        if is_wanted(name) {
            time(name, card(gib), before, timed);
        }
    }
    let life = "life-generic-8g";
    if wanted.iter().any(|wanted| wanted == life) {
        let profile = shipped::named("generic-8g").unwrap();
        time(life, profile, r#"{"kind": "fill"}"#, r#"{"kind": "random", "amount": "until worn out"}"#);
    }
    for (name, profile) in [("age-generic-128g", "generic-128g"), ("age-odroid-128g", "odroid-128g")] {
        if is_wanted(name) {
            time_ageing(name, profile);
        }
    }
}
