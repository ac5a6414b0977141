//! What a reader has to say besides its events: damage, losses, names of threads.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use emmc_units::Nanos;

use crate::Event;

/// Damage that is kept with its place; more is only counted.
const DAMAGE_KEPT: usize = 20;
/// Threads whose names are kept.
const NAMES_MAX: usize = 1 << 16;

/// A place in the input that is no valid record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}; expected {expected}", self.place())]
pub struct Damage {
    /// Unit: bytes from the start of the input.
    pub offset: u64,
    /// The line, counted from 1; 0 in binary input.
    pub line: u64,
    /// What is there; the beginning of a line of text.
    pub found: String,
    /// What should be there.
    pub expected: String,
}

impl Damage {
    fn place(&self) -> String {
        match self.line {
            0 => format!("byte {}: found {}", self.offset, self.found),
            line => format!("line {line}, byte {}: found {:?}", self.offset, self.found),
        }
    }
}

/// What a reader has to say besides its events.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// The first places of damage.
    pub damage: Vec<Damage>,
    /// All places of damage.
    pub damaged: u64,
    /// Events that the kernel or the recorder dropped, as far as they are counted.
    pub lost: u64,
    /// Losses whose number of events is unknown.
    pub losses_uncounted: u64,
    /// Events of other kinds, which are not used.
    pub unused: u64,
    /// Names of threads.
    pub names: Names,
    /// The clock of the recording, if it is named.
    pub clock: Option<String>,
}

impl Notes {
    pub(crate) fn damage(&mut self, offset: u64, line: u64, found: impl Into<String>, expected: &str) {
        self.damaged += 1;
        if self.damage.len() < DAMAGE_KEPT {
            self.damage.push(Damage { offset, line, found: found.into(), expected: expected.into() });
        }
    }

    pub(crate) fn absorb(&mut self, other: Self) {
        let free = DAMAGE_KEPT.saturating_sub(self.damage.len());
        self.damage.extend(other.damage.into_iter().take(free));
        self.damaged += other.damaged;
        self.lost += other.lost;
        self.losses_uncounted += other.losses_uncounted;
        self.unused += other.unused;
        for (pid, name) in other.names.0 {
            self.names.set(pid, &name);
        }
        self.clock = self.clock.take().or(other.clock);
    }
}

/// Names of threads, 16 bytes each as in the kernel.
#[derive(Clone, Debug, Default)]
pub struct Names(HashMap<u32, [u8; 16], Mixer>);

impl Names {
    /// A thread's name.
    pub fn get(&self, pid: u32) -> Option<String> {
        let name = self.0.get(&pid)?;
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(16);
        Some(String::from_utf8_lossy(&name[..end]).into_owned())
    }

    /// The last name counts, except that `<...>` and an empty name are none.
    pub(crate) fn set(&mut self, pid: u32, name: &[u8]) {
        if name.is_empty() || name[0] == 0 || name.starts_with(b"<...>") {
            return;
        }
        let mut kept = [0; 16];
        let length = name.len().min(16);
        kept[..length].copy_from_slice(&name[..length]);
        if let Some(slot) = self.0.get_mut(&pid) {
            *slot = kept;
        } else if self.0.len() < NAMES_MAX {
            self.0.insert(pid, kept);
        }
    }
}

/// A fast hash for numbers that the kernel chose: no defence against chosen keys is needed beyond bounded tables.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mix(u64);

pub(crate) type Mixer = BuildHasherDefault<Mix>;

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Where a reader puts what it found.
#[derive(Debug, Default)]
pub struct Batch {
    /// Events, in the order of the input.
    pub events: Vec<Event>,
    /// Everything else.
    pub notes: Notes,
}

impl Batch {
    pub(crate) fn lost(&mut self, (from, until): (Nanos, Nanos), count: Option<u64>, cpu: u32) {
        match count {
            Some(count) => self.notes.lost += count,
            None => self.notes.losses_uncounted += 1,
        }
        let count = u32::try_from(count.unwrap_or(0)).unwrap_or(u32::MAX);
        self.events.push(Event { at: from, pid: 0, cpu, what: crate::What::Lost { until, count } });
    }
}
