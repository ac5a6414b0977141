//! What a recording shows: spans by kind of request, stalls, causes, and the limit of the speed.

mod groups;
mod limit;
mod machine;
mod named;
mod over_time;
mod paper;
mod reasons;
pub mod result;
mod returns;
mod shares;
mod sources;
mod stages;
mod stalls;
mod track;

use self::groups::Groups;
pub use self::limit::Needs;
use self::over_time::Columns;
use self::reasons::Reasons;
use self::result::{Analysis, CommandCounts, CommandRow, CpuRow, DeviceRow, ProcessorRow, SpanRow};
use self::stages::Stages;
use crate::correlate::{Correlator, MMC_MAJOR, Unpaired, count};
use crate::event::Op;
use crate::notes::Notes;
use crate::open::Recording;
use crate::request::{Mode, Request};

/// Reads a recording to its end and analyses it: the chosen device (`major << 20 | minor`), else all eMMC and SD cards,
/// else all devices.
pub fn analyse(recording: Recording, chosen: Option<u32>) -> Analysis {
    let Recording { mut events, forms } = recording;
    let (mut correlator, mut cards, mut others) = (Correlator::default(), Sums::default(), Sums::default());
    let mut add = |request: &Request| {
        let is_card = match chosen {
            Some(chosen) => request.device == chosen,
            None => request.device >> 20 == MMC_MAJOR,
        };
        if is_card { cards.add(request) } else { others.add(request) }
    };
    events.run(|event| correlator.take(event, &mut add));
    correlator.end(&mut add);
    let late = events.late;
    let forms = forms.iter().map(|form| form.name().to_string()).collect();
    let (sums, left_out) = if cards.requests > 0 || chosen.is_some() { (cards, others.requests) } else { (others, 0) };
    Analysis { other_requests: left_out, ..sums.result(&correlator, &events.notes(), late, forms) }
}

/// Requests of one part of a recording, by kind.
#[derive(Default)]
pub(crate) struct Kinds {
    groups: Groups,
    pub(crate) requests: u64,
}

impl Kinds {
    pub(crate) fn add(&mut self, request: &Request) {
        self.requests += 1;
        self.groups.add(request);
    }

    /// Most time first.
    pub(crate) fn rows(self) -> Vec<SpanRow> {
        self.groups.into_sorted().iter().map(groups::Group::row).collect()
    }
}

/// Sums over requests.
#[derive(Default)]
struct Sums {
    requests: u64,
    errors: u64,
    /// Requests during which the clock did not move.
    timeless: u64,
    groups: Groups,
    stages: Stages,
    reasons: Reasons,
    columns: Columns,
    largest_sectors: u32,
    /// Requests of the largest size.
    largest: u64,
    read_behind_discard: u64,
    discarding_until: u64,
    /// By processor.
    issued: Vec<u64>,
    completed: Vec<u64>,
}

impl Sums {
    fn add(&mut self, request: &Request) {
        self.requests += 1;
        self.errors += u64::from(request.error != 0);
        self.timeless += u64::from(request.total().0 == 0);
        self.groups.add(request);
        self.stages.add(request);
        self.columns.add(request);
        if matches!(request.op, Op::Read | Op::Write) {
            if request.sectors > self.largest_sectors {
                (self.largest_sectors, self.largest) = (request.sectors, 0);
            }
            self.largest += u64::from(request.sectors == self.largest_sectors);
        }
        if matches!(request.op, Op::Discard | Op::Erase) {
            self.discarding_until = request.completed.0;
        } else if request.queued.is_some_and(|queued| queued.0 < self.discarding_until) {
            self.read_behind_discard += 1;
        }
        count(&mut self.issued, request.cpus.0);
        count(&mut self.completed, request.cpus.1);
        self.reasons.add(request);
    }

    fn cpus(&self, interrupts: &[u64]) -> Vec<CpuRow> {
        let of = |all: &[u64], cpu: usize| all.get(cpu).copied().unwrap_or(0);
        let count = self.issued.len().max(self.completed.len()).max(interrupts.len());
        let row = |cpu: usize| CpuRow {
            cpu,
            issued: of(&self.issued, cpu),
            completed: of(&self.completed, cpu),
            interrupts: of(interrupts, cpu),
        };
        (0..count).map(row).filter(|row| row.issued + row.completed + row.interrupts > 0).collect()
    }

