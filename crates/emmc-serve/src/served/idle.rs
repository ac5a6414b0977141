//! Background work of a card while it is idle, if it is allowed.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use emmc_card::card::IDLE_AFTER;
use emmc_units::{Instant, Nanos};

use super::{Inner, Served};
use crate::store::Store;

/// Polling interval, by the host machine's clock.
const TICK: Duration = Duration::from_millis(20);

/// A thread that lets an idle card work, until this is dropped.
#[derive(Debug)]
pub struct Idle {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Idle {
    /// Starts the thread.
    pub fn start(served: &Arc<Served>) -> Self {
        let (stop, stopped) = channel();
        let served: Weak<Served> = Arc::downgrade(served);
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                match served.upgrade() {
                    Some(served) => served.idle_at(served.now()),
                    None => break,
                }
            }
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.stop.take();
        // A panic there was printed when it happened.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Inner {
    /// When an idle card without a host that speaks commands may work; absent: never, as it is now. A host that speaks
    /// commands leaves that to the card's own rules.
    fn may_work_at(&self) -> Option<Instant> {
        let by_itself = self.card.works_when_idle() && !self.card.has_commanding_host();
        by_itself.then(|| (self.last_served + IDLE_AFTER).max(self.resting_until))
    }
}

impl Served {
    /// The next instant at which the card does something without a request; absent: it waits for a request.
    pub fn next_idle(&self) -> Option<Instant> {
        let inner = self.inner();
        let alone = inner.may_work_at().filter(|_| inner.has_work);
        inner.card.poll_timeout().into_iter().chain(alone).min()
    }

    /// Executes what is due at `now` without a request: the card's own events, and background work of an idle card.
    pub fn idle_at(&self, now: Instant) {
        let mut inner = self.inner();
        self.advance_clock(now);
        let now = self.now();
        // Without space for a record the card does no background work; the next write tries again.
        let waits = inner.store.as_ref().is_some_and(Store::waits_for_room);
        if waits || inner.catch_up(now).is_err() {
            return;
        }
        if inner.card.poll_timeout().is_some_and(|at| at <= now) {
            inner.card.handle_timeout(now);
        }
        let is_idle = now >= (inner.last_served + IDLE_AFTER).max(inner.resting_until);
        if inner.may_work_at().is_some_and(|at| at <= now) {
            let step = inner.card.device_mut().background(now);
            inner.has_work = matches!(step, Ok(Some(_)));
            if let Ok(Some(done)) = step {
                // A step that takes no time would repeat forever at the same instant.
                inner.resting_until = done.max(now + Nanos(1));
            }
        }
        // What cannot be recorded is tried again before the next request.
        let kept = inner.commit(true, now);
        let Inner { card, store, .. } = &mut *inner;
        if let (true, Ok(()), Some(store)) = (is_idle, kept, store) {
            store.rest(card, now);
        }
    }
}
