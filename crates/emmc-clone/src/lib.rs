//! What a clone of a card holds: which bytes are allocated, and the file that keeps them.
//!
//! [`allocation`] reads partition tables and filesystems through a trait; [`mod@format`] is the file, byte by byte.
//! Bytes that no filesystem has allocated are never claimed: a clone says nothing about them. What is not understood,
//! or not consistent, counts as allocated as a whole. Absent on purpose: opening, compressing and writing (`emmclab`).

pub mod allocation;
pub mod format;
mod ranges;

pub use ranges::Ranges;
