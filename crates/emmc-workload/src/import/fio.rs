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
        self.named(names).map(|(_, value)| value)
    }

    /// With the name that is used.
    fn named<'n>(&self, names: &[&'n str]) -> Option<(&'n str, &str)> {
        let maps = self.0.into_iter().flatten();
        let mut found = maps.flat_map(|map| names.iter().filter_map(|name| Some((*name, map.get(*name)?))));
        found.next().and_then(|(name, value)| Some((name, value.as_str()?)))
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
    let lines: Vec<&str> = text.lines().collect();
    let bad = |Bad { key, found, expected }: Bad| {
        let quoted = format!("\"{found}\"");
        let is_value = |rest: &str| {
            let value = rest.trim_start_matches([' ', ':']);
            let end = value.strip_prefix(&found).or_else(|| value.strip_prefix(&quoted));
            end.is_some_and(|end| !end.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '.'))
        };
        let field = format!("\"{key}\"");
        let is_here = |line: &&str| line.split(&field).skip(1).any(is_value);
        let line = lines.iter().skip(above).position(is_here).unwrap_or(0);
        wrong(above + line + 1, format!("{key}: {found}").chars().take(60).collect(), expected)
    };
    for job in jobs {
        let options = Options([job.get("job options").and_then(Value::as_object), global]);
        take_job(job, &options, &mut found).map_err(bad)?;
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

/// A field with a value that fio does not write.
#[derive(Debug)]
struct Bad {
    key: String,
    found: String,
    expected: &'static str,
}

/// Larger figures are not fio's. Units: bytes, nanoseconds, requests.
const FIGURE_MAX: f64 = u64::MAX as f64;

/// A figure; nothing if it is absent.
///
/// Errors: a value that is no figure.
fn number(value: &Value, key: &str) -> Result<Option<f64>, Bad> {
    let Some(found) = value.get(key) else { return Ok(None) };
    match found.as_f64() {
        Some(number) if (0.0..=FIGURE_MAX).contains(&number) => Ok(Some(number)),
        _ => Err(Bad { key: key.into(), found: found.to_string(), expected: "a figure from 0 to 2^64" }),
    }
}

/// The block size of a direction; nothing if the options do not state it.
///
/// Errors: 0, or a word that is no size.
fn block(options: &Options<'_>, direction: usize) -> Result<Option<u64>, Bad> {
    let Some((key, sizes)) = options.named(&["bs", "blocksize"]) else { return Ok(None) };
    let words: Vec<&str> = sizes.split(',').collect();
    let word = words.get(direction).or(words.last()).map_or("", |word| word.trim());
    match size_bytes(word) {
        size @ Some(1..) => Ok(size),
        // `,8k` leaves the first one at fio's own.
        None if word.is_empty() => Ok(None),
        _ => Err(Bad { key: key.into(), found: sizes.into(), expected: "a block size such as 4k" }),
    }
}

/// A job's number of something, 1 if it does not say.
///
/// Errors: no whole number from 1.
fn count(options: &Options<'_>, key: &str) -> Result<u32, Bad> {
    let Some(word) = options.get(&[key]) else { return Ok(1) };
    let count = word.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| Bad { key: key.into(), found: word.into(), expected: "a whole number from 1" })
}

/// Writes from one flush to the next; nothing if the job does not flush between them.
///
/// Errors: `fsync` or `fdatasync` with a word that is no whole number.
fn flushed_every(options: &Options<'_>) -> Result<Option<u64>, Bad> {
    if options.get(&["sync"]).is_some_and(|word| !matches!(word, "0" | "none")) {
        return Ok(Some(1));
    }
    let Some((key, word)) = options.named(&["fsync", "fdatasync"]) else { return Ok(None) };
    let bad = || Bad { key: key.into(), found: word.into(), expected: "a whole number from 0" };
    size_bytes(word).map(|every| Some(every).filter(|every| *every > 0)).ok_or_else(bad)
}

