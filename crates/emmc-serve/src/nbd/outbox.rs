//! Outgoing replies: those that are due are written immediately, the others when the card would have finished.
//!
//! The thread that reads requests writes the due replies. A second thread, started with the first reply that has to
//! wait, sleeps until the next one is due. Replies therefore overtake each other, as on a card with a queue.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::io::{self, IoSlice, Write};
use std::num::NonZeroU64;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant as Wall;

use emmc_units::Instant;

use super::budget::Reservation;
use super::buffer::Buffer;

/// When more than this is pending, no more requests are read. Unit: bytes.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// The same for replies without memory of the common budget. Unit: bytes.
const UNRESERVED_BYTES_MAX: usize = 2 << 20;
/// Beyond this the thread that reads requests writes replies itself: a client that does not read must not cost memory.
/// Unit: bytes.
const HANDED_BYTES_MAX: usize = 4 << 20;
/// Most pending replies.
const WAITING_MAX: usize = 4096;
/// Most spare buffers kept for reuse.
const SPARE_MAX: usize = 64;
/// Most memory of all of them. Unit: bytes.
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
    replies: BinaryHeap<Reverse<Pending>>,
    /// Of all that is not written, also of what is being written. Unit: bytes.
    bytes: usize,
    /// The part of them without a reservation. Unit: bytes.
    unreserved_bytes: usize,
    count: u64,
    spare: Vec<Buffer>,
    /// Unit: bytes.
    spare_bytes: usize,
    end: End,
}

/// Replies that are written together.
#[derive(Debug)]
struct Pending {
    wall: Wall,
    /// When the card's work ended, if the client waits for that.
    at: Option<Instant>,
    number: u64,
    replies: Buffer,
    /// The memory of long replies.
    reserved: Vec<Reservation>,
}

impl Pending {
    fn key(&self) -> (Wall, Option<Instant>, u64) {
        (self.wall, self.at, self.number)
    }
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Pending {}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pending {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
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

    /// Whether nothing is pending.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting().bytes == 0
    }

