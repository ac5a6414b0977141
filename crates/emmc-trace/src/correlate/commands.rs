//! Commands of the MMC layer, joined with requests of the block layer.
//!
//! A command with data joins by its first block: `mmc_request_start` has the request's sector. A flush is CMD6 (or a
//! task of the queue's slot for commands), a discard CMD35, CMD36 and CMD38. Without a command queue a write ends with
//! the CMD13 that finds the card ready, after `mmc_request_done`, if an earlier one found it busy.

use std::collections::{HashMap, HashSet};

use emmc_units::Nanos;

use super::Unpaired;
use super::command::{Command, hardware};
use super::device::Busy;
use super::join::{has_data, sectors};
use super::late::{Early, Ends, Late};
use super::table::{Handle, Table};
use crate::event::{Event, MmcEvent};
use crate::notes::Mixer;
use crate::request::{Hardware, Request, since};

/// The slowest commands that are kept.
const SLOWEST: usize = 16;
/// Commands in progress on a controller.
const RUNNING_MAX: usize = 256;
const HOSTS_MAX: usize = 16;
/// Tasks of a controller that are known by their address: a queue has 32, each partition of a card one of its own.
const TASKS_MAX: usize = 1024;
/// The major number of MMC devices.
pub(crate) const MMC_MAJOR: u32 = 179;

#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    request: u64,
    pub(super) command: Command,
    /// Of the request.
    pub(super) of: Option<Handle>,
    /// The thread that started it, and its processor.
    pub(super) by: (u32, u32),
    /// When the driver started its time limit, if that is recorded.
    pub(super) limit: Option<Nanos>,
    /// When the driver had written it, if that is recorded.
    pub(super) written: Option<Nanos>,
    /// The controller's first and last interrupt since it started.
    pub(super) interrupts: Option<(Nanos, Nanos)>,
}

impl Running {
    /// Its end at the controller: the interrupt that reported it, if interrupts are recorded and it is not the one of
    /// its answer. `delay`: of an interrupt.
    fn ended(&self, done: Nanos, delay: Nanos) -> Nanos {
        let second = self.interrupts.filter(|(first, last)| first < last);
        second.map_or(done, |(first, last)| Nanos(last.0.saturating_sub(delay.0)).max(first).min(done))
    }

    /// Ends with busy time that no command asks for: SWITCH, ERASE.
    fn keeps_busy(&self) -> bool {
        matches!(self.command.opcode, 6 | 38)
    }
}

#[derive(Debug, Default)]
pub(super) struct Host {
    pub(super) running: Vec<Running>,
    /// The last command that may be followed by polls.
    last: Option<Running>,
    busy: Busy,
    /// It has a command queue: its interrupts are those of several tasks.
    pub(super) queues: bool,
    /// The last interrupt of a queue, and its processor.
    pub(super) interrupt: Option<(Nanos, u32)>,
    /// The shortest time from the write of a command, or from its limit if the write is not recorded, to the interrupt
    /// of its answer, without another thread in between.
    pub(super) answer: Option<Nanos>,
    ends: Ends,
    /// Addresses of tasks that began.
    tasks: HashSet<u64, Mixer>,
    /// From issue to start of the last task whose start came in time.
    lead: Option<Nanos>,
}

/// Commands of all controllers.
#[derive(Debug, Default)]
pub struct Commands {
    pub(super) hosts: HashMap<u8, Host, Mixer>,
    /// The controller of each device.
    pub(super) host_of: HashMap<u32, u8, Mixer>,
    pub(super) devices: Vec<u32>,
    /// Complete requests whose start is not recorded yet.
    pub(super) late: Late,
    /// Ends without a start, of all controllers.
    early: usize,
    slowest: Vec<Command>,
    /// Commands that are complete.
    pub count: u64,
    /// Of those, with data or for a flush or discard.
    pub storage: u64,
    /// With an error.
    pub errors: u64,
    /// While re-tuning was needed.
    pub retuned: u64,
    /// CMD13.
    pub polls: u64,
    /// Tasks of a command queue.
    pub queued_tasks: u64,
    /// Tasks that software queues in the card: CMD45 and CMD44 before each.
    pub software_tasks: u64,
    /// Requests whose commands are bounded by interrupts.
    pub bounded: u64,
    /// Requests whose commands begin with their time limit.
    pub limited: u64,
    /// Requests of whose commands it is recorded that the driver has written them.
    pub written: u64,
    /// Tasks whose end was recorded before their start.
    pub started_late: u64,
    /// Switches of the partition (CMD6).
    pub partition_switches: u64,
    /// Commands with data, by (write, blocks), with their count and sum of times, while no block event is recorded.
    pub sizes: HashMap<(bool, u32), (u64, u64)>,
}

