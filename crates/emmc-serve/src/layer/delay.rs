//! Replies that are later than the end of the card's operation.

use std::sync::Arc;

use emmc_card::device::Area;
use emmc_units::{Instant, Nanos};

use super::{Kind, Layer, extent};
use crate::block::{Block, BlockError, Request};

/// Adds a time to every reply, by kind.
pub struct Delay {
    inner: Arc<dyn Block>,
    /// By kind. Unit: nanoseconds of the card's time.
    more: [Nanos; Kind::ALL.len()],
}

impl Delay {
    /// Adds `more` to the replies of each kind in the list.
    pub fn new(inner: Arc<dyn Block>, more: &[(Kind, Nanos)]) -> Self {
        let mut by_kind = [Nanos::ZERO; Kind::ALL.len()];
        for (kind, nanos) in more {
            by_kind[*kind as usize] = *nanos;
        }
        Self { inner, more: by_kind }
    }
}

impl Layer for Delay {
    fn inner(&self) -> &dyn Block {
        &*self.inner
    }

    fn submit(&self, area: Area, request: Request<'_>) -> Result<Instant, BlockError> {
        let (kind, _) = extent(&request);
        Ok(self.inner.submit(area, request)? + self.more[kind as usize])
    }
}
