//! Outgoing replies: those that are due are written immediately, the others when the card would have finished.
//!
//! The thread that reads requests writes the due replies. A second thread, started with the first reply that has to
//! wait, sleeps until the next one is due. Replies therefore overtake each other, as on a card with a queue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, IoSlice, Write};
use std::num::NonZeroU64;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant as Wall;

use emmc_units::Instant;

/// When more than this is pending, no more requests are read. Unit: bytes.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// Most pending replies.
const WAITING_MAX: usize = 4096;
/// Most spare buffers kept for reuse.
const SPARE_MAX: usize = 64;
/// Unit: bytes.
const SPARE_BYTES_MAX: usize = 2 << 20;
/// As many as one system call takes efficiently.
const BATCH_MAX: usize = 64;

/// When a reply is due, by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due {
    pub(crate) wall: Wall,
    pub(crate) at: Instant,
}

/// A connection's replies.
#[derive(Debug)]
pub(crate) struct Outbox<W> {
    stream: Mutex<W>,
    waiting: Mutex<Waiting>,
    /// An earlier reply was added, or the end.
    changed: Condvar,
    /// Space was freed.
    room: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The earliest on top; first in, first out for equal times.
    replies: BinaryHeap<Reverse<(Due, u64, Vec<u8>)>>,
    bytes: usize,
    count: u64,
    spare: Vec<Vec<u8>>,
    end: End,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    #[default]
    Open,
    /// Pending replies are still sent.
    Draining,
    /// Pending replies are dropped: the connection or the server is gone.
    Abandoned,
}

impl<W: Write> Outbox<W> {
    pub(crate) fn new(stream: W) -> Self {
        Self { stream: Mutex::new(stream), waiting: Mutex::default(), changed: Condvar::new(), room: Condvar::new() }
    }

