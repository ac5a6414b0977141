//! The load: I/O patterns, recorded requests, the classic suites and jobs, and their measurements.
//!
//! Everything works on a [`BlockTarget`](emmc_port::BlockTarget), which owns the clock: the same suite runs on a device
//! in real time and on a virtual card in simulated time; a job works on a [`CardTarget`](emmc_port::CardTarget). One
//! loop (`drive`) makes all requests. Modules, each using only those before it: `stats`, `result`, `drive`, `import`,
//! `trace`, `fs`, `job`, `duty`, `suites`, `judge`. Absent on purpose: system calls (`emmc-linux`), files, the virtual
//! card itself (`emmc-card`), presentation (`emmc-report`).

mod drive;
pub mod duty;
pub mod fs;
pub mod import;
pub mod job;
mod judge;
mod result;
mod stats;
mod suites;
pub mod trace;

pub use drive::measured::Measured;
pub use drive::order::Order;
pub use drive::stream::{BenchError, FlushAt, Limit, Mix, Stream, drive};
pub use drive::watch::{Cost, Progress, Unwatched, Watch};
pub use job::{Job, JobError};
pub use judge::causes::causes;
pub use judge::doubts::doubts;
pub use judge::{compare, reference, spans};
pub use result::context::{self, Context};
pub use result::grid::{Grid, GridColumn, GridLine};
pub use result::measurement::{Detail, Measurement, WarmUp};
pub use result::state::{CardState, StateKind};
pub use result::{BenchResult, Cause, Doubt, Figure, Outcome, Pivot};
pub use stats::fall::Fall;
pub use stats::interval::Interval;
pub use stats::latency::{Bucket, Latencies, Latency, Stall, Stalls};
pub use stats::percentiles::PercentileIntervals;
pub use suites::files::{FileBench, FileShape, FileSuite};
pub use suites::{
    BURST_VOLUME, Bench, EarlyEnds, Knob, Options, Suite, follows, from_option, named, on_files, open_unit_offsets,
    suites,
};
pub use trace::Replay;
