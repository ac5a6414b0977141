//! Probes that only read: the cost of a command, the rate of long reads, and borders that a read pays for crossing.

use emmc_workload::BenchError;

use crate::requests::Requests;
use crate::result::{Evidence, Parameter, Value};
use crate::robust::{line, median, quantile, spread};

const KIB: u64 = 1024;
/// Sizes of the ladder. Unit: bytes.
const LADDER: [u64; 7] = [4 * KIB, 16 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, 384 * KIB, 512 * KIB];
const ROUNDS: usize = 21;
/// Rounds of reads across borders.
const BORDER_ROUNDS: usize = 9;
/// Delays only add: times near the shortest ones are the card's.
const UNDISTURBED: f64 = 0.15;
/// Times of one size that differ by more than this share hold delays that are not the card's.
const QUIET: f64 = 0.03;
/// Delays of more than this share of the command's time hide it.
const HIDDEN: f64 = 0.12;
/// Borders are looked for up to this place in a region. Unit: bytes.
const BORDERS_TO: u64 = 512 * KIB;
/// A level needs this many places: fewer are slow for other reasons too.
const PLACES_MIN: usize = 4;
/// Reads inside of the smallest unit, where sectors are small enough.
const INSIDE: u64 = 8;
/// The smallest border. Unit: bytes.
const BORDER: u64 = 4 * KIB;

/// What the ladders read: each place once, then each twice. Unit: bytes.
pub(crate) fn cost_bytes() -> u64 {
    3 * ROUNDS as u64 * LADDER.iter().sum::<u64>()
}

/// What [`borders`] reads. Unit: bytes.
pub(crate) fn borders_bytes(sector: u64) -> u64 {
    BORDER_ROUNDS as u64 * (BORDERS_TO / BORDER + INSIDE) * 2 * sector.max(512)
}

/// Command overhead and rate, from reads of growing size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadCost {
    pub(crate) overhead_us: f64,
    pub(crate) mb_per_s: f64,
    /// The spread of the shortest reads, as a share of their time.
    pub(crate) spread: f64,
    /// How much the median of the shortest reads exceeds undisturbed ones. Unit: microseconds.
    pub(crate) delay_us: f64,
}

/// Reads of growing size at places that are not read twice, in an order that turns each round.
fn ladder(requests: &mut Requests<'_>, again: bool) -> Result<Option<ReadCost>, BenchError> {
    let room = requests.to - requests.from;
    let mut times = vec![Vec::new(); LADDER.len()];
    for round in 0..ROUNDS {
        for step in 0..LADDER.len() {
            let index = if round % 2 == 0 { step } else { LADDER.len() - 1 - step };
            let bytes = LADDER[index];
            let place = requests.from + requests.rng.below((room - bytes) / (512 * KIB)) * (512 * KIB);
            let mut time = requests.read(place, bytes)?;
            if again {
                time = requests.read(place, bytes)?;
            }
            times[index].push(time);
        }
    }
    let points: Vec<(f64, f64)> =
        LADDER.iter().zip(&times).map(|(bytes, times)| (*bytes as f64, quantile(times, UNDISTURBED))).collect();
    let Some((slope, start)) = line(&points) else { return Ok(None) };
    // Unexplained: times that are not on a line.
    let off: Vec<f64> = points.iter().map(|(bytes, time)| (time - start - slope * bytes).abs() / time).collect();
    let is_line = slope > 0.0 && median(&off) < 0.1;
    let spread = spread(&times[0]) / median(&times[0]);
    let delay_us = median(&times[0]) - quantile(&times[0], UNDISTURBED);
    Ok(is_line.then_some(ReadCost { overhead_us: start, mb_per_s: 1.0 / slope, spread, delay_us }))
}

