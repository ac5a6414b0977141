//! The closed form of docs/profiles.md: a request's time from the profile's parameters alone, beside the bench.
//!
//! `cargo test --release -p emmc-workload --test it closed_form:: -- --nocapture` prints every profile, operation and
//! depth. The card is fresh, its cache is on if it has one, and no host is in front of it.

use emmc_card::device::Bus;
use emmc_card::nand::CellMode;
use emmc_card::profile::{CellConfig, GcPace, Mapping, Profile, shipped};
use emmc_port::BlockOp;
use emmc_workload::{FlushAt, Limit, Mix, Order, Progress, Stream, Unwatched, drive};

use crate::cards::card;

const RANDOM_BYTES: u64 = 4096;
const SEQUENTIAL_BYTES: u64 = 512 << 10;
const SPAN_BYTES: u64 = 96 << 20;
/// Requests of a measurement, or as many as the span has; fewer writes of 4 KiB than fill a log.
const REQUESTS: u64 = 1500;
const RANDOM_WRITES: u64 = 1000;
const DEPTHS: [u32; 3] = [1, 8, 32];
/// The queue engine's pause between two questions for ready tasks, and what the firmware takes for a task. Unit:
/// microseconds.
const POLLING_US: f64 = 20.48;
const PREPARATION_US: f64 = 5.0;
/// Blocks of the SLC cache that hold its records.
const RECORD_BLOCKS: u32 = 2;

/// The times that the closed form is made of. Unit: microseconds.
struct Times<'a> {
    profile: &'a Profile,
    bus: Bus,
    command: f64,
    /// Tasks in the card at once; 0: no queue.
    slots: u32,
    lanes: f64,
    page_kib: f64,
    channel_us_per_kib: f64,
}

impl<'a> Times<'a> {
    fn new(profile: &'a Profile) -> Self {
        let (nand, controller) = (&profile.nand, &profile.controller);
        let bus = Bus::clocked(controller.bus(), controller.bus_clock_hz());
        Self {
            profile,
            command: bus.command().as_micros_f64(),
            bus,
            slots: controller.queue_depth.into(),
            lanes: f64::from(nand.dies * nand.planes),
            page_kib: f64::from(nand.page_bytes) / 1024.0,
            channel_us_per_kib: 1024.0 / nand.channel_mb_s,
        }
    }

    fn is_queued(&self) -> bool {
        self.slots > 1
    }

    /// The mode of the blocks that hold fresh data: one bit a cell if an SLC cache takes all writes.
    fn mode(&self) -> CellMode {
        let nand = &self.profile.nand;
        let takes_all = self.profile.ftl.slc_cache.is_some_and(|cache| cache.bypass_bytes == 0);
        if takes_all { nand.cell.single_bit() } else { nand.cell }
    }

    fn cell(&self) -> &CellConfig {
        let nand = &self.profile.nand;
        if self.mode() == nand.cell { &nand.native } else { nand.slc.as_ref().unwrap_or(&nand.native) }
    }

    fn unit_kib(&self) -> f64 {
        f64::from(self.profile.ftl.unit_bytes) / 1024.0
    }

    /// A sense and a transfer for each page that holds `kib`.
    fn fetch(&self, kib: f64) -> f64 {
        (kib / self.page_kib).ceil() * self.cell().read_us + kib * self.channel_us_per_kib
    }

    /// What a random read of 4 KiB waits for the last one's read-ahead, which began when the flash had given its data.
    fn read_ahead_wait(&self, bus: f64) -> f64 {
        let controller = &self.profile.controller;
        if !controller.read_ahead_always {
            return 0.0;
        }
        let ahead_kib = f64::from(controller.read_ahead_bytes) / 1024.0;
        let places = self.page_kib / 4.0;
        let wait = |place: u32| {
            // What the page register still holds costs no sense.
            let held = ahead_kib.min(self.page_kib - 4.0 * f64::from(place + 1));
            let units = |kib: f64| (kib / self.unit_kib()).ceil() * self.unit_kib();
            (units(held) * self.channel_us_per_kib + self.fetch(units(ahead_kib - held)) - bus - self.command).max(0.0)
        };
        (0..places as u32).map(wait).sum::<f64>() / places
    }

    /// CMD44 and CMD45, and the firmware that takes the task.
    fn queueing(&self) -> f64 {
        if self.is_queued() { 2.0 * self.command + PREPARATION_US } else { 0.0 }
    }

