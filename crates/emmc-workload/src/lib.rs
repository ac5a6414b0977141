//! I/O patterns, the classic suites, and what is measured.
//!
//! Everything works on a [`BlockTarget`](emmc_port::BlockTarget), which owns the clock: the same suite runs against a device
//! in real time and against a virtual card in simulated time. Absent on purpose: system calls (`emmc-linux`), files, the
//! virtual card itself (`emmc-card`), presentation (`emmc-report`).

mod causes;
pub mod compare;
pub mod context;
mod files;
pub mod fs;
mod grid;
pub mod import;
mod interval;
mod latency;
mod marks;
mod measurement;
mod order;
mod plausible;
pub mod reference;
pub mod replay;
mod result;
mod stream;
mod suite;
mod watch;

pub use causes::{Cause, causes};
pub use context::Context;
pub use files::{FileBench, FileShape, FileSuite};
pub use grid::{Grid, GridColumn, GridLine};
pub use interval::Interval;
pub use latency::{Bucket, Latencies, Latency, Stall, Stalls};
pub use measurement::{Measured, Measurement};
pub use order::{Order, Positions};
pub use plausible::{Doubt, doubts};
pub use result::{BenchResult, Figure, Outcome, Pivot};
pub use stream::{BenchError, FlushAt, Limit, Mix, Stream, drive, visit};
pub use suite::{Bench, Cost, Options, Replay, Suite, named, on_files, suites};
pub use watch::{Progress, Unwatched, Watch};
