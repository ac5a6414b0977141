//! ext4 against f2fs: the same work through a model of each, on the same card.
//!
//! For each filesystem, on a card of which the range was trimmed before: a large file written and read in order, written and
//! read by chance in blocks of 4 KiB past the page cache, small files created with a sync each and deleted. With `--rows`
//! `discard` or `commit=30` the mount option is added. Absent on purpose: what the processor spends, and real filesystems:
//! on a directory the suites measure the one that is there.

use emmc_port::{BlockOp, TargetShape};
use emmc_units::{Nanos, Rng};

use super::{Bench, Cost, Options, Suite};
use crate::fs::{BLOCK_BYTES, Disk, Ext4, F2fs, FileId, Filesystem, MountOptions};
use crate::grid::Grid;
use crate::order::Order;
use crate::stream::{BenchError, Stream};

const NAME: &str = "fs";
/// Unit: bytes.
const DISK_BYTES: u64 = 2 << 30;
const FILE_BYTES: u64 = 256 << 20;
const RANDOM_BYTES: u64 = 64 << 20;
const SMALL_FILES: u64 = 1000;
const SMALL_BYTES: u64 = 16 << 10;

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fs;

/// A piece of work: its row, size of a request, requests, and how it is done.
type Step = (&'static str, u64, u64, fn(&mut Work<'_, '_>) -> Result<(), BenchError>);

/// A filesystem at work.
struct Work<'a, 'd> {
    disk: &'a mut Disk<'d>,
    filesystem: Box<dyn Filesystem>,
    file: FileId,
    small: Vec<FileId>,
    rng: Rng,
}

const STEPS: [Step; 6] = [
    ("write", 1 << 20, FILE_BYTES >> 20, |work| {
        for part in 0..FILE_BYTES >> 20 {
            work.filesystem.write(work.disk, work.file, part << 20, 1 << 20)?;
        }
        work.filesystem.fsync(work.disk, work.file)
    }),
    ("read", 1 << 20, FILE_BYTES >> 20, |work| {
        (0..FILE_BYTES >> 20).try_for_each(|part| work.filesystem.read(work.disk, work.file, part << 20, 1 << 20))
    }),
    ("random write", BLOCK_BYTES, RANDOM_BYTES / BLOCK_BYTES, |work| {
        for _ in 0..RANDOM_BYTES / BLOCK_BYTES {
            let offset = work.rng.below(FILE_BYTES / BLOCK_BYTES) * BLOCK_BYTES;
            work.filesystem.write_direct(work.disk, work.file, offset, BLOCK_BYTES)?;
        }
        work.filesystem.fsync(work.disk, work.file)
    }),
    ("random read", BLOCK_BYTES, RANDOM_BYTES / BLOCK_BYTES, |work| {
        (0..RANDOM_BYTES / BLOCK_BYTES).try_for_each(|_| {
            let offset = work.rng.below(FILE_BYTES / BLOCK_BYTES) * BLOCK_BYTES;
            work.filesystem.read(work.disk, work.file, offset, BLOCK_BYTES)
        })
    }),
    ("create and sync", SMALL_BYTES, SMALL_FILES, |work| {
        for _ in 0..SMALL_FILES {
            let file = work.filesystem.create(work.disk, 1)?;
            work.filesystem.write(work.disk, file, 0, SMALL_BYTES)?;
            work.filesystem.fsync(work.disk, file)?;
            work.small.push(file);
        }
        Ok(())
    }),
    ("delete", SMALL_BYTES, SMALL_FILES, |work| {
        for file in std::mem::take(&mut work.small) {
            work.filesystem.unlink(work.disk, file)?;
        }
        work.filesystem.sync(work.disk)
    }),
];

impl Suite for Fs {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "ext4 against f2fs, modelled: large files in order and by chance, small files with a sync each, deletion"
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        if options.read_only {
            let what = "it writes: nothing can be told without".into();
            return Err(BenchError::Misfit { suite: NAME, what });
        }
        mount_options(options)?;
        super::on_disk::cost(
            NAME,
            shape,
            options,
            DISK_BYTES,
            2 * (FILE_BYTES + 2 * RANDOM_BYTES + 8 * SMALL_FILES * SMALL_BYTES),
        )
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let (from, seed, mount) = (bench.options.from_bytes, bench.options.seed, mount_options(bench.options)?);
        let to = from + bench.options.size_bytes.unwrap_or(DISK_BYTES);
        let mut times: Vec<Vec<Nanos>> = Vec::new();
        for name in ["ext4", "f2fs"] {
            if bench.target.shape().can_trim {
                bench
                    .prepare("a trimmed range", &Stream::pass(BlockOp::Trim, Order::Sequential, from, to, to - from))?;
            }
            let found = bench.on_disk(from, to, |disk| run_steps(disk, name, mount, seed))?;
            times.push(found);
        }
        let columns = [("ext4", "MB/s"), ("f2fs", "MB/s"), ("f2fs over ext4", "")];
        let mut grid = Grid::new(NAME, "work", &columns, "MB a second; writes end with a sync");
        for (index, (name, block, requests, _)) in STEPS.iter().enumerate() {
            let speed = |time: Nanos| (block * requests) as f64 / 1e6 / time.as_secs_f64().max(1e-9);
            let [ext4, f2fs] = [0, 1].map(|filesystem| speed(times[filesystem][index]));
            grid.line(*name, &[ext4, f2fs, f2fs / ext4]);
        }
        bench.grid(grid);
        Ok(())
    }
}

fn run_steps(disk: &mut Disk<'_>, name: &str, mount: MountOptions, seed: u64) -> Result<Vec<Nanos>, BenchError> {
    disk.step(format!("mkfs.{name}"));
    let mut filesystem: Box<dyn Filesystem> = match name {
        "f2fs" => Box::new(F2fs::make(disk, mount)?),
        _ => Box::new(Ext4::make(disk, mount)?),
    };
    let file = filesystem.create(disk, 0)?;
    let mut work = Work { disk, filesystem, file, small: Vec::new(), rng: Rng::new(seed) };
    STEPS
        .iter()
        .map(|(row, _, _, step)| {
            work.disk.step(format!("{name} {row}"));
            let before = work.disk.now();
            step(&mut work)?;
            Ok(work.disk.now().since(before))
        })
        .collect()
}

fn mount_options(options: &Options) -> Result<MountOptions, BenchError> {
    let mut mount = MountOptions::default();
    for row in &options.rows {
        match (row.as_str(), row.strip_prefix("commit=").map(str::parse)) {
            ("discard", _) => mount.discard = true,
            (_, Some(Ok(seconds))) => mount.commit_s = seconds,
            _ => {
                let what = format!("row {row:?}: expected the mount option discard or commit=SECONDS");
                return Err(BenchError::Misfit { suite: NAME, what });
            }
        }
    }
    Ok(mount)
}
