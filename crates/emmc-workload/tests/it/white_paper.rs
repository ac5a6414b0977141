//! Measured figures of a white paper, from whole benches: its boards above its cards (`bench sim:PROFILE --board
//! BOARD`).
//!
//! Each test prints every figure beside the published one: `cargo test -p emmc-workload --test it white_paper:: --
//! --nocapture`. Tests of `emmc-host` (`paper/`) cover the figures that the paper computes from its spans; here the
//! simulated card gives the hardware time, and mechanisms of the board the rest.

use crate::cards::{queueing_card, told};
use emmc_host::system::Spent;
use emmc_host::{HostTarget, board};
use emmc_port::{BlockOp, BlockTarget};
use emmc_sim::SimTarget;
use emmc_workload::{FlushAt, Limit, Measured, Mix, Options, Order, Outcome, Progress, Stream, Unwatched, drive};

const MIB: f64 = 1_048_576.0;

fn behind(profile: &str, name: &str, queueing: bool) -> HostTarget<SimTarget> {
    let board = board(name).unwrap();
    HostTarget::new(queueing_card(profile, |_| (), queueing), board, queueing)
}

fn run(target: &mut dyn BlockTarget, stream: &Stream) -> Measured {
    let step = Progress { step: "white paper", number: 1, steps: 1, done_share: 0.0, whole: None, now: None };
    drive(target, stream, step, &mut Unwatched).unwrap()
}

/// A file of 100 MiB in records, as the paper's tool writes it.
fn file(op: BlockOp, order: Order, block: u64) -> Stream {
    Stream { flush: FlushAt::Never, seed: 3, ..Stream::pass(op, order, 0, 100 << 20, block) }
}

fn mib_s(measured: &Measured) -> f64 {
    measured.bytes_per_s() / MIB
}

/// What the requests since then cost.
fn since(after: Spent, before: &Spent) -> Spent {
    let less = |after: u64, before: u64| after - before;
    Spent {
        pre_ns: less(after.pre_ns, before.pre_ns),
        card_ns: less(after.card_ns, before.card_ns),
        post_ns: less(after.post_ns, before.post_ns),
        ..after
    }
}

struct Line {
    what: &'static str,
    published: f64,
    simulated: f64,
    /// Software's share as published. Unit: percent.
    share: (f64, f64),
    found_share: f64,
}

/// The four workloads of Table 2 on the Jetson TX1.
fn table_2() -> Vec<Line> {
    let run = |stream: Stream, through_cache: bool| {
        let mut target = behind("jetson-tx1-8g", "jetson-tx1", false);
        if matches!(stream.mix, Mix::Only(BlockOp::Read)) {
            let fill = Stream { flush: FlushAt::End, ..file(BlockOp::Write, Order::Sequential, 512 << 10) };
            run(&mut target, &fill);
        }
        assert!(target.through_page_cache(BlockOp::Read, through_cache));
        let before = target.spent();
        let measured = run(&mut target, &stream);
        (mib_s(&measured), since(target.spent(), &before).overhead_share() * 100.0)
    };
    let record = 128 << 10;
    let write = file(BlockOp::Write, Order::Sequential, record);
    let read = file(BlockOp::Read, Order::Sequential, record);
    [
        ("sync sequential write", 36.0, (23.0, 32.0), Stream { through: true, ..write }, false),
        ("direct sequential write", 71.0, (10.0, 15.0), write, false),
        ("sync sequential read", 197.0, (34.0, 44.0), read, true),
        ("direct sequential read", 175.0, (40.0, 40.0), read, false),
    ]
    .into_iter()
    .map(|(what, published, share, stream, cached)| {
        let (simulated, found_share) = run(stream, cached);
        Line { what, published, simulated, share, found_share }
    })
    .collect()
}

fn beside((low, high): (f64, f64), found: f64) -> f64 {
    (low - found).max(found - high).max(0.0)
}

