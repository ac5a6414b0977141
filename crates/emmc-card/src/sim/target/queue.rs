//! The card's queue as its host uses it: tasks whose data has not crossed the bus yet.
//!
//! A task is queued with CMD44 and CMD45 when a slot is free, and prepared by the card (`device::queued`). Its transfer
//! comes when the host finds it ready and no other data moves; of several ready tasks the one that was queued first.
//! So transfers overtake each other, and are computed one by one, in the order of their times, when the caller waits:
//! a request that it submits meanwhile still finds them open. A read for which the buffer has no room, and all tasks
//! behind it, are prepared when a transfer has made room. Absent on purpose: flushes, trims and requests of several
//! commands, which wait for all transfers before them.
//!
//! Source: Linux's cqhci; `emmc-serve/src/cqhci/engine.rs` does the same by registers.

use std::collections::VecDeque;

use emmc_port::{BlockOp, BlockRequest, TargetError};
use emmc_units::{Instant, Nanos, SECTOR_BYTES};

use super::polling::POLLING;
use super::{COMMAND_BYTES, SimTarget};
use crate::card::PREPARATION;
use crate::device::StorageError;

/// Tasks before their transfer.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// In the card, in the order in which they were queued.
    tasks: Vec<Task>,
    /// Requests that wait in the host for a slot, by place, with the time since when.
    waiting: VecDeque<(u32, Instant)>,
}

/// A task in the card.
#[derive(Clone, Copy, Debug)]
struct Task {
    place: u32,
    queued: Instant,
    /// `None`: not prepared yet, for want of room in the buffer.
    ready: Option<Instant>,
}

impl Queue {
    /// Requests whose end is not known.
    pub(super) fn len(&self) -> usize {
        self.tasks.len() + self.waiting.len()
    }
}

impl SimTarget {
    /// The host hands over a request at `at`; it waits where the card has no free slot.
    pub(super) fn enter(&mut self, place: u32, at: Instant) -> Result<(), TargetError> {
        if !self.queue.waiting.is_empty() || self.outstanding.len() + self.queue.tasks.len() >= self.slots {
            self.queue.waiting.push_back((place, at));
            return Ok(());
        }
        self.queue_task(place, at)
    }

    /// A request gets a slot.
    fn queue_task(&mut self, place: u32, at: Instant) -> Result<(), TargetError> {
        let request = self.requests[place as usize].request;
        if matches!(request.op, BlockOp::Trim | BlockOp::Flush) || request.bytes > COMMAND_BYTES {
            self.transfer_all()?;
            let outcome = self.outcome(&request, at)?;
            self.ended_at(place, outcome);
            return Ok(());
        }
        let queued = at + self.device.bus().command() * 2;
        self.queue.tasks.push(Task { place, queued, ready: None });
        self.prepare_from(queued)
    }

    /// The card takes the tasks that it has not taken before, one after the other, as long as it has room.
    fn prepare_from(&mut self, at: Instant) -> Result<(), TargetError> {
        while let Some(index) = self.queue.tasks.iter().position(|task| task.ready.is_none()) {
            let Task { place, queued, .. } = self.queue.tasks[index];
            let request = self.requests[place as usize].request;
            match self.prepared(&request, at.max(queued)) {
                Ok(None) => break,
                Ok(ready) => self.queue.tasks[index].ready = ready,
                Err(error) => {
                    self.queue.tasks.remove(index);
                    let outcome = self.failed_request(error, queued)?;
                    self.ended_at(place, outcome);
                }
            }
        }
        Ok(())
    }

    /// The card takes a task at `at`; returns when it is ready. `None`: its buffer has no room.
    pub(super) fn prepared(&mut self, request: &BlockRequest, at: Instant) -> Result<Option<Instant>, StorageError> {
        let (lba, sectors) = (request.offset_bytes / SECTOR_BYTES, (request.bytes / SECTOR_BYTES) as u32);
        match request.op {
            BlockOp::Read => self.device.prepare_read(self.access.area, lba, sectors, at + PREPARATION),
            _ => self.device.prepare_write(self.access.area, lba, sectors, at + PREPARATION).map(Some),
        }
    }

    /// Computes the transfers that begin before the next end of a request and no later than `until`.
    pub(super) fn transfer_until(&mut self, until: Option<Instant>) -> Result<(), TargetError> {
        while let Some((begin, index)) = self.next_transfer() {
            let is_later = until.is_some_and(|until| begin > until);
            if is_later || self.outstanding.next_at().is_some_and(|end| end <= begin) {
                break;
            }
            self.run_transfer(index)?;
        }
        Ok(())
    }

    /// Computes the transfers of all tasks in the card.
    pub(super) fn transfer_all(&mut self) -> Result<(), TargetError> {
        while let Some((_, index)) = self.next_transfer() {
            self.run_transfer(index)?;
        }
        Ok(())
    }

    /// The next transfer's begin, and its task's place in the queue; of equal ones the task that was queued first.
    fn next_transfer(&self) -> Option<(Instant, usize)> {
        let ready = self.queue.tasks.iter().zip(0..).filter_map(|(task, index)| {
            let found = self.found(task.queued, task.ready?);
            Some((found.max(self.moved), index))
        });
        // What can never be prepared is fetched during its transfer.
        ready.min().or_else(|| self.queue.tasks.first().map(|task| (task.queued.max(self.moved), 0)))
    }

    fn run_transfer(&mut self, index: usize) -> Result<(), TargetError> {
        let Task { place, queued, ready } = self.queue.tasks.remove(index);
        let request = self.requests[place as usize].request;
        let at = self.found(queued, ready.unwrap_or(queued));
        let outcome = match self.transfer(&request, at) {
            Ok(done) => (done, None),
            Err(error) => self.failed_request(error, at)?,
        };
        if outcome.1.is_some() {
            let (lba, sectors) = (request.offset_bytes / SECTOR_BYTES, (request.bytes / SECTOR_BYTES) as u32);
            self.device.drop_prepared(self.access.area, lba, sectors);
        }
        self.ended_at(place, outcome);
        self.prepare_from(self.moved)
    }

    /// When the host finds that a task is ready.
    ///
    /// A task that becomes ready during another's transfer is found at the end of that, without a further wait: the
    /// engine asks during the last block (CBC 1).
    pub(super) fn found(&self, queued: Instant, ready: Instant) -> Instant {
        if ready <= self.moved {
            return queued.max(ready);
        }
        let command = self.device.bus().command();
        let first = self.moved.max(queued) + command;
        let wait = ready.since(first);
        // Each further question takes the command and the pause before it. One is the usual case: it needs no division.
        let interval = self.polling.unwrap_or(POLLING) + command;
        let polls = if wait <= interval { u64::from(wait > Nanos::ZERO) } else { wait.0.div_ceil(interval.0) };
        first + interval * polls
    }

    /// The end of a request is known.
    pub(super) fn ended_at(&mut self, place: u32, (done, error): (Instant, Option<String>)) {
        if let Some(error) = error {
            self.errors.push((place, error));
        }
        self.outstanding.push(done, place);
    }

    /// A request ended at `done`: the next one that waits gets its slot.
    pub(super) fn freed(&mut self, done: Instant) -> Result<(), TargetError> {
        match self.queue.waiting.pop_front() {
            Some((place, since)) => self.queue_task(place, done.max(since)),
            None => Ok(()),
        }
    }
}
