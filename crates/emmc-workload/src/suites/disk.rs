//! Suites that work through a filesystem or on files: a part of the target as a disk.

use emmc_port::TargetShape;

use super::area::{start, stated};
use super::{Bench, Cost, Options};
use crate::drive::stream::BenchError;
use crate::fs::Disk;

impl Bench<'_> {
    /// Runs work on a part of the target, and counts its requests.
    ///
    /// Errors: those of the work.
    pub(super) fn on_disk<R>(
        &mut self,
        from_bytes: u64,
        to_bytes: u64,
        work: impl FnOnce(&mut Disk<'_>) -> Result<R, BenchError>,
    ) -> Result<R, BenchError> {
        let mut disk = Disk::new(self.target, self.watch, from_bytes, to_bytes);
        disk.whole = self.whole;
        let found = work(&mut disk);
        let counts = (disk.written_bytes, disk.read_bytes, disk.trimmed_bytes);
        self.outcome.written_bytes += counts.0;
        self.outcome.read_bytes += counts.1;
        self.outcome.trimmed_bytes += counts.2;
        self.whole.pass(counts.0 + counts.1);
        found
    }
}

/// The cost of a suite with a minimum size, a default size and an amount to write.
///
/// Errors: not enough space, or a requested size below the minimum.
pub(super) fn cost(
    suite: &'static str,
    shape: &TargetShape,
    options: &Options,
    (least_bytes, disk_bytes): (u64, u64),
    written_bytes: u64,
) -> Result<Cost, BenchError> {
    let (from_bytes, size) = (options.from_bytes, options.size_bytes.unwrap_or(disk_bytes));
    let to_bytes = from_bytes.saturating_add(size);
    let refused = |what: String| Err(BenchError::Misfit { suite, what });
    super::area::aligned(suite, shape, options)?;
    if size < least_bytes {
        return refused(format!("--size {}: at least {} are needed", stated(size), stated(least_bytes)));
    }
    if to_bytes > shape.size_bytes {
        let given = if options.size_bytes.is_some() { "--size asks for" } else { "it takes" };
        let what = format!(
            "{given} {} {}; {} has {}; --size accepts {} or more",
            stated(size),
            start(from_bytes),
            shape.name,
            stated(shape.size_bytes),
            stated(least_bytes)
        );
        return refused(what);
    }
    Ok(Cost { written_bytes, read_bytes: written_bytes, from_bytes, to_bytes, steps: 0, ..Cost::default() })
}
