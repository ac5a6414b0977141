//! Requests that fail because they are told to.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant as Wall;

use emmc_card::device::Area;
use emmc_units::Instant;
use serde::{Deserialize, Serialize};

use super::{Kind, area_name, extent};
use crate::block::{Block, BlockError, Export, Mapped, Request};

/// Which requests fail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fault {
    /// Only this kind; absent: every kind.
    pub kind: Option<Kind>,
    /// Only this area, by its name; absent: every area.
    pub area: Option<String>,
    /// Only what touches bytes from here on. Unit: bytes.
    pub from: u64,
    /// Only what touches bytes before this; absent: to the end. Unit: bytes.
    pub to: Option<u64>,
    /// So many requests that it is meant for pass first.
    pub after: u64,
    /// So many fail then; absent: all that follow.
    pub times: Option<u64>,
}

impl Fault {
    fn concerns(&self, kind: Kind, area: Area, range: &Range<u64>) -> bool {
        let touches = self.from < range.end && self.to.is_none_or(|to| range.start < to);
        // A flush touches every byte there is.
        let touches = touches || kind == Kind::Flush;
        let of_area = self.area.as_ref().is_none_or(|name| *name == area_name(area));
        self.kind.is_none_or(|wanted| wanted == kind) && of_area && touches
    }

    /// Whether this request is one; counts it.
    fn strikes(&mut self) -> bool {
        if self.after > 0 {
            self.after -= 1;
            return false;
        }
        match &mut self.times {
            None => true,
            Some(0) => false,
            Some(times) => {
                *times -= 1;
                true
            }
        }
    }
}

/// Makes requests fail, before the card sees them.
pub struct Faults {
    inner: Arc<dyn Block>,
    /// Whether there are any: asked for every request.
    is_armed: AtomicBool,
    armed: Mutex<Vec<Fault>>,
}

impl Faults {
    /// None fails yet.
    pub fn new(inner: Arc<dyn Block>) -> Self {
        Self { inner, is_armed: AtomicBool::new(false), armed: Mutex::default() }
    }

    /// From now on these fail too.
    pub fn inject(&self, fault: Fault) {
        self.armed().push(fault);
        self.is_armed.store(true, Ordering::Release);
    }

    /// None fails any more.
    pub fn clear(&self) {
        self.armed().clear();
        self.is_armed.store(false, Ordering::Release);
    }

    /// Those that are still to come.
    pub fn list(&self) -> Vec<Fault> {
        self.armed().clone()
    }

    fn armed(&self) -> std::sync::MutexGuard<'_, Vec<Fault>> {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn strike(&self, area: Area, request: &Request<'_>) -> Result<(), BlockError> {
        let (kind, range) = extent(request);
        let mut armed = self.armed();
        let struck = armed.iter_mut().any(|fault| fault.concerns(kind, area, &range) && fault.strikes());
        armed.retain(|fault| fault.times != Some(0));
        self.is_armed.store(!armed.is_empty(), Ordering::Release);
        if struck { Err(BlockError::Medium(format!("injected error of a {}", kind.name()))) } else { Ok(()) }
    }
}

impl Block for Faults {
    fn exports(&self) -> Vec<Export> {
        self.inner.exports()
    }

    fn submit(&self, area: Area, request: Request<'_>) -> Result<Instant, BlockError> {
        if self.is_armed.load(Ordering::Acquire) {
            self.strike(area, &request)?;
        }
        self.inner.submit(area, request)
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