    /// The mean wait of a task that is ready `ready` after it was taken, until the engine's next question.
    fn poll_wait(&self, ready: f64, spread: f64) -> f64 {
        if !self.is_queued() {
            return 0.0;
        }
        let steps = 64;
        let at = |step: u32| ready + spread * (f64::from(2 * step + 1) / f64::from(steps) - 1.0);
        let wait = |ready: f64| {
            let after_first = ready + PREPARATION_US - self.command;
            let interval = POLLING_US + self.command;
            (after_first / interval).ceil().max(0.0) * interval - after_first + self.command
        };
        (0..steps).map(|step| wait(at(step))).sum::<f64>() / f64::from(steps)
    }

    /// A random read of 4 KiB: time alone, and the time that its busiest part takes.
    fn random_read(&self, depth: u32) -> f64 {
        let (controller, cell) = (&self.profile.controller, self.cell());
        // Mapping units are read whole.
        let flash = self.fetch(self.unit_kib().max(4.0));
        let bus = self.bus.read(8).as_micros_f64();
        let ready = controller.read_overhead_us + flash;
        let wait = self.poll_wait(ready, cell.time_spread * cell.read_us);
        let alone = self.command + self.queueing() + ready + wait + bus + self.read_ahead_wait(bus);
        if depth == 1 || !self.is_queued() {
            return alone;
        }
        // Dies that random requests find free: closed queueing network of as many stations as dies.
        let (dies, tasks) = (f64::from(self.profile.nand.dies), f64::from(depth.min(self.slots)));
        let flash = flash / dies * (tasks + dies - 1.0) / tasks;
        (controller.read_overhead_us).max(flash).max(bus + self.command).max(alone / tasks)
    }

    fn sequential_read(&self, depth: u32) -> f64 {
        let (controller, nand) = (&self.profile.controller, &self.profile.nand);
        let pages = SEQUENTIAL_BYTES as f64 / 1024.0 / self.page_kib;
        let page = self.fetch(self.page_kib);
        let parallel = f64::from(nand.dies);
        let flash =
            (pages / parallel * page).max(pages / f64::from(nand.channels) * self.page_kib * self.channel_us_per_kib);
        let bus = self.bus.read((SEQUENTIAL_BYTES / 512) as u32).as_micros_f64();
        let chunk_pages = (32.0 / self.page_kib).max(self.lanes);
        let first = (chunk_pages / parallel).ceil() * page;
        if depth == 1 || !self.is_queued() {
            let data = match controller.read_ahead_bytes {
                0 => (first + bus).max(flash + bus / pages * chunk_pages),
                // The first part has been read ahead.
                ahead => {
                    bus.max(flash * (1.0 - f64::from(ahead) / SEQUENTIAL_BYTES as f64) + bus / pages * chunk_pages)
                }
            };
            return self.command + self.queueing() + controller.read_overhead_us + data;
        }
        flash.max(bus + self.command).max(controller.read_overhead_us)
    }

    /// The cells that a write of 4 KiB programs: the SLC cache takes it even where larger writes bypass that.
    fn small_write_cell(&self) -> &CellConfig {
        let nand = &self.profile.nand;
        let slc = nand.slc.as_ref().filter(|_| self.profile.ftl.slc_cache.is_some());
        slc.unwrap_or(&nand.native)
    }

