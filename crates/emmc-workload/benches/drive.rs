//! The real time that a request costs: the loop that drives a target, alone and with a virtual card below it.
//!
//! `cargo bench -p emmc-workload --bench drive`

#![allow(missing_docs, reason = "the macros of criterion make public functions")]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use emmc_card::device::{Device, DeviceOptions};
use emmc_card::nand::StoredContent;
use emmc_card::profile::shipped;
use emmc_port::{BlockDone, BlockOp, BlockRequest, BlockTarget, TargetError, TargetKind, TargetShape};
use emmc_sim::SimTarget;
use emmc_units::{Instant, Nanos};
use emmc_workload::{Limit, Order, Progress, Stream, Unwatched, drive};

const REQUESTS: u64 = 10_000;
const STEP: Progress<'_> = Progress { step: "bench", number: 1, steps: 1, done_share: 0.0, whole: None, now: None };

/// Every request takes a microsecond.
struct Nothing {
    shape: TargetShape,
    now: Instant,
    last: Option<BlockRequest>,
}

impl BlockTarget for Nothing {
    fn shape(&self) -> &TargetShape {
        &self.shape
    }

    fn now(&mut self) -> Instant {
        self.now
    }

    fn submit(&mut self, request: BlockRequest) -> Result<(), TargetError> {
        self.last = Some(request);
        Ok(())
    }

    fn wait(&mut self) -> Result<BlockDone, TargetError> {
        let submitted = self.now;
        self.now = self.now + Nanos::from_micros(1);
        let request = self.last.take().expect("something is outstanding");
        Ok(BlockDone { request, submitted, done: self.now, error: None })
    }

    fn idle(&mut self, time: Nanos) -> Result<(), TargetError> {
        self.now = self.now + time;
        Ok(())
    }
}

fn nothing() -> Nothing {
    let shape = TargetShape {
        name: "nothing".into(),
        kind: TargetKind::Simulated,
        size_bytes: 8 << 30,
        sector_bytes: 512,
        depth_max: 32,
        can_trim: true,
        engine: "none",
    };
    Nothing { shape, now: Instant::START, last: None }
}

fn card() -> SimTarget {
    let profile = shipped::named("friendlyelec-emmc-8g").expect("the profile is shipped");
    let device =
        Device::new(profile, DeviceOptions { keep: StoredContent::Nothing, seed: 1 }).expect("the profile is good");
    SimTarget::new(device, "sim:bench", Instant::START, true)
}

fn stream(op: BlockOp, order: Order) -> Stream {
    let limit = Limit { bytes: REQUESTS * 4096, time: None };
    Stream { limit, ..Stream::pass(op, order, 0, 100 << 20, 4096) }
}

fn requests(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("drive");
    group.throughput(Throughput::Elements(REQUESTS));
    let cases = [
        ("sequential reads", BlockOp::Read, Order::Sequential),
        ("shuffled reads", BlockOp::Read, Order::Shuffled),
        ("shuffled writes", BlockOp::Write, Order::Shuffled),
    ];
    for (name, op, order) in cases {
        let stream = stream(op, order);
        group.bench_function(format!("nothing, {name}"), |bencher| {
            let mut target = nothing();
            bencher.iter(|| drive(&mut target, &stream, STEP, &mut Unwatched).expect("it fits").requests);
        });
        group.bench_function(format!("card, {name}"), |bencher| {
            let fill = |mut target: SimTarget| {
                let fill = Stream::pass(BlockOp::Write, Order::Sequential, 0, 100 << 20, 512 << 10);
                drive(&mut target, &fill, STEP, &mut Unwatched).expect("it fits");
                target
            };
            bencher.iter_batched_ref(
                || fill(card()),
                |target| drive(target, &stream, STEP, &mut Unwatched).expect("it fits").requests,
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = requests
}
criterion_main!(benches);
