//! Command queueing: up to 32 tasks; the card decides which one runs next.
//!
//! CMD44 and CMD45 queue a task, the queue status register (CMD13 with SQS) shows which are ready, CMD46 and CMD47 run
//! one of those, CMD48 drops tasks. The firmware takes the tasks one after the other: high priority first, then reads,
//! then by address from the end of the last task, as a sweep. A read is then fetched from flash and is ready when its
//! first data is in the buffer, so that the reads of several tasks overlap over dies, planes and the bus. A write is
//! ready when the firmware has done its work for it, so that it overlaps with the transfers of others. Absent on
//! purpose: the transfer (`transfer`) and the flash (`device`).
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
/// Firmware time to take a task. Assumed.
pub const PREPARATION: Nanos = Nanos::from_micros(5);

/// A violation of the rules: the card answers ILLEGAL_COMMAND and the queue stays unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Illegal;

/// A queued task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    /// The parameters of CMD44.
    pub(crate) params: QueuedTaskParams,
    /// The sector that the address of CMD45 means.
    pub(crate) lba: u64,
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
    running: Option<Task>,
    firmware_free: Instant,
    /// Whether the buffer had no room for the next task.
    room: Room,
    /// End of the last task: the sweep continues there.
    sweep: u64,
}

/// Whether the buffer has room for the next read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Room {
    #[default]
    Free,
    /// No task is taken until one ends.
    Full,
    /// A task has ended since: the firmware looks again.
    Freed,
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
        let in_use = self.slots[slot].is_some() || self.running_id() == Some(params.task_id);
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

    /// CMD45: queues the task from sector `lba`. The caller has checked the range.
    ///
    /// Errors: no CMD44 before.
    pub(crate) fn queue(&mut self, lba: u64, now: Instant) -> Result<(), Illegal> {
        let params = self.announced.take().ok_or(Illegal)?;
        self.slots[usize::from(params.task_id)] = Some(Task { params, lba, queued: now, ready: None });
        Ok(())
    }

    /// CMD45 failed: its CMD44 is dropped.
    pub(crate) fn forget_announced(&mut self) {
        self.announced = None;
    }

    /// CMD13 with SQS: the queue status register, one bit for each task that is ready.
    pub(crate) fn status(&self, now: Instant) -> u32 {
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
        self.running = Some(task);
        self.sweep = task.lba + u64::from(task.params.blocks);
        Ok(task)
    }

    /// The running task, if there is one, has ended.
    pub(crate) fn finish(&mut self) -> Option<Task> {
        self.make_room();
        self.running.take()
    }

    /// The task that runs.
    fn running_id(&self) -> Option<u8> {
        self.running.map(|task| task.params.task_id)
    }

    fn make_room(&mut self) {
        if self.room == Room::Full {
            self.room = Room::Freed;
        }
    }

    /// CMD48. Returns the dropped tasks, of all slots or of one.
    ///
    /// Errors: an empty slot, an operation that the standard reserves.
    pub(crate) fn manage(&mut self, management: TaskManagement) -> Result<Vec<Task>, Illegal> {
        match management {
            TaskManagement::DiscardQueue => {
                let dropped = self.slots.iter().flatten().copied().collect();
                self.clear();
                Ok(dropped)
            }
            TaskManagement::DiscardTask { task_id } => {
                let slot = self.slots.get_mut(usize::from(task_id)).ok_or(Illegal)?;
                let task = slot.take().ok_or(Illegal)?;
                self.make_room();
                Ok(vec![task])
            }
            TaskManagement::Reserved { .. } => Err(Illegal),
        }
    }

    /// Drops all tasks: CMD48, the mode switched off, a reset.
    pub(crate) fn clear(&mut self) {
        *self = Self { firmware_free: self.firmware_free, ..Self::default() };
    }

    /// The next task for the firmware, and when it starts.
    fn next_choice(&self, now: Option<Instant>) -> Option<(usize, Instant)> {
        if self.room == Room::Full {
            return None;
        }
        let candidates = || {
            let slots = (0..).zip(&self.slots).filter_map(|(slot, task)| Some((slot, task.as_ref()?)));
            slots.filter(|(_, task)| task.ready.is_none())
        };
        // The firmware starts as soon as it is free and a task exists; it chooses among the tasks of that time.
        let begin = candidates().map(|(_, task)| task.queued).min()?.max(self.firmware_free);
        if now.is_some_and(|now| begin >= now) {
            return None;
        }
        let rank = |task: &Task| {
            let behind = task.lba < self.sweep;
            (!task.params.high_priority, !task.params.read, behind, task.lba)
        };
        let there = candidates().filter(|(_, task)| task.queued <= begin);
        there.min_by_key(|(slot, task)| (rank(task), *slot)).map(|(slot, _)| (slot, begin))
    }

    /// The firmware takes the tasks that it comes to before `now`. `prepare` starts the work for a task at an instant
    /// and returns when the task is ready; `None`: the buffer has no room for it.
    pub(crate) fn settle(&mut self, now: Instant, mut prepare: impl FnMut(&Task, Instant) -> Option<Instant>) {
        if self.room == Room::Freed {
            self.room = Room::Free;
            self.firmware_free = self.firmware_free.max(now);
        }
        while let Some((slot, begin)) = self.next_choice(Some(now)) {
            let Some(task) = &mut self.slots[slot] else { return };
            self.firmware_free = begin + PREPARATION;
            match prepare(task, self.firmware_free) {
                Some(ready) => task.ready = Some(ready),
                None => self.room = Room::Full,
            }
        }
    }
}
