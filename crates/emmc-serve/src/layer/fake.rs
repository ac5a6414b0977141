//! A fake card: the user area states more capacity than the layer leaves of it.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use emmc_card::device::{Area, Beyond, Missing};
use emmc_units::Instant;

use super::{Layer, shortest_read};
use crate::block::{Block, BlockError, Mapped, Request};

/// Capacity of the user area that is stated and not there.
pub struct Fake {
    inner: Arc<dyn Block>,
    missing: Mutex<Missing>,
}

impl Fake {
    /// Leaves `real_bytes` of the user area.
    ///
    /// Errors: why this is no fake of this card.
    pub fn new(inner: Arc<dyn Block>, real_bytes: u64, beyond: Beyond, buffer_bytes: u64) -> Result<Self, String> {
        let user = inner.exports().into_iter().find(|export| export.area == Area::User);
        let size_bytes = user.map_or(0, |export| export.size_bytes);
        if real_bytes >= size_bytes {
            return Err(format!("real={real_bytes}: expected less than the user area, {size_bytes}"));
        }
        Ok(Self { inner, missing: Mutex::new(Missing::new(real_bytes, beyond, buffer_bytes)?) })
    }

    fn read(&self, missing: &Missing, offset: u64, into: &mut [u8]) -> Result<Instant, BlockError> {
        let mut done = None;
        for piece in missing.pieces(offset, into.len() as u64) {
            let part = &mut into[piece.range.start as usize..piece.range.end as usize];
            match piece.real {
                Some(offset) => {
                    let at = self.inner.submit(Area::User, Request::Read { offset, into: part })?;
                    done = done.max(Some(at));
                }
                None => part.fill(missing.filler()),
            }
        }
        missing.buffered(offset, into);
        self.done(done)
    }

    fn write(&self, missing: &mut Missing, offset: u64, data: &[u8], through: bool) -> Result<Instant, BlockError> {
        let mut done = None;
        for piece in missing.pieces(offset, data.len() as u64) {
            if let Some(offset) = piece.real {
                let data = &data[piece.range.start as usize..piece.range.end as usize];
                let at = self.inner.submit(Area::User, Request::Write { offset, data, through })?;
                done = done.max(Some(at));
            }
        }
        missing.wrote(offset, data.len() as u64, Some(data));
        self.done(done)
    }

    fn done(&self, done: Option<Instant>) -> Result<Instant, BlockError> {
        match done {
            Some(at) => Ok(at),
            None => shortest_read(&*self.inner),
        }
    }
}

impl Layer for Fake {
    fn inner(&self) -> &dyn Block {
        &*self.inner
    }

    fn submit(&self, area: Area, request: Request<'_>) -> Result<Instant, BlockError> {
        if area != Area::User {
            return self.inner.submit(area, request);
        }
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        match request {
            Request::Read { offset, into } => self.read(&missing, offset, into),
            Request::Write { offset, data, through } => self.write(&mut missing, offset, data, through),
            Request::Zero { offset, bytes, through } => {
                self.write(&mut missing, offset, &vec![0; bytes as usize], through)
            }
            // A trim of missing flash does nothing.
            Request::Trim { offset, bytes } => {
                let mut done = None;
                for piece in missing.pieces(offset, bytes) {
                    if let Some(offset) = piece.real {
                        let bytes = piece.range.end - piece.range.start;
                        done = done.max(Some(self.inner.submit(area, Request::Trim { offset, bytes })?));
                    }
                }
                missing.wrote(offset, bytes, None);
                self.done(done)
            }
            Request::Flush => self.inner.submit(area, Request::Flush),
        }
    }

    fn mapped(&self, area: Area, range: Range<u64>) -> Result<Vec<Mapped>, BlockError> {
        match area {
            // What a client copies must be what it reads.
            Area::User => Ok(vec![Mapped { range, mapped: true }]),
            _ => self.inner.mapped(area, range),
        }
    }
}
