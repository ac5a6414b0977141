//! The queue's commands: CMD44 to CMD48, and the queue status in CMD13.

use emmc_regs::command::{QueuedTaskParams, Response, TaskManagement};
use emmc_regs::r1::R1;
use emmc_units::{Instant, Nanos};

use super::{Task, is_enabled};
use crate::card::read::ReadRequest;
use crate::card::write::WriteRequest;
use crate::card::{Card, Reply};
use crate::device::WriteFlags;

/// What dropping tasks takes. Assumed.
const DISCARD: Nanos = Nanos::from_micros(50);

impl Card {
    /// Whether queue mode is on.
    pub(in crate::card) fn is_queueing(&self) -> bool {
        self.is_emmc() && is_enabled(&self.device.stored_registers().ext_csd)
    }

    /// CMD44.
    pub(in crate::card) fn queue_params(&mut self, params: QueuedTaskParams) -> Reply {
        let ext_csd = &self.device.stored_registers().ext_csd;
        match self.features.queue.announce(ext_csd, params) {
            Ok(()) => self.answer(),
            Err(_) => self.illegal(),
        }
    }

    /// CMD45.
    pub(in crate::card) fn queue_address(&mut self, address: u32, now: Instant) -> Reply {
        let Some(params) = self.features.queue.announced() else { return self.illegal() };
        let blocks = u64::from(params.blocks);
        let sector = self.check_blocks(Some(params.blocks.into())).and_then(|()| self.sector_at(address));
        let in_range = sector.and_then(|sector| {
            let fits = sector + blocks <= self.device.sectors(self.area());
            if fits { Ok(sector) } else { Err(R1::OUT_OF_RANGE) }
        });
        let lba = match in_range {
            Ok(lba) => lba,
            Err(bits) => {
                self.features.queue.forget_announced();
                return self.refuse(bits);
            }
        };
        self.settle_queue(now);
        match self.features.queue.queue(lba, now) {
            Ok(()) => self.answer(),
            Err(_) => self.illegal(),
        }
    }

    /// CMD13 with SQS: the queue status register in place of the card status.
    pub(in crate::card) fn queue_status(&mut self, now: Instant) -> Reply {
        self.settle_queue(now);
        Reply::with(Response::R1(R1(self.features.queue.status(now))))
    }

    /// The firmware takes the tasks that it comes to before `now`, and fetches the reads among them.
    fn settle_queue(&mut self, now: Instant) {
        let area = self.area();
        let Self { features, device, .. } = self;
        features.queue.settle(now, |task, at| match task.params.read {
            // What cannot be fetched is reported by the transfer.
            true => device.prepare_read(area, task.lba, task.params.blocks.into(), at).unwrap_or(Some(at)),
            false => Some(device.prepare_write(area, task.lba, task.params.blocks.into(), at).unwrap_or(at)),
        });
    }

    /// Drops all tasks and what was fetched for them.
    pub(in crate::card) fn clear_queue(&mut self) {
        self.features.queue.clear();
        self.device.drop_all_prepared();
    }

    /// The running task, if there is one, has ended.
    pub(in crate::card) fn finish_task(&mut self) {
        let task = self.features.queue.finish();
        self.drop_tasks(task);
    }

    /// Tasks have ended or were dropped: so is what was fetched for them.
    fn drop_tasks(&mut self, tasks: impl IntoIterator<Item = Task>) {
        let area = self.area();
        for task in tasks {
            if task.params.read {
                self.device.drop_prepared(area, task.lba, task.params.blocks.into());
            } else {
                self.device.drop_prepared_write(area, task.lba);
            }
        }
    }

    /// CMD46, or CMD47 to write.
    pub(in crate::card) fn execute_task(&mut self, task_id: u8, read: bool, now: Instant) -> Reply {
        self.settle_queue(now);
        let Ok(task) = self.features.queue.start(task_id, read, now) else { return self.illegal() };
        if let Some(error) = self.task_fault(&task) {
            self.finish_task();
            return self.refuse(error);
        }
        let r1 = self.r1();
        let data = self.start_task(&task, now);
        Self::answer_with(r1, data)
    }

    /// Why a task that writes cannot run: part of its sectors is write-protected.
    ///
    /// Assumed: that the response of CMD47 says so, without data, and that the task has ended. A host's queue engine
    /// checks only the responses of a task, so only there is the error one of this task.
    fn task_fault(&self, task: &Task) -> Option<R1> {
        let area = self.area();
        let mut sectors = task.lba..task.lba + u64::from(task.params.blocks);
        if task.params.read { None } else { sectors.find_map(|sector| self.write_fault(area, sector)) }
    }

    fn start_task(&mut self, task: &Task, now: Instant) -> crate::card::DataPhase {
        let (area, lba, blocks) = (self.area(), task.lba, Some(u32::from(task.params.blocks)));
        if task.params.read {
            return self.start_reading(ReadRequest { area, lba, blocks }, now);
        }
        let flags = WriteFlags { reliable: task.params.reliable_write, force: task.params.forced_programming };
        self.start_writing(WriteRequest { area, lba, blocks, flags }, false, now)
    }

    /// CMD48.
    pub(in crate::card) fn manage_tasks(&mut self, management: TaskManagement, now: Instant) -> Reply {
        let Ok(dropped) = self.features.queue.manage(management) else { return self.illegal() };
        self.drop_tasks(dropped);
        let r1 = self.r1();
        let done = now + DISCARD;
        self.program_until(done);
        Self::answer_busy(r1, done)
    }
}
