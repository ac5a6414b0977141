//! Spans in the model of the host: what a card without any time would give, and what depth and a command queue change.

use emmc_host::{CqEngine, Pipeline, Spans, Speed};
use emmc_units::{Bytes, Nanos};

use super::groups::Group;
use super::result::{Limit, Prediction, SpanRow, Times};
use crate::request::Request;

/// Depths and processors that are predicted.
const PREDICTED: [(u32, u32); 4] = [(1, 1), (32, 1), (1, 2), (32, 2)];

/// Of the requests that most of the time goes to, on a machine with this many processors; 0 if their idle times are not
/// recorded.
pub(super) fn limit(row: &SpanRow, group: &Group, processors: usize) -> Option<Limit> {
    if row.size_bytes == 0 {
        return None;
    }
    let mean = |times: &Option<Times>| times.map_or(0.0, |times| times.mean);
    let spans = [
        ("vfs", mean(&row.vfs_us)),
        ("block", mean(&row.block_us)),
        ("issue", mean(&row.issue_us)),
        ("hardware", row.hardware_us.map_or(row.device_us.mean, |times| times.mean)),
        ("post", mean(&row.post_us)),
    ];
    let ceiling = spans.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("hardware", |span| span.0);
    let is_hardware = row.hardware_us.is_some();
    let ceiling = match ceiling {
        _ if group.keeps_busy(processors) => "processor",
        "hardware" if !is_hardware => "device",
        span => span,
    };
    let needs = group.needs()?;
    let speed = |ns: f64| Speed::of(needs.chunk, ns.max(1.0)).mb_s;
    let mut predicted = Vec::new();
    for (depth, cores) in PREDICTED {
        for queueing in [false, true] {
            let mb_per_s = speed(needs.period_ns(depth, cores, queueing)?);
            predicted.push(Prediction { depth, cores, queueing, mb_per_s });
        }
    }
    let spans = needs.spans();
    Some(Limit {
        op: row.op.clone(),
        size_bytes: row.size_bytes,
        mode: row.mode.clone(),
        ceiling: ceiling.into(),
        pre_us: needs.before.as_micros_f64(),
        hardware_us: needs.alone.as_micros_f64(),
        post_us: needs.after.as_micros_f64(),
        own_us: needs.own.map(Nanos::as_micros_f64),
        processor_us: needs.processor.map(Nanos::as_micros_f64),
        is_hardware,
        theoretical_mb_per_s: speed(spans.total().0 as f64),
        zero_hardware_mb_per_s: speed(spans.software().0 as f64),
        measured_mb_per_s: speed(group.active_ns as f64 / row.count.max(1) as f64),
        predicted,
    })
}

/// What a request of one kind needs before, at and after the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Before the card, without waiting for others.
    pub(super) before: Nanos,
    /// The last part of it, in the driver: one request at a time.
    pub(super) driver: Nanos,
    /// From the card's end until its controller takes another command: the interrupt, and the questions of a write.
    pub(super) release: Nanos,
    /// From the card's end until it has another request that waits, one at a time; `None` if the recording has too few.
    pub(super) turn: Option<Nanos>,
    /// The card, when it has no other request.
    pub alone: Nanos,
    /// The card, for one of several in its queue; `None` if the recording has too few. A card works on several at once,
    /// which its time for one alone does not say.
    pub queued: Option<Nanos>,
    /// After the card.
    pub(super) after: Nanos,
    /// The processors, from the end of a request to the begin of the next if there is one at a time: the program's own
    /// work. `None` if their idle times are not recorded.
    pub own: Option<Nanos>,
    /// The processors in all, for one of several requests if the recording has enough, else for one alone.
    pub processor: Option<Nanos>,
    /// Its size.
    pub(super) chunk: Bytes,
}

