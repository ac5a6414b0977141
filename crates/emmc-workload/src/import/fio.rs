//! fio's JSON, `--output-format=json` or `json+`, with other output of fio around it.
//!
//! Source: outputs of fio 3.33; fio 2 writes KiB a second and microseconds. fio's warnings precede the JSON on the same
//! stream (its issue 731): they are kept as remarks. If a job has no block size, the mean request size is used.

use serde_json::{Map, Value};

use super::rate::size_bytes;
use super::{ImportError, SavedResult, outcome, summed};
use crate::result::context::DiskFacts;
use crate::result::measurement::Measurement;
use crate::result::{Outcome, Pivot};
use crate::stats::latency::{Bucket, Latency};
use crate::stats::percentiles::PercentileIntervals;

const TABLE: &str = "fio";
/// Most lines of fio's other output that are kept.
const REMARKS_MAX: usize = 8;

/// A job's options over those of all jobs.
struct Options<'a>([Option<&'a Map<String, Value>>; 2]);

impl Options<'_> {
    fn get(&self, names: &[&str]) -> Option<&str> {
        let maps = self.0.into_iter().flatten();
        maps.flat_map(|map| names.iter().filter_map(|name| map.get(*name))).next().and_then(Value::as_str)
    }
}

pub(super) fn read(name: &str, text: &str) -> Result<SavedResult, ImportError> {
    let mut starts = text.match_indices('{').filter(|(at, _)| *at == 0 || text[..*at].ends_with('\n'));
    let start = starts.next().map_or(0, |(at, _)| at);
    let above = text[..start].lines().count();
    let wrong = |line: usize, found: String, expected: &str| ImportError::Line {
        name: name.into(),
        line,
        found,
        expected: expected.into(),
    };
    let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
    let value = match values.next() {
        Some(Ok(value)) => value,
        Some(Err(error)) => {
            let line = above + error.line();
            let found = text.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim().chars().take(60).collect();
            return Err(wrong(line, found, "fio's JSON, whole"));
        }
        None => return Err(wrong(above + 1, String::new(), "fio's JSON")),
    };
    let rest = &text[start + values.byte_offset()..];
    let mut found = outcome(TABLE, "fio's jobs");
    let talk = text[..start].lines().chain(rest.lines()).map(str::trim).filter(|line| !line.is_empty());
    found.remarks.extend(talk.take(REMARKS_MAX).map(|line| format!("fio said: {line}")));
    let empty = || wrong(above + 1, "{".into(), "\"jobs\" with requests in at least one");
    let jobs = value.get("jobs").and_then(Value::as_array).ok_or_else(empty)?;
    let global = value.get("global options").and_then(Value::as_object);
    let mut result = SavedResult { name: name.into(), ..SavedResult::default() };
    for job in jobs {
        let options = Options([job.get("job options").and_then(Value::as_object), global]);
        take_job(job, &options, &mut found);
        result.engine = result.engine.or_else(|| options.get(&["ioengine"]).map(Into::into));
        result.target = result.target.or_else(|| options.get(&["filename", "directory"]).map(Into::into));
    }
    if found.measurements.is_empty() {
        return Err(empty());
    }
    let disk = value.get("disk_util").and_then(|disks| disks.get(0)).and_then(|disk| disk.get("name"));
    if let Some(disk) = disk.and_then(Value::as_str) {
        result.context.disk = Some(DiskFacts { name: disk.into(), ..DiskFacts::default() });
    }
    if let Some(version) = value.get("fio version").and_then(Value::as_str) {
        result.context.notes.push(format!("measured by {version}; latencies are its clat if it has percentiles"));
    }
    found.tables.push(Pivot {
        table: TABLE.into(),
        rows: "job".into(),
        unit: "MB/s".into(),
        caption: "10^6 bytes a second".into(),
    });
    result.outcomes.push(summed(found));
    Ok(result)
}

fn number(value: &Value, key: &str) -> Option<f64> {
    value.get(key)?.as_f64().filter(|number| number.is_finite() && *number >= 0.0)
}

