//! A round of fio.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use emmc_units::Nanos;
use emmc_workload::{Latencies, Latency};
use serde_json::Value;

use crate::{Case, Round, switches};

/// The keys of its percentiles.
const PERCENTILES: [&str; 3] = ["50.000000", "99.000000", "99.900000"];

/// Average rounding loss of a thread's processor time: half a millisecond for each of two figures. Unit: milliseconds.
///
/// Source: `mtime_since_tv` in its stat.c.
const DROPPED_MS: f64 = 1.0;

/// Its histogram has 64 buckets between a number and its double (FIO_IO_U_PLAT_BITS); a percentile is the middle of
/// one.
pub(crate) const RESOLUTION: f64 = 1.0 / 64.0;

pub(crate) fn version() -> String {
    let output = Command::new("fio").arg("--version").output();
    output.map_or_else(|error| error.to_string(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A round without logging.
pub(crate) fn round(device: &Path, case: Case, time: Duration) -> Round {
    run(device, case, time, &[])
}

/// A round with a log of every latency: fio's percentiles, and the same requests in our histogram.
pub(crate) fn logged(device: &Path, case: Case, time: Duration, folder: &Path) -> (Round, Latency) {
    let prefix = folder.join(format!("emmclab-fio-{}", std::process::id()));
    let round = run(device, case, time, &[format!("--write_lat_log={}", prefix.display()), "--per_job_logs=0".into()]);
    let log = |kind: &str| PathBuf::from(format!("{}_{kind}.log", prefix.display()));
    let text = std::fs::read_to_string(log("lat")).expect("fio has written its log");
    for kind in ["lat", "slat", "clat"] {
        let _ = std::fs::remove_file(log(kind));
    }
    let mut latencies = Latencies::default();
    for line in text.lines() {
        // Milliseconds since the start, nanoseconds, direction, bytes, place, priority.
        let nanos = line.split(',').nth(1).and_then(|nanos| nanos.trim().parse().ok());
        latencies.record(Nanos(nanos.unwrap_or_else(|| panic!("fio's log: {line:?}"))), 0, 0);
    }
    (round, latencies.latency(1).expect("requests were made"))
}

/// `psync` has no queue depth: one thread per request, as in our own `pread` engine.
fn run(device: &Path, case: Case, time: Duration, more: &[String]) -> Round {
    let (engine, depth, jobs) = match case.engine {
        "pread" => ("psync", 1, case.depth),
        engine => (engine, case.depth, 1),
    };
    let (output, switches) = switches::of_children(|| {
        Command::new("fio")
            .args(["--name=round", "--direct=1", "--randrepeat=0", "--time_based", "--thread"])
            .args(["--norandommap", "--output-format=json", "--percentile_list=50:99:99.9"])
            // From submission on, as ours; over all threads.
            .args(["--lat_percentiles=1", "--clat_percentiles=0", "--group_reporting"])
            .arg(format!("--filename={}", device.display()))
            .arg(format!("--ioengine={engine}"))
            .arg(format!("--iodepth={depth}"))
            .arg(format!("--numjobs={jobs}"))
            .arg(format!("--bs={}", case.block_bytes))
            .arg(format!("--rw={}", if case.write { "randwrite" } else { "randread" }))
            .arg(format!("--runtime={}ms", time.as_millis()))
            .args(more)
            .output()
            .expect("fio ran before")
    });
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("fio: {error}: {}", String::from_utf8_lossy(&output.stderr)));
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let job = &report["jobs"][0];
    let side = &job[if case.write { "write" } else { "read" }];
    // Percent of a processor, averaged over its threads. Both times of each thread are rounded down to whole
    // milliseconds.
    let percent = number(&job["usr_cpu"]) + number(&job["sys_cpu"]);
    let cpu_ms = (percent / 100.0 * number(&side["runtime"]) + DROPPED_MS) * f64::from(jobs);
    Round {
        iops: number(&side["iops"]),
        cpu_us: cpu_ms * 1e3 / number(&side["total_ios"]),
        switches: switches.per(number(&side["total_ios"])),
        percentiles_us: PERCENTILES.map(|name| number(&side["lat_ns"]["percentile"][name]) / 1e3),
    }
}