impl Needs {
    /// Of requests of the same operation and size, in the order of their ends; `None` if there are none.
    pub fn of<'a>(requests: impl Iterator<Item = &'a Request>) -> Option<Self> {
        let mut group: Option<Group> = None;
        for request in requests {
            let new = || Group::new(request.device, request.op, Some(request.sectors), request.mode);
            group.get_or_insert_with(new).add(request);
        }
        group?.needs()
    }

    fn spans(&self) -> Spans {
        // Without a recorded stage the model has its shortest time.
        let at_least = |span: Nanos| span.max(Nanos(1));
        Spans { pre: at_least(self.before), hw: at_least(self.alone), post: at_least(self.after) }
    }

    /// The time between the ends of two requests in the long run. Unit: nanoseconds; `None` for what the model refuses.
    ///
    /// One at a time: its spans, and the program's own work before the next. Of several, the storage or the processors'
    /// work for each decides, whichever is longer.
    ///
    /// With a queue in the card: the pipeline with the card's time for one of several, but no more than `depth` end in
    /// the time of one. That time is the one of a request alone if they never meet at the card's slowest part; if they
    /// meet at random, each waits for those before it, and half a turn for the one that is served (mean value analysis
    /// with constant times). A card is in between; the middle is taken.
    pub fn period_ns(&self, depth: u32, cores: u32, queueing: bool) -> Option<f64> {
        let spans = self.spans();
        let engine = if queueing { CqEngine::Hardware } else { CqEngine::None };
        // Since Linux 4.16 only the driver's part is serial. It is between two transfers without a queue, and so is
        // what the controller does after one.
        let serial = self.driver.max(Nanos(1)).min(spans.pre);
        let gap = self.turn.unwrap_or(serial + self.release).min(spans.software());
        let base = Pipeline { serial, gap, ..Pipeline::new(spans, self.chunk) };
        let one = Pipeline { depth, cores, engine, ..base }.checked().ok()?;
        let own = self.own.unwrap_or_default().0 as f64;
        if depth == 1 {
            return Some(one.period_ns() + own);
        }
        let work = self.processor.unwrap_or_default().0 as f64 / f64::from(cores);
        let alone = spans.total().0 as f64 + own;
        let storage = match self.queued.filter(|_| queueing) {
            None => one.period_ns().max(alone / f64::from(depth)),
            Some(queued) => {
                let several = Pipeline { spans: Spans { hw: queued.max(Nanos(1)), ..spans }, ..one }.checked().ok()?;
                let random = random_meeting(alone, (queued.0 as f64).min(alone), depth);
                several.period_ns().max(alone.midpoint(random) / f64::from(depth))
            }
        };
        Some(storage.max(work))
    }
}

/// The mean time of a request among `depth` that meet at random at a part of the device, of which each needs `turn`.
fn random_meeting(alone: f64, turn: f64, depth: u32) -> f64 {
    let (mut took, mut there, mut busy) = (alone, turn / alone, turn / alone);
    for others in 1..depth {
        let at_part = turn * (1.0 + (there - busy).max(0.0)) + busy * turn / 2.0;
        took = alone - turn + at_part;
        let period = (took / f64::from(others + 1)).max(turn);
        // The rest of them are there when the part is never idle.
        (there, busy) = (f64::from(others + 1) - (alone - turn) / period, turn / period);
    }
    took
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(queued: Option<u64>) -> Needs {
        let us = Nanos::from_micros;
        let queued = queued.map(us);
        let (own, processor, chunk) = (None, None, Bytes(4096));
        let alone = us(160);
        Needs {
            before: us(3),
            driver: us(1),
            release: us(1),
            turn: None,
            alone,
            queued,
            after: us(2),
            own,
            processor,
            chunk,
        }
    }

    #[test]
    fn a_queue_in_the_card_is_known_by_a_recording_of_several() {
        let period = |queued, depth, queueing| needs(queued).period_ns(depth, 1, queueing).unwrap() / 1e3;
        // Without it, the card seems to take one after the other.
        assert_eq!([1, 2, 32].map(|depth| period(None, depth, true)), [165.0, 160.0, 160.0]);
        assert_eq!([1, 2, 32].map(|depth| period(Some(80), depth, false)), [165.0, 162.0, 162.0]);
        assert_eq!([1, 4, 32].map(|depth| period(Some(80), depth, true)), [165.0, 80.0, 80.0]);
        // Two: 82.5 us if they never meet, (165 + 80 * 80 / 165 / 2) / 2 = 92.2 us at random.
        assert!((period(Some(80), 2, true) - (82.5 + 92.197) / 2.0).abs() < 0.01, "{}", period(Some(80), 2, true));
    }
}
