//! Layers: block interfaces on top of a block interface.
//!
//! Each layer adds one thing and forwards the rest: `delay` makes replies later, `fault` makes requests fail, `fake`
//! takes capacity away, `drop` loses writes, `volatile` loses what was flushed, `stats` counts requests, `log` writes a
//! line for each. They stack in any order; the last one named is nearest to the client.
//! User page: docs/serve-layers.md. Absent on purpose: the card's own times, which belong to the clock (`--no-delay`
//! switches them off).

mod delay;
mod drop;
mod fake;
mod fault;
mod log;
mod spec;
mod stats;
#[cfg(test)]
mod tests;
mod volatile;
mod window;

pub use delay::Delay;
pub use drop::Dropped;
pub use fake::Fake;
pub use fault::{Fault, Faults};
pub use log::Log;
pub use spec::{LayerError, parse};
pub(crate) use stats::histogram;
pub use stats::{Counts, Stats, Summary};
pub use volatile::Volatile;
pub use window::Window;

use std::ops::Range;
use std::time::Instant as Wall;

use emmc_card::device::Area;
use emmc_card::nand::Landing;
use emmc_units::Instant;

use crate::block::{Block, BlockError, Export, Mapped, Request};

/// The kind of a request, for layers that treat kinds differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// [`Request::Read`].
    Read,
    /// [`Request::Write`].
    Write,
    /// [`Request::Zero`].
    Zero,
    /// [`Request::Trim`].
    Trim,
    /// [`Request::Flush`].
    Flush,
}

impl Kind {
    /// All of them, in the order of their index.
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Zero, Self::Trim, Self::Flush];

    /// Its name in options and output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Zero => "zero",
            Self::Trim => "trim",
            Self::Flush => "flush",
        }
    }

    /// The kind with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A block interface over another: it changes some calls and hands the rest on.
pub trait Layer: Send + Sync {
    /// The block interface below it.
    fn inner(&self) -> &dyn Block;

    /// See [`Block::exports`].
    fn exports(&self) -> Vec<Export> {
        self.inner().exports()
    }

    /// See [`Block::submit`].
    ///
    /// Errors: those of [`Block::submit`], and the layer's own.
    fn submit(&self, area: Area, request: Request<'_>) -> Result<Instant, BlockError> {
        self.inner().submit(area, request)
    }

    /// See [`Block::mapped`].
    ///
    /// Errors: those of [`Block::mapped`].
    fn mapped(&self, area: Area, range: Range<u64>) -> Result<Vec<Mapped>, BlockError> {
        self.inner().mapped(area, range)
    }

    /// See [`Block::landing`].
    fn landing(&self, area: Area, offset: u64, bytes: usize) -> Option<Landing> {
        self.inner().landing(area, offset, bytes)
    }

    /// See [`Block::end_landing`].
    fn end_landing(&self, landing: Landing) {
        self.inner().end_landing(landing);
    }

    /// See [`Block::power_cuts`].
    fn power_cuts(&self) -> u64 {
        self.inner().power_cuts()
    }

    /// See [`Block::due`].
    fn due(&self, at: Instant) -> Option<Wall> {
        self.inner().due(at)
    }

    /// See [`Block::answered`].
    fn answered(&self, at: Instant) {
        self.inner().answered(at);
    }
}

impl<T: Layer> Block for T {
    fn exports(&self) -> Vec<Export> {
        Layer::exports(self)
    }

    fn submit(&self, area: Area, request: Request<'_>) -> Result<Instant, BlockError> {
        Layer::submit(self, area, request)
    }

    fn mapped(&self, area: Area, range: Range<u64>) -> Result<Vec<Mapped>, BlockError> {
        Layer::mapped(self, area, range)
    }

    fn landing(&self, area: Area, offset: u64, bytes: usize) -> Option<Landing> {
        Layer::landing(self, area, offset, bytes)
    }

    fn end_landing(&self, landing: Landing) {
        Layer::end_landing(self, landing);
    }

    fn power_cuts(&self) -> u64 {
        Layer::power_cuts(self)
    }

    fn due(&self, at: Instant) -> Option<Wall> {
        Layer::due(self, at)
    }

    fn answered(&self, at: Instant) {
        Layer::answered(self, at);
    }
}

/// Kind and bytes of a request; a flush has none.
fn extent(request: &Request<'_>) -> (Kind, Range<u64>) {
    let (kind, offset, bytes) = match request {
        Request::Read { offset, into } => (Kind::Read, *offset, into.len() as u64),
        Request::Write { offset, data, .. } => (Kind::Write, *offset, data.len() as u64),
        Request::Zero { offset, bytes, .. } => (Kind::Zero, *offset, *bytes),
        Request::Trim { offset, bytes } => (Kind::Trim, *offset, *bytes),
        Request::Flush => (Kind::Flush, 0, 0),
    };
    (kind, offset..offset.saturating_add(bytes))
}

/// Performs what a write or zeros have outside of a window; `None`: nothing.
///
/// Errors: those of the block interface.
fn outside(inner: &dyn Block, window: &Window, request: &Request<'_>) -> Result<Option<Instant>, BlockError> {
    let (_, range) = extent(request);
    let [before, _, after] = window.split(&range);
    let mut done = None;
    for part in [before, after].into_iter().filter(|part| !part.is_empty()) {
        let part = match request {
            Request::Write { offset, data, through } => {
                let data = &data[(part.start - offset) as usize..(part.end - offset) as usize];
                Request::Write { offset: part.start, data, through: *through }
            }
            _ => Request::Zero { offset: part.start, bytes: part.end - part.start, through: false },
        };
        done = done.max(Some(inner.submit(Area::User, part)?));
    }
    Ok(done)
}

/// A request that reached no flash takes as long as the shortest read.
///
/// Errors: no power.
fn shortest_read(inner: &dyn Block) -> Result<Instant, BlockError> {
    inner.submit(Area::User, Request::Read { offset: 0, into: &mut [0; 512] })
}

/// The area with a name; `None`: no such block device.
pub fn area_named(name: &str) -> Option<Area> {
    name.parse().ok().filter(|area| *area != Area::Rpmb)
}
