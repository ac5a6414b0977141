//! A round of ours: the suites' stream, on the target that `bench` opens.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use emmc_linux::bench_context::Meter;
use emmc_linux::block_io::{BlockIo, EngineChoice, Opening, open};
use emmc_port::{BlockOp, BlockTarget};
use emmc_units::Nanos;
use emmc_workload::{Limit, Measured, Order, Progress, Stream, Unwatched, drive};

use crate::{Case, Round, switches};

pub(crate) fn round(device: &Path, case: Case, time: Duration, seed: u64) -> Round {
    let engine = if case.engine == "pread" { EngineChoice::Pread } else { EngineChoice::Uring };
    let opening = Opening { engine, write: case.write, flush_all: false, seed, stop: Arc::default() };
    let mut target = open(device, "loop", &opening).expect("the loop device is ours");
    let op = if case.write { BlockOp::Write } else { BlockOp::Read };
    let size = target.shape().size_bytes;
    let pass = Stream::pass(op, Order::Random, 0, size, case.block_bytes);
    let stream = |limit| Stream { depth: case.depth, limit, seed, ..pass };
    // Threads and memory exist before the time starts, as in fio.
    let few = u64::from(case.depth) * case.block_bytes;
    run(&mut target, &stream(Limit { bytes: few, time: None }));
    let (meter, own) = (Meter::default(), thread_time());
    let timed = Limit { bytes: u64::MAX, time: Some(Nanos(time.as_nanos() as u64)) };
    let (measured, switches) = switches::own(|| run(&mut target, &stream(timed)));
    let effort = meter.effort();
    // fio counts its own threads, but not the kernel's threads for io_uring.
    let cpu_s = if engine == EngineChoice::Pread { effort.user_s + effort.system_s } else { thread_time() - own };
    let told = measured.to_measurement("", "", "");
    let latency = if case.write { told.write_us } else { told.read_us }.expect("requests were made");
    Round {
        iops: told.iops,
        cpu_us: cpu_s * 1e6 / measured.requests.max(1) as f64,
        switches: switches.per(measured.requests as f64),
        percentiles_us: [latency.p50, latency.p99, latency.p999],
    }
}

fn run(target: &mut BlockIo, stream: &Stream) -> Measured {
    let step = Progress { step: "", number: 1, steps: 1, done_share: 0.0, whole: None, now: None };
    drive(target, stream, step, &mut Unwatched).expect("the loop device works")
}

/// Processor time of this thread. Unit: seconds.
fn thread_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
