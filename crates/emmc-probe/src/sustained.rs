//! The cache of single-bit cells: how much of a sustained write is fast after a rest, and how soon that is so again.
//!
//! After a rest the card is written until its rate falls. The volume before the fall is the cache if a second run,
//! of other pieces in random order and elsewhere, falls after the same volume: what depends on places falls elsewhere.
//! Then the full card rests for known times, and writes until its rate falls again. Absent on purpose: a cache that
//! is larger than the runs, one that large writes bypass, and a difference between such a cache and free blocks that
//! a card keeps in reserve; a host sees the same of both.

use emmc_units::Nanos;
use emmc_workload::{BenchError, Fall};

use crate::requests::Requests;
use crate::result::{Evidence, Parameter, Value};

const MIB: u64 = 1 << 20;
/// What is judged together. Unit: bytes.
const BIN: u64 = 4 * MIB;
/// One run writes no more than the budget divided by this: two runs, two short ones, and other probers.
const RUN_SHARE: u64 = 5;
/// Rests that are tried.
const RESTS: u64 = 2;
/// A rest that empties the cache of most cards.
const REST: Nanos = Nanos::from_millis(20_000);
/// Rests are longer than needed by this factor, and no longer than this.
const REST_MARGIN: f64 = 1.5;
const REST_MAX: Nanos = Nanos::from_millis(120_000);
/// The first rest of a full card.
const SHORT_REST: Nanos = Nanos::from_millis(2_000);
/// Writes before the fall are at least this many times faster than those after it.
const FALL: f64 = 1.3;
/// The cache is larger than other buffers. Unit: bytes.
const LEAST: u64 = 4 * BIN;
/// What is written after the fall at least. Unit: bytes.
const LEAST_SLOW: u64 = 6 * BIN;
/// Volumes of two runs that differ by less than this share are the same.
const SAME: f64 = 0.15;
/// A larger share of the volume that may have been moved in delays makes it uncertain.
const FREED: f64 = 0.1;

/// What the fall costs in one order, as a share of that in the other: the same data leaves the cache.
const COST: std::ops::RangeInclusive<f64> = 0.65..=1.5;

/// A run up to the fall of its rate.
#[derive(Clone, Debug, Default)]
struct Run {
    /// Times of the bins. Unit: microseconds.
    bins: Vec<f64>,
    /// Times of the requests. Unit: microseconds.
    requests: Vec<f64>,
    fall: Option<Fall>,
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Writes pieces of a range until the rate has fallen for long enough; all of it if it does not.
fn run(requests: &mut Requests<'_>, from: u64, to: u64, piece: u64, in_random: bool) -> Result<Run, BenchError> {
    let mut found = Run::default();
    let pieces_of_bin = BIN / piece;
    let mut bins: Vec<u64> = (0..(to - from) / BIN).collect();
    if in_random {
        requests.shuffle(&mut bins);
    }
    for bin in bins {
        let mut pieces: Vec<u64> = (0..pieces_of_bin).collect();
        if in_random {
            requests.shuffle(&mut pieces);
        }
        let start = requests.now();
        let mut last = start;
        for index in pieces {
            match requests.write_cached(from + bin * BIN + index * piece, piece) {
                Ok(_) => {}
                // What was seen until then counts.
                Err(BenchError::Budget { .. } | BenchError::Time { .. }) if found.bins.len() >= 4 => return Ok(found),
                Err(error) => return Err(error),
            }
            // From clock to clock: a card may also work between two requests.
            found.requests.push(requests.now().since(last).as_micros_f64());
            last = requests.now();
        }
        found.bins.push(requests.now().since(start).as_micros_f64());
        found.fall = Fall::of((&found.bins, BIN), FALL);
        if found.fall.is_some_and(|fall| fall.has_lasted(found.bins.len() as u64 * BIN, LEAST_SLOW)) {
            break;
        }
    }
    Ok(found)
}

impl Run {
    /// The share of the volume before a fall that the card may have moved out of the cache in delays of the host: what
    /// requests took longer, all together, than a quick one of them, their lowest decile.
    fn freed_share(&self, fall: &Fall) -> f64 {
        let piece = self.bins.len() as f64 * BIN as f64 / self.requests.len() as f64;
        let mut times = self.requests.clone();
        times.truncate((fall.after as f64 / piece) as usize);
        times.sort_by(f64::total_cmp);
        let Some(quick) = times.get(times.len() / 10) else { return 0.0 };
        let delays: f64 = times.iter().map(|time| (time - quick).max(0.0)).sum();
        delays / fall.cost() / fall.after as f64
    }

