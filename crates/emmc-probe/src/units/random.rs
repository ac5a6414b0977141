//! Open units in random order: the same streams, each of which writes at random places of its own unit.
//!
//! A card that takes ascending writes only closes a unit at each step back, so that one stream in random order is slow
//! already: then no unit is open for it. The places of a stream lie within half a MiB that begins at a multiple of one
//! MiB, and so within one unit of any size that is a multiple of half a MiB.

use emmc_workload::BenchError;

use super::{AHEAD, COLLAPSE, Cost, Limit, MIB, ROUNDS, Streams};
use crate::requests::Requests;
use crate::robust::quantile;

/// Where a stream writes. Unit: bytes.
const WINDOW: u64 = 512 << 10;
/// Half of the steps of a random order go ahead, and those back are the slow ones.
const SLOW_HALF: f64 = 0.67;
impl Streams {
    /// Writes of another size from now on.
    fn resize(&mut self, chunk: u64) {
        self.chunk = chunk;
        // In front of the places data that closing a unit has to copy, as much as with larger writes.
        self.ahead = AHEAD * (64 << 10);
    }

    /// The cost of a write in random order with this many streams, beside that of one in sequential order.
    fn cost_in_random(&mut self, requests: &mut Requests<'_>, count: usize) -> Result<Cost, BenchError> {
        let base = self.streams.len() - 1;
        let window = (WINDOW / self.chunk).clamp(ROUNDS as u64 + 1, 16);
        self.prepare_window(requests, base, 2 * (ROUNDS as u64 + 1))?;
        let mut places = Vec::new();
        for index in 0..count {
            self.prepare_window(requests, index, window)?;
            let mut of_stream: Vec<u64> = (0..window).collect();
            requests.shuffle(&mut of_stream);
            places.push(of_stream);
        }
        let mut alone = self.in_sequence(requests, base)?;
        let mut together = Vec::new();
        for round in 0..=ROUNDS {
            for (stream, of_stream) in self.streams.iter().zip(&places) {
                let time = requests.write(stream.next + of_stream[round] * self.chunk, self.chunk)?;
                if round > 0 {
                    together.push(time);
                }
            }
        }
        alone.extend(self.in_sequence(requests, base)?);
        for stream in &mut self.streams[..count] {
            stream.next += window * self.chunk;
        }
        let alone_us = quantile(&alone, SLOW_HALF);
        Ok(Cost { streams: count, ratio: quantile(&together, SLOW_HALF) / alone_us, alone_us })
    }

    fn in_sequence(&mut self, requests: &mut Requests<'_>, index: usize) -> Result<Vec<f64>, BenchError> {
        self.write(requests, index)?;
        (0..ROUNDS).map(|_| self.write(requests, index)).collect()
    }

    /// Fills a place of this many writes, and what is in front of it, where the stream has not been.
    fn prepare_window(&mut self, requests: &mut Requests<'_>, index: usize, writes: u64) -> Result<(), BenchError> {
        let needed = writes * self.chunk + self.ahead;
        let start = self.streams[index].filled.next_multiple_of(MIB);
        requests.fill(start, start + needed)?;
        let stream = &mut self.streams[index];
        (stream.next, stream.filled) = (start, start + needed);
        Ok(())
    }
}

/// How many units take writes of this size in random order at a time; `known`: how many in sequential order.
pub(crate) fn limit_in_random(
    requests: &mut Requests<'_>,
    streams: &mut Streams,
    size: u64,
    known: &Limit,
) -> Result<Limit, BenchError> {
    requests.step("streams in random order");
    streams.resize(size);
    // The last stream is the one in sequential order.
    let most = streams.len() - 1;
    let mut tests = Vec::new();
    let (mut good, mut bad) = (0, None);
    while bad.is_none_or(|bad| bad - good > 1) && good < most {
        let count = match bad {
            Some(bad) => (good + bad) / 2,
            None if good == 0 => 1,
            None if good < known.open => known.open.min(most),
            None if known.is_limit && good == known.open => good + 1,
            None => (good * 2).min(most),
        };
        let cost = streams.cost_in_random(requests, count)?;
        tests.push(cost);
        if cost.ratio > COLLAPSE { bad = Some(count) } else { good = count }
    }
    Ok(Limit { open: good, is_limit: bad.is_some(), tests })
}
