//! Allocation units: how many are open at a time, and their size.
//!
//! Several streams of sequential writes are far enough apart to be in units of their own. While the card keeps all of
//! their units open, a write costs the same as in one stream; with one more each write closes a unit, which the card
//! has to merge. That gives the number of open units. Their size: with all but one of them held open elsewhere, one
//! sequential stream opens its next unit at each border, which closes one of the others. Those writes stand out, and
//! their places are the borders, of any size. Absent on purpose: cards that keep every unit open (mapping by pages)
//! show neither.

mod random;

use emmc_workload::BenchError;

use crate::requests::Requests;
use crate::robust::median;
pub(crate) use random::limit_in_random;

const MIB: u64 = 1 << 20;
/// One write. Unit: bytes.
pub(crate) const CHUNK: u64 = 128 << 10;
/// Writes' worth of data in front of a stream, which closing its unit has to copy.
const AHEAD: u64 = 6;
/// Writes' worth of data that a stream fills at once.
const FILL: u64 = 16;
/// Writes' worth of distance between streams that all tests of a distance need.
const DISTANCE: u64 = 32;
/// Most streams.
const STREAMS_MAX: usize = 64;
/// Measured rounds of a test; one before them opens the units.
const ROUNDS: usize = 3;
/// Writes of a stream in a test of a distance: two times all rounds.
const WRITES_OF_TEST: u64 = 2 * (ROUNDS as u64 + 1);
/// One more stream that costs this many times more is one too many.
pub(crate) const COLLAPSE: f64 = 3.0;
/// Distances of streams, largest first: multiples of most sizes of units. Unit: bytes.
const SPACINGS: [u64; 4] = [192 * MIB, 96 * MIB, 48 * MIB, 24 * MIB];

/// A stream of ascending writes to filled places.
#[derive(Clone, Copy, Debug)]
struct Stream {
    start: u64,
    next: u64,
    filled: u64,
}

/// Streams at equal distances.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    chunk: u64,
    /// Data that a stream fills at once, and that stays in front of it. Unit: bytes.
    fill: u64,
    ahead: u64,
    streams: Vec<Stream>,
}

/// The cost of a write by the number of streams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) streams: usize,
    /// Times the cost of one stream.
    pub(crate) ratio: f64,
    /// The time of a write of one stream. Unit: microseconds.
    pub(crate) alone_us: f64,
}

/// How many units are open.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    /// With this many streams all is well.
    pub(crate) open: usize,
    /// With one more it is not; `false`: no limit was found.
    pub(crate) is_limit: bool,
    pub(crate) tests: Vec<Cost>,
}

impl Streams {
    /// As far apart as the area allows for the most streams.
    pub(crate) fn new(requests: &Requests<'_>) -> Option<Self> {
        let from = requests.from.next_multiple_of(24 * MIB);
        let room = requests.to.saturating_sub(from);
        let fits = |spacing: &u64| (room / spacing) as usize;
        // Distance before number: streams that share a unit would be counted as units.
        let best = SPACINGS.iter().find(|spacing| fits(spacing) >= STREAMS_MAX * 3 / 8);
        let spacing = *best.or_else(|| SPACINGS.iter().find(|spacing| fits(spacing) >= 8))?;
        Some(Self::at(from.next_multiple_of(spacing), spacing, fits(&spacing).saturating_sub(2).min(STREAMS_MAX)))
    }

    /// Streams at given places.
    pub(crate) fn at(from: u64, spacing: u64, count: usize) -> Self {
        let stream = |index| {
            let start = from + index as u64 * spacing;
            Stream { start, next: start, filled: start }
        };
        let chunk = (spacing / DISTANCE / 4096 * 4096).clamp(4096, CHUNK);
        let (fill, ahead) = (FILL * chunk, AHEAD * chunk);
        Self { chunk, fill, ahead, streams: (0..count).map(stream).collect() }
    }

    /// Smaller writes, so that all of a stream's are within `step` of its start.
    fn within(mut self, step: u64) -> Self {
        self.chunk = self.chunk.min(step / WRITES_OF_TEST / 4096 * 4096).max(4096);
        self
    }

    pub(crate) fn len(&self) -> usize {
        self.streams.len()
    }

    /// Makes sure that this many writes of a stream have data in front of them.
    pub(crate) fn prepare(&mut self, requests: &mut Requests<'_>, index: usize, writes: u64) -> Result<(), BenchError> {
        let (stream, chunk) = (&mut self.streams[index], self.chunk);
        let needed = writes * chunk + self.ahead;
        if stream.next + needed <= stream.filled {
            return Ok(());
        }
        // A place behind all that it has written, because an open unit takes ascending writes only.
        let start = if stream.filled == stream.start { stream.start } else { stream.filled };
        let fill = needed.max(self.fill);
        requests.fill(start, start + fill)?;
        (stream.next, stream.filled) = (start, start + fill);
        Ok(())
    }

