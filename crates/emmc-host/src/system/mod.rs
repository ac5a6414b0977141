//! The system above the stages: the view of a program, with page cache, journal, flush and read-ahead.
//!
//! A [`Host`] takes a call and the time, uses the card through a closure and returns when the call returns. Mechanisms,
//! each with its parameters in [`HostModel`]: the three stages of a request, scaled to its size; the program's own work
//! between two calls; the commit of ext4's journal after a sync write, with the flush before its last block and FUA;
//! the size update after an extending direct write; read-ahead of buffered reads, ahead of the reader or only as wide
//! as the window.
//!
//! Absent on purpose: buffered writes that return before they reach the card, several programs at once (see
//! [`crate::Pipeline`]), memory pressure, file systems other than a journalling one in ordered mode.

mod card;
mod host;
mod model;

pub use card::{CardOp, CardRequest, ConstantCard};
pub use host::{Host, Spent};
pub(crate) use model::BIO_BYTES;
pub use model::{HostModel, Journal, ReadAhead};
