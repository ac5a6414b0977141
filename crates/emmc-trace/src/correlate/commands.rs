//! Commands of the MMC layer, joined with requests of the block layer.
//!
//! A command with data joins by its first block: `mmc_request_start` has the request's sector. A flush is CMD6 (or a
//! task of the queue's slot for commands), a discard CMD35, CMD36 and CMD38. Without a command queue a write ends with
//! the CMD13 that finds the card ready, after `mmc_request_done`, if an earlier one found it busy.

use std::collections::HashMap;

use emmc_units::Nanos;

use super::Unpaired;
use super::command::Command;
use super::device::Busy;
use super::open::{Open, Stage};
use super::table::{Handle, Table};
use crate::event::{Event, MmcEvent, Op};
use crate::notes::Mixer;
use crate::request::{Hardware, Request, since};

/// The slowest commands that are kept.
const SLOWEST: usize = 16;
/// Commands in progress on a controller.
const RUNNING_MAX: usize = 256;
const HOSTS_MAX: usize = 16;
/// Ends that came before their start.
const EARLY_MAX: usize = 64;
/// How much earlier an end may be recorded than its start: the processor that starts a task was interrupted in between.
const EARLY_NS: u64 = 10_000_000;
/// The major number of MMC devices.
pub(crate) const MMC_MAJOR: u32 = 179;

#[derive(Clone, Copy, Debug)]
struct Running {
    request: u64,
    command: Command,
    /// Of the request.
    of: Option<Handle>,
    /// The controller's first and last interrupt since it started.
    interrupts: Option<(Nanos, Nanos)>,
}

impl Running {
    /// Its end at the controller: the interrupt that reported it, if interrupts are recorded and it is not the one of
    /// its answer.
    fn ended(&self, done: Nanos) -> Nanos {
        let second = self.interrupts.filter(|(first, last)| first < last);
        second.map_or(done, |(_, last)| last.min(done))
    }
}

#[derive(Debug, Default)]
struct Host {
    running: Vec<Running>,
    /// The last command that may be followed by polls.
    last: Option<Running>,
    busy: Busy,
    /// It has a command queue: its interrupts are those of several tasks.
    queues: bool,
    /// The last interrupt of a queue, and its processor.
    interrupt: Option<(Nanos, u32)>,
    early: Vec<(Nanos, MmcEvent)>,
}

