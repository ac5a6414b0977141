//! The work for comparing filesystems.

use emmc_port::{FileNumber, FileOp, FileTree, TargetError};
use emmc_units::Rng;

use crate::fs::BLOCK_BYTES;

const LARGE: FileNumber = FileNumber(0);
const PIECE_BYTES: u64 = 1 << 20;
const SMALL_BYTES: u64 = 16 << 10;
const SMALL_FILES: u32 = 1000;

/// The amounts of work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    file_bytes: u64,
    random_bytes: u64,
}

/// A step: its row, request size, requests, and its function.
type Step = (&'static str, fn(&Plan) -> (u64, u64), fn(&mut Work<'_>) -> Result<(), TargetError>);

/// A tree at work.
pub(super) struct Work<'a> {
    tree: &'a mut dyn FileTree,
    plan: Plan,
    rng: Rng,
}

impl Plan {
    /// Amounts for a size: the large file is an eighth of it, 256 MiB at most.
    pub(super) fn of(size_bytes: u64) -> Self {
        let file_bytes = (size_bytes / 8).min(256 << 20) / PIECE_BYTES * PIECE_BYTES;
        Self { file_bytes, random_bytes: file_bytes / 4 }
    }

    /// Written on one filesystem, its own tables included. Unit: bytes.
    pub(super) fn written_bytes(&self) -> u64 {
        self.file_bytes + 2 * self.random_bytes + 8 * u64::from(SMALL_FILES) * SMALL_BYTES
    }

    /// Space for the files. Unit: bytes.
    pub(super) fn room_bytes(&self) -> u64 {
        self.file_bytes + u64::from(SMALL_FILES) * (SMALL_BYTES + BLOCK_BYTES) + (16 << 20)
    }

    pub(super) fn told(&self) -> String {
        let mib = |bytes: u64| bytes >> 20;
        format!(
            "MB a second; writes end with a sync; a file of {} MiB, {} MiB of it at random in 4 KiB, {SMALL_FILES} files of 16 KiB",
            mib(self.file_bytes),
            mib(self.random_bytes)
        )
    }
}

impl Work<'_> {
    /// Random blocks of the large file, with direct I/O.
    fn by_chance(&mut self, op: fn(u64) -> FileOp<'static>) -> Result<(), TargetError> {
        for _ in 0..self.plan.random_bytes / BLOCK_BYTES {
            let offset = self.rng.below(self.plan.file_bytes / BLOCK_BYTES) * BLOCK_BYTES;
            self.tree.call(op(offset))?;
        }
        Ok(())
    }

    fn small(
        &mut self,
        mut each: impl FnMut(&mut dyn FileTree, FileNumber) -> Result<(), TargetError>,
    ) -> Result<(), TargetError> {
        (1..=SMALL_FILES).try_for_each(|number| each(self.tree, FileNumber(number)))
    }
}

pub(super) const STEPS: [Step; 6] = [
    (
        "write",
        |plan| (PIECE_BYTES, plan.file_bytes / PIECE_BYTES),
        |work| {
            for offset_bytes in (0..work.plan.file_bytes).step_by(PIECE_BYTES as usize) {
                work.tree.call(FileOp::Write { file: LARGE, offset_bytes, bytes: PIECE_BYTES, direct: false })?;
            }
            work.tree.call(FileOp::Sync(LARGE)).map(drop)
        },
    ),
    (
        "read",
        |plan| (PIECE_BYTES, plan.file_bytes / PIECE_BYTES),
        |work| {
            for offset_bytes in (0..work.plan.file_bytes).step_by(PIECE_BYTES as usize) {
                work.tree.call(FileOp::Read { file: LARGE, offset_bytes, bytes: PIECE_BYTES, direct: true })?;
            }
            Ok(())
        },
    ),
    (
        "random write",
        |plan| (BLOCK_BYTES, plan.random_bytes / BLOCK_BYTES),
        |work| {
            work.by_chance(|offset_bytes| FileOp::Write {
                file: LARGE,
                offset_bytes,
                bytes: BLOCK_BYTES,
                direct: true,
            })?;
            work.tree.call(FileOp::Sync(LARGE)).map(drop)
        },
    ),
    (
        "random read",
        |plan| (BLOCK_BYTES, plan.random_bytes / BLOCK_BYTES),
        |work| {
            work.by_chance(|offset_bytes| FileOp::Read { file: LARGE, offset_bytes, bytes: BLOCK_BYTES, direct: true })
        },
    ),
    (
        "create and sync",
        |_| (SMALL_BYTES, u64::from(SMALL_FILES)),
        |work| {
            work.small(|tree, file| {
                tree.call(FileOp::Create { file, folder: 1, name: &format!("small-{}", file.0) })?;
                tree.call(FileOp::Write { file, offset_bytes: 0, bytes: SMALL_BYTES, direct: false })?;
                tree.call(FileOp::Sync(file))?;
                tree.call(FileOp::Close(file)).map(drop)
            })
        },
    ),
    (
        "delete",
        |_| (SMALL_BYTES, u64::from(SMALL_FILES)),
        |work| {
            work.small(|tree, file| tree.call(FileOp::Unlink(file)).map(drop))?;
            work.tree.call(FileOp::SyncAll).map(drop)
        },
    ),
];

/// Runs all steps and adds the speed of each to `speeds` as soon as it is known; returns whether caches were dropped
/// between them.
///
/// Errors: as the tree.
pub(super) fn run(
    tree: &mut dyn FileTree,
    title: &str,
    plan: Plan,
    seed: u64,
    speeds: &mut Vec<f64>,
) -> Result<bool, TargetError> {
    tree.call(FileOp::Create { file: LARGE, folder: 0, name: "large" })?;
    let mut work = Work { tree, plan, rng: Rng::new(seed) };
    let mut is_settled = true;
    for (row, amount, step) in STEPS {
        is_settled &= work.tree.call(FileOp::Settle)? == 1;
        work.tree.step(&format!("{title} {row}"));
        let before = work.tree.now();
        step(&mut work)?;
        let time = work.tree.now().since(before);
        let (block, requests) = amount(&plan);
        speeds.push((block * requests) as f64 / 1e6 / time.as_secs_f64().max(1e-9));
    }
    Ok(is_settled)
}