    /// Stores a reply until it is due, with its memory; blocks while too many are pending.
    ///
    /// Errors: the connection is gone.
    pub(crate) fn later(&self, due: Due, reply: &[u8], reserved: Vec<Reservation>) -> io::Result<()> {
        let mut waiting = self.waiting();
        let unreserved = if reserved.is_empty() { reply.len() } else { 0 };
        while waiting.end == End::Open
            && !waiting.replies.is_empty()
            && (waiting.bytes + reply.len() > WAITING_BYTES_MAX
                || unreserved > 0 && waiting.unreserved_bytes + unreserved > UNRESERVED_BYTES_MAX
                || waiting.replies.len() >= WAITING_MAX)
        {
            waiting = self.room.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        if waiting.end == End::Abandoned {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut replies = waiting.take_spare();
        replies.put(reply);
        let earliest = waiting.add(due.wall, Some(due.at), replies, reserved);
        drop(waiting);
        if earliest {
            self.changed.notify_one();
        }
        Ok(())
    }

    /// Has the other thread write replies that are due, and leaves an empty buffer in their place; `false`: too much is
    /// pending.
    ///
    /// Errors: the connection is gone.
    pub(crate) fn hand_over(&self, replies: &mut Buffer, reserved: &mut Vec<Reservation>) -> io::Result<bool> {
        let mut waiting = self.waiting();
        if waiting.end == End::Abandoned {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if waiting.bytes + replies.length() > HANDED_BYTES_MAX {
            return Ok(false);
        }
        let empty = waiting.take_spare();
        let (replies, reserved) = (std::mem::replace(replies, empty), std::mem::take(reserved));
        let earliest = waiting.add(Wall::now(), None, replies, reserved);
        drop(waiting);
        if earliest {
            self.changed.notify_one();
        }
        Ok(true)
    }

    /// Sends replies as they become due, until [`Self::close`] and none is pending, or [`Self::abandon`]; calls `sent`
    /// for each.
    pub(crate) fn send_when_due(&self, sent: impl Fn(Instant)) {
        // The kernel may let a thread sleep 50 us too long, which is as long as a fast card takes. Without permission
        // to change that, replies are late by that much, and the statistics show it.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut batch: Vec<Pending> = Vec::with_capacity(BATCH_MAX);
        while self.wait(&mut batch) {
            let written = {
                let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
                write_all(&mut *stream, &batch)
            };
            if written.is_err() {
                self.abandon();
            } else {
                batch.iter().filter_map(|pending| pending.at).for_each(&sent);
            }
            let mut waiting = self.waiting();
            let mut given_back = Vec::new();
            for Pending { mut replies, reserved, .. } in batch.drain(..) {
                waiting.bytes = waiting.bytes.saturating_sub(replies.length());
                if reserved.is_empty() {
                    waiting.unreserved_bytes = waiting.unreserved_bytes.saturating_sub(replies.length());
                }
                given_back.extend(reserved);
                replies.clear();
                let spare_bytes = waiting.spare_bytes + replies.capacity();
                if waiting.spare.len() < SPARE_MAX && spare_bytes <= SPARE_BYTES_MAX {
                    waiting.spare.push(replies);
                    waiting.spare_bytes = spare_bytes;
                }
            }
            drop(waiting);
            drop(given_back);
            self.room.notify_one();
        }
    }

    /// Sleeps until replies are due and takes them; `false`: no more will come.
    fn wait(&self, batch: &mut Vec<Pending>) -> bool {
        let mut waiting = self.waiting();
        loop {
            let due = waiting.replies.peek().map(|Reverse(next)| next.wall);
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
        (waiting.bytes, waiting.unreserved_bytes) = (0, 0);
        drop(waiting);
        self.changed.notify_one();
        self.room.notify_one();
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn take_spare(&mut self) -> Buffer {
        let spare = self.spare.pop().unwrap_or_default();
        self.spare_bytes -= spare.capacity();
        spare
    }

    /// Returns whether nothing else is due before.
    fn add(&mut self, wall: Wall, at: Option<Instant>, replies: Buffer, reserved: Vec<Reservation>) -> bool {
        self.bytes += replies.length();
        if reserved.is_empty() {
            self.unreserved_bytes += replies.length();
        }
        self.count += 1;
        let pending = Pending { wall, at, number: self.count, replies, reserved };
        let earliest = self.replies.peek().is_none_or(|Reverse(next)| pending < *next);
        self.replies.push(Reverse(pending));
        earliest
    }

    fn take_due(&mut self, now: Wall, batch: &mut Vec<Pending>) {
        while batch.len() < BATCH_MAX && self.replies.peek().is_some_and(|Reverse(next)| next.wall <= now) {
            batch.extend(self.replies.pop().map(|Reverse(pending)| pending));
        }
    }
}

/// Writes all of them, in as few system calls as the stream allows.
fn write_all(stream: &mut impl Write, batch: &[Pending]) -> io::Result<()> {
    if let [only] = batch {
        return stream.write_all(only.replies.bytes());
    }
    let mut slices: Vec<IoSlice<'_>> = batch.iter().map(|pending| IoSlice::new(pending.replies.bytes())).collect();
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
            outbox.later(Due { wall: after(millis), at: Instant(millis) }, reply, Vec::new()).unwrap();
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
            outbox.later(due, b"never", Vec::new()).unwrap();
            outbox.abandon();
            sender.join().unwrap();
        });
        let due = Due { wall: Wall::now(), at: Instant::START };
        assert_eq!(outbox.later(due, b"late", Vec::new()).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(outbox.stream.into_inner().unwrap().is_empty());
    }

    #[test]
    fn replies_that_are_due_are_handed_over_up_to_a_bound() {
        let outbox = Outbox::new(Vec::new());
        let mut replies = Buffer::default();
        let mut handed = 0;
        loop {
            replies.room(1 << 20).fill(7);
            if !outbox.hand_over(&mut replies, &mut Vec::new()).unwrap() {
                break;
            }
            assert_eq!(replies.length(), 0);
            handed += 1;
        }
        assert_eq!((handed, replies.length()), (HANDED_BYTES_MAX >> 20, 1 << 20), "what is refused is kept");
        outbox.close();
        outbox.send_when_due(|_| panic!("no client waits for the card"));
        assert_eq!(outbox.waiting().bytes, 0);
        assert!(outbox.hand_over(&mut replies, &mut Vec::new()).unwrap());
        outbox.abandon();
        assert_eq!(outbox.hand_over(&mut replies, &mut Vec::new()).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(outbox.stream.into_inner().unwrap().len(), HANDED_BYTES_MAX);
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
        let batch = [&b"first"[..], b"second", b"third"].map(|reply| {
            let mut replies = Buffer::default();
            replies.put(reply);
            Pending { wall: Wall::now(), at: None, number: 0, replies, reserved: Vec::new() }
        });
        write_all(&mut stream, &batch).unwrap();
        assert_eq!(stream.0, b"firstsecondthird");
    }
}