fn take_job(job: &Value, options: &Options<'_>, found: &mut Outcome) {
    let name = job.get("jobname").and_then(Value::as_str).unwrap_or("job");
    let row = match found.measurements.iter().filter(|measurement| measurement.row == name).count() {
        0 => name.to_owned(),
        _ => format!("{name} (group {})", job.get("groupid").and_then(Value::as_u64).unwrap_or_default()),
    };
    let rw = options.get(&["rw", "readwrite"]);
    if rw.is_none() {
        found.remarks.push(format!("job {name}: no order is given: fio's default is sequential"));
    }
    let rw = rw.unwrap_or("read");
    let order = if rw.starts_with("rand") { "random" } else { "sequential" };
    let mixed = matches!(rw.split(':').next(), Some("rw" | "readwrite" | "randrw" | "trimwrite" | "randtrimwrite"));
    let order = if mixed { format!("{order}, mixed") } else { order.to_owned() };
    let count = |name: &str| options.get(&[name]).and_then(|count| count.parse::<u32>().ok()).unwrap_or(1).max(1);
    let queue_depth = count("iodepth").saturating_mul(count("numjobs"));
    let error = number(job, "error").unwrap_or(0.0);
    if error > 0.0 {
        found.remarks.push(format!("job {name}: it ended with error {error}"));
    }
    for (index, op) in ["read", "write", "trim"].into_iter().enumerate() {
        let Some(part) = job.get(op) else { continue };
        let Some(mut measurement) = direction(part, options, index) else { continue };
        measurement.row.clone_from(&row);
        measurement.op = op.into();
        measurement.order.clone_from(&order);
        measurement.column = if order.starts_with("random") { format!("random {op}") } else { op.into() };
        measurement.queue_depth = queue_depth;
        measurement.errors = number(job, "total_err").unwrap_or(0.0) as u64;
        let latency = [&mut measurement.read_us, &mut measurement.write_us, &mut measurement.trim_us];
        if let Some(place) = latency.into_iter().nth(index) {
            *place = self::latency(part);
        }
        if op == "write" {
            measurement.flush_us = job.get("sync").and_then(self::latency);
        }
        found.measurements.push(measurement);
    }
}

/// One direction of a job; nothing if it made no requests.
fn direction(part: &Value, options: &Options<'_>, index: usize) -> Option<Measurement> {
    let bytes = number(part, "io_bytes")?;
    // fio 2 writes io_bytes and bw in KiB, and has no bw_bytes.
    let (bytes, rate) = match number(part, "bw_bytes") {
        Some(rate) => (bytes, rate),
        None => (bytes * 1024.0, number(part, "bw")? * 1024.0),
    };
    let (iops, runtime_ms) = (number(part, "iops")?, number(part, "runtime")?);
    let requests = number(part, "total_ios").unwrap_or(iops * runtime_ms / 1e3).round();
    if bytes < 1.0 || requests < 1.0 {
        return None;
    }
    let told = options.get(&["bs", "blocksize"]).and_then(|sizes| {
        let sizes: Vec<&str> = sizes.split(',').collect();
        size_bytes(sizes.get(index).or(sizes.last())?)
    });
    let block_bytes = told.filter(|block| *block > 0).unwrap_or((bytes / requests).round() as u64);
    Some(Measurement {
        table: TABLE.into(),
        row: String::new(),
        column: String::new(),
        op: String::new(),
        order: String::new(),
        block_bytes,
        queue_depth: 1,
        requests: Some(requests as u64),
        bytes: Some(bytes as u64),
        time_s: Some(runtime_ms / 1e3),
        mb_per_s: rate / 1e6,
        iops,
        ..Measurement::default()
    })
}

/// The latency statistics with percentiles; nothing if there are none.
fn latency(part: &Value) -> Option<Latency> {
    let kinds = [("clat_ns", 1e3), ("lat_ns", 1e3), ("clat", 1.0), ("lat", 1.0)];
    let (told, scale) = kinds.into_iter().find_map(|(key, scale)| {
        let told = part.get(key)?;
        told.get("percentile").map(|_| (told, scale))
    })?;
    let ranks = told.get("percentile")?;
    let at = |key: &str| number(ranks, key).map(|value| value / scale);
    let figure = |key: &str| number(told, key).map(|value| value / scale);
    let count = number(told, "N").or_else(|| number(part, "total_ios"))? as u64;
    let bins = told.get("bins").and_then(Value::as_object);
    let mut histogram: Vec<Bucket> = bins
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| {
            let micros = key.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)? / scale;
            Some(Bucket { ns: (micros * 1e3) as u64, count: value.as_u64()? })
        })
        .collect();
    histogram.sort_by_key(|bucket| bucket.ns);
    Some(Latency {
        count,
        mean: figure("mean")?,
        min: figure("min")?,
        p50: at("50.000000")?,
        p90: at("90.000000")?,
        p95: at("95.000000")?,
        p99: at("99.000000")?,
        p999: at("99.900000")?,
        max: figure("max")?,
        intervals: PercentileIntervals::none("fio does not report the order of its requests"),
        histogram,
    })
}
