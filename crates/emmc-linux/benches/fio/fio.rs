//! A round of fio's.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::{Case, Round};

pub(crate) fn version() -> String {
    let output = Command::new("fio").arg("--version").output();
    output.map_or_else(|error| error.to_string(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// `psync` has no depth: as many threads as requests, which is what our own `pread` engine does too.
pub(crate) fn round(device: &Path, case: Case, time: Duration) -> Round {
    let (engine, depth, jobs) = match case.engine {
        "pread" => ("psync", 1, case.depth),
        engine => (engine, case.depth, 1),
    };
    let output = Command::new("fio")
        .args(["--name=round", "--direct=1", "--randrepeat=0", "--time_based", "--thread"])
        .args(["--norandommap", "--output-format=json", "--percentile_list=50:99"])
        // From the hand-over on, as ours.
        .args(["--lat_percentiles=1", "--clat_percentiles=0"])
        .arg(format!("--filename={}", device.display()))
        .arg(format!("--ioengine={engine}"))
        .arg(format!("--iodepth={depth}"))
        .arg(format!("--numjobs={jobs}"))
        .arg(format!("--bs={}", case.block_bytes))
        .arg(format!("--rw={}", if case.write { "randwrite" } else { "randread" }))
        .arg(format!("--runtime={}ms", time.as_millis()))
        .output()
        .expect("fio ran before");
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("fio: {error}: {}", String::from_utf8_lossy(&output.stderr)));
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let threads = report["jobs"].as_array().map_or(&[][..], Vec::as_slice);
    let side = |job: &Value| job[if case.write { "write" } else { "read" }].clone();
    let iops: f64 = threads.iter().map(|job| number(&side(job)["iops"])).sum();
    // Percent of a processor over each thread's time.
    let percent: f64 = threads.iter().map(|job| number(&job["usr_cpu"]) + number(&job["sys_cpu"])).sum();
    // Of several threads, the one in the middle.
    let percentile = |name: &str| {
        let of = |job| number(&side(job)["lat_ns"]["percentile"][name]) / 1e3;
        crate::quantile(threads.iter().map(of).collect(), 0.5)
    };
    let cpu_us = percent / 100.0 * 1e6 / iops;
    Round { iops, cpu_us, p50_us: percentile("50.000000"), p99_us: percentile("99.000000") }
}
