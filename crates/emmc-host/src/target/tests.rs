//! A board above a card that takes a constant time.

use emmc_port::TargetKind;
use emmc_units::Bytes;

use super::*;
use crate::board::board;
use crate::description::RequestCost;
use crate::page_cache::PageCache;

/// Serves one request after the other: 100 us, and 10 ns a byte.
#[derive(Debug)]
struct Card {
    shape: TargetShape,
    free: Instant,
    asked: Vec<BlockRequest>,
}

impl Card {
    fn new() -> Self {
        let shape = TargetShape {
            name: "card".into(),
            kind: TargetKind::Simulated,
            size_bytes: 1 << 30,
            sector_bytes: 512,
            depth_max: 32,
            can_trim: true,
            engine: "simulated",
        };
        Self { shape, free: Instant::START, asked: Vec::new() }
    }
}

impl BlockTarget for Card {
    fn shape(&self) -> &TargetShape {
        &self.shape
    }

    fn now(&mut self) -> Instant {
        Instant::START
    }

    fn submit(&mut self, _: BlockRequest) -> Result<(), TargetError> {
        unreachable!("the host asks by `serve`")
    }

    fn wait(&mut self) -> Result<BlockDone, TargetError> {
        unreachable!("the host asks by `serve`")
    }

    fn idle(&mut self, _: Nanos) -> Result<(), TargetError> {
        unreachable!("the host asks by `rest`")
    }
}

impl SimulatedTarget for Card {
    fn serve(&mut self, request: &BlockRequest, at: Instant) -> Result<(Instant, Option<String>), TargetError> {
        self.asked.push(*request);
        self.free = self.free.max(at) + Nanos::from_micros(100) + Nanos(request.bytes * 10);
        Ok((self.free, None))
    }

    fn submit_at(&mut self, _: BlockRequest, _: Instant) -> Result<(), TargetError> {
        unreachable!("the card serves one request after the other")
    }

    fn rest(&mut self, from: Instant, _: Instant) -> Result<Instant, TargetError> {
        Ok(from)
    }
}

fn request(op: BlockOp, offset_bytes: u64, bytes: u64) -> BlockRequest {
    BlockRequest { op, offset_bytes, bytes, through: false, tag: 0 }
}

fn one(target: &mut HostTarget<Card>, op: BlockOp, offset_bytes: u64, bytes: u64) -> Nanos {
    let before = target.now();
    target.submit(request(op, offset_bytes, bytes)).unwrap();
    target.wait().unwrap();
    target.now().since(before)
}

/// The program's own work comes between two calls and is not part of any latency; a growing file costs its size update.
#[test]
fn one_at_a_time_is_pre_card_and_post() {
    let mut target = HostTarget::new(Card::new(), board("jetson-tx1").unwrap(), false);
    let card = Nanos::from_micros(100) + Nanos((128 << 10) * 10);
    let between = Nanos::from_micros_f64(5.0 + f64::from(128 << 10) / 3e9 * 1e6);
    for (op, latency) in [(BlockOp::Write, 141 + 53 + 40), (BlockOp::Write, 141 + 53), (BlockOp::Read, 232 + 50)] {
        let before = target.now();
        target.submit(request(op, 0, 128 << 10)).unwrap();
        let done = target.wait().unwrap();
        assert_eq!(done.latency(), Nanos::from_micros(latency) + card, "{op:?}");
        assert_eq!(target.now().since(before), done.latency() + between);
    }
    let spent = target.spent();
    let us = |micros: u64| Nanos::from_micros(micros).0;
    let told = [spent.pre_ns, spent.post_ns, spent.size_update_ns, spent.card_ns, spent.program_ns];
    assert_eq!(told, [us(2 * 141 + 232), us(2 * 53 + 50), us(40), 3 * card.0, 3 * between.0]);
}

/// What was trimmed to its end is written as a new file.
#[test]
fn a_file_that_was_trimmed_grows_again() {
    let mut target = HostTarget::new(Card::new(), board("jetson-tx1").unwrap(), false);
    for (op, grown) in [(BlockOp::Write, 40), (BlockOp::Trim, 40), (BlockOp::Write, 80), (BlockOp::Write, 80)] {
        one(&mut target, op, 0, 64 << 10);
        assert_eq!(target.spent().size_update_ns, Nanos::from_micros(grown).0);
    }
}

