//! A card that is served: the card and its clock behind one lock, for any number of fronts.
//!
//! Fronts that speak commands use [`Served::with_card`]; fronts of block devices use it as a [`crate::block::Block`].
//! Absent on purpose: threads of clients and protocols (the fronts), what the card does (`emmc_card`).

mod access;
mod power;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant as Wall;

use emmc_card::card::Card;
use emmc_units::Instant;

use crate::block::BlockError;
use crate::clock::Clock;

/// How a card is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedOptions {
    /// Clients wait until the card is done; else they are answered at once.
    pub delays: bool,
    /// How many times slower than the machine's clock the card's runs; at least 1.
    pub dilation: u32,
}

impl Default for ServedOptions {
    fn default() -> Self {
        Self { delays: true, dilation: 1 }
    }
}

/// A card with its clock.
#[derive(Debug)]
pub struct Served {
    inner: Mutex<Inner>,
    clock: Mutex<Clock>,
}

/// What the lock is for.
#[derive(Debug)]
struct Inner {
    card: Card,
}

impl Served {
    /// Serves a card that is powered, from `now` of its time on.
    pub fn new(card: Card, now: Instant, options: ServedOptions) -> Self {
        let clock = Clock::new(now, options.dilation);
        let clock = if options.delays { clock } else { clock.without_delays() };
        Self { inner: Mutex::new(Inner { card }), clock: Mutex::new(clock) }
    }

    /// The card's time now.
    pub fn now(&self) -> Instant {
        self.clock().now()
    }

    /// When the machine's clock gets where the card's shows `at`. `None`: now, because clients do not wait; the card's time
    /// has jumped there.
    pub fn wall(&self, at: Instant) -> Option<Wall> {
        let mut clock = self.clock();
        if clock.has_delays() {
            return Some(clock.wall(at));
        }
        clock.jump_to(at);
        None
    }

    /// Does something with the card at the present instant; what it changed is kept before this returns.
    ///
    /// Errors: what was done could not be kept: the client must not be told that it was done.
    pub fn with_card<T>(&self, act: impl FnOnce(&mut Card, Instant) -> T) -> Result<T, BlockError> {
        let mut inner = self.inner();
        let now = self.now();
        inner.card.handle_timeout(now);
        Ok(act(&mut inner.card, now))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Taken for a moment, with or without the card's lock held; never the other way round.
    fn clock(&self) -> MutexGuard<'_, Clock> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
