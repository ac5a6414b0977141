//! Events become requests: bios are split, merged and issued, commands of the MMC layer join by sector, system calls by
//! thread.
//!
//! Nothing is paired across a loss of events, and whatever has no partner is counted ([`Unpaired`]). Source of the
//! events' meaning: block/blk-core.c, block/blk-mq.c and block/blk-merge.c; drivers/mmc/core/block.c for the MMC layer.

mod bios;
mod bounds;
mod command;
mod commands;
mod commits;
mod counts;
mod device;
mod finish;
mod heads;
mod join;
mod late;
mod losses;
mod open;
mod processors;
mod table;
mod threads;

use std::collections::HashMap;

use emmc_units::Nanos;

pub use self::command::Command;
pub use self::commands::Commands;
pub(crate) use self::commands::MMC_MAJOR;
pub use self::counts::{Counts, Unpaired};
pub use self::device::{Device, Idle};
use self::finish::finish;
use self::open::{Open, Stage};
use self::processors::Processors;
pub(crate) use self::processors::count;
use self::table::{Handle, Table};
use self::threads::Threads;
use crate::event::{Action, BlockEvent, Event, File, Flags, Mark, Op, Step, What};
use crate::notes::Mixer;
use crate::request::{Request, Why};

/// Devices that are told apart; more share the accounts of the last.
const DEVICES_MAX: usize = 256;

/// Events become requests.
#[derive(Debug, Default)]
pub struct Correlator {
    table: Table,
    threads: Threads,
    commands: Commands,
    pub(crate) processors: Processors,
    devices: Vec<Device>,
    by_number: HashMap<u32, usize, Mixer>,
    /// The last device that was looked for, and its place.
    last_device: Option<(u32, usize)>,
    /// Events up to here are within a loss.
    lost_until: Option<Nanos>,
    /// The time of the first and of the last event.
    pub times: Option<(Nanos, Nanos)>,
    /// What has no partner.
    pub unpaired: Unpaired,
    /// Counts of events.
    pub counts: Counts,
    has_calls: bool,
    /// `block_getrq` is recorded, and `block_rq_insert`.
    has_gets: bool,
    has_inserts: bool,
    /// Calls, or places in file systems, are recorded.
    has_marks: bool,
    /// Events of the page cache are recorded: a write in a system call without one is direct. It is set by the first
    /// such event too.
    pub has_page_cache: bool,
    ready: Vec<Request>,
    /// The last complete write with FUA.
    durable: Option<Open>,
}

impl Correlator {
    /// Takes the next event, in the order of time, and gives the requests that are complete with it.
    #[inline]
    pub fn take(&mut self, event: &Event, sink: &mut impl FnMut(&Request)) {
        self.counts.events += 1;
        match &mut self.times {
            Some((_, last)) => *last = event.at,
            None => self.times = Some((event.at, event.at)),
        }
        if self.lost_until.is_some() && self.is_near_loss(event) {
            return;
        }
        match &event.what {
            What::Block(block) => self.block(event, block, sink),
            _ => self.take_other(event),
        }
        if !self.ready.is_empty() {
            self.give(event.at, sink);
        }
    }

    #[cold]
    fn give(&mut self, at: Nanos, sink: &mut impl FnMut(&Request)) {
        if !self.commands.late.is_empty() {
            self.commands.late.sieve(&mut self.ready, at);
        }
        self.ready.drain(..).for_each(|request| sink(&request));
    }

    /// An event of another layer.
    #[inline(never)]
    fn take_other(&mut self, event: &Event) {
        match &event.what {
            What::Mmc(mmc) => {
                self.commands.take(event, mmc, &mut self.table, &mut self.unpaired);
                if !self.commands.late.is_empty() {
                    self.commands.late.sieve(&mut self.ready, event.at);
                }
            }
            What::Syscall { call, entered } => {
                self.has_calls = true;
                self.has_marks = true;
                self.counts.calls += u64::from(*entered);
                self.threads.call(event, *call, *entered, &mut self.unpaired, &mut self.ready);
            }
            What::Mark(mark, file) => {
                self.counts.commits += u64::from(*mark == Mark::Commit { began: true });
                self.has_page_cache |= *mark == Mark::Buffered;
                self.has_marks = true;
                self.threads.mark(event, *mark, *file);
            }
            What::FileWrite(write) => {
                self.has_page_cache = true;
                self.has_marks = true;
                let file = File { device: write.device, inode: write.inode };
                self.threads.mark(event, Mark::Buffered, file);
            }
            What::Interrupt { host } => {
                self.processors.interrupt(event.cpu, event.at);
                self.commands.interrupt(event, *host, &mut self.table);
            }
            What::Step(Step::Written) => self.commands.written(event, &mut self.table),
            What::Step(Step::Limit) => self.commands.limit(event, &mut self.table),
            What::Switch { previous, next } => {
                if (*previous == 0) != (*next == 0) {
                    self.processors.switch(event.cpu, event.at, *next == 0);
                }
                for device in &mut self.devices {
                    let work = || self.processors.until(event.cpu, event.at);
                    device.switch(event.at, *previous, *next, work);
                }
                self.counts.switches += 1;
                self.threads.run(*next, event.at);
            }
            What::Wake { pid, began } => {
                self.counts.wakes += 1;
                self.threads.wake(*pid, event.at, *began);
            }
            What::Lost { until, .. } => self.lose(*until),
            What::Block(_) => {}
        }
    }