    /// A random write of 4 KiB, of `requests` with a flush at the end; `None`: it depends on the places of the others
    /// (allocation units with logs).
    fn random_write(&self, depth: u32, requests: f64) -> Option<f64> {
        let controller = &self.profile.controller;
        if self.profile.ftl.mapping == Mapping::Segment {
            return None;
        }
        let missing_kib = (self.unit_kib() - 4.0).max(0.0);
        let (overhead, missing) = match controller.small_write_bytes >= 4096 {
            true => (controller.small_write_overhead_us, controller.small_write_missing_us_per_kib),
            false => (controller.write_overhead_us, controller.missing_us_per_kib),
        };
        // A log that maps pages reads the rest of one, and writes it again.
        let rest_kib = (f64::from(controller.small_page_bytes) / 1024.0 - self.unit_kib().max(4.0)).max(0.0);
        let (kept, rest) = match rest_kib > 0.0 {
            true => (controller.read_overhead_us, self.fetch(rest_kib)),
            false => (0.0, 0.0),
        };
        let firmware = overhead + missing * missing_kib + kept;
        let bus = self.bus.write(8).as_micros_f64();
        // What the mapping unit misses is read first.
        let merged = if missing_kib > 0.0 { self.fetch(self.unit_kib()) } else { 0.0 };
        let alone = self.queueing() + firmware + self.poll_wait(firmware, 0.0) + self.command + bus + merged + rest;
        let is_queued = depth > 1 && self.is_queued();
        let tasks = f64::from(depth.min(self.slots));
        let host = if is_queued { firmware.max(bus + self.command).max(alone / tasks) } else { alone };
        let cell = self.small_write_cell();
        let mean = cell.program_us.iter().sum::<f64>() / cell.program_us.len() as f64;
        let sent = self.page_kib * self.channel_us_per_kib;
        let program = self.program_us_per_kib(cell) * (self.unit_kib() + rest_kib);
        let cached = f64::from(controller.cache_bytes / self.profile.ftl.unit_bytes).min(requests);
        Some(if controller.write_buffer_bytes > 0 {
            let folded = self.folded(requests) / requests * self.folding_of_a_unit();
            if controller.copies_alone { host + folded } else { host.max(program + folded) }
        } else if cached > 0.0 {
            // What the cache holds at the end is programmed by the flush.
            let filled = (requests * host).max(cached * host + (requests - cached) * program);
            (filled + cached * program) / requests
        } else {
            // Each write programs a page of its own and waits for it; a reliable one the other pages of its word line
            // too.
            let pages = if controller.write_reliability { cell.program_us.len() as f64 } else { 1.0 };
            let page = pages * (sent + mean);
            // The busy signal of one holds up the transfer of the next.
            if is_queued { host.max(self.command + bus + merged + page) } else { alone + page }
        })
    }

    /// Of `requests` writes of a unit into the empty SLC cache, those for which one that came earlier is folded.
    fn folded(&self, requests: f64) -> f64 {
        let ftl = &self.profile.ftl;
        let Some(cache) = ftl.slc_cache else { return 0.0 };
        // In steps, folding begins with the block that leaves only the low ones.
        let in_steps = u32::from(ftl.gc_pace == GcPace::Paced);
        let before = (cache.blocks - RECORD_BLOCKS).saturating_sub(cache.low_blocks + in_steps);
        (requests - f64::from(before) * self.log_block_units()).max(0.0)
    }

    fn log_block_units(&self) -> f64 {
        let nand = &self.profile.nand;
        f64::from(nand.pages_per_block / nand.native.program_us.len() as u32) * self.page_kib / self.unit_kib()
    }

    /// Folding of a unit: its share of the row of the log that is programmed before it, of the log's pages that are
    /// read, of the row of the main layer, and of the erase.
    fn folding_of_a_unit(&self) -> f64 {
        let nand = &self.profile.nand;
        let log = self.small_write_cell();
        let mean = |cell: &CellConfig| cell.program_us.iter().sum::<f64>() / cell.program_us.len() as f64;
        let row_kib = f64::from(if nand.multi_plane { nand.planes } else { 1 }) * self.page_kib;
        let sent = row_kib * self.channel_us_per_kib;
        let read = (row_kib / self.page_kib) * log.read_us + sent;
        let rows = mean(log) + sent + read + mean(&nand.native) + sent;
        rows * self.unit_kib() / row_kib + log.erase_ms * 1000.0 / self.log_block_units()
    }

    /// The mean program time of a KiB, all lanes busy.
    fn program_us_per_kib(&self, cell: &CellConfig) -> f64 {
        let nand = &self.profile.nand;
        let mean = cell.program_us.iter().sum::<f64>() / cell.program_us.len() as f64;
        let planes = if nand.multi_plane { nand.planes } else { 1 };
        // Without cached programs a die gets its pages while it does nothing else.
        let sent = if nand.cached_program { 0.0 } else { f64::from(planes) * self.page_kib * self.channel_us_per_kib };
        let row = (mean + sent) / f64::from(nand.dies * planes) / self.page_kib;
        row.max(self.channel_us_per_kib / f64::from(nand.channels))
    }

    /// The mean time of a KiB where a buffer of less than two word lines does not smooth what their pages differ by:
    /// each page takes the longer of its program and its data. Zero: it does.
    fn page_by_page(&self, bus_us_per_kib: f64) -> f64 {
        let (cell, buffer_kib) = (self.cell(), f64::from(self.profile.controller.write_buffer_bytes) / 1024.0);
        let pages = cell.program_us.len() as f64;
        let row_kib = self.lanes * self.page_kib;
        if buffer_kib == 0.0 || pages < 2.0 || buffer_kib >= 2.0 * pages * row_kib {
            return 0.0;
        }
        cell.program_us.iter().map(|us| (us / row_kib).max(bus_us_per_kib)).sum::<f64>() / pages
    }

