//! Every phase does the stated amount of work in the stated range.

use emmc_card::device::Area;
use emmc_port::BlockOp;
use emmc_workload::job::{HostRequest, requests, run};

use crate::jobs::{MIB, device, job, run_on, small, target};
use emmc_card::nand::StoredContent;

#[test]
fn amounts_are_exact() {
    for (phase, requests, bytes) in [
        (r#"{"kind": "fill"}"#, 128, 64 * MIB),
        (r#"{"kind": "fill", "range": ["16MiB", "48MiB"], "block": "96KiB"}"#, 342, 32 * MIB),
        (r#"{"kind": "random", "amount": "2.5x"}"#, 40960, 160 * MIB),
        // The last request is shorter: 5 MiB are 53 times 96 KiB and 32 KiB.
        (r#"{"kind": "random", "amount": "5MiB", "block": "96KiB"}"#, 54, 5 * MIB),
        (r#"{"kind": "sequential", "amount": "3s", "block": "4KiB"}"#, 1, 1536),
        (
            r#"{"kind": "sequential", "amount": "1x", "streams": 4, "spacing": "1MiB", "shuffled": true}"#,
            16384,
            64 * MIB,
        ),
        (r#"{"kind": "zipf", "s": 0.9, "amount": "1MiB"}"#, 256, MIB),
    ] {
        let (_, result) = run_on(small(), phase);
        assert_eq!((result.run.work.host_requests, result.run.work.host_written_bytes), (requests, bytes), "{phase}");
        assert_eq!(result.run.work.host_writes, bytes.div_ceil(4096), "{phase}");
        assert_eq!(result.run.work.latency_us.write.unwrap().count, requests, "{phase}");
        assert_eq!(result.run.series.written_bytes.iter().sum::<u64>(), bytes, "{phase}");
    }
}

#[test]
fn reads_trims_and_mixes_are_counted_separately() {
    let (device, result) = run_on(small(), r#"{"kind": "fill"}, {"kind": "flush"}, {"kind": "trim", "share": 0.25}"#);
    assert_eq!((result.run.phases[2].work.host_requests, result.run.work.host_trimmed_bytes), (4096, 16 * MIB));
    let mapped = (0..16384).filter(|unit| device.is_mapped(Area::User, unit * 8)).count();
    assert_eq!(mapped, 3 * 4096);
    let (device, result) = run_on(small(), r#"{"kind": "fill"}, {"kind": "trim", "range": ["16MiB", "32MiB"]}"#);
    assert_eq!((result.run.phases[1].work.host_requests, result.run.work.host_trimmed_bytes), (32, 16 * MIB));
    for (lba, mapped) in [(32767, true), (32768, false), (65535, false), (65536, true)] {
        assert_eq!(device.is_mapped(Area::User, lba), mapped, "{lba}");
    }
    let mixed = r#"{"kind": "fill"}, {"kind": "random", "amount": "1x", "read_share": 0.7}"#;
    let (_, result) = run_on(small(), mixed);
    let (written, read) = (result.run.phases[1].work.host_written_bytes, result.run.phases[1].work.host_read_bytes);
    assert_eq!(written + read, 64 * MIB);
    // Five standard deviations of a binomial of 16384 draws.
    assert!((0.682..0.718).contains(&(read as f64 / (64 * MIB) as f64)), "{read}");
    assert_eq!(result.run.work.latency_us.read.unwrap().count, read / 4096);
}

#[test]
fn requests_stay_in_the_given_range() {
    let (device, _) =
        run_on(small(), r#"{"kind": "random", "amount": "4x", "range": ["16MiB", "32MiB"]}, {"kind": "flush"}"#);
    for unit in (0..16384).step_by(16) {
        let inside = (4096..8192).contains(&unit);
        assert!(inside || !device.is_mapped(Area::User, unit * 8), "{unit}");
    }
    let mapped = (4096..8192).filter(|unit| device.is_mapped(Area::User, unit * 8)).count();
    assert!(mapped > 4095, "{mapped}");
}

#[test]
fn other_areas_are_written_too() {
    let (device, result) = run_on(small(), r#"{"kind": "fill", "area": "boot1"}, {"kind": "flush"}"#);
    assert_eq!(result.run.work.host_written_bytes, 128 << 10);
    assert!(
        device.is_mapped(Area::Boot(1), 0) && !device.is_mapped(Area::Boot(0), 0) && !device.is_mapped(Area::User, 0)
    );
}

#[test]
fn time_limits_are_exact() {
    let phases = r#"{"kind": "idle", "seconds": 2.5}, {"kind": "trace", "records": "0 0 0 8 0\n3000000000 0 8 8 0"},
        {"kind": "trace", "timed": false, "records": "0 0 0 8 0\n3000000000 0 8 8 0"}"#;
    let (_, result) = run_on(small(), phases);
    assert_eq!(result.run.phases[0].work.simulated_s, 2.5);
    assert!((3.0..3.1).contains(&result.run.phases[1].work.simulated_s), "{}", result.run.phases[1].work.simulated_s);
    assert!((0.0..0.1).contains(&result.run.phases[2].work.simulated_s), "{}", result.run.phases[2].work.simulated_s);
    let sum: f64 = result.run.phases.iter().map(|phase| phase.work.simulated_s).sum();
    assert!((result.run.work.simulated_s - sum).abs() < 1e-6);
}

#[test]
fn requests_of_a_job_are_listed_without_a_run() {
    let text = r#"{"seed": 3, "phases": [{"kind": "sequential", "amount": "12KiB"}, {"kind": "idle", "seconds": 1},
        {"kind": "random", "amount": "1MiB", "read_share": 0.5}]}"#;
    let (job, mut card) = (job(text), target(device(small(), StoredContent::Nothing), emmc_units::Instant::START));
    let mut told = Vec::new();
    requests(&card, &job, &mut |request| told.push(request)).unwrap();
    let first = |lba| HostRequest { phase: 0, op: BlockOp::Write, lba, sectors: 8 };
    assert_eq!(told[..3], [first(0), first(8), first(16)]);
    assert_eq!((told.len(), told[3].phase), (3 + 256, 2));
    let reads = told.iter().filter(|request| request.op == BlockOp::Read).count() as u64;
    let result = run(&mut card, &job, &mut emmc_workload::Unwatched).unwrap();
    assert_eq!(result.work.host_read_bytes, reads * 4096);
}
