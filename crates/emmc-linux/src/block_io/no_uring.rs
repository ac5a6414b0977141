//! Replaces `uring` on processors whose kernel interface the io-uring crate lacks: there is never a ring, and requests
//! use plain calls.

use std::fs::File;
use std::io;

use emmc_port::BlockRequest;

use super::clock::Clock;
use super::outcome::Answer;

/// A ring that cannot exist.
pub(super) enum Uring {}

impl Uring {
    /// Errors: always.
    pub(super) fn new(_file: &File, _depth: u32, _seed: u64) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "emmclab has no io_uring on this processor"))
    }

    pub(super) fn outstanding(&self) -> usize {
        match *self {}
    }

    pub(super) fn push(&mut self, _request: BlockRequest) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn next(&mut self, _clock: Clock) -> io::Result<Answer> {
        match *self {}
    }
}
