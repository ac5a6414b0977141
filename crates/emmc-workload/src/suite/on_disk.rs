//! Suites that work through a filesystem or on files: a part of the target as a disk.

use emmc_port::TargetShape;

use super::{Bench, Cost, Options};
use crate::fs::Disk;
use crate::stream::BenchError;

impl Bench<'_> {
    /// Lets work be done on a part of the target, and counts what it came to.
    ///
    /// Errors: those of the work.
    pub(super) fn on_disk<R>(
        &mut self,
        from_bytes: u64,
        to_bytes: u64,
        work: impl FnOnce(&mut Disk<'_>) -> Result<R, BenchError>,
    ) -> Result<R, BenchError> {
        let mut disk = Disk::new(self.target, self.watch, from_bytes, to_bytes);
        let found = work(&mut disk);
        let counts = (disk.written_bytes, disk.read_bytes, disk.trimmed_bytes);
        self.outcome.written_bytes += counts.0;
        self.outcome.read_bytes += counts.1;
        self.outcome.trimmed_bytes += counts.2;
        found
    }
}

/// What a suite costs that takes `disk_bytes` of the target where nothing else is asked for, and writes so much.
///
/// Errors: the target has less room, or less than 64 MiB is asked for.
pub(super) fn cost(
    suite: &'static str,
    shape: &TargetShape,
    options: &Options,
    disk_bytes: u64,
    written_bytes: u64,
) -> Result<Cost, BenchError> {
    let (from_bytes, size) = (options.from_bytes, options.size_bytes.unwrap_or(disk_bytes));
    let to_bytes = from_bytes.saturating_add(size);
    if to_bytes > shape.size_bytes || size < 64 << 20 {
        let what = format!(
            "{size} bytes from byte {from_bytes} on; the target has {}, and 67108864 are needed at least",
            shape.size_bytes
        );
        return Err(BenchError::Misfit { suite, what });
    }
    Ok(Cost { written_bytes, read_bytes: written_bytes, from_bytes, to_bytes, steps: 0 })
}
