//! The comparison on the kernel's own filesystems: created on a block device, or a folder's own.

use std::collections::BTreeMap;

use emmc_port::{FilesystemError, NewFilesystem};

use super::steps::{self, Plan};
use super::{Column, DISK_BYTES, DISK_BYTES_MIN, NAME, columns, table, writes};
use crate::drive::stream::BenchError;
use crate::result::grid::{Grid, GridLine};
use crate::suites::files::{FileBench, FileShape, FileSuite, room};
use crate::suites::{Cost, Options};

/// The suite on files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RealFs;

/// The size of the used part: the requested size, 2 GiB, or all of a smaller device.
fn size_bytes(shape: &FileShape, options: &Options) -> u64 {
    let whole = if shape.is_device { shape.room_bytes / (1 << 20) * (1 << 20) } else { u64::MAX };
    options.size_bytes.unwrap_or(DISK_BYTES.min(whole).max(DISK_BYTES_MIN))
}

impl FileSuite for RealFs {
    fn about(&self) -> &'static str {
        "the kernel's own filesystems: sequential and random I/O on a large file, small files with a sync each, deletion"
    }

    fn cost(&self, shape: &FileShape, options: &Options) -> Result<Cost, BenchError> {
        writes(options)?;
        let columns = columns(options)?.len();
        let size = size_bytes(shape, options);
        let plan = Plan::of(size);
        if !shape.is_device {
            if let Some(row) = options.rows.first() {
                let what = format!(
                    "row {row:?}: a folder's filesystem is mounted already; options are compared on a block device"
                );
                return Err(BenchError::Misfit { suite: NAME, what });
            }
            room(NAME, shape, options, (DISK_BYTES_MIN, plan.room_bytes()))?;
            let written_bytes = plan.written_bytes();
            return Ok(Cost {
                written_bytes,
                read_bytes: written_bytes,
                to_bytes: plan.room_bytes(),
                steps: steps::STEPS.len() as u32,
                ..Cost::default()
            });
        }
        room(NAME, shape, options, (DISK_BYTES_MIN, size))?;
        let written_bytes = columns as u64 * (plan.written_bytes() + size / 50);
        Ok(Cost {
            written_bytes,
            read_bytes: written_bytes,
            to_bytes: size,
            steps: (columns * steps::STEPS.len()) as u32,
            ..Cost::default()
        })
    }

    fn run(&self, bench: &mut FileBench<'_>) -> Result<(), BenchError> {
        let plan = Plan::of(size_bytes(&bench.shape, bench.options));
        if bench.shape.is_device { compare(bench, plan) } else { there(bench, plan) }
    }
}

/// Every filesystem with every set of options; a filesystem that this machine lacks is reported and skipped.
fn compare(bench: &mut FileBench<'_>, plan: Plan) -> Result<(), BenchError> {
    let mut columns = columns(bench.options)?;
    let mut speeds = vec![Vec::new(); columns.len()];
    let (mut is_settled, mut missing, mut ended) = (true, BTreeMap::new(), Ok(()));
    for (column, speeds) in columns.iter().zip(&mut speeds) {
        if missing.contains_key(column.fstype) {
            continue;
        }
        match measure(bench, column, plan, speeds) {
            Ok(settled) => is_settled &= settled,
            Err(FilesystemError::Missing { what }) => {
                missing.insert(column.fstype, what);
            }
            Err(FilesystemError::Target(error)) => {
                ended = Err(error.into());
                break;
            }
        }
    }
    let missing: Vec<String> = missing.iter().map(|(name, what)| format!("{name} is not measured: {what}")).collect();
    if ended.is_ok() && speeds.iter().all(Vec::is_empty) {
        ended = Err(BenchError::Misfit { suite: NAME, what: missing.join("; ") });
    }
    // Of two columns the other stays, empty; of many only the measured ones.
    if columns.len() > 2 && ended.is_ok() {
        let mut kept = speeds.iter().map(|speeds| !speeds.is_empty());
        columns.retain(|_| kept.next().unwrap_or(true));
        speeds.retain(|speeds| !speeds.is_empty());
    }
    missing.into_iter().for_each(|what| bench.remark(what));
    bench.grid(table(&columns, &speeds, &plan));
    caches(bench, is_settled);
    ended
}

fn measure(
    bench: &mut FileBench<'_>,
    column: &Column,
    plan: Plan,
    speeds: &mut Vec<f64>,
) -> Result<bool, FilesystemError> {
    let (seed, mut is_settled) = (bench.options.seed, true);
    let known = |option: &&str| column.fstype != "f2fs" || !option.starts_with("commit=");
    let options: Vec<&str> = column.options.split(',').filter(known).collect();
    let options = options.join(",");
    let new = NewFilesystem { fstype: column.fstype, options: &options };
    bench.on_tree(Some(new), &mut |tree| {
        is_settled = steps::run(tree, &column.title, plan, seed, speeds)?;
        Ok(())
    })?;
    if options != column.options {
        bench.remark(format!("{}: f2fs has no commit= option and was mounted without it", column.title));
    }
    Ok(is_settled)
}

/// A folder's own filesystem.
fn there(bench: &mut FileBench<'_>, plan: Plan) -> Result<(), BenchError> {
    let (seed, mut speeds, mut is_settled) = (bench.options.seed, Vec::new(), true);
    let ended = bench.on_tree(None, &mut |tree| {
        is_settled = steps::run(tree, "here", plan, seed, &mut speeds)?;
        Ok(())
    });
    let mut grid = Grid::new(NAME, "work", &[("here", "MB/s")], plan.told());
    for (index, (row, ..)) in steps::STEPS.iter().enumerate() {
        grid.lines.push(GridLine { row: (*row).into(), values: vec![speeds.get(index).copied()] });
    }
    bench.grid(grid);
    caches(bench, is_settled);
    ended.map_err(|error| crate::suites::files::of_files(error, NAME))
}

fn caches(bench: &mut FileBench<'_>, is_settled: bool) {
    bench.remark(if is_settled {
        "between two rows everything is written back and the page cache is dropped"
    } else {
        "between two rows everything is written back; dropping the kernel's dentry and inode caches requires root"
    });
}