    /// Writes replies that are due.
    pub(crate) fn write(&self, replies: &[u8]) -> io::Result<()> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner).write_all(replies)
    }

    /// Stores a reply until it is due; blocks while too many are pending.
    ///
    /// Errors: the connection is gone.
    pub(crate) fn later(&self, due: Due, reply: &[u8]) -> io::Result<()> {
        let mut waiting = self.waiting();
        while waiting.end == End::Open
            && !waiting.replies.is_empty()
            && (waiting.bytes + reply.len() > WAITING_BYTES_MAX || waiting.replies.len() >= WAITING_MAX)
        {
            waiting = self.room.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        if waiting.end == End::Abandoned {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut memory = waiting.spare.pop().unwrap_or_default();
        memory.extend_from_slice(reply);
        waiting.bytes += memory.len();
        waiting.count += 1;
        let earliest = waiting.replies.peek().is_none_or(|Reverse((next, ..))| due < *next);
        let count = waiting.count;
        waiting.replies.push(Reverse((due, count, memory)));
        drop(waiting);
        if earliest {
            self.changed.notify_one();
        }
        Ok(())
    }

    /// Sends replies as they become due, until [`Self::close`] and none is pending, or [`Self::abandon`]; calls `sent`
    /// for each.
    pub(crate) fn send_when_due(&self, sent: impl Fn(Instant)) {
        // The kernel may let a thread sleep 50 us too long, which is as long as a fast card takes. Without permission
        // to change that, replies are late by that much, and the statistics show it.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut batch: Vec<(Instant, Vec<u8>)> = Vec::with_capacity(BATCH_MAX);
        while self.wait(&mut batch) {
            let written = {
                let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
                write_all(&mut *stream, &batch)
            };
            if written.is_err() {
                self.abandon();
            } else {
                batch.iter().for_each(|(at, _)| sent(*at));
            }
            let mut waiting = self.waiting();
            for (_, mut memory) in batch.drain(..) {
                waiting.bytes = waiting.bytes.saturating_sub(memory.len());
                memory.clear();
                if waiting.spare.len() < SPARE_MAX && memory.capacity() <= SPARE_BYTES_MAX {
                    waiting.spare.push(memory);
                }
            }
            drop(waiting);
            self.room.notify_one();
        }
    }

    /// Sleeps until replies are due and takes them; `false`: no more will come.
    fn wait(&self, batch: &mut Vec<(Instant, Vec<u8>)>) -> bool {
        let mut waiting = self.waiting();
        loop {
            let due = waiting.replies.peek().map(|Reverse((due, ..))| due.wall);
            waiting = match (waiting.end, due) {
                (End::Abandoned, _) | (End::Draining, None) => return false,
                (End::Open, None) => self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                (_, Some(due)) => {
                    let now = Wall::now();
                    if due <= now {
                        waiting.take_due(now, batch);
                        return true;
                    }
                    let woken = self.changed.wait_timeout(waiting, due - now);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// No more replies will be added; pending ones are still sent.
    pub(crate) fn close(&self) {
        let mut waiting = self.waiting();
        if waiting.end == End::Open {
            waiting.end = End::Draining;
        }
        drop(waiting);
        self.changed.notify_one();
    }

    /// Drops pending replies.
    pub(crate) fn abandon(&self) {
        let mut waiting = self.waiting();
        waiting.end = End::Abandoned;
        waiting.replies.clear();
        waiting.bytes = 0;
        drop(waiting);
        self.changed.notify_one();
        self.room.notify_one();
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn take_due(&mut self, now: Wall, batch: &mut Vec<(Instant, Vec<u8>)>) {
        while batch.len() < BATCH_MAX && self.replies.peek().is_some_and(|Reverse((due, ..))| due.wall <= now) {
            batch.extend(self.replies.pop().map(|Reverse((due, _, reply))| (due.at, reply)));
        }
    }
}

/// Writes all of them, in as few system calls as the stream allows.
fn write_all(stream: &mut impl Write, batch: &[(Instant, Vec<u8>)]) -> io::Result<()> {
    if let [(_, only)] = batch {
        return stream.write_all(only);
    }
    let mut slices: Vec<IoSlice<'_>> = batch.iter().map(|(_, reply)| IoSlice::new(reply)).collect();
    let mut slices = &mut slices[..];
    while !slices.is_empty() {
        match stream.write_vectored(slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn replies_are_sent_by_due_time() {
        let outbox = Outbox::new(Vec::new());
        let now = Wall::now();
        let after = |millis| now + Duration::from_millis(millis);
        let sent = Mutex::new(Vec::new());
        for (millis, reply) in [(9, b"d"), (3, b"b"), (1, b"a"), (3, b"c")] {
            outbox.later(Due { wall: after(millis), at: Instant(millis) }, reply).unwrap();
        }
        outbox.close();
        outbox.send_when_due(|at| sent.lock().unwrap().push(at.0));
        assert!(Wall::now() >= after(9));
        assert_eq!(sent.into_inner().unwrap(), [1, 3, 3, 9]);
        assert_eq!(outbox.stream.into_inner().unwrap(), b"abcd");
    }

    #[test]
    fn abandoned_replies_are_dropped() {
        let outbox = Outbox::new(Vec::new());
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| outbox.send_when_due(|_| panic!("nothing is due")));
            let due = Due { wall: Wall::now() + Duration::from_secs(3600), at: Instant::START };
            outbox.later(due, b"never").unwrap();
            outbox.abandon();
            sender.join().unwrap();
        });
        let due = Due { wall: Wall::now(), at: Instant::START };
        assert_eq!(outbox.later(due, b"late").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(outbox.stream.into_inner().unwrap().is_empty());
    }

    /// A stream that accepts a few bytes at a time.
    struct Narrow(Vec<u8>);

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(3);
            self.0.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn short_writes_lose_no_data() {
        let mut stream = Narrow(Vec::new());
        let batch = [&b"first"[..], b"second", b"third"].map(|reply| (Instant::START, reply.to_vec()));
        write_all(&mut stream, &batch).unwrap();
        assert_eq!(stream.0, b"firstsecondthird");
    }
}