fn take_job(job: &Value, options: &Options<'_>, found: &mut Outcome) -> Result<(), Bad> {
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
    let queue_depth = count(options, "iodepth")?.saturating_mul(count(options, "numjobs")?);
    let error = number(job, "error")?.unwrap_or(0.0);
    if error > 0.0 {
        found.remarks.push(format!("job {name}: it ended with error {error}"));
    }
    for (index, op) in ["read", "write", "trim"].into_iter().enumerate() {
        let Some(part) = job.get(op) else { continue };
        let Some(mut measurement) = direction(part, options, index)? else { continue };
        measurement.row.clone_from(&row);
        measurement.op = op.into();
        measurement.order.clone_from(&order);
        measurement.column = if order.starts_with("random") { format!("random {op}") } else { op.into() };
        measurement.queue_depth = queue_depth;
        measurement.errors = number(job, "total_err")?.unwrap_or(0.0) as u64;
        let latency = [&mut measurement.read_us, &mut measurement.write_us, &mut measurement.trim_us];
        if let Some(place) = latency.into_iter().nth(index) {
            *place = self::latency(part)?;
        }
        if op == "write" {
            measurement.flushed_every = flushed_every(options)?;
            measurement.flush_us = job.get("sync").map(self::latency).transpose()?.flatten();
        }
        found.measurements.push(measurement);
    }
    Ok(())
}

/// One direction of a job; nothing if it made no requests.
fn direction(part: &Value, options: &Options<'_>, index: usize) -> Result<Option<Measurement>, Bad> {
    let figure = |key: &str| number(part, key);
    let Some(bytes) = figure("io_bytes")? else { return Ok(None) };
    // fio 2 writes io_bytes and bw in KiB, and has no bw_bytes.
    let (bytes, rate) = match (figure("bw_bytes")?, figure("bw")?) {
        (Some(rate), _) => (bytes, rate),
        (None, Some(rate)) => (bytes * 1024.0, rate * 1024.0),
        (None, None) => return Ok(None),
    };
    let Some((iops, runtime_ms)) = figure("iops")?.zip(figure("runtime")?) else { return Ok(None) };
    let requests = figure("total_ios")?.unwrap_or(iops * runtime_ms / 1e3).round();
    if bytes < 1.0 || requests < 1.0 {
        return Ok(None);
    }
    let block_bytes = block(options, index)?.unwrap_or((bytes / requests).round() as u64);
    Ok(Some(Measurement {
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
    }))
}

/// The latency statistics with percentiles; nothing if one of them is absent.
fn latency(part: &Value) -> Result<Option<Latency>, Bad> {
    let kinds = [("clat_ns", 1e3), ("lat_ns", 1e3), ("clat", 1.0), ("lat", 1.0)];
    let found =
        kinds.into_iter().find_map(|(key, scale)| Some((part.get(key)?, part.get(key)?.get("percentile")?, scale)));
    let Some((told, ranks, scale)) = found else { return Ok(None) };
    let of = |value: &Value, key: &str| Ok(number(value, key)?.map(|figure| figure / scale));
    let at = |key: &str| of(ranks, key);
    let figure = |key: &str| of(told, key);
    let count = match number(told, "N")? {
        Some(count) => Some(count),
        None => number(part, "total_ios")?,
    };
    let keys = ["50.000000", "90.000000", "95.000000", "99.000000", "99.900000"];
    let figures = keys.into_iter().map(at).chain(["mean", "min", "max"].into_iter().map(figure));
    let figures = figures.collect::<Result<Vec<Option<f64>>, Bad>>()?.into_iter().collect::<Option<Vec<f64>>>();
    let (Some(count), Some([p50, p90, p95, p99, p999, mean, min, max])) = (count, figures.as_deref()) else {
        return Ok(None);
    };
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
    Ok(Some(Latency {
        count: count as u64,
        mean: *mean,
        min: *min,
        p50: *p50,
        p90: *p90,
        p95: *p95,
        p99: *p99,
        p999: *p999,
        max: *max,
        intervals: PercentileIntervals::none("fio does not report the order of its requests"),
        histogram,
    }))
}