impl Commands {
    /// The slowest, the slowest first.
    pub fn slowest(&self) -> Vec<Command> {
        let mut all = self.slowest.clone();
        all.sort_by_key(|command| (std::cmp::Reverse(command.took), command.at));
        all
    }

    /// Time in which a controller had a command in progress. Unit: nanoseconds.
    pub fn busy_ns(&self) -> u64 {
        self.hosts.values().fold(0, |sum, host| sum.saturating_add(host.busy.total))
    }

    pub(super) fn busy(&self, device: u32, at: Nanos) -> u64 {
        let host = self.host_of.get(&device).and_then(|host| self.hosts.get(host));
        host.map_or(0, |host| host.busy.until(at))
    }

    pub(super) fn lose(&mut self) {
        for host in self.hosts.values_mut() {
            (host.last, host.busy.running) = (None, 0);
            host.running.clear();
            host.ends.clear();
            host.tasks.clear();
        }
        self.early = 0;
    }

    pub(super) fn end(&mut self, unpaired: &mut Unpaired) {
        let mut last = Vec::new();
        for host in self.hosts.values_mut() {
            unpaired.commands_without_end += host.running.len() as u64;
            unpaired.commands_without_start += host.ends.len() as u64;
            last.extend(host.last.take());
        }
        last.into_iter().for_each(|running| self.note(&running.command));
    }

    pub(super) fn take(&mut self, event: &Event, mmc: &MmcEvent, table: &mut Table, unpaired: &mut Unpaired) {
        if !self.hosts.contains_key(&mmc.host) && self.hosts.len() >= HOSTS_MAX {
            return;
        }
        if mmc.started { self.start(event, mmc, table, unpaired) } else { self.done(event, mmc, table, unpaired) }
    }

    fn start(&mut self, event: &Event, mmc: &MmcEvent, table: &mut Table, unpaired: &mut Unpaired) {
        let command = Command {
            at: event.at,
            took: Nanos::ZERO,
            host: mmc.host,
            opcode: mmc.opcode,
            argument: mmc.argument,
            blocks: mmc.blocks,
            reliable: mmc.reliable && matches!(mmc.opcode, 24 | 25),
            retuning: mmc.retuning,
            error: 0,
            polls: 0,
            op: None,
            pid: event.pid,
        };
        if self.early > 0 && self.start_late(command, mmc, table, unpaired) {
            return;
        }
        let mut running = Running {
            request: mmc.request,
            command,
            of: None,
            by: (event.pid, event.cpu),
            limit: None,
            written: None,
            interrupts: None,
        };
        let is_poll = mmc.opcode == 13;
        if !is_poll {
            running.of = self.join(mmc, table);
            if let Some(open) = running.of.and_then(|of| table.get(of)) {
                (running.command.op, running.command.pid) = (Some(open.op), open.pid);
            } else if has_data(mmc.opcode) && !self.devices.is_empty() {
                unpaired.commands_without_request += 1;
            }
        }
        let host = self.hosts.entry(mmc.host).or_default();
        if let Some(switched) =
            host.last.as_mut().filter(|last| is_poll && last.command.polls == 0 && last.keeps_busy())
        {
            // A switch or an erase: Linux looks at the data line until the card is free, and then asks.
            switched.command.took = since(switched.command.at, event.at);
            let open = switched.of.and_then(|of| table.get(of));
            if let Some(hardware) = open.and_then(|open| open.hardware.as_mut()) {
                hardware.ended = hardware.ended.max(event.at);
            }
        }
        host.queues |= mmc.opcode == 0;
        if matches!(mmc.opcode, 0 | 6) && host.tasks.len() < TASKS_MAX {
            host.tasks.insert(mmc.request);
        }
        let busy = host.busy.until(event.at);
        if let Some(open) = running.of.and_then(|of| table.get(of)) {
            open.begin(&running.command, busy);
            host.lead = if mmc.opcode == 0 { Some(since(open.issued, event.at)) } else { host.lead };
        }
        let finished = if is_poll { None } else { host.last.take() };
        if let Some(before) = host.running.iter().position(|other| other.request == mmc.request) {
            host.running.swap_remove(before);
            host.busy.end(event.at);
            unpaired.commands_without_end += 1;
        }
        if host.running.len() < RUNNING_MAX {
            host.busy.begin(event.at);
            host.running.push(running);
        }
        if let Some(finished) = finished {
            self.note(&finished.command);
        }
    }

