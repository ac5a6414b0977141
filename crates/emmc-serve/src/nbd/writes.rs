//! Long writes of one client, performed in their order by a second thread while the next one is received.
//!
//! Only writes whose replies need not wait for the card: with delays they come late anyway. Before any other request
//! the thread that reads requests waits until none is pending, so the card sees all of them in the order of their
//! arrival.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use emmc_card::nand::Landing;

use super::buffer::Buffer;
use super::execute::Executor;
use super::outbox::Outbox;
use super::wire::Request;

/// Most writes that are received and not performed, beside the one that is.
const WAITING_MAX: usize = 2;

/// Writes that were received.
#[derive(Debug, Default)]
pub(super) struct Writes {
    pending: Mutex<Pending>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Pending {
    waiting: VecDeque<(Request, Landing)>,
    is_busy: bool,
    is_last: bool,
    has_panicked: bool,
    /// The connection failed.
    failed: Option<io::ErrorKind>,
}

impl Writes {
    /// Adds a write, of which all data was received; waits while too many are pending.
    ///
    /// Errors: the thread that performs them panicked.
    pub(super) fn add(&self, request: Request, landing: Landing) -> io::Result<()> {
        let mut pending = self.wait_while(|pending| !pending.has_panicked && pending.waiting.len() >= WAITING_MAX);
        if pending.has_panicked {
            return Err(io::ErrorKind::Other.into());
        }
        pending.waiting.push_back((request, landing));
        drop(pending);
        self.changed.notify_all();
        Ok(())
    }

    /// Waits until all are performed and answered.
    ///
    /// Errors: a reply could not be written.
    pub(super) fn wait(&self) -> io::Result<()> {
        let pending = self.wait_while(|pending| pending.is_busy || !pending.waiting.is_empty());
        pending.failed.map_or(Ok(()), |kind| Err(kind.into()))
    }

    /// No more will be added.
    pub(super) fn end(&self) {
        self.pending().is_last = true;
        self.changed.notify_all();
    }

    /// Performs writes and sends their replies, until [`Self::end`] and none is left: also when the client is gone,
    /// because their landings have to be ended.
    pub(super) fn perform<W: Write>(&self, mut executor: Executor<'_>, outbox: &Outbox<W>) {
        let mut replies = Buffer::default();
        loop {
            let mut pending = self.wait_while(|pending| pending.waiting.is_empty() && !pending.is_last);
            let Some((request, landing)) = pending.waiting.pop_front() else { return };
            pending.is_busy = true;
            drop(pending);
            let busy = Busy(self);
            self.changed.notify_all();
            executor.execute(&request, landing.bytes(), &mut replies);
            executor.end_landing(landing);
            if let Err(error) = outbox.write(replies.bytes()) {
                self.pending().failed.get_or_insert(error.kind());
            }
            replies.clear();
            drop(busy);
        }
    }

    fn wait_while(&self, mut condition: impl FnMut(&Pending) -> bool) -> MutexGuard<'_, Pending> {
        let waited = self.changed.wait_while(self.pending(), |pending| condition(pending));
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a write, also by a panic: nobody waits for it in vain.
struct Busy<'a>(&'a Writes);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut pending = self.0.pending();
        pending.is_busy = false;
        if std::thread::panicking() {
            pending.has_panicked = true;
            pending.failed = Some(io::ErrorKind::Other);
            pending.waiting.clear();
        }
        drop(pending);
        self.0.changed.notify_all();
    }
}
