//! bonnie++'s output and input by character: a file written by `putc` and read by `getc`.
//!
//! They measure a processor and the page cache, unless the card is slower than both. As for files, the same run reports
//! bonnie++'s figure and the time until the card has the data, or with empty caches.

use emmc_port::{FileNumber, FileOp, FileTree, TargetError};

use super::processor::{Share, columns_of};
use crate::result::grid::{Grid, GridLine};

/// Unit: bytes.
pub(super) const BYTES: u64 = 64 << 20;

/// Number of steps.
pub(super) const STEPS: [&str; 2] = ["characters out", "characters in"];

/// Of the files that the other phases make, none has this number.
const FILE: FileNumber = FileNumber(u32::MAX);

/// Measures.
pub(super) fn measure(tree: &mut dyn FileTree) -> Result<Grid, TargetError> {
    // Rows: as bonnie++ counts, and with the rest of the work included. Columns: out, in.
    let mut rates = [[None; 2]; 2];
    let mut shares = [[None; 2]; 2];
    let mut end = |tree: &mut dyn FileTree, share: Share, [row, column]: [usize; 2]| {
        // A model of a page cache takes no time.
        let seconds = Some(share.seconds(tree)).filter(|seconds| *seconds > 0.0);
        rates[row][column] = seconds.map(|seconds| BYTES as f64 / 1024.0 / seconds);
        shares[row][column] = share.end(tree);
    };
    tree.step(STEPS[0]);
    tree.call(FileOp::Create { file: FILE, folder: 0, name: "characters" })?;
    let share = Share::begin(tree);
    tree.call(FileOp::WriteCharacters { file: FILE, bytes: BYTES })?;
    end(tree, share, [0, 0]);
    tree.call(FileOp::Sync(FILE))?;
    end(tree, share, [1, 0]);
    tree.step(STEPS[1]);
    for row in 0..2 {
        if row == 1 {
            tree.call(FileOp::Settle)?;
        }
        let share = Share::begin(tree);
        tree.call(FileOp::ReadCharacters { file: FILE, bytes: BYTES })?;
        end(tree, share, [row, 1]);
    }
    tree.call(FileOp::Unlink(FILE))?;
    let values = |row: usize| columns_of(&[("char out", "KiB/s"), ("char in", "KiB/s")], &rates[row], &shares[row]);
    let caption = "by putc and getc, 64 MiB; on the card: with a sync after it, or with an empty page cache before";
    let mut grid = Grid::new("bonnie++, by character", "counted", &values(0).0, caption);
    for (row, name) in ["as bonnie++", "on the card"].into_iter().enumerate() {
        grid.lines.push(GridLine { row: name.into(), values: values(row).1 });
    }
    Ok(grid)
}
