//! A served card: the card, its folder and its clock behind one lock, for any number of fronts.
//!
//! Fronts that speak commands use [`Served::with_card`]; fronts of block devices use it as a [`crate::block::Block`].
//! Everything the card did is recorded in its folder before either returns, so no client gets a reply for data that a
//! restart would lose. Absent on purpose: threads of clients and protocols (the fronts), the behaviour of the card
//! (`emmc_card`).

mod access;
mod idle;
mod power;
mod requests;
mod schedule;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant as Wall;

use emmc_card::card::Card;
use emmc_units::Instant;
use hdrhistogram::Histogram;

use crate::block::BlockError;
use crate::clock::Clock;
use crate::layer::{Summary, histogram};
use crate::store::{Purpose, Store, StoreError};
pub use idle::Idle;
pub use requests::{ControllerCounts, ControllerRequests, DrivenClient};

/// Options of serving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedOptions {
    /// Clients wait until the card has finished; else they get their reply immediately.
    pub delays: bool,
    /// How many times slower than the host machine's clock the card's clock runs; at least 1.
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
    /// How much later than the card finished clients got their replies. Unit: nanoseconds.
    lateness_ns: Mutex<Histogram<u64>>,
    counted: Mutex<requests::Counted>,
    /// What its clock showed at first.
    started: Instant,
    scheduled: Mutex<schedule::Schedule>,
    /// How often the power was cut.
    power_cuts: AtomicU64,
}

/// What the lock protects.
#[derive(Debug)]
struct Inner {
    card: Card,
    /// Absent: the card is in memory only.
    store: Option<Store>,
    /// When a client was last served.
    last_served: Instant,
    /// Before this instant the card starts no further background work of its own.
    resting_until: Instant,
    /// There may be background work: its last step found some, or a client was served since.
    has_work: bool,
}

impl Inner {
    /// Records the card's changes.
    fn commit(&mut self, looks_closer: bool, now: Instant) -> Result<(), BlockError> {
        let Some(store) = &mut self.store else { return Ok(()) };
        store.commit(&mut self.card, looks_closer, now).map_err(|error| BlockError::Store(error.to_string()))
    }

    /// A client is served at `now`.
    fn serves(&mut self, now: Instant) {
        (self.last_served, self.has_work) = (now, true);
    }

    /// Records the changes that could not be written before; until that succeeds no further request is executed.
    fn catch_up(&mut self, now: Instant) -> Result<(), BlockError> {
        if let Some(store) = self.store.as_mut().filter(|store| store.waits_for_room()) {
            return store.begin_again(&mut self.card, now).map_err(|error| BlockError::Store(error.to_string()));
        }
        let is_behind = self.store.as_ref().is_some_and(Store::is_behind);
        if is_behind { self.commit(true, now) } else { Ok(()) }
    }
}

impl Served {
    /// Serves a powered card in memory, from `now` of its time on.
    pub fn new(card: Card, now: Instant, options: ServedOptions) -> Self {
        Self::with_store(card, None, now, options)
    }

    /// The same, with a clock that only its front moves: by [`Served::with_card_at`] and [`Served::idle_at`].
    pub fn driven(card: Card, now: Instant) -> Self {
        Self::with_clock(card, None, Clock::driven(now))
    }

    /// Serves a card in a folder, from its saved state; power is switched on.
    ///
    /// Errors: no card, in use, damaged; the system's.
    pub fn open(folder: &Path, options: ServedOptions) -> Result<Self, StoreError> {
        let (store, card, now) = Self::load(folder)?;
        Ok(Self::with_store(card, Some(store), now, options))
    }

    /// The same, with a clock that only its front moves; it starts where the card was switched off.
    ///
    /// Errors: as [`Served::open`].
    pub fn open_driven(folder: &Path) -> Result<Self, StoreError> {
        let (store, card, now) = Self::load(folder)?;
        Ok(Self::with_clock(card, Some(store), Clock::driven(now)))
    }

    fn load(folder: &Path) -> Result<(Store, Card, Instant), StoreError> {
        let (mut store, mut card, off) = Store::open(folder, Purpose::Serve)?;
        // A card that fails to power up reports that to every client.
        let now = card.power_on(off).unwrap_or(off);
        store.begin(&mut card, now)?;
        Ok((store, card, now))
    }

    fn with_store(card: Card, store: Option<Store>, now: Instant, options: ServedOptions) -> Self {
        let clock = Clock::new(now, options.dilation);
        Self::with_clock(card, store, if options.delays { clock } else { clock.without_delays() })
    }