    fn sequential_write(&self) -> f64 {
        let controller = &self.profile.controller;
        let kib = SEQUENTIAL_BYTES as f64 / 1024.0;
        let bus = self.bus.write((SEQUENTIAL_BYTES / 512) as u32).as_micros_f64();
        let program = self.program_us_per_kib(self.cell()) * kib;
        let overhead = controller.write_overhead_us;
        let data = bus.max(self.page_by_page(bus / kib) * kib);
        let answered = self.command + self.queueing() + overhead + self.poll_wait(overhead, 0.0) + data;
        let is_cached = controller.cache_bytes > 0 || controller.write_buffer_bytes > 0;
        let chunk_kib = (self.lanes * self.page_kib).max(32.0);
        if !is_cached && f64::from(controller.buffer_bytes) / 1024.0 <= chunk_kib {
            // One chunk fills the buffer: the bus waits for its program, and the flash for the next.
            return self.command + overhead + bus + program;
        }
        // Without a cache or a buffer the answer comes after the last program, and the first waits for its data.
        let last = if is_cached { 0.0 } else { self.command + overhead + bus / kib * 32.0 };
        // Flash begins when the cache is full, and the flush programs what that holds.
        let share = f64::from(controller.cache_bytes) / SPAN_BYTES as f64;
        (answered + share * program).max(program + controller.commit_us + last + share * answered)
    }
}

fn measured(profile: &str, op: BlockOp, order: Order, bytes: u64, depth: u32) -> f64 {
    let mut target = card(profile, |_| ());
    // The form is the card's: it has no pauses of a host between questions.
    target.wait_for_flushes();
    let step = Progress { step: "closed form", number: 1, steps: 1, done_share: 0.0, whole: None, now: None };
    let fill = Stream::pass(BlockOp::Write, Order::Sequential, 0, SPAN_BYTES, SEQUENTIAL_BYTES);
    drive(&mut target, &Stream { flush: FlushAt::End, ..fill }, step, &mut Unwatched).unwrap();
    let is_random_write = op == BlockOp::Write && order == Order::Shuffled;
    let requests = if is_random_write { RANDOM_WRITES } else { REQUESTS };
    let stream = Stream {
        depth,
        mix: Mix::Only(op),
        limit: Limit { bytes: (requests * bytes).min(SPAN_BYTES), time: None },
        flush: if op == BlockOp::Write { FlushAt::End } else { FlushAt::Never },
        ..Stream::pass(op, order, 0, SPAN_BYTES, bytes)
    };
    let measured = drive(&mut target, &stream, step, &mut Unwatched).unwrap();
    bytes as f64 / measured.bytes_per_s() * 1e6
}

#[test]
fn the_bench_agrees_with_the_closed_form() {
    let mut errors = Vec::new();
    for name in shipped::names() {
        let profile = shipped::named(name).unwrap();
        let times = Times::new(&profile);
        for depth in DEPTHS {
            let rows = [
                ("random read", BlockOp::Read, Order::Shuffled, Some(times.random_read(depth))),
                ("sequential read", BlockOp::Read, Order::Sequential, Some(times.sequential_read(depth))),
                ("random write", BlockOp::Write, Order::Shuffled, times.random_write(depth, RANDOM_WRITES as f64)),
                ("sequential write", BlockOp::Write, Order::Sequential, Some(times.sequential_write())),
            ];
            for (what, op, order, form) in rows {
                let Some(form) = form else { continue };
                let bytes = if order == Order::Sequential { SEQUENTIAL_BYTES } else { RANDOM_BYTES };
                let found = measured(name, op, order, bytes, depth);
                let off = form / found - 1.0;
                println!(
                    "{name:28} {what:16} depth {depth:>2}: form {form:9.1} us, bench {found:9.1} us, {:+5.1} %",
                    off * 100.0
                );
                errors.push(off.abs());
            }
        }
    }
    errors.sort_by(f64::total_cmp);
    let within = errors.iter().filter(|off| **off <= 0.05).count();
    let worst = errors.last().copied().unwrap_or_default() * 100.0;
    println!(
        "{within} of {} within 5 %, median {:.1} %, worst {worst:.0} %",
        errors.len(),
        errors[errors.len() / 2] * 100.0
    );
    assert_eq!(within, errors.len());
}