    /// Gives what is left after the last event.
    pub fn end(&mut self, sink: &mut impl FnMut(&Request)) {
        self.threads.end(&mut self.ready);
        self.commands.late.end(&mut self.ready);
        self.ready.drain(..).for_each(|request| sink(&request));
        self.unpaired.open_at_end += self.table.clear();
        self.commands.end(&mut self.unpaired);
    }

    /// The devices with requests.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// Commands of the MMC layer: the slowest, and sums.
    pub fn commands(&self) -> &Commands {
        &self.commands
    }

    /// Whether system calls are in the recording.
    pub fn has_calls(&self) -> bool {
        self.has_calls
    }

    #[inline]
    fn device(&mut self, number: u32) -> &mut Device {
        let place = match self.last_device {
            Some((last, place)) if last == number => place,
            _ => self.find_device(number),
        };
        &mut self.devices[place]
    }

    #[cold]
    fn find_device(&mut self, number: u32) -> usize {
        let next = self.devices.len();
        let place = *self.by_number.entry(number).or_insert(next.min(DEVICES_MAX - 1));
        if place == next {
            self.devices.push(Device { device: number, ..Device::default() });
            self.commands.device(number);
        }
        self.last_device = Some((number, place));
        place
    }

    #[inline(always)]
    fn block(&mut self, event: &Event, block: &BlockEvent, sink: &mut impl FnMut(&Request)) {
        match block.action {
            Action::Queue => self.queue(event, block),
            Action::Split => self.split(event, block),
            Action::BackMerge | Action::RequestMerge => self.merge(event, block, true),
            Action::FrontMerge => self.merge(event, block, false),
            Action::GetRequest => self.get(event, block),
            Action::Insert => self.insert(event, block),
            Action::Issue => self.issue(event, block),
            Action::Requeue => self.requeue(event, block),
            Action::Complete => self.complete(event, block, sink),
            Action::BioComplete => {
                if let Some(bio) = self.table.find(block, |open| open.stage == Stage::Queued) {
                    self.table.remove(bio);
                    self.counts.stacked += 1;
                }
            }
            Action::Sleep | Action::Plug | Action::Unplug | Action::Remap | Action::Account => {}
        }
    }

    /// Empties the table of what never ends if it is full.
    #[inline]
    fn room(&mut self) {
        if self.table.is_full() {
            self.unpaired.issues_without_completion += self.table.clear();
        }
    }

    /// A new entry.
    fn open(&mut self, open: &Open) -> Handle {
        self.room();
        self.table.insert(open)
    }

    /// A new entry for what was queued before the recording.
    #[cold]
    fn open_unknown(&mut self, event: &Event, block: &BlockEvent) -> Handle {
        self.open(&Open::new(block, event.pid, event.at))
    }

    fn get(&mut self, event: &Event, block: &BlockEvent) {
        self.has_gets = true;
        let found = self.table.find(block, |open| open.stage == Stage::Queued && open.op == block.op);
        let found = found.unwrap_or_else(|| self.open_unknown(event, block));
        let Some(open) = self.table.get(found) else { return };
        (open.stage, open.got) = (Stage::Got, Some(event.at));
        if open.sectors > block.sectors && block.sectors > 0 {
            // A split that is not recorded.
            let at = open.sector + u64::from(block.sectors);
            let rest =
                Open { sector: at, sectors: open.sectors - block.sectors, stage: Stage::Queued, got: None, ..*open };
            open.sectors = block.sectors;
            self.open(&rest);
        }
    }

    fn insert(&mut self, event: &Event, block: &BlockEvent) {
        self.has_inserts = true;
        let busy = self.device(block.device).busy.until(event.at);
        let found = self.table.find(block, |open| open.stage < Stage::Issued && open.op == block.op);
        let found = found.unwrap_or_else(|| self.open_unknown(event, block));
        let Some(open) = self.table.get(found) else { return };
        (open.stage, open.inserted, open.busy_mark) = (Stage::Inserted, Some(event.at), busy);
    }

