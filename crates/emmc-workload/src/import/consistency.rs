//! Whether a saved result contradicts itself. Such a result was changed or damaged, and none of it can be used.
//!
//! Absent on purpose: the abilities of a card (`judge/doubts.rs`), and the lower end of a speed's interval: it covers
//! whole batches, and a stall after the last of them can make the speed arbitrarily small.

use crate::import::ImportError;
use crate::result::measurement::Measurement;
use crate::result::state::CardState;
use crate::result::{BenchResult, Figure, Outcome};
use crate::stats::interval::Interval;
use crate::stats::latency::Latency;

/// Above any real speed. Unit: MB (10^6 bytes) a second.
const MB_PER_S_MAX: f64 = 1e6;
/// Above any real rate. Unit: requests a second.
const IOPS_MAX: f64 = 1e12;
/// Largest relative difference between a speed and bytes over time.
const SPEED_APART: f64 = 0.05;
/// Percentiles may be this far out of order: histogram buckets are rounded up, fio's by 1/64.
const ROUNDING: f64 = 0.02;
/// A speed may exceed its interval by this: the interval covers whole batches, at least ten.
const ABOVE_INTERVAL: f64 = 0.25;

/// A contradiction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inconsistency {
    /// Which measurement or figure.
    place: String,
    found: String,
    expected: String,
}

impl Inconsistency {
    /// As an error of a file.
    pub(crate) fn of(self, name: &str) -> ImportError {
        let reason = match self.place.is_empty() {
            true => self.found,
            false => format!("{}: {}", self.place, self.found),
        };
        ImportError::Unknown { name: name.into(), reason, expected: self.expected }
    }
}

type Found = Result<(), Inconsistency>;

fn unless(holds: bool, found: impl FnOnce() -> String, expected: impl Into<String>) -> Found {
    if holds {
        return Ok(());
    }
    Err(Inconsistency { place: String::new(), found: found(), expected: expected.into() })
}

fn at(place: impl FnOnce() -> String, found: Found) -> Found {
    found.map_err(|inconsistency| Inconsistency { place: place(), ..inconsistency })
}

/// Checks a result of ours, including its speeds against its bytes and times.
///
/// Errors: the first contradiction.
pub(crate) fn result(result: &BenchResult) -> Found {
    outcomes(std::slice::from_ref(&result.outcome))?;
    result.outcome.measurements.iter().try_for_each(|cell| at(|| place(cell), computed(cell)))
}

/// Checks results of any tool.
///
/// Errors: the first contradiction.
pub(crate) fn outcomes(outcomes: &[Outcome]) -> Found {
    for outcome in outcomes {
        at(|| outcome.suite.clone(), times([("time_s", Some(outcome.time_s))]))?;
        at(|| "state_before".into(), state(&outcome.state_before))?;
        at(|| "state_after".into(), state(&outcome.state_after))?;
        outcome.measurements.iter().try_for_each(|cell| at(|| place(cell), measurement(cell)))?;
        outcome.figures.iter().try_for_each(|found| at(|| found.name.clone(), figure(found)))?;
    }
    Ok(())
}

fn place(cell: &Measurement) -> String {
    [&cell.table, &cell.row, &cell.column].map(String::as_str).join(" ").trim().to_owned()
}

fn measurement(cell: &Measurement) -> Found {
    let Measurement { mb_per_s, iops, .. } = *cell;
    let is_speed = (0.0..MB_PER_S_MAX).contains(&mb_per_s) && (0.0..IOPS_MAX).contains(&iops);
    unless(is_speed, || format!("{mb_per_s} MB/s, {iops} requests/s"), "speeds that a card may have")?;
    times([("time_s", cell.time_s), ("flush_s", cell.flush_s)])?;
    cell.state.as_ref().map_or(Ok(()), state)?;
    if let Some(range) = cell.range_bytes {
        let holds = range >= cell.block_bytes;
        unless(
            holds,
            || format!("range_bytes {range}"),
            format!("the size of a request, {}, or more", cell.block_bytes),
        )?;
    }
    unless(cell.flushed_every != Some(0), || "flushed_every 0".into(), "1 or more")?;
    speed("mb_per_s", mb_per_s, cell.mb_per_s_interval)?;
    if let Some(warm_up) = &cell.warm_up {
        times([("warm_up.time_s", Some(warm_up.time_s)), ("warm_up.mb_per_s", Some(warm_up.mb_per_s))])?;
        speed("warm_up.mb_per_s", warm_up.mb_per_s, warm_up.mb_per_s_interval)?;
    }
    for (name, told) in [
        ("read_us", &cell.read_us),
        ("write_us", &cell.write_us),
        ("trim_us", &cell.trim_us),
        ("flush_us", &cell.flush_us),
    ] {
        told.as_ref().map_or(Ok(()), |told| latency(name, told))?;
    }
    Ok(())
}