/// A file that begins again is filled block by block again, and the card is not told that the old one is gone.
#[test]
fn a_file_that_begins_again_is_filled_with_zeros_again() {
    let mut target = HostTarget::measured(Card::new(), Nanos::ZERO, Nanos::ZERO, Nanos::ZERO);
    for _ in 0..2 {
        target.begin_file(0);
        for record in 0..4 {
            one(&mut target, BlockOp::Write, record << 10, 1 << 10);
        }
    }
    let asked: Vec<_> = target.card().asked.iter().map(|one| (one.op, one.offset_bytes, one.bytes)).collect();
    let file = [(0, 4 << 10), (1 << 10, 1 << 10), (2 << 10, 1 << 10), (3 << 10, 1 << 10)];
    let file = file.map(|(offset, bytes)| (BlockOp::Write, offset, bytes));
    assert_eq!(asked, [file, file].concat());
}

/// Data, the journal's blocks, a flush, the commit block: jbd2's requests for a sync write.
#[test]
fn a_sync_write_commits_the_journal() {
    let mut target = HostTarget::new(Card::new(), board("jetson-tx1").unwrap(), false);
    for number in 0..2u64 {
        target.submit(BlockRequest { through: true, ..request(BlockOp::Write, number << 17, 128 << 10) }).unwrap();
        target.wait().unwrap();
    }
    let asked: Vec<_> =
        target.card().asked.iter().map(|one| (one.op, one.offset_bytes, one.bytes, one.through)).collect();
    let journal = 1 << 29;
    let of = |number: u64| {
        let log = journal + number * (20 << 10);
        [
            (BlockOp::Write, number << 17, 128 << 10, false),
            (BlockOp::Write, log, 16 << 10, false),
            (BlockOp::Flush, 0, 0, false),
            (BlockOp::Write, log + (16 << 10), 4 << 10, true),
        ]
    };
    assert_eq!(asked, [of(0), of(1)].concat());
    let spent = target.spent();
    assert!(spent.journal_log_ns > 0 && spent.flush_ns > 0 && spent.journal_commit_ns > 0, "{spent:?}");
}

/// Without an engine in hardware a core starts each transfer, which costs the gap.
#[test]
fn without_a_queue_the_gap_passes_between_two_transfers() {
    let pace = |queueing: bool| {
        let mut target = HostTarget::new(Card::new(), board("zynq-zed").unwrap(), queueing);
        let began = target.now();
        for number in 0..200u64 {
            if number >= 8 {
                target.wait().unwrap();
            }
            target.submit(request(BlockOp::Read, number << 16, 64 << 10)).unwrap();
        }
        while target.wait().is_ok() {}
        target.now().since(began).as_micros_f64() / 200.0
    };
    // Pre of a random read is 737 us, the card here takes 755 and the gap 287.
    let [with, without] = [true, false].map(pace);
    assert!((750.0..765.0).contains(&with) && (1040.0..1060.0).contains(&without), "{with} {without}");
}

#[test]
fn with_a_queue_the_slowest_stage_sets_the_pace() {
    let mut target = HostTarget::new(Card::new(), board("zynq-zed").unwrap(), true);
    let began = target.now();
    for number in 0..200u64 {
        if number >= 8 {
            target.wait().unwrap();
        }
        target.submit(request(BlockOp::Write, number << 16, 64 << 10)).unwrap();
    }
    while target.wait().is_ok() {}
    let pace = target.now().since(began).as_micros_f64() / 200.0;
    // Pre of a random write on the Zynq is 1715 us, the card here takes 755.
    assert!((1715.0..1760.0).contains(&pace), "{pace}");
}

#[test]
fn writes_fill_memory_first_and_a_sync_waits_for_all() {
    let mut board = *board("colibri-t30").unwrap();
    board.page_cache = Some(PageCache { dirty: Bytes(8 << 20), cached: Bytes(256 << 20), copy_bytes_per_s: 1e12 });
    let mut target = HostTarget::new(Card::new(), &board, false);
    assert!(target.through_page_cache(BlockOp::Write, true));
    let writes: Nanos =
        (0..1024u64).map(|n| one(&mut target, BlockOp::Write, n * 65536, 65536)).fold(Nanos::ZERO, |a, b| a + b);
    // 64 MiB, of which 8 are left in memory; the flusher makes requests of 512 KiB.
    let written = 56.0 / 0.5 * (100.0 + 5242.88);
    assert!((writes.as_micros_f64() / written - 1.0).abs() < 0.03, "{writes} against {written}");
    let rest = one(&mut target, BlockOp::Flush, 0, 0).as_micros_f64();
    let expected = 8.0 / 0.5 * (100.0 + 5242.88) + 100.0;
    assert!((rest / expected - 1.0).abs() < 0.1, "{rest} against {expected}");
    assert!(target.card().asked.iter().all(|request| request.bytes <= 512 << 10));
    let written: u64 = target.card().asked.iter().map(|request| request.bytes).sum();
    assert_eq!(written, 64 << 20);
    // Cached data is not fetched; other data is, with read-ahead for a sequential reader.
    assert!(one(&mut target, BlockOp::Read, 0, 65536) < Nanos(100));
    let far = 512 << 20;
    let reads: Nanos =
        (0..64u64).map(|n| one(&mut target, BlockOp::Read, far + n * 65536, 65536)).fold(Nanos::ZERO, |a, b| a + b);
    let window = 100.0 + 1310.72;
    assert!((reads.as_micros_f64() / (32.0 * window) - 1.0).abs() < 0.1, "{reads}");
}

