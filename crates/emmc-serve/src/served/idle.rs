//! Background work of a card while it is idle, if it is allowed.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use emmc_card::card::IDLE_AFTER;
use emmc_units::Instant;

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
            let mut resting_until = Instant::START;
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                match served.upgrade() {
                    Some(served) => resting_until = served.tick(resting_until),
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

impl Served {
    /// Executes due work; returns the instant before which no further work is to be started.
    fn tick(&self, resting_until: Instant) -> Instant {
        let mut inner = self.inner();
        let now = self.now();
        // Without space for a record the card does no background work; the next write tries again.
        let waits = inner.store.as_ref().is_some_and(Store::waits_for_room);
        if waits || inner.catch_up(now).is_err() {
            return resting_until;
        }
        if inner.card.poll_timeout().is_some_and(|at| at <= now) {
            inner.card.handle_timeout(now);
        }
        let mut next = resting_until;
        let is_idle = now >= inner.last_served + IDLE_AFTER && now >= resting_until;
        // A host that speaks commands: the card goes idle by its own rules.
        if is_idle && inner.card.state(now).is_none() && inner.card.works_when_idle() {
            if let Ok(Some(done)) = inner.card.device_mut().background(now) {
                next = done;
            }
        }
        // What cannot be recorded is tried again before the next request.
        let kept = inner.commit(true, now);
        let Inner { card, store, .. } = &mut *inner;
        if let (true, Ok(()), Some(store)) = (is_idle, kept, store) {
            store.rest(card, now);
        }
        next
    }
}
