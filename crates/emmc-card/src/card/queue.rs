//! Command queueing: up to 32 tasks; the card decides which one runs next.
//!
//! CMD44 and CMD45 queue a task, the queue status register (CMD13 with SQS) shows which are ready, CMD46 and CMD47 run
//! one of those, CMD48 drops tasks. The card makes one task ready at a time: high priority first, then reads, then by
//! address from the end of the last task, as a sweep. Absent on purpose: the transfer itself (`transfer`) and its flash
//! time (`device`); here is only the firmware's time to prepare a task.
//!
//! Source: JESD84-B51 clause 6.6.39 and the queue's registers; Linux's cqhci as host.
//! Assumed: that a task that is not ready, a slot in use, an empty slot and a count of 0 are illegal commands.

mod commands;
mod rules;
#[cfg(test)]
mod tests;

use emmc_regs::command::{QueuedTaskParams, TaskManagement};
use emmc_regs::ext_csd::{EXT_CSD_BYTES, reg};
use emmc_units::{Instant, Nanos};

pub(crate) use rules::{check_mode, is_enabled, is_legal};

/// Slots of the standard.
const SLOTS: usize = 32;
/// Firmware time to prepare a task. Assumed.
const PREPARATION: Nanos = Nanos::from_micros(5);

/// A violation of the rules: the card answers ILLEGAL_COMMAND and the queue stays unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Illegal;

/// A queued task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    /// The parameters of CMD44.
    pub(crate) params: QueuedTaskParams,
    /// The address of CMD45.
    pub(crate) address: u32,
    queued: Instant,
    ready: Option<Instant>,
}

/// The queue. It is lost with power, reset and CMD0, and when the mode is switched off.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandQueue {
    slots: [Option<Task>; SLOTS],
    /// CMD44 without its CMD45.
    announced: Option<QueuedTaskParams>,
    /// The task whose data is being transferred.
    running: Option<u8>,
    firmware_free: Instant,
    /// End of the last task: the sweep continues there.
    sweep: u64,
}

/// The queue depth.
pub(crate) fn depth(ext_csd: &[u8; EXT_CSD_BYTES]) -> u8 {
    (ext_csd[reg::CMDQ_DEPTH] & 0x1f) + 1
}

