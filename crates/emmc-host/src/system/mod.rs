//! The system above the stages: what a program sees, with page cache, journal, flush and read-ahead.
//!
//! A [`Host`] is told a call and the time, asks the card through a closure and answers when the call returns.
//! Mechanisms, each with its parameters in [`HostModel`]: the three stages of a request, scaled to its size; the
//! program's own work between two calls; the commit of ext4's journal behind a sync write, with the flush before and
//! the write-through of its last block; the size update behind an extending direct write; read-ahead of buffered reads,
//! ahead of the reader or only as wide as the window.
//!
//! Absent on purpose: buffered writes that return before the card has them, several programs at once (that is the
//! pipeline's part: [`crate::Pipeline`]), memory pressure, other file systems than a journalling one in ordered mode.

mod card;
mod host;
mod model;

pub use card::{CardOp, CardRequest, ConstantCard};
pub use host::{Host, Spent};
pub use model::{HostModel, Journal, ReadAhead};
