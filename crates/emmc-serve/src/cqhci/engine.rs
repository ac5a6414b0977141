//! The engine's work: send rung tasks, poll which are ready, run them, report their completion.

use emmc_card::card::{Card, DataStatus};
use emmc_regs::command::Response;
use emmc_units::{Instant, Nanos};

use super::registers::{
    COALESCING, COMPLETED, CONTROL, DEVICE_PENDING, DEVICE_QUEUE, DIRECT_RESPONSE, DOORBELL, SEND_STATUS_1,
    SEND_STATUS_2, configuration, control, int,
};
use super::task::{Task, Work};
use super::{Cqhci, Slot, Stage};
use crate::sdhci::descriptor::Walk;
use crate::sdhci::lines::Lines;
use crate::sdhci::registers::int as host;
use crate::sdhci::{GuestMemory, HostError, RequestAccount};

/// Blocks between card and memory in one call.
const CHUNK: u32 = 128;
/// SEND_STATUS_1 counts clocks of 200 MHz, as CAPABILITIES says.
const POLL_CLOCK: Nanos = Nanos(5);
/// A shorter interval in SEND_STATUS_1 grows to this one while no task is ready. A real engine keeps to the shorter
/// one; software cannot tell the difference.
const POLL_MAX: Nanos = Nanos::from_micros(20);
/// CMD13 with this bit requests the queue status.
const QUEUE_STATUS: u32 = 1 << 15;

/// What the engine works with during one service call.
pub(crate) struct Surroundings<'a> {
    pub(crate) card: &'a mut Card,
    pub(crate) memory: &'a dyn GuestMemory,
    pub(crate) lines: &'a mut Lines,
    /// How long data or busy may take.
    pub(crate) data_timeout: Nanos,
    pub(crate) now: Instant,
}

