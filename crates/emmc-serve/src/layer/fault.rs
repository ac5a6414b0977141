//! Requests that fail by injected errors.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use emmc_card::device::Area;
use emmc_units::Instant;
use serde::{Deserialize, Serialize};

use super::{Kind, Layer, area_named, extent};
use crate::block::{Block, BlockError, Export, Request};

/// Which requests fail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fault {
    /// Only this kind; absent: every kind.
    pub kind: Option<Kind>,
    /// Only this area, by its name; absent: every area.
    pub area: Option<String>,
    /// Only requests that touch bytes from here on. Unit: bytes.
    pub from: u64,
    /// Only requests that touch bytes before this; absent: to the end. Unit: bytes.
    pub to: Option<u64>,
    /// Number of matching requests that succeed first.
    pub after: u64,
    /// Number of requests that fail then; absent: all that follow.
    pub times: Option<u64>,
}

impl Fault {
    fn can_strike(&self, exports: &[Export]) -> Result<(), String> {
        if let Some(area) = self.area.as_ref().filter(|area| area_named(area).is_none()) {
            return Err(format!("area: expected user, boot0, boot1 or gp1 to gp4, found {area:?}"));
        }
        let is_meant = |export: &&Export| self.area.as_ref().is_none_or(|name| *name == export.name);
        let Some(end) = exports.iter().filter(is_meant).map(|export| export.size_bytes).max() else {
            return Err(format!("area: the card has no {}", self.area.as_deref().unwrap_or_default()));
        };
        match self.to {
            _ if self.from >= end => Err(format!("from {}: expected less than {end}, where the area ends", self.from)),
            Some(to) if to > end => Err(format!("to {to}: expected at most {end}, where the area ends")),
            Some(to) if to <= self.from => Err(format!("from {}, to {to}: no byte lies between them", self.from)),
            _ if self.times == Some(0) => Err("times: expected at least 1".into()),
            _ => Ok(()),
        }
    }

    fn concerns(&self, kind: Kind, area: Area, range: &Range<u64>) -> bool {
        let touches = self.from < range.end && self.to.is_none_or(|to| range.start < to);
        // A flush touches every byte of the area.
        let touches = touches || kind == Kind::Flush;
        let of_area = self.area.as_ref().is_none_or(|name| *name == area.name());
        self.kind.is_none_or(|wanted| wanted == kind) && of_area && touches
    }

    /// Whether this request fails; counts it.
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

/// Makes requests fail before they reach the card.
pub struct Faults {
    inner: Arc<dyn Block>,
    /// Whether any error is pending; read for every request.
    is_armed: AtomicBool,
    armed: Mutex<Vec<Fault>>,
}

impl Faults {
    /// No errors yet.
    pub fn new(inner: Arc<dyn Block>) -> Self {
        Self { inner, is_armed: AtomicBool::new(false), armed: Mutex::default() }
    }

    /// Adds an error.
    ///
    /// Errors: why it could never match.
    pub fn inject(&self, fault: Fault) -> Result<(), String> {
        fault.can_strike(&self.inner.exports())?;
        self.armed().push(fault);
        self.is_armed.store(true, Ordering::Release);
        Ok(())
    }

    /// Removes all errors.
    pub fn clear(&self) {
        self.armed().clear();
        self.is_armed.store(false, Ordering::Release);
    }

    /// The pending errors.
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

impl Layer for Faults {
    fn inner(&self) -> &dyn Block {
        &*self.inner
    }

    fn submit(&self, area: Area, request: Request<'_>) -> Result<Instant, BlockError> {
        if self.is_armed.load(Ordering::Acquire) {
            self.strike(area, &request)?;
        }
        self.inner.submit(area, request)
    }
}
