//! A boot as the card sees it: the reads and the few writes recorded over ten seconds on one board.
//!
//! Recorded: 121 MB read in 1800 requests of 49 KiB on average, 0.8 MB written. Assumed: files of 4 KiB to 512 KiB
//! anywhere on the root filesystem, each read from its start in windows of at most 128 KiB. Much of a real boot is
//! processor time, and services wait for each other: this is the card's share, with one reader.
//!
//! With a recording (`trace record --at-boot`) its requests are replayed instead, as by the suite `replay`.
//!
//! In a folder the files are real, with the kernel's own read-ahead.

mod real_files;

use emmc_port::{BlockOp, TargetShape};
use emmc_units::Rng;

use super::replay::ReplaySuite;
use super::{Bench, Cost, Knob, Options, Suite};
use crate::drive::order::Order;
use crate::drive::stream::{BenchError, FlushAt, Stream};
use crate::result::Figure;

pub(super) use real_files::RealBoot;

const NAME: &str = "boot";
/// Source: iostat of four boots, 121 to 123 MB. Unit: bytes.
const READ_BYTES: u64 = 121_217 << 10;
/// Source: the same, 0.8 MB. Unit: bytes.
const WRITTEN_BYTES: u64 = 804 << 10;
/// The last write starts below that. Unit: bytes.
const BLOCK: u64 = 4096;
/// Assumed: the size of the root filesystem. Unit: bytes.
const DISK_BYTES: u64 = 1 << 30;
const DISK_BYTES_MIN: u64 = 64 << 20;
/// Source: VM_MAX_READAHEAD of the kernel. Unit: bytes.
const WINDOW_BYTES: u64 = 128 << 10;

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Boot;

impl Suite for Boot {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "the reads of a boot: 121 MB in requests of about 49 KiB, under 1 MB of writes; or your own one (--trace FILE)"
    }

    fn follows(&self) -> &'static [Knob] {
        &[Knob::From, Knob::Size, Knob::ReadOnly, Knob::Trace]
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        if options.replay.is_some() {
            return ReplaySuite.cost(shape, options);
        }
        let size = options.size_bytes.unwrap_or(DISK_BYTES);
        super::disk::cost(NAME, shape, options, (DISK_BYTES_MIN, DISK_BYTES), size + WRITTEN_BYTES + BLOCK)
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        if bench.options.replay.is_some() {
            return ReplaySuite.run(bench);
        }
        let (from, seed) = (bench.options.from_bytes, bench.options.seed);
        let size = bench.options.size_bytes.unwrap_or(DISK_BYTES);
        if !bench.options.read_only {
            let fill = Stream::pass(BlockOp::Write, Order::Sequential, from, from + size, 512 << 10);
            bench.prepare("a root filesystem", &Stream { flush: FlushAt::End, ..fill })?;
        }
        let read_only = bench.options.read_only;
        let (seconds, requests) = bench.on_disk(from, from + size, |disk| {
            disk.step("boot");
            let (mut rng, began) = (Rng::new(seed), disk.now());
            let blocks = disk.blocks();
            let (mut requests, mut written) = (0u64, 0);
            while disk.read_bytes < READ_BYTES {
                // Sizes are uniform over powers of two, from one block to 128.
                let largest = 1 << rng.below(8);
                let mut left = 1 + rng.below(largest);
                let mut block = rng.below(blocks.saturating_sub(1024).max(1));
                while left > 0 {
                    let count = left.min(WINDOW_BYTES / 4096);
                    disk.read(block, count)?;
                    (block, left, requests) = (block + count, left - count, requests + 1);
                }
                if !read_only && disk.read_bytes * WRITTEN_BYTES / READ_BYTES > written {
                    disk.write(rng.below(blocks), 1, false)?;
                    written += 4096;
                }
            }
            Ok((disk.now().since(began).as_secs_f64(), requests))
        })?;
        let mean_kib = READ_BYTES as f64 / 1024.0 / requests as f64;
        bench.figure(Figure::new(
            "waiting for the card",
            seconds,
            "s",
            format!("{requests} reads of {mean_kib:.0} KiB on average"),
        ));
        bench.figure(Figure::new("speed", READ_BYTES as f64 / 1e6 / seconds, "MB/s", "of the reads"));
        Ok(())
    }
}