    pub(crate) fn write(&mut self, requests: &mut Requests<'_>, index: usize) -> Result<f64, BenchError> {
        let stream = &mut self.streams[index];
        let time = requests.write(stream.next, self.chunk)?;
        stream.next += self.chunk;
        Ok(time)
    }

    /// The times of writes in turn to the first streams, after a round that opens their units.
    fn times(&mut self, requests: &mut Requests<'_>, count: usize, rounds: usize) -> Result<Vec<f64>, BenchError> {
        let mut times = Vec::new();
        for round in 0..=rounds {
            for index in 0..count {
                let time = self.write(requests, index)?;
                if round > 0 {
                    times.push(time);
                }
            }
        }
        Ok(times)
    }

    /// The cost of a write with this many streams, beside that of one stream before and after.
    pub(crate) fn cost(&mut self, requests: &mut Requests<'_>, count: usize) -> Result<Cost, BenchError> {
        for index in 0..count {
            let writes = if index == 0 { 3 * (ROUNDS as u64 + 1) } else { ROUNDS as u64 + 1 };
            self.prepare(requests, index, writes)?;
        }
        let mut alone = self.times(requests, 1, ROUNDS)?;
        let together = self.times(requests, count, ROUNDS)?;
        alone.extend(self.times(requests, 1, ROUNDS)?);
        let alone_us = median(&alone);
        Ok(Cost { streams: count, ratio: median(&together) / alone_us, alone_us })
    }
}

/// Doubles the number of streams until a write costs three times more, then halves the gap.
pub(crate) fn limit(requests: &mut Requests<'_>, streams: &mut Streams) -> Result<Limit, BenchError> {
    requests.step("streams in turn");
    let mut tests = Vec::new();
    let (mut good, mut bad) = (1, None);
    let most = streams.len();
    while bad.is_none() && good < most {
        let count = (good * 2).min(most);
        let cost = streams.cost(requests, count)?;
        tests.push(cost);
        if cost.ratio > COLLAPSE { bad = Some(count) } else { good = count }
    }
    let Some(mut bad) = bad else { return Ok(Limit { open: good, is_limit: false, tests }) };
    while bad - good > 1 {
        let count = (good + bad) / 2;
        let cost = streams.cost(requests, count)?;
        tests.push(cost);
        if cost.ratio > COLLAPSE { bad = count } else { good = count }
    }
    // Both sides once more: one disturbed test must not decide.
    for (count, is_bad) in [(good, false), (bad, true)] {
        if count < 2 {
            continue;
        }
        let cost = streams.cost(requests, count)?;
        tests.push(cost);
        if (cost.ratio > COLLAPSE) != is_bad {
            return Ok(Limit { open: 0, is_limit: true, tests });
        }
    }
    Ok(Limit { open: good, is_limit: true, tests })
}

/// Borders found by one sequential stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Borders {
    /// The size of a unit. Unit: bytes.
    pub(crate) unit: Option<u64>,
    /// The first border, less whole units. Unit: bytes.
    pub(crate) phase: u64,
    /// How many borders were seen.
    pub(crate) count: usize,
    pub(crate) written: u64,
    pub(crate) outliers: usize,
}

/// Most that the sequential stream writes. Unit: bytes.
pub(crate) const SWEEP_MAX: u64 = 272 * MIB;

/// Writes sequentially from `from`, with all but one of the open units held by other streams.
pub(crate) fn borders(
    requests: &mut Requests<'_>,
    streams: &mut Streams,
    open: usize,
    from: u64,
) -> Result<Borders, BenchError> {
    requests.step("a sequential stream across borders");
    let anchors: Vec<usize> = (1..open).collect();
    let mut times: Vec<f64> = Vec::new();
    let mut spikes: Vec<u64> = Vec::new();
    let mut at = from;
    let end = (from + SWEEP_MAX).min(requests.to);
    for &index in &anchors {
        streams.prepare(requests, index, 12)?;
    }
    requests.write(at, CHUNK)?;
    at += CHUNK;
    rearm(requests, streams, &anchors)?;
    while at + CHUNK <= end {
        let time = requests.write(at, CHUNK)?;
        let usual = if times.len() >= 4 { median(&times[times.len().saturating_sub(64)..]) } else { f64::INFINITY };
        times.push(time);
        if time > COLLAPSE * usual {
            spikes.push(at);
            rearm(requests, streams, &anchors)?;
            if let Some((unit, count)) = period(&spikes, from + 5 * CHUNK, at) {
                let phase = period_phase(&spikes, unit);
                let (written, outliers) = (at + CHUNK - from, spikes.len() - count);
                return Ok(Borders { unit: Some(unit), phase, count, written, outliers });
            }
        }
        at += CHUNK;
    }
    Ok(Borders { written: at - from, outliers: spikes.len(), ..Borders::default() })
}

fn rearm(requests: &mut Requests<'_>, streams: &mut Streams, anchors: &[usize]) -> Result<(), BenchError> {
    for &index in anchors {
        streams.prepare(requests, index, 1)?;
        streams.write(requests, index)?;
    }
    Ok(())
}