    fn with_clock(card: Card, store: Option<Store>, clock: Clock) -> Self {
        let now = clock.now();
        Self {
            inner: Mutex::new(Inner { card, store, last_served: now, resting_until: now, has_work: true }),
            clock: Mutex::new(clock),
            lateness_ns: Mutex::new(histogram()),
            counted: Mutex::default(),
            started: now,
            scheduled: Mutex::default(),
            power_cuts: AtomicU64::new(0),
        }
    }

    /// Whether its disk was full when it was opened and no write succeeded since: reads are served, writes fail.
    pub fn waits_for_room(&self) -> bool {
        self.inner().store.as_ref().is_some_and(Store::waits_for_room)
    }

    /// A client has just got the reply to work that the card finished at `at`. If clients do not wait, no reply is
    /// late.
    pub fn count_answer(&self, at: Instant) {
        let due = self.clock().wall(at);
        if let Some(due) = due {
            let late = Wall::now().saturating_duration_since(due).as_nanos();
            let mut lateness_ns = self.lateness_ns.lock().unwrap_or_else(PoisonError::into_inner);
            lateness_ns.saturating_record(u64::try_from(late).unwrap_or(u64::MAX));
        }
    }

    /// How late replies were, and the number of replies.
    pub fn lateness(&self) -> (Summary, u64) {
        let lateness_ns = self.lateness_ns.lock().unwrap_or_else(PoisonError::into_inner);
        (Summary::of(&lateness_ns), lateness_ns.len())
    }

    /// The card's time now.
    pub fn now(&self) -> Instant {
        self.clock().now()
    }

    /// A copy of the card's clock.
    pub fn clock_now(&self) -> Clock {
        *self.clock()
    }

    /// Sets the dilation: the card's clock runs `dilation` times slower than the host machine's clock.
    pub fn set_dilation(&self, dilation: u32) {
        self.clock().set_dilation(dilation);
    }

    /// Sets whether clients wait until the card has finished.
    pub fn set_delays(&self, delays: bool) {
        self.clock().set_delays(delays);
    }

    /// The host machine's time at which the card's clock shows `at`. `None`: now, because clients do not wait; the
    /// card's time has jumped to `at`.
    pub fn wall(&self, at: Instant) -> Option<Wall> {
        let mut clock = self.clock();
        let due = clock.wall(at);
        if due.is_none() {
            clock.jump_to(at);
        }
        due
    }

    /// Calls `act` with the card at the present instant; its changes are recorded before this returns.
    ///
    /// Errors: the record could not be written; the client must not get a reply.
    pub fn with_card<T>(&self, act: impl FnOnce(&mut Card, Instant) -> T) -> Result<T, BlockError> {
        let mut inner = self.inner();
        let now = self.now();
        inner.catch_up(now)?;
        inner.serves(now);
        inner.card.device_mut().nand_mut().passed(now);
        inner.card.handle_timeout(now);
        let answer = act(&mut inner.card, now);
        inner.commit(true, now)?;
        Ok(answer)
    }

    /// The same at `now`, to which a driven clock is advanced; never back.
    ///
    /// Errors: as [`Served::with_card`].
    pub fn with_card_at<T>(&self, now: Instant, act: impl FnOnce(&mut Card, Instant) -> T) -> Result<T, BlockError> {
        self.advance_clock(now);
        self.with_card(act)
    }

    /// Advances a driven clock to `now`; never back.
    pub fn advance_clock(&self, now: Instant) {
        self.clock().jump_to(now);
    }

    /// Ends serving: the cache is flushed, power is switched off, the folder's state is written and the folder is
    /// unlocked. Clients get "no power" from now on.
    ///
    /// Errors: the system's; everything acknowledged is recorded all the same.
    pub fn finish(&self) -> Result<(), StoreError> {
        let mut inner = self.inner();
        let mut now = self.now();
        let Inner { card, store, .. } = &mut *inner;
        // A card without power, or worn out, has no data to flush.
        if let Ok(done) = card.device_mut().flush(now) {
            now = now.max(done.done);
        }
        card.power_off(now);
        match store.take() {
            Some(store) => store.finish(card, now),
            None => Ok(()),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn scheduled(&self) -> MutexGuard<'_, schedule::Schedule> {
        self.scheduled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counted(&self) -> MutexGuard<'_, requests::Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locked only briefly, with or without the card's lock held; never in the reverse sequence.
    fn clock(&self) -> MutexGuard<'_, Clock> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