    /// Whether it is the start of a task that ended before; `early` is not 0.
    #[cold]
    fn start_late(&mut self, command: Command, mmc: &MmcEvent, table: &mut Table, unpaired: &mut Unpaired) -> bool {
        let Some(host) = self.hosts.get_mut(&mmc.host) else { return false };
        let lead = host.lead;
        let expired = host.ends.expire(command.at);
        self.early -= expired;
        unpaired.commands_without_start += expired as u64;
        // Several, if the driver uses the same request again before the first start is recorded.
        let ends: Vec<Early> = host.ends.of(mmc).collect();
        let Some(first) = ends.first() else { return false };
        let named = if mmc.opcode == 0 { Some(sectors(mmc)) } else { None };
        let waiting = ends.iter().find_map(|early| Some((early, self.late.find(named, early.at)?)));
        let mut command = command;
        let mut begin = |early: &Early, op, pid, issued| {
            let (started, ended) = early.bounds(issued, lead);
            (command.at, command.took, command.op, command.pid) = (started, since(started, ended), Some(op), pid);
            Hardware { ended, released: early.at, ..hardware(&command) }
        };
        let early = if let Some((early, waiting)) = waiting {
            let hardware = begin(early, waiting.op, waiting.pid, waiting.issued);
            self.late.start(&waiting, &hardware);
            self.host_of.entry(waiting.device).or_insert(mmc.host);
            early
        } else if let Some(open) = self.join(mmc, table).and_then(|of| table.get(of)) {
            let Some(early) = ends.iter().find(|early| open.issued <= early.at) else {
                // Those ends are of tasks before, whose starts may come.
                return false;
            };
            let hardware = begin(early, open.op, open.pid, open.issued);
            open.hardware.get_or_insert(hardware);
            early
        } else if !first.is_again {
            // No request says that it was in progress at that end, which may be of a task before the recording.
            return false;
        } else {
            unpaired.commands_without_request += u64::from(!self.devices.is_empty());
            first
        };
        command.error = i32::from(early.done.error);
        if let Some(host) = self.hosts.get_mut(&mmc.host) {
            self.early -= host.ends.remove(early) as usize;
        }
        self.count += 1;
        self.storage += 1;
        self.started_late += 1;
        self.errors += u64::from(command.error != 0);
        self.retuned += u64::from(command.retuning);
        self.queued_tasks += u64::from(command.opcode == 0);
        if let Some(host) = self.hosts.get_mut(&mmc.host) {
            host.queues |= mmc.opcode == 0;
            host.busy.add(command.at, Nanos(command.at.0.saturating_add(command.took.0)));
        }
        if command.op.is_some() {
            // Without a request nothing says how long it took.
            self.note(&command);
        }
        true
    }

    /// Whether the start of a complete request may come.
    pub(super) fn may_start(&self, request: &Request) -> bool {
        self.early > 0 && request.hardware.is_none() && self.devices.contains(&request.device)
    }