#[test]
fn written_twice_in_memory_is_written_once() {
    let mut target = HostTarget::new(Card::new(), board("colibri-imx6s").unwrap(), false);
    target.through_page_cache(BlockOp::Write, true);
    for _ in 0..10 {
        one(&mut target, BlockOp::Write, 4096, 8192);
        one(&mut target, BlockOp::Write, 8192, 8192);
    }
    one(&mut target, BlockOp::Flush, 0, 0);
    let asked: Vec<_> =
        target.card().asked.iter().map(|request| (request.op, request.offset_bytes, request.bytes)).collect();
    assert_eq!(asked, [(BlockOp::Write, 4096, 12288), (BlockOp::Flush, 0, 0)]);
}

#[test]
fn a_first_write_below_a_block_is_a_whole_block_and_a_step_back() {
    let mut host = HostTarget::measured(Card::new(), Nanos::from_micros(10), Nanos::from_micros(30), Nanos::ZERO);
    let write = |offset_bytes, bytes| BlockRequest { op: BlockOp::Write, offset_bytes, bytes, through: false, tag: 0 };
    let trim = BlockRequest { op: BlockOp::Trim, ..write(0, 1 << 20) };
    let given = [write(0, 1024), write(1024, 1024), write(4096, 2048), write(0, 1024), trim, write(6144, 4096)];
    for request in given {
        host.submit(request).unwrap();
        host.wait().unwrap();
    }
    let asked: Vec<(u64, u64)> = host.card().asked.iter().map(|asked| (asked.offset_bytes, asked.bytes)).collect();
    // Rewritten blocks are not new; a trim of the file's end frees its blocks.
    assert_eq!(asked, [(0, 4096), (1024, 1024), (4096, 4096), (0, 1024), (0, 1 << 20), (4096, 8192)]);
}

#[test]
fn a_measuring_host_adds_its_time_to_each_request() {
    let mut host = HostTarget::measured(Card::new(), Nanos::from_micros(11), Nanos::from_micros(30), Nanos(500));
    host.submit(BlockRequest { op: BlockOp::Read, offset_bytes: 0, bytes: 10 << 10, through: false, tag: 0 }).unwrap();
    let done = host.wait().unwrap();
    let card = Nanos::from_micros(100) + Nanos((10 << 10) * 10);
    assert_eq!(done.done.since(done.submitted), card + Nanos::from_micros(11 + 5));
    // Of a large call it maps the first MiB; the rest while the card works.
    let taken = one(&mut host, BlockOp::Read, 0, 4 << 20);
    assert_eq!(taken, Nanos::from_micros(100) + Nanos((4 << 20) * 10) + Nanos::from_micros(11 + 512));
}

/// A host from a file: alone, work beside the card counts only where it is longer than the card; with others
/// outstanding, either the card with its gap or one core is the limit.
#[test]
fn a_described_host_costs_what_its_file_says() {
    let period = |overlap_us: f64, busy_us: f64, depth: u64| {
        let cost = RequestCost {
            call_us: 10.0,
            before_us: 20.0,
            before_us_per_kib: 0.5,
            after_us: 5.0,
            after_us_per_kib: 0.25,
            overlap_us,
            busy_us,
            gap_us: 12.0,
        };
        let no_cqe = RequestCosts { read: cost, write: cost };
        let (name, description) = ("a".to_owned(), "b".to_owned());
        let host = HostDescription { name, description, sources: Vec::new(), cores: 1, cqe: None, no_cqe };
        let mut target = HostTarget::described(Card::new(), &host, true);
        (0..depth).for_each(|_| target.submit(request(BlockOp::Read, 0, 4096)).unwrap());
        let mut next = || {
            target.wait().unwrap();
            target.submit(request(BlockOp::Read, 0, 4096)).unwrap();
            target.now()
        };
        for _ in 0..50 {
            next();
        }
        let begun = next();
        for _ in 0..99 {
            next();
        }
        Nanos(next().since(begun).0 / 100)
    };
    let card = Nanos(100_000 + 4096 * 10);
    let us = Nanos::from_micros;
    assert_eq!(period(30.0, 90.0, 1), us(10 + 22 + 6) + card);
    assert_eq!(period(200.0, 300.0, 1), us(10 + 22 + 6 + 200));
    assert_eq!(period(30.0, 90.0, 8), card + us(12));
    assert_eq!(period(30.0, 300.0, 8), us(303));
}