/// Commands of all controllers.
#[derive(Debug, Default)]
pub struct Commands {
    hosts: HashMap<u8, Host, Mixer>,
    /// The controller of each device.
    host_of: HashMap<u32, u8, Mixer>,
    devices: Vec<u32>,
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
    /// Requests whose commands are bounded by interrupts.
    pub bounded: u64,
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
            host.early.clear();
        }
    }

    pub(super) fn end(&mut self, unpaired: &mut Unpaired) {
        let mut last = Vec::new();
        for host in self.hosts.values_mut() {
            unpaired.commands_without_end += host.running.len() as u64;
            unpaired.commands_without_start += host.early.len() as u64;
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
        let mut running = Running { request: mmc.request, command, of: None, interrupts: None };
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
        let busy = host.busy.until(event.at);
        if let Some(open) = running.of.and_then(|of| table.get(of)) {
            open.begin(&running.command, busy);
        }
        let early = host.early.iter().position(|(_, done)| done.request == mmc.request && mmc.opcode == 0);
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
        let early = early.map(|place| host.early.remove(place));
        if let Some(finished) = finished {
            self.note(&finished.command);
        }
        if let Some((at, done)) = early {
            if since(at, event.at).0 <= EARLY_NS {
                self.done(&Event { at, ..*event }, &done, table, unpaired);
            } else {
                unpaired.commands_without_start += 1;
            }
        }
    }

    /// A controller's interrupt.
    ///
    /// The first one reports the answer to a command, so that the driver wrote the command between
    /// `mmc_request_start` and it. The middle is taken. If the answer and the end have one interrupt, the handler may
    /// have waited for the end, and the events of the MMC layer count. With a command queue see `done`.
    pub(super) fn interrupt(&mut self, (at, cpu): (Nanos, u32), number: u8, table: &mut Table) {
        let Some(host) = self.hosts.get_mut(&number) else { return };
        if host.queues {
            host.interrupt = Some((at, cpu));
            return;
        }
        let [running] = &mut host.running[..] else { return };
        let Some((first, last)) = running.interrupts else {
            running.interrupts = Some((at, at));
            return;
        };
        running.interrupts = Some((first, at));
        let open = running.of.and_then(|of| table.get(of)).and_then(|open| open.hardware.as_mut());
        if let Some(hardware) = open.filter(|hardware| first == last && hardware.started == running.command.at) {
            hardware.started = Nanos(running.command.at.0.midpoint(first.0));
            self.bounded += 1;
        }
    }

    fn done(&mut self, event: &Event, mmc: &MmcEvent, table: &mut Table, unpaired: &mut Unpaired) {
        let host = self.hosts.entry(mmc.host).or_default();
        let Some(place) = host.running.iter().position(|running| running.request == mmc.request) else {
            if mmc.opcode == 0 && host.early.len() < EARLY_MAX {
                host.early.push((event.at, *mmc));
            } else {
                unpaired.commands_without_start += 1;
            }
            return;
        };
        let mut running = host.running.swap_remove(place);
        let mut ended = running.ended(event.at);
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

    /// The request that a command is for.
    fn join(&mut self, mmc: &MmcEvent, table: &Table) -> Option<Handle> {
        let issued = |open: &Open| open.stage == Stage::Issued;
        let found = self.devices.iter().find_map(|device| {
            if self.host_of.get(device).is_some_and(|host| *host != mmc.host) {
                return None;
            }
            let found = match mmc.opcode {
                0 | 17 | 18 | 24 | 25 | 44..=47 if mmc.blocks > 0 => sectors(mmc).into_iter().find_map(|sector| {
                    let is_write = matches!(mmc.opcode, 24 | 25);
                    let fits = |open: &Open| issued(open) && (mmc.opcode == 0 || (open.op == Op::Write) == is_write);
                    table.find_sector(*device, sector?, fits)
                }),
                // CMD6 of FLUSH_CACHE, or the function extension of SD cards.
                6 if mmc.argument >> 16 & 0xff == 32 => table.find_flush(*device, issued),
                48 | 49 => table.find_flush(*device, issued),
                35 | 36 | 38 => {
                    let erases = |open: &Open| matches!(open.op, Op::Discard | Op::Erase) && issued(open);
                    table.find_erasing(|open| open.device == *device && erases(open))
                }
                _ => None,
            };
            found.map(|found| (*device, found))
        });
        let (device, found) = found?;
        self.host_of.entry(device).or_insert(mmc.host);
        Some(found)
    }

    /// A device whose requests may be commands.
    pub(super) fn device(&mut self, device: u32) {
        if device >> 20 == MMC_MAJOR && !self.devices.contains(&device) && self.devices.len() < 64 {
            self.devices.push(device);
        }
    }
}

impl Running {
    /// Ends with busy time that no command asks for: SWITCH, ERASE.
    fn keeps_busy(&self) -> bool {
        matches!(self.command.opcode, 6 | 38)
    }
}

fn has_data(opcode: u8) -> bool {
    matches!(opcode, 0 | 17 | 18 | 24 | 25 | 46 | 47)
}

/// The first sector: as recorded, or the argument of a card that counts blocks, or of one that counts bytes.
fn sectors(mmc: &MmcEvent) -> [Option<u64>; 2] {
    let counts_bytes = !mmc.is_block && mmc.argument % 512 == 0;
    [Some(u64::from(mmc.argument)), counts_bytes.then_some(u64::from(mmc.argument / 512))]
}

impl Open {
    /// The first command, or a further one.
    fn begin(&mut self, command: &Command, busy: u64) {
        match &mut self.hardware {
            Some(hardware) => {
                hardware.repeats += 1;
                hardware.retuning |= command.retuning;
            }
            None => {
                self.waited = self.waited.saturating_add(busy.saturating_sub(self.busy_mark));
                self.hardware = Some(Hardware {
                    started: command.at,
                    ended: command.at,
                    released: command.at,
                    host: command.host,
                    opcode: command.opcode,
                    reliable: command.reliable,
                    polls: 0,
                    repeats: 0,
                    retuning: command.retuning,
                });
            }
        }
    }
}
