//! Writes that the card acknowledges and does not make.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use emmc_card::device::Area;
use emmc_units::Instant;

use super::window::Window;
use super::{Kind, Layer, extent, outside, shortest_read};
use crate::block::{Block, BlockError, Request};

/// Drops writes and zeros to some bytes of the user area.
pub struct Dropped {
    inner: Arc<dyn Block>,
    window: Window,
    /// One of this many writes that touch the window is dropped.
    every: u64,
    /// Number of writes that have touched it.
    count: AtomicU64,
}

impl Dropped {
    /// Drops the last one of each `every` writes that touch the window, as far as it lies in the window.
    ///
    /// Errors: `every` is 0.
    pub fn new(inner: Arc<dyn Block>, window: Window, every: u64) -> Result<Self, String> {
        if every == 0 {
            return Err("every=0: expected at least 1".into());
        }
        Ok(Self { inner, window, every, count: AtomicU64::new(0) })
    }

    fn is_dropped(&self, request: &Request<'_>) -> bool {
        let (kind, range) = extent(request);
        matches!(kind, Kind::Write | Kind::Zero)
            && self.window.touches(&range)
            && (self.count.fetch_add(1, Ordering::Relaxed) + 1) % self.every == 0
    }
}

impl Layer for Dropped {
    fn inner(&self) -> &dyn Block {
        &*self.inner
    }

    fn submit(&self, area: Area, request: Request<'_>) -> Result<Instant, BlockError> {
        if area != Area::User || !self.is_dropped(&request) {
            return self.inner.submit(area, request);
        }
        // A card that is off, or takes no writes of these bytes, says so.
        let done = shortest_read(&*self.inner)?;
        Ok(done.max(outside(&*self.inner, &self.window, &request)?.unwrap_or(done)))
    }
}