    fn result(self, correlator: &Correlator, notes: &Notes, late: u64, forms: Vec<String>) -> Analysis {
        let duration = correlator.times.map_or(0, |(first, last)| last.0 - first.0);
        let unpaired = Unpaired { late_events: late, ..correlator.unpaired };
        let counts = correlator.counts;
        let commands = correlator.commands();
        let stalls = stalls::stalls(commands, notes);
        let mut causes =
            stalls::causes(&stalls, commands, (self.largest_sectors, self.largest), self.read_behind_discard);
        let cpus = self.cpus(&correlator.processors.interrupts);
        let reasons = self.reasons.rows(notes);
        causes.extend(shares::reasons(&reasons));
        let groups = self.groups.into_sorted();
        causes.extend(shares::queue(&groups, commands));
        let spans: Vec<SpanRow> = groups.iter().map(groups::Group::row).collect();
        let paper = groups.iter().filter(|_| self.timeless <= self.requests / 2).filter_map(paper::row).collect();
        // The limit is of requests that somebody waits for, if there are any.
        let moves = |row: &SpanRow| row.size_bytes > 0 && matches!(row.op.as_str(), "read" | "write");
        let waited = |row: &SpanRow| row.mode != Mode::Writeback.name() && row.mode != Mode::Readahead.name();
        let main = spans.iter().position(|row| moves(row) && waited(row)).or(spans.iter().position(moves));
        // A clock that moves by jiffies: the times of most requests are 0, of the others far too long.
        let has_times = self.timeless <= self.requests / 2;
        if !has_times {
            let clock = notes.clock.as_ref().map_or(String::new(), |clock| format!(" ({clock})"));
            let (timeless, all) = (self.timeless, self.requests);
            causes.insert(
                0,
                format!(
                    "the clock of the recording{clock} did not move during {timeless} of {all} requests: their times \
                     are not known, and there is no limit"
                ),
            );
        }
        let processors = processors(correlator);
        let limit = |main: usize| limit::limit(&spans[main], &groups[main], processors.len());
        let limit = main.filter(|_| has_times).and_then(limit);
        let has_commands = commands.count > 0;
        Analysis {
            forms,
            clock: notes.clock.clone(),
            duration_s: duration as f64 / 1e9,
            events: counts.events,
            requests: self.requests,
            other_requests: 0,
            unpaired: unpaired.total(),
            unpaired_by: unpaired,
            lost_events: notes.lost,
            losses_uncounted: notes.losses_uncounted,
            damaged: notes.damaged,
            damage: notes.damage.iter().map(ToString::to_string).collect(),
            sources: sources::sources(&spans, correlator),
            spans,
            paper,
            limit,
            bios: counts.bios,
            merges: counts.merges,
            splits: counts.splits,
            requeues: counts.requeues,
            errors: self.errors,
            commits: counts.commits,
            stages: self.stages.rows(),
            devices: devices(correlator, duration),
            processors,
            cpus,
            commands: has_commands.then(|| CommandCounts {
                count: commands.count,
                queued_tasks: commands.queued_tasks,
                polls: commands.polls,
                errors: commands.errors,
                retuned: commands.retuned,
                partition_switches: commands.partition_switches,
                busy_ms: commands.busy_ns() as f64 / 1e6,
            }),
            command_rows: command_rows(correlator),
            stalls,
            waiters: self.reasons.waiters(notes),
            reasons,
            files: self.reasons.files(),
            over_time: self.columns.result(),
            causes,
        }
    }
}

fn command_rows(correlator: &Correlator) -> Vec<CommandRow> {
    let row = |(&(write, blocks), &(count, ns)): (&(bool, u32), &(u64, u64))| CommandRow {
        write,
        blocks,
        count,
        mean_us: ns as f64 / count.max(1) as f64 / 1e3,
    };
    let mut rows: Vec<CommandRow> = correlator.commands().sizes.iter().map(row).collect();
    rows.sort_by_key(|row| (row.write, row.blocks));
    rows
}

fn devices(correlator: &Correlator, duration: u64) -> Vec<DeviceRow> {
    let row = |device: &crate::Device| DeviceRow {
        device: groups::named(device.device),
        requests: device.requests,
        busy_ms: device.busy_ns() as f64 / 1e6,
        busy_percent: 100.0 * device.busy_ns() as f64 / duration.max(1) as f64,
        depth_max: device.depth_max,
        depth_mean: device.depth_ns as f64 / device.busy_ns().max(1) as f64,
        idle_gaps: device.idle.gaps,
        idle_ms: device.idle.total_ns as f64 / 1e6,
        idle_longest_ms: device.idle.longest_ns as f64 / 1e6,
    };
    let mut rows: Vec<DeviceRow> = correlator.devices().iter().filter(|device| device.requests > 0).map(row).collect();
    rows.sort_by(|a, b| b.requests.cmp(&a.requests).then(a.device.cmp(&b.device)));
    rows
}

fn processors(correlator: &Correlator) -> Vec<ProcessorRow> {
    let Some((_, end)) = correlator.times else { return Vec::new() };
    let row = |(cpu, busy, known): (usize, u64, u64)| {
        let busy_percent = 100.0 * busy as f64 / known.max(1) as f64;
        ProcessorRow { cpu, busy_percent }
    };
    correlator.processors.shares(end).map(row).collect()
}
