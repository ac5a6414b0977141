//! Answers that come later than the card is done.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant as Wall;

use emmc_card::device::Area;
use emmc_units::{Instant, Nanos};

use super::{Kind, extent};
use crate::block::{Block, BlockError, Export, Mapped, Request};

/// Adds a time to every answer, by kind.
pub struct Delay {
    inner: Arc<dyn Block>,
    /// By kind. Unit: nanoseconds of the card's time.
    more: [Nanos; Kind::ALL.len()],
}

impl Delay {
    /// Adds `more` to the answers of each kind that is named.
    pub fn new(inner: Arc<dyn Block>, more: &[(Kind, Nanos)]) -> Self {
        let mut by_kind = [Nanos::ZERO; Kind::ALL.len()];
        for (kind, nanos) in more {
            by_kind[*kind as usize] = *nanos;
        }
        Self { inner, more: by_kind }
    }
}

impl Block for Delay {
    fn exports(&self) -> Vec<Export> {
        self.inner.exports()
    }

    fn submit(&self, area: Area, request: Request<'_>) -> Result<Instant, BlockError> {
        let (kind, _) = extent(&request);
        Ok(self.inner.submit(area, request)? + self.more[kind as usize])
    }

    fn mapped(&self, area: Area, range: Range<u64>) -> Result<Vec<Mapped>, BlockError> {
        self.inner.mapped(area, range)
    }

    fn due(&self, at: Instant) -> Option<Wall> {
        self.inner.due(at)
    }

    fn answered(&self, at: Instant) {
        self.inner.answered(at);
    }
}