    fn issue(&mut self, event: &Event, block: &BlockEvent) {
        let found = self.table.find(block, |open| open.stage < Stage::Issued && open.op == block.op);
        let found = found.unwrap_or_else(|| self.open_issued(event, block));
        let host = self.commands.busy(block.device, event.at);
        let device = self.device(block.device);
        let busy = device.busy.until(event.at);
        device.step(event.at, true);
        let Some(open) = self.table.get(found) else { return };
        // If the scheduler's event is not recorded, it waits since it was queued.
        if open.inserted.is_some() || (!self.has_inserts && open.queued.is_some()) {
            open.waited = open.waited.saturating_add(busy.saturating_sub(open.busy_mark));
        }
        if open.done == 0 {
            (open.issued, open.issued_cpu) = (event.at, event.cpu);
        }
        (open.stage, open.busy_mark) = (Stage::Issued, host);
        if open.sectors != block.sectors && block.sectors > 0 {
            open.sectors = block.sectors;
        }
    }

    /// A request that nobody queued: a flush is for the thread whose bio asked for one first, alone or before its data;
    /// else for the last write that had to be durable, on a device without FUA.
    #[cold]
    fn open_issued(&mut self, event: &Event, block: &BlockEvent) -> Handle {
        let mut open = Open::new(block, event.pid, event.at);
        if block.op == Op::Flush {
            let waiting = self.table.find_flushing(block.device, |bio| bio.stage < Stage::Issued);
            if let Some(bio) = waiting.and_then(|bio| self.table.get(bio)) {
                bio.stage = Stage::Issued;
                open.follow(bio);
                (open.queued, open.queued_last, open.got) = (bio.queued, bio.queued_last, bio.got);
            } else if let Some(write) = self.table.find_preflush(block.device) {
                // The bio's stages are those of its data, which is a request of its own.
                open.follow(write);
            } else if let Some(write) = self.durable.take_if(|write| write.device == block.device) {
                open.follow(&write);
            }
        }
        self.open(&open)
    }

    fn requeue(&mut self, event: &Event, block: &BlockEvent) {
        self.counts.requeues += 1;
        let issued = |open: &Open| open.stage == Stage::Issued && open.op == block.op;
        let Some(found) = self.table.find(block, issued) else {
            self.unpaired.completions_without_issue += 1;
            return;
        };
        let device = self.device(block.device);
        device.step(event.at, false);
        let busy = device.busy.until(event.at);
        let Some(open) = self.table.get(found) else { return };
        (open.stage, open.busy_mark, open.requeues) = (Stage::Inserted, busy, open.requeues + 1);
    }

    fn complete(&mut self, event: &Event, block: &BlockEvent, sink: &mut impl FnMut(&Request)) {
        if block.sectors == 0 && block.op != Op::Flush {
            // A bio that only asked for a flush, or the one of a write that was issued as a flush and a write.
            if let Some(found) = self.table.find(block, |open| open.op == block.op && open.sector == block.sector) {
                self.table.remove(found);
            }
            return;
        }
        let same = |open: &Open| open.op == block.op;
        let found = self.table.find(block, |open| open.stage == Stage::Issued && same(open));
        let Some(found) = found else {
            return self.complete_other(block);
        };
        let Some(open) = self.table.get(found) else { return };
        if open.error == 0 {
            open.error = u64::from(block.other);
        }
        if block.sectors < open.sectors && block.sectors > 0 {
            open.done = open.done.saturating_add(block.sectors);
            let (sector, sectors) = (open.sector + u64::from(block.sectors), open.sectors - block.sectors);
            return self.table.restart(found, sector, sectors);
        }
        let Some(open) = self.table.remove(found) else { return };
        let (mut request, call) = (finish(open, event, self.has_calls, self.has_page_cache), open.call);
        let queued = open.queued.filter(|_| open.work > 0).map(|queued| (queued, open.work));
        let work = self.processors.is_known(event.cpu).then(|| self.processors.until(event.cpu, event.at));
        if request.flags.has(Flags::FUA) {
            self.durable = Some(*open);
        }
        let device = self.device(block.device);
        device.step(event.at, false);
        device.requests += 1;
        if let Some(work) = work {
            let waits = request.pid != 0 && !matches!(request.why(), Why::WriteBack | Why::ReadAhead);
            let waiting = waits.then_some(request.pid);
            request.effort = device.complete(event.at, work, waiting, queued);
        }
        if self.commands.may_start(&request) {
            self.commands.late.expect(&request);
        }
        self.commands.completed(block.device, &request);
        match call {
            None if self.ready.is_empty() && self.commands.late.is_empty() => sink(&request),
            _ => self.threads.complete(call, request, &mut self.ready),
        }
    }

    /// A completion of something that is not at the driver.
    fn complete_other(&mut self, block: &BlockEvent) {
        match self.table.find(block, |open| open.op == block.op) {
            // A bio of a device above others, or a flush that the flush machinery answers.
            Some(found) => {
                let open = self.table.remove(found);
                let is_bio = open.is_some_and(|open| open.stage == Stage::Queued);
                self.counts.stacked += u64::from(is_bio);
            }
            None if block.sectors == 0 => {}
            None => self.unpaired.completions_without_issue += 1,
        }
    }
}
