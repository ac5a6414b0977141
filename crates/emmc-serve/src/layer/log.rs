//! A line for each request.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use emmc_card::device::Area;
use emmc_units::Instant;

use super::{Layer, extent};
use crate::block::{Block, BlockError, Request};

/// Writes a line per request: when the card has finished, area, kind, first byte, bytes, result.
///
/// Shape: `12.345678901 user write 4096 8192 ok`; the time is the card's, in seconds.
pub struct Log {
    inner: Arc<dyn Block>,
    /// Whole lines at a time.
    out: Mutex<Box<dyn Write + Send>>,
}

impl Log {
    /// Writes to `out`; write errors are ignored.
    pub fn new(inner: Arc<dyn Block>, out: Box<dyn Write + Send>) -> Self {
        Self { inner, out: Mutex::new(out) }
    }
}

impl Layer for Log {
    fn inner(&self) -> &dyn Block {
        &*self.inner
    }

    fn submit(&self, area: Area, request: Request<'_>) -> Result<Instant, BlockError> {
        let (kind, range) = extent(&request);
        let result = self.inner.submit(area, request);
        let (start, bytes) = (range.start, range.end - range.start);
        let what = format!("{area} {} {start} {bytes}", kind.name());
        let line = match &result {
            Ok(done) => format!("{}.{:09} {what} ok\n", done.0 / 1_000_000_000, done.0 % 1_000_000_000),
            Err(error) => format!("- {what} error: {error}\n"),
        };
        // The reader of the log may be gone; clients are served all the same.
        let _ = self.out.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
        result
    }
}
