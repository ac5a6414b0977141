//! The card's queue as its host uses it: tasks whose data has not crossed the bus yet.
//!
//! A task is queued with CMD44 and CMD45 when a slot is free, and prepared by the card (`device::queued`). Its transfer
//! comes when the host finds it ready and no other data moves; of several ready tasks the one that was queued first.
//! So transfers overtake each other, and are computed one by one, in the order of their times, when the caller waits:
//! a request that it submits meanwhile still finds them open. A read for which the buffer has no room, and all tasks
//! behind it, are prepared when a transfer has made room. Absent on purpose: flushes, trims and requests of several
//! commands, which wait for all transfers before them.
//!
//! Requests that find no slot wait in the host's scheduler, which makes one command of those that adjoin. Without a
//! queue they wait in the driver (64 at once), where nothing is merged.
//!
//! Sources: Linux's cqhci, `emmc-serve/src/cqhci/engine.rs` does the same by registers; drivers/mmc/core/queue.c and
//! mq-deadline, as `xtask/guest/figures.sh` shows them with a queue and without.

use std::cmp::Reverse;
use std::collections::VecDeque;

use emmc_card::card::PREPARATION;
use emmc_card::device::StorageError;
use emmc_port::{BlockOp, BlockRequest, TargetError};
use emmc_units::{Instant, Nanos, SECTOR_BYTES};

use crate::SimTarget;
use crate::polling::POLLING;

/// Commands before their transfer.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// In the card, in the order in which they were queued.
    tasks: Vec<Task>,
    /// In the host for want of a slot, with the time since when.
    waiting: VecDeque<(Command, Instant)>,
    /// Commands that have a slot, until their end.
    pub(crate) with_slot: usize,
}

/// A command in the card.
#[derive(Clone, Copy, Debug)]
struct Task {
    command: Command,
    queued: Instant,
    /// `None`: not prepared yet, for want of room in the buffer.
    ready: Option<Instant>,
}

/// One request, or several that adjoin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    /// The sectors of all.
    request: BlockRequest,
    /// The places of its requests, each of which names the next.
    first: u32,
    last: u32,
}

impl Command {
    /// Whether Linux makes one command of this and a request that comes later, of at most `most` bytes.
    fn takes(&self, request: &BlockRequest, most: u64) -> bool {
        let own = &self.request;
        let has_data = matches!(request.op, BlockOp::Read | BlockOp::Write);
        let adjoins = |one: &BlockRequest, next: &BlockRequest| one.offset_bytes + one.bytes == next.offset_bytes;
        has_data
            && own.op == request.op
            && !own.through
            && !request.through
            && own.bytes + request.bytes <= most
            && (adjoins(own, request) || adjoins(request, own))
    }
}

impl SimTarget {
    /// The host hands over a request at `at`; it waits where the card has no free slot.
    pub(crate) fn enter(&mut self, place: u32, at: Instant) -> Result<(), TargetError> {
        let request = self.requests[place as usize].request;
        if self.queue.waiting.is_empty() && self.queue.with_slot < self.commands_max {
            return self.start_command(Command { request, first: place, last: place }, at);
        }
        let most = self.command_bytes;
        match self.queue.waiting.iter_mut().rev().find(|(command, _)| command.takes(&request, most)) {
            Some((command, _)) => {
                command.request.offset_bytes = command.request.offset_bytes.min(request.offset_bytes);
                command.request.bytes += request.bytes;
                self.requests[place as usize].is_merged = true;
                self.requests[command.last as usize].next = Some(place);
                command.last = place;
            }
            None => self.queue.waiting.push_back((Command { request, first: place, last: place }, at)),
        }
        Ok(())
    }

