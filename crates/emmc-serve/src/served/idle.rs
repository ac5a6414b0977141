//! What a card does while nobody asks anything of it: its own background work, if it is allowed to.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use emmc_units::{Instant, Nanos};

use super::{Inner, Served};

/// How often it is looked at, by the machine's clock.
const TICK: Duration = Duration::from_millis(20);
/// Without a request for so long a card calls itself idle, as `emmc_card` has it.
const IDLE_AFTER: Nanos = Nanos::from_millis(20);

/// A thread that lets a card work while it is idle, until this is dropped.
#[derive(Debug)]
pub struct Idle {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Idle {
    /// Begins.
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
        // A thread that died has said why.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Served {
    /// Does what has become due; answers before when nothing more is to be begun.
    fn tick(&self, resting_until: Instant) -> Instant {
        let mut inner = self.inner();
        let now = self.now();
        if inner.catch_up(now).is_err() {
            return resting_until;
        }
        if inner.card.poll_timeout().is_some_and(|at| at <= now) {
            inner.card.handle_timeout(now);
        }
        let mut next = resting_until;
        let is_idle = now >= inner.last_served + IDLE_AFTER && now >= resting_until;
        // A host that speaks commands has the card rest by its own rules.
        if is_idle && inner.card.state(now).is_none() && inner.card.works_when_idle() {
            if let Ok(Some(done)) = inner.card.device_mut().background(now) {
                next = done;
            }
        }
        // What cannot be kept is tried again before the next request is done.
        let kept = inner.commit(true, now);
        let Inner { card, store, .. } = &mut *inner;
        if let (true, Ok(()), Some(store)) = (is_idle, kept, store) {
            store.rest(card, now);
        }
        next
    }
}