impl Cqhci {
    /// When it must be serviced next without an access by software.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let ends = self.stages().filter_map(|(_, slot)| match slot.stage {
            Stage::Ending { at, .. } => Some(at),
            _ => None,
        });
        let queued = self.stages().any(|(_, slot)| matches!(slot.stage, Stage::Queued(_)));
        let polls = queued && self.runs() && !self.data_is_taken();
        ends.chain(self.coalescing.deadline()).chain(polls.then_some(self.poll_at)).min()
    }

    /// Executes the requests of software and the work that is due.
    pub(crate) fn service(&mut self, around: &mut Surroundings<'_>) {
        self.wants_service = false;
        loop {
            let progress = self.end_next(around)
                || self.runs() && self.send_next(around)
                || self.runs() && !self.data_is_taken() && self.run_next(around);
            if !progress {
                break;
            }
        }
        if self.coalescing.deadline().is_some_and(|deadline| deadline <= around.now) {
            self.tell();
        }
        if self.halting && !self.is_halted() && !self.data_is_taken() {
            self.registers.set32(CONTROL, control::HALT);
            self.raise(int::HALTED);
        }
    }

    fn runs(&self) -> bool {
        self.has(configuration::ENABLE) && !self.failed && !self.halting
    }

    fn stages(&self) -> impl Iterator<Item = (usize, &Slot)> {
        self.slots.iter().enumerate().filter_map(|(number, slot)| Some((number, slot.as_ref()?)))
    }

    fn data_is_taken(&self) -> bool {
        self.stages().any(|(_, slot)| matches!(slot.stage, Stage::Ending { with_data: true, .. }))
    }

    /// Reports the first task that is finished; returns whether there was one.
    fn end_next(&mut self, around: &mut Surroundings<'_>) -> bool {
        let now = around.now;
        let over = self.stages().filter_map(|(number, slot)| match slot.stage {
            Stage::Ending { task, at, errors, .. } if at <= now => Some((at, number, task, errors, *slot)),
            _ => None,
        });
        let Some((at, number, task, errors, slot)) = over.min_by_key(|(at, number, ..)| (*at, *number)) else {
            return false;
        };
        // What a card was doing when it lost power was not done.
        let errors = if around.card.state(at).is_none() { host::DATA_TIMEOUT } else { errors };
        let (command, argument, blocks) = match task.work {
            Work::Data { params, address, .. } => (if params.read { 46 } else { 47 }, address, params.blocks.into()),
            Work::Direct { index, argument, .. } => (index, argument, 0),
        };
        let Slot { rung: issued, answered, crossed, .. } = slot;
        let account =
            RequestAccount { command, argument, blocks, issued, answered, crossed, done: at, stopped: None, errors };
        around.lines.accounts.add(account);
        if errors != 0 {
            self.data_failed(number, command, errors);
            self.slots[number] = None;
            return true;
        }
        self.slots[number] = None;
        let bit = 1u32 << number;
        self.registers.set32(DOORBELL, self.registers.get32(DOORBELL) & !bit);
        self.registers.set32(COMPLETED, self.registers.get32(COMPLETED) | bit);
        self.poll_at = self.poll_at.max(at);
        if task.interrupt || self.coalescing.count(at) {
            self.tell();
        }
        self.registers.set32(COALESCING, self.coalescing.register());
        true
    }

    fn tell(&mut self) {
        self.coalescing.told();
        self.raise(int::TASK_COMPLETE);
    }

    /// Sends the task that was rung first, if its time has come; returns whether it did.
    fn send_next(&mut self, around: &mut Surroundings<'_>) -> bool {
        let waiting = |slot: &Slot| matches!(slot.stage, Stage::Rung | Stage::Fetched(_));
        let first = self.stages().filter(|(_, slot)| waiting(slot)).min_by_key(|(_, slot)| slot.order);
        let Some((number, slot)) = first.map(|(number, slot)| (number, *slot)) else { return false };
        let task = match slot.stage {
            Stage::Fetched(task) => task,
            _ => match self.layout().fetch(around.memory, number as u8) {
                Some(task) => task,
                None => {
                    self.data_failed(number, 44, host::ADMA);
                    return true;
                }
            },
        };
        if !self.may_go(&task) {
            self.set_stage(number, Stage::Fetched(task));
            return false;
        }
        match task.work {
            Work::Data { params, address, .. } => {
                for (index, argument) in [(44, params.encode()), (45, address)] {
                    let sent = around.lines.send(around.card, index, argument, slot.rung);
                    if self.check(number, index, &sent).is_none() {
                        return true;
                    }
                    self.poll_at = self.poll_at.max(sent.at);
                }
                self.registers.set32(DEVICE_PENDING, self.registers.get32(DEVICE_PENDING) | 1 << number);
                self.poll_interval = Nanos::ZERO;
                self.set_stage(number, Stage::Queued(task));
            }
            Work::Direct { .. } => self.send_direct(number, task, slot.rung, around),
        }
        true
    }

    /// Whether a task may be sent: no barrier before it, and no data transfer that a direct command must not overlap.
    fn may_go(&self, task: &Task) -> bool {
        let sent = || {
            self.stages().filter_map(|(_, slot)| match slot.stage {
                Stage::Queued(task) | Stage::Ending { task, .. } => Some(task),
                _ => None,
            })
        };
        let behind_barrier = sent().any(|other| other.barrier);
        let is_barrier = task.barrier && sent().next().is_some();
        let meets_data = matches!(task.work, Work::Direct { during_data: false, .. }) && self.data_is_taken();
        !(behind_barrier || is_barrier || meets_data)
    }

    fn set_stage(&mut self, number: usize, stage: Stage) {
        if let Some(slot) = &mut self.slots[number] {
            slot.stage = stage;
        }
    }

    /// Sends a direct command.
    fn send_direct(&mut self, number: usize, task: Task, from: Instant, around: &mut Surroundings<'_>) {
        let Work::Direct { index, argument, response, .. } = task.work else { return };
        let sent = around.lines.send(around.card, index, argument, from);
        if response != 0 {
            let Some(status) = self.check(number, index, &sent) else { return };
            self.registers.set32(DIRECT_RESPONSE, status);
        }
        let mut ending = Stage::Ending { task, at: sent.at, with_data: false, errors: 0 };
        if let (3, Some(until)) = (response, sent.reply.busy_until) {
            let limit = sent.at + around.data_timeout;
            let errors = if until > limit { host::DATA_TIMEOUT } else { 0 };
            ending = Stage::Ending { task, at: until.max(sent.at).min(limit), with_data: true, errors };
        }
        self.note(number, sent.at, sent.at);
        self.set_stage(number, ending);
    }

    /// A task's command was answered, and its last block has crossed the bus.
    fn note(&mut self, number: usize, answered: Instant, crossed: Instant) {
        if let Some(slot) = &mut self.slots[number] {
            (slot.answered, slot.crossed) = (answered, crossed);
        }
    }

    /// Polls which tasks are ready and runs the first one; returns whether there is more to do now.
    fn run_next(&mut self, around: &mut Surroundings<'_>) -> bool {
        let queued: Vec<(u64, usize)> = self
            .stages()
            .filter(|(_, slot)| matches!(slot.stage, Stage::Queued(_)))
            .map(|(number, slot)| (slot.order, number))
            .collect();
        let Some((_, any)) = queued.iter().min().copied() else { return false };
        if self.poll_at > around.now {
            return false;
        }
        let argument = self.registers.get32(SEND_STATUS_2) << 16 | QUEUE_STATUS;
        let sent = around.lines.send(around.card, 13, argument, self.poll_at);
        let Response::R1(status) = sent.reply.response else {
            return self.check(any, 13, &sent).is_some();
        };
        self.registers.set32(DEVICE_QUEUE, status.0);
        let ready = queued.into_iter().filter(|(_, number)| status.0 >> number & 1 == 1).min();
        let Some((_, number)) = ready else {
            let base = POLL_CLOCK * u64::from(self.registers.get32(SEND_STATUS_1) & 0xffff);
            self.poll_interval = (self.poll_interval * 2).max(base).max(Nanos(500)).min(POLL_MAX.max(base));
            self.poll_at = sent.at + self.poll_interval;
            return self.poll_at <= around.now;
        };
        self.poll_interval = Nanos::ZERO;
        self.run(number, sent.at, around);
        true
    }

    /// Sends CMD46 or CMD47, and moves the data.
    fn run(&mut self, number: usize, from: Instant, around: &mut Surroundings<'_>) {
        let Some(Slot { stage: Stage::Queued(task), .. }) = self.slots[number] else { return };
        let Work::Data { params, walk, .. } = task.work else { return };
        let index = if params.read { 46 } else { 47 };
        let sent = around.lines.send(around.card, index, (number as u32) << 16, from);
        if self.check(number, index, &sent).is_none() {
            return;
        }
        let bit = 1 << number;
        self.registers.set32(DEVICE_PENDING, self.registers.get32(DEVICE_PENDING) & !bit);
        self.registers.set32(DEVICE_QUEUE, self.registers.get32(DEVICE_QUEUE) & !bit);
        let failed = match sent.fault {
            Some(HostError::DataCrc) => Some((sent.at, host::DATA_CRC)),
            Some(HostError::DataTimeout) => Some((sent.at + around.data_timeout, host::DATA_TIMEOUT)),
            _ => None,
        };
        if let Some((at, errors)) = failed {
            self.note(number, sent.at, sent.at);
            self.set_stage(number, Stage::Ending { task, at, with_data: true, errors });
            return;
        }
        let mut staging = std::mem::take(&mut self.staging);
        let moved = match params.read {
            true => read_blocks(params.blocks.into(), walk, &mut staging, sent.at, around),
            false => write_blocks(params.blocks.into(), walk, &mut staging, sent.at, around),
        };
        self.staging = staging;
        let (at, errors) = match moved {
            Ok(Moved { crossed, done }) => {
                self.note(number, sent.at, crossed);
                (done, 0)
            }
            Err(failed) => {
                self.note(number, sent.at, sent.at);
                failed
            }
        };
        self.set_stage(number, Stage::Ending { task, at, with_data: true, errors });
    }
}