impl CommandQueue {
    /// Whether no task is queued or running.
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_none() && self.announced.is_none() && self.slots.iter().all(Option::is_none)
    }

    /// CMD44.
    ///
    /// Errors: a slot that is in use or beyond the depth, no blocks.
    pub(crate) fn announce(&mut self, ext_csd: &[u8; EXT_CSD_BYTES], params: QueuedTaskParams) -> Result<(), Illegal> {
        self.announced = None;
        let slot = usize::from(params.task_id);
        let in_use = self.slots[slot].is_some() || self.running == Some(params.task_id);
        if params.task_id >= depth(ext_csd) || in_use || params.blocks == 0 {
            return Err(Illegal);
        }
        self.announced = Some(params);
        Ok(())
    }

    /// The parameters of a CMD44 without its CMD45.
    pub(crate) fn announced(&self) -> Option<QueuedTaskParams> {
        self.announced
    }

    /// CMD45: queues the task. The caller has checked the range.
    ///
    /// Errors: no CMD44 before.
    pub(crate) fn queue(&mut self, address: u32, now: Instant) -> Result<(), Illegal> {
        self.settle(now);
        let params = self.announced.take().ok_or(Illegal)?;
        self.slots[usize::from(params.task_id)] = Some(Task { params, address, queued: now, ready: None });
        Ok(())
    }

    /// CMD45 failed: its CMD44 is dropped.
    pub(crate) fn forget_announced(&mut self) {
        self.announced = None;
    }

    /// CMD13 with SQS: the queue status register, one bit for each task that is ready.
    pub(crate) fn status(&mut self, now: Instant) -> u32 {
        self.settle(now);
        let ready = |slot: &Option<Task>| slot.is_some_and(|task| task.ready.is_some_and(|at| at <= now));
        (0..).zip(&self.slots).filter(|(_, slot)| ready(slot)).fold(0, |bits, (bit, _)| bits | 1u32 << bit)
    }

    /// When the next task after `now` becomes ready, if it will without the host.
    pub(crate) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let pending = self.slots.iter().flatten().filter_map(|task| task.ready).filter(|ready| *ready > now).min();
        let chosen = self.next_choice(None).map(|(_, begin)| begin + PREPARATION);
        pending.into_iter().chain(chosen).min()
    }

    /// CMD46 or CMD47: runs the task.
    ///
    /// Errors: an empty slot, a task that is not ready or has the other direction, one that is already running.
    pub(crate) fn start(&mut self, task_id: u8, read: bool, now: Instant) -> Result<Task, Illegal> {
        let is_ready = task_id < 32 && self.status(now) >> task_id & 1 == 1;
        let slot = self.slots.get_mut(usize::from(task_id)).ok_or(Illegal)?;
        let runs = slot.filter(|task| is_ready && task.params.read == read && self.running.is_none());
        let task = runs.ok_or(Illegal)?;
        *slot = None;
        self.running = Some(task_id);
        self.sweep = u64::from(task.address) + u64::from(task.params.blocks);
        Ok(task)
    }

    /// The running task has ended.
    pub(crate) fn finish(&mut self) {
        self.running = None;
    }

    /// The task that runs.
    #[cfg(test)]
    pub(crate) fn running(&self) -> Option<u8> {
        self.running
    }

    /// CMD48.
    ///
    /// Errors: an empty slot, an operation that the standard reserves.
    pub(crate) fn manage(&mut self, management: TaskManagement) -> Result<(), Illegal> {
        match management {
            TaskManagement::DiscardQueue => self.clear(),
            TaskManagement::DiscardTask { task_id } => {
                let slot = self.slots.get_mut(usize::from(task_id)).ok_or(Illegal)?;
                slot.take().ok_or(Illegal)?;
            }
            TaskManagement::Reserved { .. } => return Err(Illegal),
        }
        Ok(())
    }

    /// Drops all tasks: CMD48, the mode switched off, a reset.
    pub(crate) fn clear(&mut self) {
        *self = Self { firmware_free: self.firmware_free, ..Self::default() };
    }

    /// The next task for the firmware, and when it starts.
    fn next_choice(&self, now: Option<Instant>) -> Option<(usize, Instant)> {
        let waiting = |task: &Task| task.ready.is_none();
        let plain_ready = self.slots.iter().flatten().any(|task| !task.params.high_priority && task.ready.is_some());
        let candidates = || {
            let slots = (0..).zip(&self.slots).filter_map(|(slot, task)| Some((slot, task.as_ref()?)));
            slots.filter(|(_, task)| waiting(task) && (task.params.high_priority || !plain_ready))
        };
        // The firmware starts as soon as it is free and a task exists; it chooses among the tasks of that time.
        let begin = candidates().map(|(_, task)| task.queued).min()?.max(self.firmware_free);
        if now.is_some_and(|now| begin >= now) {
            return None;
        }
        let rank = |task: &Task| {
            let ahead = u64::from(task.address) < self.sweep;
            (!task.params.high_priority, !task.params.read, ahead, task.address)
        };
        let there = candidates().filter(|(_, task)| task.queued <= begin);
        there.min_by_key(|(slot, task)| (rank(task), *slot)).map(|(slot, _)| (slot, begin))
    }

    /// Makes tasks ready that the firmware started to prepare before `now`.
    fn settle(&mut self, now: Instant) {
        while let Some((slot, begin)) = self.next_choice(Some(now)) {
            let ready = begin + PREPARATION;
            self.firmware_free = ready;
            if let Some(task) = &mut self.slots[slot] {
                task.ready = Some(ready);
            }
        }
    }
}
