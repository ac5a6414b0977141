//! `iozone -e -I -a -s 100M -r 1k..16384k -i 0 -i 1 -i 2`: the columns that everyone compares.
//!
//! One thread, one request at a time, direct I/O. For each record size: write a file, rewrite it, read it, reread it,
//! read every record once in random order, write every record once in random order. Writes are followed by an `fsync`
//! that counts. Unlike iozone's file, this one has no filesystem around it on a device: no metadata is written. The
//! file is new each time, like a file that iozone creates again: a host that fills new blocks with zeros does so. The
//! card is not told, as with a filesystem that is mounted without `discard`.

use emmc_port::{BlockOp, TargetShape};

use super::area::{start, stated};
use super::{Bench, Cost, Knob, Options, Suite};
use crate::drive::order::Order;
use crate::drive::stream::{BenchError, FlushAt, Stream};
use crate::result::Pivot;

/// The records of the nine-card table, and those of `-a` in between. Unit: KiB.
const RECORDS_KIB: [u64; 15] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384];
/// Unit: bytes.
const FILE_BYTES: u64 = 100 << 20;
const TABLE: &str = "iozone";

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Iozone;

fn records(shape: &TargetShape, options: &Options) -> Result<Vec<u64>, BenchError> {
    let misfit = |what| BenchError::Misfit { suite: TABLE, what };
    for row in &options.rows {
        if !RECORDS_KIB.iter().any(|kib| kib.to_string() == *row) {
            let known: Vec<String> = RECORDS_KIB.iter().map(u64::to_string).collect();
            return Err(misfit(format!("row {row:?}: expected a record size in KiB: {}", known.join(", "))));
        }
    }
    let wanted = |kib: &u64| options.rows.is_empty() || options.rows.contains(&kib.to_string());
    let possible = |kib: &u64| kib << 10 >= u64::from(shape.sector_bytes) && kib << 10 <= file_bytes(options);
    Ok(RECORDS_KIB.into_iter().filter(wanted).filter(possible).collect())
}

fn file_bytes(options: &Options) -> u64 {
    options.size_bytes.unwrap_or(FILE_BYTES)
}

impl Suite for Iozone {
    fn name(&self) -> &'static str {
        TABLE
    }

    fn about(&self) -> &'static str {
        "a file written, rewritten, read, reread, and read and written at random, by record size, as iozone -e -I -i 0 -i 1 -i 2"
    }

    fn follows(&self) -> &'static [Knob] {
        &[Knob::From, Knob::Size, Knob::Rows, Knob::ReadOnly]
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        super::area::aligned(TABLE, shape, options)?;
        let (file, from_bytes) = (file_bytes(options), options.from_bytes);
        let to_bytes = from_bytes.saturating_add(file);
        if to_bytes > shape.size_bytes || file == 0 {
            let (file, size) = (stated(file), stated(shape.size_bytes));
            let what = format!("a file of {file} {}; the target has {size}", start(from_bytes));
            return Err(BenchError::Misfit { suite: TABLE, what });
        }
        let records = records(shape, options)?.len() as u64;
        let (writes, reads) = if options.read_only { (0, 3) } else { (3, 3) };
        Ok(Cost {
            written_bytes: writes * records * file,
            read_bytes: reads * records * file,
            from_bytes,
            to_bytes: if writes == 0 { from_bytes } else { to_bytes },
            steps: ((writes + reads) * records) as u32,
            ..Cost::default()
        })
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let records = records(bench.target.shape(), bench.options)?;
        let (from, seed) = (bench.options.from_bytes, bench.options.seed);
        let file = file_bytes(bench.options);
        bench.table(Pivot {
            table: TABLE.into(),
            rows: "record KiB".into(),
            unit: "KiB/s".into(),
            caption: "KiB a second, as iozone prints; the flush after writes counts".into(),
        });
        for kib in records {
            let row = kib.to_string();
            let pass = |op, order| {
                let mut pass = Stream::pass(op, order, from, from + file, kib << 10);
                if let Some(early) = bench.options.early_ends.filter(|early| early.ends(op, order, kib << 10)) {
                    pass.limit.bytes = pass.limit.bytes.min(early.after_bytes.next_multiple_of(kib << 10));
                }
                let flush = if op == BlockOp::Write { FlushAt::End } else { FlushAt::Never };
                Stream { seed, flush, ..pass }
            };
            if !bench.options.read_only {
                bench.target.begin_file(from);
                bench.measure(TABLE, &row, "write", &pass(BlockOp::Write, Order::Sequential))?;
                bench.measure(TABLE, &row, "rewrite", &pass(BlockOp::Write, Order::Sequential))?;
            }
            bench.measure(TABLE, &row, "read", &pass(BlockOp::Read, Order::Sequential))?;
            bench.measure(TABLE, &row, "reread", &pass(BlockOp::Read, Order::Sequential))?;
            bench.measure(TABLE, &row, "random read", &pass(BlockOp::Read, Order::Shuffled))?;
            if !bench.options.read_only {
                bench.measure(TABLE, &row, "random write", &pass(BlockOp::Write, Order::Shuffled))?;
            }
        }
        Ok(())
    }
}
