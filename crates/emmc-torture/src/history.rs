//! The events of a unit since its content was last known for certain.

use emmc_units::Instant;

use crate::content::Seen;
use emmc_card::ftl::{Durability, TrimKind};

/// Not yet, and perhaps never.
pub(crate) const NEVER: Instant = Instant(u64::MAX);

/// An operation of the host on a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// It was read when power came back, or never written: how it began.
    Found,
    Write(Durability),
    Trim(TrimKind),
}

/// An event and its acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) deed: Deed,
    /// The unit's content afterwards; 0: erased.
    pub(crate) stamp: u64,
    /// When it was acknowledged.
    pub(crate) done: Instant,
    /// When a later flush was acknowledged.
    pub(crate) flushed: Instant,
    /// For `Found`: a cut may still damage it through a pair.
    pub(crate) at_risk: bool,
}

/// A cut, for one unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// Everything acknowledged before it must hold.
    pub(crate) at: Instant,
    /// A completed page of the unit shares a word line with an interrupted one.
    pub(crate) pair_hit: bool,
    /// Since power-on there was an unreliable write, which puts existing data at risk.
    pub(crate) unreliable: bool,
}

/// A unit's history.
#[derive(Clone, Debug)]
pub(crate) struct History {
    /// In the order of issue; the first is `Found`.
    pub(crate) events: Vec<Event>,
    /// All contents since the card was created.
    ever: Vec<u64>,
    /// Its content was discarded or lost: it may read as any earlier content.
    pub(crate) loose: bool,
    /// It may fail to read.
    pub(crate) lost: bool,
}

impl History {
    /// A unit that was never written.
    pub(crate) fn new() -> Self {
        Self { events: vec![Event::found(0, false)], ever: vec![0], loose: false, lost: false }
    }

    pub(crate) fn push(&mut self, deed: Deed, stamp: u64) {
        self.ever.push(stamp);
        self.events.push(Event { deed, stamp, done: NEVER, flushed: NEVER, at_risk: false });
    }

    /// It was rewritten unchanged, with others in its mapping unit.
    pub(crate) fn push_again(&mut self, durability: Durability) {
        match self.events.last() {
            // After a discard its content is undefined.
            Some(Event { deed: Deed::Found, .. }) if self.loose => self.push(Deed::Trim(TrimKind::Discard), 0),
            Some(Event { deed: Deed::Trim(TrimKind::Discard), .. }) => self.push(Deed::Trim(TrimKind::Discard), 0),
            Some(&Event { stamp, .. }) => self.push(Deed::Write(durability), stamp),
            None => {}
        }
    }

    /// The last event was acknowledged.
    pub(crate) fn acknowledge(&mut self, done: Instant) {
        if let Some(last) = self.events.last_mut() {
            last.done = done;
        }
    }

    /// All events so far are flushed.
    pub(crate) fn flush(&mut self, done: Instant) {
        for event in &mut self.events {
            event.flushed = event.flushed.min(done);
        }
    }

    /// Whether the unit had the content `stamp` at some time.
    pub(crate) fn was(&self, stamp: u64) -> bool {
        self.ever.contains(&stamp)
    }

    /// Whether a unit that reads as `seen` has the content of an event from the `from`th on; after a discard it may
    /// have any earlier content.
    pub(crate) fn reaches(&self, seen: &Seen, from: usize) -> bool {
        let discarded = |event: &Event| event.deed == Deed::Trim(TrimKind::Discard);
        let Seen::Stamp(stamp) = *seen else { return false };
        let loose = from == 0 && self.loose || self.events[from..].iter().any(discarded);
        loose && self.was(stamp) || self.events[from..].iter().any(|event| event.stamp == stamp)
    }

    /// Whether the content at the cut may be damaged: the durability contract allows it for unreliable writes and, with
    /// such writes, for buffered data before a flush.
    pub(crate) fn may_be_damaged(&self, cut: Cut) -> bool {
        let from = self.events.iter().rposition(|event| event.is_firm(cut.at)).unwrap_or(0);
        let risky = |event: &Event| match event.deed {
            Deed::Write(Durability::Flash) => true,
            Deed::Write(Durability::Buffered) => cut.unreliable,
            _ => event.at_risk,
        };
        cut.pair_hit && self.events[from..].iter().any(|event| risky(event) && event.flushed > cut.at)
    }

    /// What may be read while power stays on: the last event, or anything after a discard.
    pub(crate) fn reads_now(&self, seen: &Seen) -> bool {
        if *seen == Seen::Uncorrectable {
            return self.lost && self.events.len() == 1;
        }
        self.reaches(seen, self.events.len() - 1)
    }

    /// Power came back and the unit reads as `seen`, which was allowed: this is its new content.
    pub(crate) fn settle(&mut self, seen: &Seen, at: Instant) {
        let discards = |event: &Event| event.deed == Deed::Trim(TrimKind::Discard);
        let held = self.events.iter().rposition(|event| event.holds(at) && !discards(event)).unwrap_or(0);
        let loose = held == 0 && self.loose || self.events[held..].iter().any(discards);
        let Seen::Stamp(stamp) = *seen else {
            (self.loose, self.lost) = (true, true);
            self.events = vec![Event::found(0, true)];
            return;
        };
        (self.loose, self.lost) = (loose, false);
        self.events = vec![Event::found(stamp, !self.is_firm(stamp, at))];
    }

    /// Whether no paired page may damage the content `stamp`: not if an unreliable write to the same mapping unit
    /// rewrote it since.
    fn is_firm(&self, stamp: u64, at: Instant) -> bool {
        let unreliable = |deed| matches!(deed, Deed::Write(Durability::Flash | Durability::Buffered));
        let mut made = self.events.iter().rev().filter(|event| event.stamp == stamp);
        made.find(|event| event.is_firm(at) || unreliable(event.deed)).is_some_and(|event| event.is_firm(at))
    }
}

impl Event {
    fn found(stamp: u64, at_risk: bool) -> Self {
        Self { deed: Deed::Found, stamp, done: Instant::START, flushed: NEVER, at_risk }
    }

    /// Whether it must have happened by `at`, seen from any promise.
    pub(crate) fn holds(&self, at: Instant) -> bool {
        let promised = match self.deed {
            Deed::Write(Durability::Buffered) => false,
            Deed::Trim(TrimKind::Discard) => false,
            Deed::Found | Deed::Write(_) | Deed::Trim(TrimKind::Trim) => true,
        };
        promised && self.done <= at || self.flushed <= at
    }

    /// Whether no pair may damage it any more.
    fn is_firm(&self, at: Instant) -> bool {
        match self.deed {
            Deed::Found => !self.at_risk,
            Deed::Write(Durability::Reliable) | Deed::Trim(TrimKind::Trim) => self.done <= at,
            _ => self.flushed <= at,
        }
    }
}