/// When blocks have moved.
#[derive(Clone, Copy, Debug)]
struct Moved {
    /// The last has crossed the bus.
    crossed: Instant,
    /// The card is no longer busy with them.
    done: Instant,
}

/// Moves blocks from the card to memory.
///
/// Errors: when the error is detected, and which error interrupt it is.
fn read_blocks(
    blocks: u32,
    mut walk: Walk,
    staging: &mut Vec<u8>,
    from: Instant,
    around: &mut Surroundings<'_>,
) -> Result<Moved, (Instant, u32)> {
    let mut at = from;
    let mut left = blocks;
    while left > 0 {
        staging.clear();
        let Some(crossed) = around.card.poll_blocks(left.min(CHUNK), staging, from) else {
            return Err((at + around.data_timeout, host::DATA_TIMEOUT));
        };
        at = at.max(crossed);
        left -= (staging.len() / 512) as u32;
        walk.scatter(around.memory, staging).map_err(|_| (at, host::ADMA))?;
    }
    Ok(Moved { crossed: at, done: at })
}

/// Moves blocks from memory to the card.
///
/// Errors: when the error is detected, and which error interrupt it is.
fn write_blocks(
    blocks: u32,
    mut walk: Walk,
    staging: &mut Vec<u8>,
    from: Instant,
    around: &mut Surroundings<'_>,
) -> Result<Moved, (Instant, u32)> {
    let mut at = from;
    let mut busy_until = None;
    let mut left = blocks;
    while left > 0 {
        let count = left.min(CHUNK);
        staging.resize(count as usize * 512, 0);
        walk.gather(around.memory, staging).map_err(|_| (at, host::ADMA))?;
        for block in staging.chunks_exact(512) {
            at = at + around.card.device().bus().write(1);
            match around.card.handle_data(block, from) {
                DataStatus::Accepted { busy_until: until } => busy_until = until.or(busy_until),
                DataStatus::Rejected => return Err((at, host::DATA_CRC)),
                DataStatus::Ignored => return Err((at + around.data_timeout, host::DATA_TIMEOUT)),
            }
        }
        left -= count;
    }
    let until = busy_until.unwrap_or(at).max(at);
    around.lines.busy_until = until;
    let limit = at + around.data_timeout;
    if until > limit { Err((limit, host::DATA_TIMEOUT)) } else { Ok(Moved { crossed: at, done: until }) }
}
