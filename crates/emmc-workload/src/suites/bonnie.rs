//! bonnie++: block output, rewrite, block input and seeks, on a target instead of a file.
//!
//! bonnie++ works in chunks of 8 KiB through the page cache; the card sees the page cache's requests, which are made
//! here:
//!
//! | column | requests |
//! |---|---|
//! | block out | sequential writes of 512 KiB, at most 32 outstanding, one flush at the end (bonnie++ ends with `fsync`) |
//! | rewrite | one MiB at a time: read with a read-ahead of 128 KiB, two outstanding, then written back in 512 KiB; one flush at the end |
//! | block in | sequential reads of 128 KiB, two outstanding: read-ahead |
//! | seeks | 8000 random reads of 8 KiB by five processes; one in ten chunks is written back |
//!
//! If the target has its own page cache (a virtual card behind a board), chunks of 8 KiB go through that instead,
//! without a flush, and data left in it counts as bonnie++ counts it; seeks use direct I/O.
//!
//! `--size` is the file (256 MiB; bonnie++ itself uses twice the memory). Otherwise, unlike in bonnie++, no column
//! measures the page cache. The number of seeks is from memory. Where the program itself is measured, each column has
//! its processor time, as bonnie++'s %CPU. What needs a filesystem follows in a folder: output and input by character,
//! and creating, looking up and deleting files.

mod characters;
mod processor;
mod real_files;

use emmc_port::{BlockOp, TargetKind, TargetShape};
use emmc_units::Nanos;

use super::area::sized;
use super::{Bench, Cost, Options, Suite};
use crate::drive::measured::Measured;
use crate::drive::order::Order;
use crate::drive::stream::{BenchError, FlushAt, Limit, Mix, Stream};
use crate::result::grid::{Grid, GridLine};
use processor::{Share, columns_of};

pub(super) use real_files::RealBonnie;

const NAME: &str = "bonnie";
const SIZE: u64 = 256 << 20;
const PIECE: u64 = 1 << 20;
const WRITTEN_BACK: u64 = 512 << 10;
const READ_AHEAD: u64 = 128 << 10;
const CHUNK: u64 = 8 << 10;
const SEEKS: u64 = 8000;
const SEEKERS: u32 = 5;
/// Time limit of the seeks.
const SEEK_TIME: Nanos = Nanos::from_secs(120);

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bonnie;

fn plan(shape: &TargetShape, options: &Options) -> Result<(u64, u64), BenchError> {
    sized(NAME, shape, options, SIZE.min(options.room(shape)), PIECE)
}

impl Suite for Bonnie {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "block output, rewrite, block input and seeks, as in bonnie++ without the page cache"
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        let (from, to) = plan(shape, options)?;
        Ok(Cost {
            // One seek in ten writes; with random choice it can be slightly more.
            written_bytes: 2 * (to - from) + SEEKS * CHUNK / 8,
            read_bytes: 2 * (to - from) + (SEEKS + SEEKS / 10) * CHUNK,
            from_bytes: from,
            to_bytes: to,
            steps: 0,
            ..Cost::default()
        })
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let (from, to) = plan(bench.target.shape(), bench.options)?;
        let most = bench.target.shape().depth_max;
        let kib = |bytes: u64, time: Nanos| bytes as f64 / 1024.0 / time.as_secs_f64().max(1e-9);
        let Columns { out, rewrite, read, mut shares } = columns(bench, from, to)?;
        let limit = Limit { bytes: (SEEKS + SEEKS / 10) * CHUNK, time: Some(SEEK_TIME) };
        let seeks = Stream {
            mix: Mix::Reads { share: 10.0 / 11.0 },
            depth: SEEKERS.min(most),
            seed: bench.options.seed,
            limit,
            ..Stream::pass(BlockOp::Read, Order::Random, from, to, CHUNK)
        };
        let share = Share::begin(bench.target);
        let seeks = bench.measure(NAME, "seeks", "mixed", &seeks)?;
        shares.push(share.end(bench.target));
        let columns = [("block out", "KiB/s"), ("rewrite", "KiB/s"), ("block in", "KiB/s"), ("seeks", "/s")];
        let found = (seeks.read_bytes / CHUNK) as f64 / seeks.time().as_secs_f64().max(1e-9);
        let values = [kib(out.bytes(), out.time()), kib(to - from, rewrite), kib(read.bytes(), read.time()), found];
        let (columns, values) = columns_of(&columns, &values.map(Some), &shares);
        let mut grid = Grid::new("bonnie++", "size", &columns, "the columns of bonnie++; its K are KiB");
        grid.lines.push(GridLine { row: format!("{}M", (to - from) >> 20), values });
        bench.grid(grid);
        if bench.target.shape().kind != TargetKind::File {
            bench.remark(
                "output and input by character, and creating, looking up and deleting files, are measured only in a \
                 folder",
            );
        }
        Ok(())
    }
}

/// The columns of blocks.
struct Columns {
    out: Measured,
    rewrite: Nanos,
    read: Measured,
    /// Processor time of each.
    shares: Vec<Option<f64>>,
}

/// Through the target's own page cache if it has one, else with the requests of a page cache.
fn columns(bench: &mut Bench<'_>, from: u64, to: u64) -> Result<Columns, BenchError> {
    let cached = bench.target.through_page_cache(BlockOp::Write, true);
    let most = bench.target.shape().depth_max;
    let pass = |op, block, depth| Stream { depth, ..Stream::pass(op, Order::Sequential, from, to, block) };
    let (write, read, flush) = match cached {
        true => (pass(BlockOp::Write, CHUNK, 1), pass(BlockOp::Read, CHUNK, 1), FlushAt::Never),
        false => {
            let write = pass(BlockOp::Write, WRITTEN_BACK, 32.min(most));
            (write, pass(BlockOp::Read, READ_AHEAD, 2.min(most)), FlushAt::End)
        }
    };
    let mut measure = || {
        let share = Share::begin(bench.target);
        let out = bench.measure(NAME, "block out", "write", &Stream { flush, ..write })?;
        let mut shares = vec![share.end(bench.target)];
        let share = Share::begin(bench.target);
        let rewrite = rewrite(bench, (from, to), &read, &Stream { flush, ..write })?;
        shares.push(share.end(bench.target));
        let share = Share::begin(bench.target);
        let read = bench.measure(NAME, "block in", "read", &read)?;
        shares.push(share.end(bench.target));
        Ok(Columns { out, rewrite, read, shares })
    };
    let found = measure();
    if cached {
        bench.sync()?;
        bench.target.through_page_cache(BlockOp::Write, false);
    }
    found
}

/// Time to read and write back everything, piece by piece.
fn rewrite(bench: &mut Bench<'_>, (from, to): (u64, u64), read: &Stream, write: &Stream) -> Result<Nanos, BenchError> {
    let began = bench.now();
    for piece in (from..to).step_by(PIECE as usize) {
        let limit = Limit { bytes: PIECE, time: None };
        bench.prepare("rewrite", &Stream { from_bytes: piece, to_bytes: piece + PIECE, limit, ..*read })?;
        let is_last = piece + PIECE >= to;
        let flush = if is_last { write.flush } else { FlushAt::Never };
        bench.prepare("rewrite", &Stream { from_bytes: piece, to_bytes: piece + PIECE, limit, flush, ..*write })?;
    }
    Ok(bench.now().since(began))
}