    /// A command gets a slot.
    fn start_command(&mut self, command: Command, at: Instant) -> Result<(), TargetError> {
        self.queue.with_slot += 1;
        let request = command.request;
        if self.polling.is_none() {
            let start = self.start(at);
            let outcome = self.outcome(&request, start)?;
            self.taken.push(Reverse(outcome.0));
            self.ended_at(command.first, outcome);
            return Ok(());
        }
        if matches!(request.op, BlockOp::Trim | BlockOp::Flush) || request.bytes > self.command_bytes {
            self.transfer_all()?;
            let outcome = self.outcome(&request, at)?;
            self.ended_at(command.first, outcome);
            return Ok(());
        }
        let queued = at + self.device.bus().command() * 2;
        self.queue.tasks.push(Task { command, queued, ready: None });
        self.prepare_from(queued)
    }

    /// The card takes the tasks that it has not taken before, one after the other, as long as it has room.
    fn prepare_from(&mut self, at: Instant) -> Result<(), TargetError> {
        while let Some(index) = self.queue.tasks.iter().position(|task| task.ready.is_none()) {
            let Task { command: Command { request, first, .. }, queued, .. } = self.queue.tasks[index];
            match self.prepared(&request, at.max(queued)) {
                Ok(None) => break,
                Ok(ready) => self.queue.tasks[index].ready = ready,
                Err(error) => {
                    self.queue.tasks.remove(index);
                    let outcome = self.failed_request(error, queued)?;
                    self.ended_at(first, outcome);
                }
            }
        }
        Ok(())
    }

    /// The card takes a task at `at`; returns when it is ready. `None`: its buffer has no room.
    pub(crate) fn prepared(&mut self, request: &BlockRequest, at: Instant) -> Result<Option<Instant>, StorageError> {
        let (lba, sectors) = (request.offset_bytes / SECTOR_BYTES, (request.bytes / SECTOR_BYTES) as u32);
        match request.op {
            BlockOp::Read => self.device.prepare_read(self.access.area, lba, sectors, at + PREPARATION),
            _ => self.device.prepare_write(self.access.area, lba, sectors, at + PREPARATION).map(Some),
        }
    }

    /// Computes the transfers that begin before the next end of a request and no later than `until`.
    pub(crate) fn transfer_until(&mut self, until: Option<Instant>) -> Result<(), TargetError> {
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
    pub(crate) fn transfer_all(&mut self) -> Result<(), TargetError> {
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
        let Task { command: Command { request, first, .. }, queued, ready } = self.queue.tasks.remove(index);
        let at = self.found(queued, ready.unwrap_or(queued));
        let outcome = match self.transfer(&request, at) {
            Ok(done) => (done, None),
            Err(error) => self.failed_request(error, at)?,
        };
        if outcome.1.is_some() {
            let (lba, sectors) = (request.offset_bytes / SECTOR_BYTES, (request.bytes / SECTOR_BYTES) as u32);
            self.device.drop_prepared(self.access.area, lba, sectors);
        }
        self.ended_at(first, outcome);
        self.prepare_from(self.moved)
    }

    /// When the host finds that a task is ready.
    ///
    /// A task that becomes ready during another's transfer is found at the end of that, without a further wait: the
    /// engine asks during the last block (CBC 1).
    pub(crate) fn found(&self, queued: Instant, ready: Instant) -> Instant {
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

    /// The end of a command is known, and so that of its requests.
    pub(crate) fn ended_at(&mut self, first: u32, (done, error): (Instant, Option<String>)) {
        let mut place = Some(first);
        while let Some(ended) = place {
            if let Some(error) = &error {
                self.errors.push((ended, error.clone()));
            }
            self.outstanding.push(done, ended);
            place = self.requests[ended as usize].next;
        }
    }

    /// A command ended at `done`: the next one that waits gets its slot.
    pub(crate) fn freed(&mut self, done: Instant) -> Result<(), TargetError> {
        self.queue.with_slot -= 1;
        match self.queue.waiting.pop_front() {
            Some((command, since)) => self.start_command(command, done.max(since)),
            None => Ok(()),
        }
    }
}