#[test]
fn measured_speeds_of_the_jetson_are_reproduced() {
    println!("Jetson TX1, Table 2, MiB/s (the paper writes MB/s) and software's share of a request");
    let lines = table_2();
    for Line { what, published, simulated, share, found_share } in &lines {
        let off = (simulated / published - 1.0) * 100.0;
        let (low, high) = share;
        println!(
            "{what:>24}: measured {published:>5.1}, here {simulated:>6.1} ({off:+.1} %); share {low} to {high} %, here {found_share:.1} %"
        );
    }
    for line in &lines {
        assert!((line.simulated / line.published - 1.0).abs() < 0.10, "{}: {}", line.what, line.simulated);
        assert!(beside(line.share, line.found_share) <= 5.0, "{}: {} %", line.what, line.found_share);
    }
}

/// Random requests of 64 KiB, one at a time and as many as the queue takes.
fn zynq(op: BlockOp, depth: u32, queueing: bool) -> (f64, f64) {
    let mut target = behind("zynq-32g", "zynq-zed", queueing);
    let fill = Stream { flush: FlushAt::End, ..file(BlockOp::Write, Order::Sequential, 512 << 10) };
    run(&mut target, &fill);
    let before = target.spent();
    let stream = Stream { depth, ..file(op, Order::Random, 64 << 10) };
    let limit = Limit { bytes: 64 << 20, time: None };
    let measured = run(&mut target, &Stream { limit, ..stream });
    (mib_s(&measured), since(target.spent(), &before).overhead_share() * 100.0)
}

/// Table 3 prints no measured speeds: it has only those computed for one thread and for many.
#[test]
fn speeds_and_shares_of_the_zynq_are_reproduced() {
    println!("Zynq ZedBoard, Table 3, MiB/s; 64 KiB anywhere");
    for (what, op, depth, published) in [
        ("read, one at a time", BlockOp::Read, 1, 38.01),
        ("read, 32 at once", BlockOp::Read, 32, 84.8),
        ("write, one at a time", BlockOp::Write, 1, 30.23),
        ("write, 32 at once", BlockOp::Write, 32, 36.58),
    ] {
        let (found, _) = zynq(op, depth, true);
        let off = (found / published - 1.0) * 100.0;
        println!("{what:>22}: computed there {published:>5.2}, here {found:>6.2} ({off:+.1} %)");
        assert!(off.abs() < 10.0, "{what}: {found}");
    }
    let (_, read) = zynq(BlockOp::Read, 1, true);
    let (_, write) = zynq(BlockOp::Write, 1, true);
    println!("software's share: sync writes 87 to 91 %, here {write:.1} %; sync reads 65 %, here {read:.1} %");
    assert!(beside((87.0, 91.0), write) <= 5.0, "{write}");
    assert!(beside((65.0, 65.0), read) <= 5.0, "{read}");
    // Not reproduced, and not fitted: the list's direct reads. Table 3 has one random read of an unspecified kind; 68 %
    // is the list's sync read. Direct spans were not published, and their difference on the Jetson (pages of the
    // program are pinned, without a copy) makes software's share larger there, 39 against 35 %, not smaller.
    let direct = beside((56.0, 60.0), read);
    println!(
        "direct reads 56 to 60 %: no spans of direct reads were published; Table 3's are {direct:.1} points beside"
    );
    assert!((5.0..10.0).contains(&direct), "it is met now: say so: {direct}");
}

#[test]
fn gain_of_a_queue_on_the_zynq() {
    for (what, op, least, most) in [("reads", BlockOp::Read, 8.0, 12.0), ("writes", BlockOp::Write, -1.0, 1.0)] {
        let [with, without] = [true, false].map(|queueing| zynq(op, 32, queueing).0);
        let gain = (with / without - 1.0) * 100.0;
        println!(
            "command queueing, random {what}: printed about 10 %, here {gain:+.1} % ({without:.1} to {with:.1} MiB/s)"
        );
        assert!((least..=most).contains(&gain), "{what}: {gain}");
    }
}