/// Checks speeds against work and time.
fn computed(cell: &Measurement) -> Found {
    let Some(time_s) = cell.time_s.filter(|time_s| *time_s > 0.0) else { return Ok(()) };
    let is_near = |found: f64, amount: f64| (found - amount / time_s).abs() <= SPEED_APART * found.max(amount / time_s);
    if let Some(bytes) = cell.bytes {
        let said = || format!("{} MB/s, of {bytes} bytes in {time_s} s", cell.mb_per_s);
        let expected = || format!("{:.3} MB/s", bytes as f64 / 1e6 / time_s);
        unless(is_near(cell.mb_per_s, bytes as f64 / 1e6), said, expected())?;
    }
    if let Some(requests) = cell.requests {
        let said = || format!("{} requests/s, of {requests} requests in {time_s} s", cell.iops);
        let expected = || format!("{:.3} requests/s", requests as f64 / time_s);
        unless(is_near(cell.iops, requests as f64), said, expected())?;
    }
    Ok(())
}

fn times<const N: usize>(named: [(&str, Option<f64>); N]) -> Found {
    named.into_iter().try_for_each(|(name, value)| {
        let value = value.unwrap_or(0.0);
        unless(value >= 0.0 && value.is_finite(), || format!("{name} {value}"), "0 or more")
    })
}

fn state(state: &CardState) -> Found {
    let shares = [
        ("holds_share", state.holds_share),
        ("trimmed_share", state.trimmed_share),
        ("erased_share", state.erased_share),
        ("of_share", state.of_share),
    ];
    shares.into_iter().try_for_each(|(name, share)| {
        let share = share.unwrap_or(0.0);
        unless((0.0..=1.0 + 1e-9).contains(&share), || format!("{name} {share}"), "a share of 0 to 1")
    })
}

fn ordered(name: &str, interval: Interval) -> Found {
    let Interval { low, high } = interval;
    let is_ordered = low <= high && low.is_finite() && high.is_finite();
    unless(is_ordered, || format!("{name}: an interval from {low} to {high}"), "the lower end first")
}

/// The value is in its interval, apart from rounding.
fn within(name: &str, value: f64, interval: Option<Interval>) -> Found {
    let Some(interval) = interval else { return Ok(()) };
    ordered(name, interval)?;
    let (Interval { low, high }, slack) = (interval, ROUNDING * value.abs());
    let is_within = low - slack <= value && value <= high + slack;
    unless(is_within, || format!("{name} {value}"), format!("a value within its interval, {low} to {high}"))
}

/// Flushes are not part of the interval; they make a speed smaller than it, never larger.
fn speed(name: &str, value: f64, interval: Option<Interval>) -> Found {
    let Some(interval) = interval else { return Ok(()) };
    ordered(name, interval)?;
    let most = interval.high * (1.0 + ABOVE_INTERVAL);
    let Interval { low, high } = interval;
    unless(value <= most, || format!("{name} {value}"), format!("no more than its interval, {low} to {high}"))
}

fn figure(figure: &Figure) -> Found {
    match (figure.value, figure.interval) {
        (Some(value), interval) => within(&figure.name, value, interval),
        (None, Some(interval)) => ordered(&figure.name, interval),
        (None, None) => Ok(()),
    }
}

fn latency(name: &str, told: &Latency) -> Found {
    let ranks = [told.min, told.p50, told.p90, told.p95, told.p99, told.p999, told.max];
    let is_sane = ranks.iter().chain([&told.mean]).all(|value| value.is_finite() && *value >= 0.0);
    let ascend = ranks.windows(2).all(|pair| pair[0] <= pair[1] * (1.0 + ROUNDING));
    unless(
        is_sane && ascend,
        || format!("{name}: {ranks:?} us"),
        "min, p50, p90, p95, p99, p99.9 and max that ascend",
    )?;
    let is_mean = told.min * (1.0 - ROUNDING) <= told.mean && told.mean <= told.max * (1.0 + ROUNDING);
    let Latency { min, mean, max, .. } = told;
    unless(is_mean, || format!("{name}: a mean of {mean} us"), format!("one between {min} and {max} us"))?;
    for (rank, value, interval) in told.percentiles() {
        within(&format!("{name} {rank}"), value, interval)?;
    }
    let counted = told.histogram.iter().fold(0u64, |sum, bucket| sum.saturating_add(bucket.count));
    let is_whole = told.histogram.is_empty() || counted == told.count;
    let expected = format!("the same number as its count, {}", told.count);
    unless(is_whole, || format!("{name}: {counted} requests in its histogram"), expected)
}