/// Borders that must be seen.
const BORDERS_MIN: usize = 4;

/// The smallest distance at which the latest outliers follow one another, more often than chance allows.
fn period(spikes: &[u64], from: u64, to: u64) -> Option<(u64, usize)> {
    let last = *spikes.last()?;
    let chance = (spikes.len() as f64 * CHUNK as f64 / (to - from).max(CHUNK) as f64).min(0.5);
    let distances = spikes.iter().rev().skip(1).map(|place| last - place).filter(|distance| *distance >= 2 * CHUNK);
    distances.into_iter().find_map(|distance| {
        let expected =
            (0..).map_while(|index: u64| last.checked_sub(index * distance)).take_while(|place| *place >= from);
        let run = expected.take_while(|place| spikes.binary_search(place).is_ok()).count();
        // Any of the distances to any earlier outlier could have been the one.
        let accident = spikes.len() as f64 * spikes.len() as f64 * chance.powi(run as i32 - 2);
        (run >= BORDERS_MIN && (accident < 1e-3 || spikes.len() == run)).then_some((distance, run))
    })
}

fn period_phase(spikes: &[u64], unit: u64) -> u64 {
    spikes.last().map_or(0, |last| last % unit)
}

/// Whether streams at this distance are in units of their own: as many as can be open are fast, and one more is not.
fn apart(requests: &mut Requests<'_>, spacing: u64, open: usize) -> Result<bool, BenchError> {
    // A stream that crosses a border in the test would be in a unit of its own from a smaller distance on.
    let from = requests.from.next_multiple_of(LARGEST);
    let mut streams = Streams::at(from, spacing, open + 1).within(step_at(spacing));
    // All of it before the first test: what is filled later would be behind an open unit's last write.
    for index in 0..=open {
        let tests = if index == 0 { 6 } else { 2 };
        streams.prepare(requests, index, tests * (ROUNDS as u64 + 1))?;
    }
    let within = if open > 1 { streams.cost(requests, open)?.ratio } else { 1.0 };
    if within > COLLAPSE {
        return Ok(false);
    }
    Ok(streams.cost(requests, open + 1)?.ratio > COLLAPSE)
}

/// The largest unit that is looked for; the first stream begins at a multiple of it. Unit: bytes.
const LARGEST: u64 = 96 * MIB;
/// The smallest distance that is tried. Unit: bytes.
const CLOSEST: u64 = 512 << 10;

/// How exactly distances are tried. Unit: bytes.
fn step_at(distance: u64) -> u64 {
    if distance > 4 * MIB { 512 << 10 } else { 128 << 10 }
}

/// Distances of streams that were tried, and the smallest at which they are in units of their own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distance {
    /// Unit: bytes.
    pub(crate) unit: Option<u64>,
    /// The largest distance at which they are not. Unit: bytes.
    pub(crate) below: u64,
    pub(crate) tests: usize,
}

/// The smallest distance at which streams are in units of their own: doubled, then halved, then both sides once more.
pub(crate) fn distance(requests: &mut Requests<'_>, open: usize) -> Result<Distance, BenchError> {
    requests.step("streams at growing distances");
    let room = requests.to.saturating_sub(requests.from.next_multiple_of(LARGEST)) / (open as u64 + 1);
    let mut found = Distance::default();
    let mut test = |spacing: u64, found: &mut Distance| {
        found.tests += 1;
        apart(requests, spacing, open)
    };
    let (mut below, mut unit) = (0, CLOSEST);
    while !test(unit, &mut found)? {
        (below, unit) = (unit, unit * 2);
        if unit > room.min(LARGEST) {
            found.below = below;
            return Ok(found);
        }
    }
    // Streams that are this close and slow together say nothing about units.
    if below == 0 {
        return Ok(found);
    }
    let step = step_at(unit);
    while unit - below > step {
        let middle = below + (unit - below) / 2 / step * step;
        if test(middle, &mut found)? { unit = middle } else { below = middle }
    }
    found.below = below;
    if test(unit, &mut found)? && !test(below, &mut found)? {
        found.unit = Some(unit);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_needs_every_border_and_survives_outliers() {
        let border = |index: u64| index * 12 * MIB;
        let mut spikes: Vec<u64> = (1..=4).map(border).collect();
        assert_eq!(period(&spikes, MIB, border(4)), Some((12 * MIB, 4)));
        // With outliers between them four are not enough.
        spikes.extend([3 * MIB, 17 * MIB, 40 * MIB]);
        spikes.sort_unstable();
        assert_eq!(period(&spikes, MIB, border(4)), None);
        spikes.extend((5..=7).map(border));
        assert_eq!(period(&spikes, MIB, border(7)), Some((12 * MIB, 7)));
        // One border was not seen.
        let spikes: Vec<u64> = [1, 2, 4].map(border).to_vec();
        assert_eq!(period(&spikes, MIB, border(4)), None);
    }
}