fn cell<'a>(outcome: &'a Outcome, row: &str, column: &str) -> &'a emmc_workload::Measurement {
    outcome.measurements.iter().find(|found| found.row == row && found.column == column).unwrap()
}

/// The same by the suites: dd's sync writes and direct reads, and iozone's direct writes of a new file.
#[test]
fn suites_agree_with_the_measurements() {
    let options =
        |size_mib: u64| Options { size_bytes: Some(size_mib << 20), rows: vec!["128".into()], ..Options::default() };
    let dd = told("dd", &mut behind("jetson-tx1-8g", "jetson-tx1", false), &options(100));
    let iozone = told("iozone", &mut behind("jetson-tx1-8g", "jetson-tx1", false), &options(100));
    let mut target = behind("jetson-tx1-8g", "jetson-tx1", false);
    run(&mut target, &Stream { flush: FlushAt::End, ..file(BlockOp::Write, Order::Sequential, 512 << 10) });
    let hdparm = told("hdparm", &mut target, &Options { size_bytes: Some(100 << 20), ..Options::default() });
    for (what, found, published) in [
        ("hdparm buffered", cell(&hdparm, "buffered", "read"), 197.0),
        ("dd oflag=dsync", cell(&dd, "128", "oflag=dsync"), 36.0),
        ("dd iflag=direct", cell(&dd, "128", "iflag=direct"), 175.0),
        ("iozone write", cell(&iozone, "128", "write"), 71.0),
        ("iozone read", cell(&iozone, "128", "read"), 175.0),
    ] {
        let mib_s = found.mb_per_s * 1e6 / MIB;
        let off = (mib_s / published - 1.0) * 100.0;
        println!("{what:>16}: measured {published:>5.1}, here {mib_s:>6.1} MiB/s ({off:+.1} %)");
        assert!(off.abs() < 10.0, "{what}: {mib_s}");
    }
}

/// The lists' lines of 4 KiB, of which neither spans nor the card's times were published. With the spans of large
/// requests scaled down, and cards whose times of large requests were published, none of them is reproduced, and no
/// parameter is fitted to them.
#[test]
fn shares_of_small_requests_are_not_reproduced() {
    let share = |profile: &str, name: &str, op: BlockOp, through: bool| {
        let mut target = behind(profile, name, name == "zynq-zed");
        let fill = Stream { flush: FlushAt::End, ..file(BlockOp::Write, Order::Sequential, 512 << 10) };
        run(&mut target, &fill);
        let before = target.spent();
        let limit = Limit { bytes: 8 << 20, time: None };
        run(&mut target, &Stream { through, limit, ..file(op, Order::Random, 4096) });
        since(target.spent(), &before).overhead_share() * 100.0
    };
    for (profile, name, what, op, through, published) in [
        ("jetson-tx1-8g", "jetson-tx1", "sync writes", BlockOp::Write, true, (80.0, 80.0)),
        ("jetson-tx1-8g", "jetson-tx1", "direct writes", BlockOp::Write, false, (45.0, 45.0)),
        ("jetson-tx1-8g", "jetson-tx1", "reads", BlockOp::Read, false, (40.0, 40.0)),
        ("zynq-32g", "zynq-zed", "writes", BlockOp::Write, false, (87.0, 91.0)),
        ("zynq-32g", "zynq-zed", "reads", BlockOp::Read, false, (64.0, 64.0)),
    ] {
        let found = share(profile, name, op, through);
        let points = beside(published, found);
        println!(
            "{name}, 4 KiB {what}: printed {} to {} %, here {found:.1} %, {points:.1} points beside",
            published.0, published.1
        );
        assert!(points > 5.0, "{name}, {what}: it is met now: say so: {found}");
    }
}
