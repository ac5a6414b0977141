//! The memory that all NBD clients together may use for long requests.
//!
//! Short requests need none of it: each client has a few MiB of its own for those, so nobody can keep the others from
//! them. Who asks first gets first. Nobody waits for ever: after a time the client is told that there is no memory.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Wall};

/// Requests up to this need none. Unit: bytes.
pub(super) const SHORT_BYTES: usize = 256 << 10;

/// A bound on memory, shared by clients and servers.
#[derive(Debug)]
pub struct Budget {
    total_bytes: usize,
    patience: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    used_bytes: usize,
    /// Who waits, in the order of their coming.
    queue: VecDeque<u64>,
    count: u64,
}

impl Default for Budget {
    /// 256 MiB; whoever waits for 30 s is refused.
    fn default() -> Self {
        Self::new(256 << 20, Duration::from_secs(30))
    }
}

impl Budget {
    /// A bound of its own. One request needs up to 32 MiB of it.
    pub fn new(total_bytes: usize, patience: Duration) -> Self {
        Self { total_bytes, patience, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits for this much; `None`: it is not there in time.
    pub(super) fn reserve(self: &Arc<Self>, bytes: usize) -> Option<Reservation> {
        let mut state = self.state();
        let number = state.count;
        state.count += 1;
        state.queue.push_back(number);
        let until = Wall::now() + self.patience;
        loop {
            let is_next = state.queue.front() == Some(&number);
            if is_next && state.used_bytes + bytes <= self.total_bytes {
                state.used_bytes += bytes;
                break;
            }
            let left = until.saturating_duration_since(Wall::now());
            if left.is_zero() {
                state.queue.retain(|other| *other != number);
                // The next one may need less.
                self.changed.notify_all();
                return None;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.queue.pop_front();
        drop(state);
        self.changed.notify_all();
        Some(Reservation { budget: Arc::clone(self), bytes })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory that is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.state().used_bytes -= self.bytes;
        self.budget.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_first_gets_first() {
        let budget = Arc::new(Budget::new(100, Duration::from_secs(600)));
        let held = budget.reserve(60).unwrap();
        let waits = |number: usize| {
            while budget.state().queue.len() < number {
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| budget.reserve(50).unwrap());
            waits(1);
            // It would fit, but the one before was first.
            scope.spawn(|| budget.reserve(10).unwrap());
            waits(2);
            assert_eq!(budget.state().used_bytes, 60);
            drop(held);
        });
        let state = budget.state();
        assert_eq!((state.used_bytes, state.queue.len()), (0, 0));
    }

    #[test]
    fn nobody_waits_for_ever() {
        let budget = Arc::new(Budget::new(100, Duration::from_millis(20)));
        let _held = budget.reserve(60).unwrap();
        assert!(budget.reserve(50).is_none());
        assert!(budget.reserve(40).is_some());
    }
}
