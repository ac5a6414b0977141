//! A cache that is lost with the power, whatever was flushed.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use emmc_card::device::Area;
use emmc_units::Instant;

use super::window::Window;
use super::{Kind, Layer, extent, outside, shortest_read};
use crate::block::{Block, BlockError, Mapped, Request};

/// Unit: bytes.
const SECTOR: usize = 512;

/// What is not on the card yet.
#[derive(Default)]
struct Held {
    /// The power cuts until now.
    cuts: u64,
    /// Number of sectors that were written: the age of the next one.
    written: u64,
    /// Content and age of a sector, by its first byte.
    sectors: BTreeMap<u64, (u64, [u8; SECTOR])>,
    /// First byte and age, oldest first; of a sector that was written again only the last one counts.
    order: VecDeque<(u64, u64)>,
}

/// Holds the last writes of some bytes of the user area in memory, beyond every flush; a power cut loses them.
pub struct Volatile {
    inner: Arc<dyn Block>,
    window: Window,
    sectors_max: usize,
    held: Mutex<Held>,
}

impl Volatile {
    /// Holds at most `bytes`; older content is written to the card.
    ///
    /// Errors: `bytes` is not at least a sector and at most 1 GiB.
    pub fn new(inner: Arc<dyn Block>, window: Window, bytes: u64) -> Result<Self, String> {
        if !(SECTOR as u64..=1 << 30).contains(&bytes) {
            return Err(format!("bytes={bytes}: expected 512 to {}", 1u64 << 30));
        }
        let held = Held { cuts: inner.power_cuts(), ..Held::default() };
        Ok(Self { inner, window, sectors_max: bytes as usize / SECTOR, held: Mutex::new(held) })
    }

    /// What is held, after the power cuts until now.
    fn held(&self) -> MutexGuard<'_, Held> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let cuts = self.inner.power_cuts();
        if held.cuts != cuts {
            *held = Held { cuts, ..Held::default() };
        }
        held
    }

    /// Holds one more sector, and writes the oldest one to the card if there is no room.
    fn hold(&self, held: &mut Held, at: u64, content: [u8; SECTOR]) -> Result<(), BlockError> {
        let age = held.written;
        held.written += 1;
        held.sectors.insert(at, (age, content));
        held.order.push_back((at, age));
        while held.sectors.len() > self.sectors_max || held.order.len() > 2 * self.sectors_max {
            let Some((at, age)) = held.order.pop_front() else { break };
            if held.sectors.get(&at).is_some_and(|(newest, _)| *newest == age) {
                if let Some((_, content)) = held.sectors.remove(&at) {
                    self.inner.submit(Area::User, Request::Write { offset: at, data: &content, through: false })?;
                }
            }
        }
        Ok(())
    }

    fn perform(&self, held: &mut Held, request: Request<'_>) -> Result<Instant, BlockError> {
        let (kind, range) = extent(&request);
        let [_, inside, _] = self.window.split(&range);
        match request {
            Request::Read { offset, into } => {
                let done = self.inner.submit(Area::User, Request::Read { offset, into: &mut *into })?;
                for (at, (_, content)) in held.sectors.range(range) {
                    let from = (at - offset) as usize;
                    into[from..from + SECTOR].copy_from_slice(content);
                }
                Ok(done)
            }
            Request::Write { .. } | Request::Zero { .. } if !inside.is_empty() => {
                let done = shortest_read(&*self.inner)?;
                let done = done.max(outside(&*self.inner, &self.window, &request)?.unwrap_or(done));
                for at in inside.step_by(SECTOR) {
                    let mut content = [0; SECTOR];
                    if let Request::Write { offset, data, .. } = &request {
                        let from = (at - offset) as usize;
                        content.copy_from_slice(&data[from..from + SECTOR]);
                    }
                    self.hold(held, at, content)?;
                }
                Ok(done)
            }
            request => {
                if kind == Kind::Trim {
                    held.sectors.retain(|at, _| !range.contains(at));
                }
                self.inner.submit(Area::User, request)
            }
        }
    }
}

impl Layer for Volatile {
    fn inner(&self) -> &dyn Block {
        &*self.inner
    }

    fn submit(&self, area: Area, request: Request<'_>) -> Result<Instant, BlockError> {
        let (_, range) = extent(&request);
        if area != Area::User || range.start % SECTOR as u64 != 0 || range.end % SECTOR as u64 != 0 {
            return self.inner.submit(area, request);
        }
        let mut held = self.held();
        let result = self.perform(&mut held, request);
        // A cut in the middle of an operation.
        if result == Err(BlockError::PowerLost) {
            *held = Held { cuts: held.cuts, ..Held::default() };
        }
        result
    }

    fn mapped(&self, area: Area, range: Range<u64>) -> Result<Vec<Mapped>, BlockError> {
        match area {
            // What a client copies must be what it reads.
            Area::User if !self.held().sectors.is_empty() => Ok(vec![Mapped { range, mapped: true }]),
            _ => self.inner.mapped(area, range),
        }
    }
}