    fn seen(&self) -> String {
        let written = (self.bins.len() as u64 * BIN) >> 20;
        match &self.fall {
            Some(fall) => {
                let Fall { after, fast, slow } = fall;
                format!("{fast:.1} MB/s for {} MiB, then {slow:.1} MB/s; {written} MiB written", after >> 20)
            }
            None => format!("{:.1} MB/s over {written} MiB, without a fall", BIN as f64 / mean(&self.bins)),
        }
    }
}

/// The parameters `slc_cache` and `slc_refill`; `open`: what the open units hold together, if known. Unit: bytes.
pub(crate) fn cache(
    requests: &mut Requests<'_>,
    open: Option<u64>,
) -> Result<Vec<(&'static str, Parameter)>, BenchError> {
    requests.step("a sustained write after a rest");
    let from = requests.from.next_multiple_of(BIN);
    // A third of what is left: the second run and the rests need as much.
    let most = (requests.budget_bytes / RUN_SHARE).min(requests.left_bytes() / 3);
    let half = ((requests.to - from) / 2).min(most) / BIN * BIN;
    if half < 2 * LEAST {
        return Err(BenchError::Budget { suite: crate::requests::NAME });
    }
    requests.flush()?;
    requests.idle(REST)?;
    let first = run(requests, from, from + half, 512 << 10, false)?;
    let mut evidence = vec![Evidence::new("sustained write", first.seen(), None)];
    let silent = |why: &str, evidence| {
        vec![
            ("slc_cache", Parameter::unknown(why, "bytes", evidence)),
            ("slc_refill", Parameter::unknown("no size of the cache", "MB/s", vec![])),
        ]
    };
    let Some(fall) = first.fall else {
        return Ok(silent(
            "the rate of a sustained write does not fall: none, larger, or bypassed by large writes",
            evidence,
        ));
    };
    if fall.after < LEAST {
        return Ok(silent("the rate falls within 16 MiB, as it does with other buffers", evidence));
    }
    requests.step("pieces in random order after a rest");
    requests.flush()?;
    requests.idle(rest_after(&fall))?;
    let second = run(requests, from + half, from + 2 * half, 128 << 10, true)?;
    evidence.push(Evidence::new("random order, elsewhere", second.seen(), None));
    let Some(other) = second.fall.filter(|other| is_near(other.after, fall.after)) else {
        return Ok(silent("two runs do not fall after the same volume", evidence));
    };
    if open.is_some_and(|open| is_near(open, fall.after)) {
        return Ok(silent(
            "the rate falls after as much as all open units hold: they close, or a cache is full",
            evidence,
        ));
    }
    // Merges make random order slower than a cache that is full, and cost what depends on the order.
    if other.fast < fall.slow || !COST.contains(&(other.cost() / fall.cost())) {
        return Ok(silent(
            "the fall costs more in one order than in the other: merges, or other disturbances",
            evidence,
        ));
    }
    let bytes = (fall.after + other.after) / 2 / MIB * MIB;
    // In a delay of the host the card may empty a part of the cache, so that more is fast than fits.
    let freed = first.freed_share(&fall).max(second.freed_share(&other));
    let confirmed = if freed < FREED { evidence.len() } else { 1 };
    for witness in evidence.iter_mut().take(confirmed) {
        witness.value = Some(Value::Whole(bytes));
    }
    if freed >= FREED {
        let why = format!(
            "some requests take longer than the quickest tenth: in that time the card may empty {:.0} % of the cache",
            (100.0 * freed).min(100.0)
        );
        evidence.push(Evidence::new("delays of requests", why, None));
    }
    let refill = refill(requests, from, half, fall)?;
    Ok(vec![("slc_cache", Parameter::of(Value::Whole(bytes), "bytes", evidence)), ("slc_refill", refill)])
}

/// Time to empty a full cache: a card that is full takes data no faster than it empties the cache.
fn rest_after(fall: &Fall) -> Nanos {
    let emptied = Nanos::from_micros_f64(fall.after as f64 / fall.slow * REST_MARGIN);
    emptied.max(REST).min(REST_MAX)
}

fn is_near(one: u64, other: u64) -> bool {
    one.abs_diff(other) as f64 <= SAME * one.max(other) as f64
}

/// How much of the cache is free again after rests that are too short for all of it.
fn refill(requests: &mut Requests<'_>, from: u64, half: u64, cache: Fall) -> Result<Parameter, BenchError> {
    requests.step("short rests of a full card");
    let mut rest = SHORT_REST;
    let mut evidence = Vec::new();
    let mut rates: Vec<f64> = Vec::new();
    for index in 0..RESTS {
        requests.idle(rest)?;
        let at = from + index * (half / 2 / BIN * BIN);
        let run = run(requests, at, at + half / 2 / BIN * BIN, 512 << 10, false)?;
        let seconds = rest.0 as f64 / 1e9;
        let seen = format!("{seconds:.1} s of rest: {}", run.seen());
        let free = run.fall.filter(|fall| fall.fast > 0.8 * cache.fast).map(|fall| fall.after);
        let is_part = |free: &u64| *free >= LEAST && (*free as f64) < 0.8 * cache.after as f64;
        let rate = free.filter(is_part).map(|free| free as f64 / 1e6 / seconds);
        evidence.push(Evidence::new("short rest", seen, None));
        rates.extend(rate);
        rest = match free {
            // All of it was free.
            Some(free) if free as f64 >= 0.8 * cache.after as f64 => Nanos(rest.0 / 4),
            Some(free) if free * 2 < cache.after => Nanos(rest.0 * 3 / 2),
            Some(_) => Nanos(rest.0 * 2 / 3),
            None => Nanos(rest.0 * 4),
        };
    }
    let middle = Value::Measured((mean(&rates) * 10.0).round() / 10.0);
    let agree = match rates[..] {
        [_] => 1,
        [one, other] if (one - other).abs() < 0.25 * one.max(other) => 2,
        _ => 0,
    };
    evidence.iter_mut().filter(|_| agree > 1).for_each(|witness| witness.value = Some(middle.clone()));
    if agree > 0 {
        return Ok(Parameter::of(middle, "MB/s", evidence));
    }
    Ok(Parameter::unknown("rests of some seconds free no clear part of the cache", "MB/s", evidence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_may_free_a_part_of_the_cache() {
        // 20 bins at 0.1 s; then each takes three times longer.
        let step: Vec<f64> =
            (0..36).map(|bin| if bin < 20 { 1e5 } else { 3e5 } + f64::from(bin * 7 % 5) * 1e3).collect();
        let found = Fall::of((&step, BIN), FALL).expect("a fall");
        // Moving a bin takes 2e5 us: in delays of every fourth request of 1/8 bin, 4e5 us together, 2 of the 20 bins.
        let requests = |late: f64| {
            (0..36 * 8).map(move |index| if index % 4 == 0 { 1.25e4 + late } else { 1.25e4 }).collect::<Vec<f64>>()
        };
        let of = |late| Run { bins: step.clone(), requests: requests(late), fall: None }.freed_share(&found);
        assert!(of(0.0) < 1e-6 && (0.09..0.11).contains(&of(1e4)), "{} {}", of(0.0), of(1e4));
    }
}