    fn done(&mut self, event: &Event, mmc: &MmcEvent, table: &mut Table, unpaired: &mut Unpaired) {
        let host = self.hosts.entry(mmc.host).or_default();
        let Some(place) = host.running.iter().position(|running| running.request == mmc.request) else {
            host.queues |= mmc.opcode == 0;
            // A flush may be the first that is recorded of a queue.
            if matches!(mmc.opcode, 0 | 6) {
                let interrupt = host.interrupt.filter(|(_, cpu)| *cpu == event.cpu).map(|(at, _)| at);
                let before = host.ends.len();
                let is_again = host.tasks.contains(&mmc.request);
                let early = Early { at: event.at, interrupt, is_again, done: *mmc };
                unpaired.commands_without_start += host.ends.keep(early);
                self.early = self.early + host.ends.len() - before;
            } else {
                unpaired.commands_without_start += 1;
            }
            return;
        };
        let mut running = host.running.swap_remove(place);
        // From the write of a command to the interrupt of its answer are the answer and the way of an interrupt to its
        // handler: of the shortest such time, the middle is taken for the way.
        let delay = running.written.and(host.answer).map_or(Nanos::ZERO, |answer| Nanos(answer.0 / 2));
        let mut ended = running.ended(event.at, delay);
        if mmc.opcode == 0 {
            // The start is recorded after the doorbell, and the end by the interrupt's handler, which ends several
            // tasks. Either delay may be the longer one: the middle of the handler's time is taken.
            let own = host.interrupt.filter(|(at, cpu)| *cpu == event.cpu && *at > running.command.at);
            ended = own.map_or(ended, |(at, _)| Nanos(at.0.midpoint(ended.0)).min(ended));
        }
        host.busy.end(event.at);
        self.count += 1;
        self.errors += u64::from(mmc.error != 0);
        self.retuned += u64::from(running.command.retuning);
        self.queued_tasks += u64::from(mmc.opcode == 0);
        self.software_tasks += u64::from(mmc.opcode == 45);
        if running.command.opcode == 13 {
            self.polls += 1;
            let Some(last) = &mut host.last else { return };
            last.command.polls += 1;
            let hardware = last.of.and_then(|of| table.get(of)).and_then(|open| open.hardware.as_mut());
            // A card that is ready at the first look was ready when the command ended. One that is asked again was busy
            // until the last answer.
            if last.command.polls > 1 {
                last.command.took = since(last.command.at, ended);
            }
            if let Some(hardware) = hardware {
                hardware.polls += 1;
                hardware.released = event.at;
                if hardware.polls > 1 {
                    hardware.ended = hardware.ended.max(ended);
                }
            }
            return;
        }
        running.command.took = since(running.command.at, ended);
        running.command.error = i32::from(mmc.error);
        if running.command.opcode == 6 && running.command.argument >> 16 & 0xff == 179 {
            self.partition_switches += 1;
        }
        if let Some(hardware) = running.of.and_then(|of| table.get(of)).and_then(|open| open.hardware.as_mut()) {
            hardware.ended = hardware.ended.max(ended);
            hardware.released = event.at;
        }
        self.storage += u64::from(has_data(running.command.opcode) || running.of.is_some());
        if running.command.opcode == 0 {
            self.note(&running.command);
        } else {
            host.last = Some(running);
        }
    }

    /// The polls of a write end with its completion.
    pub(super) fn completed(&mut self, device: u32, request: &Request) {
        let Some(host) = self.host_of.get(&device).and_then(|host| self.hosts.get_mut(host)) else { return };
        let is_same = |last: &mut Running| last.command.at <= request.completed && last.of.is_some();
        if request.hardware.is_some() {
            if let Some(last) = host.last.take_if(is_same) {
                self.note(&last.command);
            }
        }
    }

    fn note(&mut self, command: &Command) {
        if self.devices.is_empty() && has_data(command.opcode) && self.sizes.len() < 256 {
            let size = self.sizes.entry((matches!(command.opcode, 24 | 25), command.blocks)).or_default();
            *size = (size.0 + 1, size.1.saturating_add(command.took.0));
        }
        if self.slowest.len() < SLOWEST {
            self.slowest.push(*command);
            return;
        }
        if let Some(least) = self.slowest.iter_mut().min_by_key(|other| other.took) {
            if least.took < command.took {
                *least = *command;
            }
        }
    }
}
