//! ext4 against f2fs, and mount options against each other: the same work on each.
//!
//! On a virtual card and on a file the filesystems are models, which make the requests of the real ones; processor time
//! is not included. On a block device they are the kernel's own: created, mounted, used and removed. In a folder only
//! its own filesystem is measured.
//!
//! For each, on a trimmed range: a large file written and read sequentially, written and read at random in blocks of 4
//! KiB with direct I/O, small files created with a sync each and deleted. `--rows` are mount options: `default`,
//! `discard`, `nodiscard`, `commit=SECONDS`, or several joined with `+`; each row is measured.

mod real_files;
mod steps;

use std::collections::BTreeSet;

use emmc_port::{BlockOp, TargetShape};

pub(super) use real_files::RealFs;

use super::{Bench, Cost, Knob, Options, Suite};
use crate::drive::order::Order;
use crate::drive::stream::{BenchError, Stream};
use crate::fs::{Disk, Ext4, F2fs, Filesystem, ModelTree, MountOptions};
use crate::result::grid::{Grid, GridLine};
use steps::{Plan, STEPS};

const NAME: &str = "fs";
/// Unit: bytes.
const DISK_BYTES: u64 = 2 << 30;
/// Large enough for both filesystems and the work. Unit: bytes.
const DISK_BYTES_MIN: u64 = 128 << 20;
/// The longest `commit=`: the kernel refuses larger ones, after the filesystem was created. Unit: seconds.
const COMMIT_S_MAX: u32 = 86_400;

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fs;

/// A filesystem with its mount options: a column.
#[derive(Clone, Debug)]
struct Column {
    fstype: &'static str,
    /// In the kernel's syntax.
    options: String,
    title: String,
}

/// The columns for the rows of `--rows`.
///
/// Errors: a row that is not a mount option.
fn columns(options: &Options) -> Result<Vec<Column>, BenchError> {
    let default = ["default".to_owned()];
    let rows = if options.rows.is_empty() { &default[..] } else { &options.rows };
    let (mut columns, mut seen) = (Vec::new(), BTreeSet::new());
    for row in rows {
        let words: Vec<&str> = row.split('+').filter(|word| *word != "default").collect();
        if !seen.insert(BTreeSet::from_iter(words.clone())) {
            let what = format!("row {row:?}: the same options appear twice; expected each once");
            return Err(BenchError::Misfit { suite: NAME, what });
        }
        for word in &words {
            let is_commit = word
                .strip_prefix("commit=")
                .is_some_and(|seconds| seconds.parse().is_ok_and(|seconds: u32| seconds <= COMMIT_S_MAX));
            if !is_commit && !["discard", "nodiscard"].contains(word) {
                let what = format!(
                    "row {row:?}: expected mount options: default, discard, nodiscard, commit=SECONDS (up to {COMMIT_S_MAX}), or several joined with +"
                );
                return Err(BenchError::Misfit { suite: NAME, what });
            }
        }
        for fstype in ["ext4", "f2fs"] {
            let title = if rows.len() == 1 || words.is_empty() { fstype.into() } else { format!("{fstype} {row}") };
            columns.push(Column { fstype, options: words.join(","), title });
        }
    }
    Ok(columns)
}

/// The results of every column; missing ones were not measured.
fn table(columns: &[Column], speeds: &[Vec<f64>], plan: &Plan) -> Grid {
    let is_pair = matches!(columns, [ext4, f2fs] if ext4.fstype != f2fs.fstype);
    let mut titles: Vec<(&str, &str)> = columns.iter().map(|column| (column.title.as_str(), "MB/s")).collect();
    if is_pair {
        titles.push(("f2fs over ext4", ""));
    }
    let mut grid = Grid::new(NAME, "work", &titles, plan.told());
    for (index, (row, ..)) in STEPS.iter().enumerate() {
        let value = |column: usize| speeds.get(column).and_then(|speeds| speeds.get(index)).copied();
        let mut values: Vec<Option<f64>> = (0..columns.len()).map(value).collect();
        if is_pair {
            values.push(value(0).zip(value(1)).map(|(ext4, f2fs)| f2fs / ext4));
        }
        grid.lines.push(GridLine { row: (*row).into(), values });
    }
    grid
}

fn writes(options: &Options) -> Result<(), BenchError> {
    if options.read_only {
        return Err(BenchError::Misfit { suite: NAME, what: "it must write".into() });
    }
    Ok(())
}

impl Suite for Fs {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "ext4 against f2fs, modelled: sequential and random I/O on a large file, small files with a sync each, deletion"
    }

    fn follows(&self) -> &'static [Knob] {
        &[Knob::From, Knob::Size, Knob::Rows]
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        writes(options)?;
        let count = columns(options)?.len() as u64;
        let written = count * Plan::of(options.size_bytes.unwrap_or(DISK_BYTES)).written_bytes();
        super::disk::cost(NAME, shape, options, (DISK_BYTES_MIN, DISK_BYTES), written)
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let (from, seed, columns) = (bench.options.from_bytes, bench.options.seed, columns(bench.options)?);
        let size = bench.options.size_bytes.unwrap_or(DISK_BYTES);
        let (to, plan) = (from + size, Plan::of(size));
        let mut speeds = vec![Vec::new(); columns.len()];
        for (column, speeds) in columns.iter().zip(&mut speeds) {
            if bench.target.shape().can_trim {
                let trim = Stream::pass(BlockOp::Trim, Order::Sequential, from, to, to - from);
                bench.prepare("a trimmed range", &trim)?;
            }
            bench.on_disk(from, to, |disk| {
                disk.step(format!("mkfs.{}", column.fstype));
                let filesystem = model(disk, column)?;
                let mut tree = ModelTree::new(disk, filesystem);
                steps::run(&mut tree, &column.title, plan, seed, speeds)?;
                Ok(())
            })?;
        }
        bench.grid(table(&columns, &speeds, &plan));
        Ok(())
    }
}

fn model(disk: &mut Disk<'_>, column: &Column) -> Result<Box<dyn Filesystem>, BenchError> {
    let mut mount = MountOptions::default();
    for word in column.options.split(',') {
        match (word, word.strip_prefix("commit=").map(str::parse)) {
            ("discard", _) => mount.discard = true,
            ("nodiscard", _) => mount.discard = false,
            (_, Some(Ok(seconds))) => mount.commit_s = seconds,
            _ => {}
        }
    }
    Ok(match column.fstype {
        "f2fs" => Box::new(F2fs::make(disk, mount)?),
        _ => Box::new(Ext4::make(disk, mount)?),
    })
}
