//! The Linux host as a model: its share of a request's time, and the benefit of a faster card or a command queue.
//!
//! A request passes three stages: *pre* (system call, file system, block layer and driver, on a core), *hardware* (the
//! card, one transfer at a time) and *post* (interrupt, completion, wake-up and copy, on a core). [`Pipeline`]
//! describes how the stages are shared; [`Pipeline::limits`] and [`Pipeline::makespan`] are closed forms with their
//! derivation; [`Pipeline::simulate`] is the discrete-event model that verifies them. [`system`] models a program above
//! the stages: page cache, journal, flush, read-ahead. [`HostTarget`] puts a whole board above a virtual card, or a
//! host that a file describes ([`HostDescription`]). [`paper`] has the published measurements with all computed values.
//!
//! Units: a chunk is counted in bytes; speeds are in MB/s (10^6) and MiB/s (2^20), each by name.
//!
//! Time is an argument: there is no clock and no randomness here. Absent on purpose: I/O, the virtual card itself (a
//! closure replaces any card), CPU frequency, scheduling among processes, and errors of the card.

mod board;
mod description;
mod limits;
mod makespan;
mod page_cache;
pub mod paper;
mod pipeline;
mod platform;
mod result;
mod simulate;
mod spans;
pub mod system;
mod target;

pub use board::{BOARDS, Board, board};
pub use description::{DescriptionError, HOSTS, HostDescription, RequestCost, RequestCosts, host};
pub use limits::{Bottleneck, Limits};
pub use makespan::Makespan;
pub use page_cache::PageCache;
pub use pipeline::{CqEngine, DEPTH_QUEUED_MAX, Pipeline, PipelineError};
pub use platform::{Access, MeasuredSpans, Operation, Order, PLATFORMS, Platform, platform};
pub use result::{PipelineResult, PipelineStudy, PlatformFacts, REQUESTS_MAX, TimelineRow};
pub use simulate::{RequestTimes, Simulated};
pub use spans::{Spans, Speed};
pub use target::HostTarget;
