//! Areas in memory only, with delays that the test sets.

#![allow(dead_code, reason = "several tests and a benchmark share it, none uses all")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant as Wall};

use emmc_card::device::Area;
use emmc_serve::block::{Block, BlockError, Export, Mapped, Request};
use emmc_units::Instant;

pub(crate) const UNIT: u64 = 4096;

/// How long a request takes.
pub(crate) type Delay = Box<dyn Fn(&Request<'_>) -> Duration + Send + Sync>;

pub(crate) struct Memory {
    areas: Vec<(Export, RwLock<Content>)>,
    began: Wall,
    delay: Option<Delay>,
    pub(crate) flushes: AtomicU64,
    pub(crate) through: AtomicU64,
    /// Reported replies.
    pub(crate) answers: AtomicU64,
    /// The number of requests after which power is lost.
    pub(crate) powered_for: AtomicU64,
    /// Sectors that cannot be read.
    pub(crate) bad: Mutex<Vec<u64>>,
    /// Requests by kind.
    pub(crate) counts: Mutex<BTreeMap<&'static str, u64>>,
    counting: bool,
}

struct Content {
    bytes: Vec<u8>,
    mapped: Vec<bool>,
}

impl Memory {
    /// A user area, two small boot areas (the second reads as ones when erased, and is write-protected).
    pub(crate) fn new(user_bytes: u64) -> Self {
        let area = |name: &str, area, size_bytes: u64, erased_byte: u8, read_only| {
            let content = Content {
                bytes: vec![erased_byte; size_bytes as usize],
                mapped: vec![false; size_bytes.div_ceil(UNIT) as usize],
            };
            let preferred_bytes = UNIT as u32;
            let export = Export { name: name.into(), area, size_bytes, preferred_bytes, erased_byte, read_only };
            (export, RwLock::new(content))
        };
        Self {
            areas: vec![
                area("user", Area::User, user_bytes, 0, false),
                area("boot0", Area::Boot(0), 1 << 20, 0xff, false),
                area("boot1", Area::Boot(1), 1 << 20, 0xff, true),
            ],
            began: Wall::now(),
            delay: None,
            flushes: AtomicU64::new(0),
            through: AtomicU64::new(0),
            answers: AtomicU64::new(0),
            powered_for: AtomicU64::new(u64::MAX),
            bad: Mutex::default(),
            counts: Mutex::default(),
            counting: true,
        }
    }

    pub(crate) fn with_delay(mut self, delay: impl Fn(&Request<'_>) -> Duration + Send + Sync + 'static) -> Self {
        self.delay = Some(Box::new(delay));
        self
    }

    /// For benchmarks: the data alone.
    pub(crate) fn without_counts(mut self) -> Self {
        self.counting = false;
        self
    }

    pub(crate) fn shared(self) -> Arc<Self> {
        Arc::new(self)
    }

    /// What the area holds.
    pub(crate) fn content(&self, area: Area) -> Vec<u8> {
        self.area(area).1.read().unwrap().bytes.clone()
    }

    pub(crate) fn count(&self, kind: &str) -> u64 {
        self.counts.lock().unwrap().get(kind).copied().unwrap_or(0)
    }

    fn area(&self, area: Area) -> &(Export, RwLock<Content>) {
        self.areas.iter().find(|(export, _)| export.area == area).expect("only exports are asked for")
    }

    fn range(export: &Export, offset: u64, bytes: u64) -> Result<Range<usize>, BlockError> {
        let range = offset..offset.saturating_add(bytes);
        if offset % 512 != 0 || bytes % 512 != 0 {
            return Err(BlockError::Misaligned { range });
        }
        if range.end > export.size_bytes {
            return Err(BlockError::OutOfRange { range, size_bytes: export.size_bytes });
        }
        Ok(offset as usize..range.end as usize)
    }

    fn note(&self, request: &Request<'_>) -> Result<(), BlockError> {
        if self.counting {
            let kind = match request {
                Request::Read { .. } => "read",
                Request::Write { .. } => "write",
                Request::Zero { .. } => "zero",
                Request::Trim { .. } => "trim",
                Request::Flush => "flush",
            };
            *self.counts.lock().unwrap().entry(kind).or_default() += 1;
            let left = self.powered_for.load(Ordering::SeqCst);
            if left == 0 {
                return Err(BlockError::PowerLost);
            }
            if left != u64::MAX {
                self.powered_for.store(left - 1, Ordering::SeqCst);
            }
        }
        if let Request::Write { through: true, .. } | Request::Zero { through: true, .. } = request {
            self.through.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }
}

impl Content {
    /// Trims whole units; the edges are overwritten.
    fn give_up(&mut self, range: Range<usize>, byte: u8) {
        self.bytes[range.clone()].fill(byte);
        let unit = UNIT as usize;
        let whole = range.start.div_ceil(unit)..range.end / unit;
        if !whole.is_empty() {
            self.mapped[whole].fill(false);
        }
    }
}

impl Block for Memory {
    fn exports(&self) -> Vec<Export> {
        self.areas.iter().map(|(export, _)| export.clone()).collect()
    }

    fn submit(&self, area: Area, request: Request<'_>) -> Result<Instant, BlockError> {
        let (export, content) = self.area(area);
        let delay = self.delay.as_ref().map_or(Duration::ZERO, |delay| delay(&request));
        self.note(&request)?;
        if export.read_only && !matches!(request, Request::Read { .. } | Request::Flush) {
            return Err(BlockError::ReadOnly);
        }
        match request {
            Request::Read { offset, into } => {
                let range = Self::range(export, offset, into.len() as u64)?;
                if self.counting {
                    let bad = self.bad.lock().unwrap().iter().copied().find(|bad| {
                        let at = *bad as usize * 512;
                        range.contains(&at)
                    });
                    if let Some(bad) = bad {
                        return Err(BlockError::Medium(format!("sector {bad} cannot be read")));
                    }
                }
                into.copy_from_slice(&content.read().unwrap().bytes[range]);
            }
            Request::Write { offset, data, .. } => {
                let range = Self::range(export, offset, data.len() as u64)?;
                let mut content = content.write().unwrap();
                let units = range.start / UNIT as usize..range.end.div_ceil(UNIT as usize);
                content.bytes[range].copy_from_slice(data);
                content.mapped[units].fill(true);
            }
            Request::Zero { offset, bytes, .. } => {
                let range = Self::range(export, offset, bytes)?;
                let mut content = content.write().unwrap();
                if export.erased_byte == 0 {
                    content.give_up(range, 0);
                } else {
                    let units = range.start / UNIT as usize..range.end.div_ceil(UNIT as usize);
                    content.bytes[range].fill(0);
                    content.mapped[units].fill(true);
                }
            }
            Request::Trim { offset, bytes } => {
                let range = Self::range(export, offset, bytes)?;
                content.write().unwrap().give_up(range, export.erased_byte);
            }
            Request::Flush => {
                self.flushes.fetch_add(1, Ordering::SeqCst);
            }
        }
        Ok(if delay.is_zero() { Instant::START } else { Instant((self.began.elapsed() + delay).as_nanos() as u64) })
    }

    fn mapped(&self, area: Area, range: Range<u64>) -> Result<Vec<Mapped>, BlockError> {
        let (export, content) = self.area(area);
        Self::range(export, range.start, range.end - range.start)?;
        let content = content.read().unwrap();
        let mut runs: Vec<Mapped> = Vec::new();
        let mut from = range.start;
        while from < range.end {
            let until = range.end.min((from / UNIT + 1) * UNIT);
            let mapped = content.mapped[(from / UNIT) as usize];
            match runs.last_mut() {
                Some(last) if last.mapped == mapped => last.range.end = until,
                _ => runs.push(Mapped { range: from..until, mapped }),
            }
            from = until;
        }
        Ok(runs)
    }

    fn answered(&self, _at: Instant) {
        self.answers.fetch_add(1, Ordering::SeqCst);
    }

    fn due(&self, at: Instant) -> Option<Wall> {
        self.delay.as_ref().map(|_| self.began + Duration::from_nanos(at.0))
    }
}
