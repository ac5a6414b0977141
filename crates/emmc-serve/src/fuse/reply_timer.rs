//! Delayed actions: a thread that sleeps until the next one is due.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io;
use std::num::NonZeroU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant as Wall;

type Act = Box<dyn FnOnce() + Send>;

/// A thread and its pending actions. Dropping it runs the rest immediately and ends the thread.
#[derive(Debug)]
pub(super) struct ReplyTimer {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    entries: BinaryHeap<Entry>,
    count: u64,
    ended: bool,
}

struct Entry {
    due: Wall,
    /// Orders actions that are due at the same time: first in, first out.
    number: u64,
    act: Act,
}

impl ReplyTimer {
    pub(super) fn start() -> io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let its_own = Arc::clone(&queue);
        let thread = thread::Builder::new().name("fuse-replies".into()).spawn(move || its_own.run())?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// Runs the action now if it is due, else leaves it to the thread.
    pub(super) fn at(&self, due: Wall, act: impl FnOnce() + Send + 'static) {
        if due > Wall::now() { self.queue.push(due, Box::new(act)) } else { act() }
    }
}

impl Drop for ReplyTimer {
    fn drop(&mut self) {
        self.queue.lock().ended = true;
        self.queue.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic there was printed when it happened.
            let _ = thread.join();
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, due: Wall, act: Act) {
        let mut waiting = self.lock();
        let earliest = waiting.entries.peek().is_none_or(|next| due < next.due);
        waiting.count += 1;
        let number = waiting.count;
        waiting.entries.push(Entry { due, number, act });
        drop(waiting);
        if earliest {
            self.changed.notify_one();
        }
    }

    fn run(&self) {
        // As in `nbd::outbox`: without permission to set the timer slack, replies are up to 50 us late.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut waiting = self.lock();
        loop {
            let now = Wall::now();
            let next = waiting.entries.peek().map(|next| next.due);
            waiting = match next {
                Some(due) if due <= now || waiting.ended => {
                    let entry = waiting.entries.pop();
                    drop(waiting);
                    if let Some(entry) = entry {
                        (entry.act)();
                    }
                    self.lock()
                }
                Some(due) => self.changed.wait_timeout(waiting, due - now).unwrap_or_else(PoisonError::into_inner).0,
                None if waiting.ended => return,
                None => self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("due", &self.due).field("number", &self.number).finish_non_exhaustive()
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// Reversed: a heap pops the greatest first, and the earliest must come first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn replies_are_sent_by_time_and_the_rest_at_the_end() {
        let timer = ReplyTimer::start().unwrap();
        let (done, order) = mpsc::channel();
        let now = Wall::now();
        for (name, millis) in [("c", 5), ("a", 1), ("b", 3), ("never", 3_600_000)] {
            let done = done.clone();
            let due = now + Duration::from_millis(millis);
            timer.at(due, move || done.send((name, Wall::now() >= due)).unwrap());
        }
        let at_once = done.clone();
        timer.at(now, move || at_once.send(("now", true)).unwrap());
        let three: Vec<_> = order.iter().take(4).collect();
        assert_eq!(three, [("now", true), ("a", true), ("b", true), ("c", true)]);
        drop(timer);
        assert_eq!(order.recv(), Ok(("never", false)));
    }
}
