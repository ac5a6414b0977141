//! I/O patterns, the classic suites, and measurements.
//!
//! Everything works on a [`BlockTarget`](emmc_port::BlockTarget), which owns the clock: the same suite runs on a device
//! in real time and on a virtual card in simulated time. Absent on purpose: system calls (`emmc-linux`), files, the
//! virtual card itself (`emmc-card`), presentation (`emmc-report`).

mod batches;
mod bootstrap;
mod causes;
pub mod compare;
mod consistency;
pub mod context;
mod doubts;
mod files;
pub mod fs;
mod grid;
pub mod import;
mod interval;
mod latency;
mod marks;
mod measurement;
mod order;
mod percentiles;
pub mod reference;
pub mod replay;
mod result;
mod state;
mod stream;
mod suite;
mod warm_up;
mod watch;

pub use causes::{Cause, causes};
pub use context::Context;
pub use doubts::{Doubt, doubts};
pub use files::{FileBench, FileShape, FileSuite};
pub use grid::{Grid, GridColumn, GridLine};
pub use interval::Interval;
pub use latency::{Bucket, Latencies, Latency, Stall, Stalls};
pub use measurement::{Measured, Measurement, WarmUp};
pub use order::{Order, Positions};
pub use percentiles::PercentileIntervals;
pub use result::{BenchResult, Figure, Outcome, Pivot};
pub use state::{CardState, StateKind};
pub use stream::{BenchError, FlushAt, Limit, Mix, Stream, drive};
pub use suite::{Bench, Cost, Knob, Options, Replay, Suite, follows, named, on_files, suites};
pub use watch::{Progress, Unwatched, Watch};