/// The parameters `command_overhead` and `read_rate`.
pub(crate) fn cost(requests: &mut Requests<'_>) -> Result<Vec<(&'static str, Parameter)>, BenchError> {
    requests.step("reads of growing size");
    let names = ["command_overhead", "read_rate"];
    let units = ["us", "MB/s"];
    let (Some(first), again) = (ladder(requests, false)?, ladder(requests, true)?) else {
        let why = "the times of reads of 4 KiB to 512 KiB are on no line";
        return Ok(names
            .iter()
            .zip(units)
            .map(|(name, unit)| (*name, Parameter::unknown(why, unit, vec![])))
            .collect());
    };
    let figures = |cost: &ReadCost| [cost.overhead_us, cost.mb_per_s];
    let mut all = Vec::new();
    for (index, (name, unit)) in names.into_iter().zip(units).enumerate() {
        let rounded = |cost: &ReadCost| (figures(cost)[index] * 10.0).round() / 10.0;
        let new = rounded(&first);
        let mut value = new;
        let mut evidence = vec![Evidence::new("size ladder", format!("reads of 4 to 512 KiB, {new} {unit}"), None)];
        if let Some(again) = &again {
            let other = rounded(again);
            // The same within a tenth counts as the same value.
            let agrees = (other - new).abs() <= new.abs() / 10.0;
            if !agrees && name == "command_overhead" {
                // A place that was just read needs no map and no page: what is left is the command.
                value = new.min(other);
            }
            let seen = format!("the same places read again, {other} {unit}");
            // What disturbs both in the same way is no second witness.
            let is_quiet = first.spread.max(again.spread) < QUIET;
            let says = if agrees { value } else { other };
            evidence.push(Evidence::new("reread ladder", seen, is_quiet.then_some(Value::Measured(says))));
            evidence[0].value = Some(Value::Measured(if agrees { value } else { new }));
        } else {
            evidence[0].value = Some(Value::Measured(new));
        }
        // Delays of the host that are as long as the command hide it.
        let delay_us = again.as_ref().map_or(first.delay_us, |again| first.delay_us.max(again.delay_us));
        if name == "command_overhead" && delay_us > value * HIDDEN {
            let why = format!("delays of other origin, {delay_us:.0} us at the median, hide about {value:.0} us");
            all.push((name, Parameter::unknown(why, unit, evidence)));
            continue;
        }
        let found = Parameter::of(Value::Measured(value), unit, evidence);
        // The host's own part of a command cannot be told from the card's.
        let is_bound = name == "command_overhead" && requests.is_real();
        all.push((name, if is_bound { found.at_most() } else { found }));
    }
    Ok(all)
}

/// What crossing borders costs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Borders {
    /// Distances at which a border costs more than between them, smallest first. Unit: bytes.
    pub(crate) levels: Vec<u64>,
    /// What was seen.
    pub(crate) seen: String,
}

/// Small reads across every multiple of 4 KiB, in regions of the given range.
pub(crate) fn borders(requests: &mut Requests<'_>, from: u64, to: u64) -> Result<Borders, BenchError> {
    requests.step("reads across borders");
    let half = requests.sector().max(512);
    let regions = ((to - from) / (1 << 20)).max(1);
    let mut places: Vec<u64> = (1..=BORDERS_TO / BORDER).map(|index| index * BORDER).collect();
    let inside = half < BORDER / 2;
    if inside {
        // Inside of the smallest unit.
        places.extend((0..INSIDE).map(|index| (index * 7 + 1) * BORDER + BORDER / 2));
    }
    let mut times = vec![Vec::new(); places.len()];
    for _ in 0..BORDER_ROUNDS {
        let first = requests.rng.below(places.len() as u64) as usize;
        for step in 0..places.len() {
            // Never one after the other, so that nothing is read ahead.
            let index = (first + step * 29) % places.len();
            let region = from + (requests.rng.below(regions) << 20);
            // A region's end may lie beyond the range.
            let at = region.min(to - BORDERS_TO - half) / BORDERS_TO * BORDERS_TO;
            let at = at.max(from) + places[index];
            times[index].push(requests.read(at - half, 2 * half)?);
        }
    }
    let middles: Vec<f64> = times.iter().map(|times| median(times)).collect();
    let noise =
        median(&times.iter().map(|times| spread(times)).collect::<Vec<_>>()) * 1.25 / (BORDER_ROUNDS as f64).sqrt();
    let typical = median(&middles);
    let least = (5.0 * noise).max(typical * 0.01);
    let mut levels: Vec<u64> = Vec::new();
    let mut seen = Vec::new();
    // Borders of a level are compared with those of the level below only: half of a few are no outliers.
    let mut left: Vec<(u64, f64)> = places.iter().copied().zip(middles).collect();
    for distance in (1..=BORDERS_TO / BORDER / 2).map(|multiple| multiple * BORDER) {
        let (on, off): (Vec<_>, Vec<_>) = left.iter().partition(|(place, _)| place % distance == 0);
        if levels.last().is_some_and(|level| distance % level != 0) || off.len() < 2 || on.len() < PLACES_MIN {
            continue;
        }
        let times = |part: &[(u64, f64)]| part.iter().map(|(_, time)| *time).collect::<Vec<f64>>();
        let [on_us, off_us] = [times(&on), times(&off)];
        if quantile(&on_us, 0.1) - quantile(&off_us, 0.9) > least {
            levels.push(distance);
            seen.push(format!("{} KiB: {:.0} us against {:.0} us", distance / KIB, median(&on_us), median(&off_us)));
            left = on;
        }
    }
    let flat = || format!("flat: {:.0} us everywhere, noise {:.1} us", typical, noise);
    let seen = if seen.is_empty() { flat() } else { seen.join("; ") };
    Ok(Borders { levels, seen })
}
