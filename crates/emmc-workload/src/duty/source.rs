//! The requests of a duty as a source for the loop.

use std::collections::VecDeque;

use emmc_port::BlockOp;
use emmc_units::Nanos;

use crate::drive::source::{Planned, Source};
use crate::drive::stream::BenchError;

/// Requests in the order of their times.
#[derive(Debug, Default)]
pub(super) struct Queue {
    planned: VecDeque<(Nanos, Planned)>,
}

impl Queue {
    pub(super) fn push(&mut self, at: Nanos, op: BlockOp, offset_bytes: u64, bytes: u64, through: bool) {
        self.planned.push_back((at, Planned { op, offset_bytes, bytes, through, discard: true, due: None }));
    }

    /// A write in requests of at most this size.
    pub(super) fn write(&mut self, at: Nanos, from_bytes: u64, bytes: u64, request_bytes: u64) {
        let (mut offset, end) = (from_bytes, from_bytes + bytes);
        while offset < end {
            let size = request_bytes.min(end - offset);
            self.push(at, BlockOp::Write, offset, size, false);
            offset += size;
        }
    }

    pub(super) fn flush(&mut self, at: Nanos) {
        self.push(at, BlockOp::Flush, 0, 0, false);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.planned.is_empty()
    }
}

/// Makes the requests of one period after the other.
pub(super) trait Periods {
    /// Adds the requests of the next period. An empty period is possible.
    ///
    /// Errors: a full filesystem.
    fn next_period(&mut self, queue: &mut Queue) -> Result<(), BenchError>;

    /// The time of the load so far, to the end of the last period.
    fn time(&self) -> Nanos;

    /// What the programs have written until then, before any filesystem. Unit: bytes.
    fn program_bytes(&self) -> f64;

    /// From now on updates begin only by [`Periods::start_update`].
    fn hold_updates(&mut self) {}

    /// The next period begins an update, if the load has any.
    fn start_update(&mut self) {}

    /// What is written each day, where the requests are what the programs write and periods are long. Unit: bytes.
    fn written_per_day(&self) -> Option<f64> {
        None
    }
}

/// A part of the requests of a duty.
pub(super) struct Part<'a> {
    pub(super) periods: &'a mut dyn Periods,
    pub(super) queue: &'a mut Queue,
    /// Requests keep their times, counted from this one.
    pub(super) paced_from: Option<Nanos>,
    /// Flushes are left out.
    pub(super) without_flushes: bool,
    /// Periods are not cut, so that their time is that of their bytes.
    pub(super) whole_periods: bool,
    /// Bytes to write, and in all.
    pub(super) left: u64,
    pub(super) all: u64,
    pub(super) failed: &'a mut Option<BenchError>,
}

impl Source for Part<'_> {
    const IS_RECORDED: bool = true;

    #[inline]
    fn next(&mut self) -> Option<Planned> {
        loop {
            if !self.has_more() {
                return None;
            }
            let Some((at, planned)) = self.queue.planned.pop_front() else {
                if let Err(error) = self.periods.next_period(self.queue) {
                    *self.failed = Some(error);
                    return None;
                }
                continue;
            };
            if self.without_flushes && planned.op == BlockOp::Flush {
                continue;
            }
            if planned.op == BlockOp::Write {
                self.left = self.left.saturating_sub(planned.bytes);
            }
            let due = self.paced_from.map(|from| Nanos(at.0.saturating_sub(from.0)));
            return Some(Planned { due, ..planned });
        }
    }

    fn has_more(&self) -> bool {
        self.left > 0 || self.whole_periods && !self.queue.is_empty()
    }

    fn done_share(&self) -> f64 {
        1.0 - self.left as f64 / self.all.max(1) as f64
    }
}
