//! Pending events in order of simulated time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Instant;

/// Events with known times: the earliest comes out first, simultaneous ones in insertion order.
#[derive(Clone, Debug)]
pub struct Agenda<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    entered: u64,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    at: Instant,
    number: u64,
    what: T,
}

impl<T> Agenda<T> {
    /// No events.
    pub fn new() -> Self {
        Self { heap: BinaryHeap::new(), entered: 0 }
    }

    /// Adds an event.
    pub fn push(&mut self, at: Instant, what: T) {
        self.heap.push(Reverse(Entry { at, number: self.entered, what }));
        self.entered += 1;
    }

    /// Removes the next event, with its time.
    pub fn pop(&mut self) -> Option<(Instant, T)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }

    /// The time of the next event.
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Entry<T> {
    fn key(&self) -> (Instant, u64) {
        (self.at, self.number)
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Nanos;

    #[test]
    fn the_earliest_event_is_first_and_equal_times_keep_their_sequence() {
        let mut agenda = Agenda::new();
        for (after, what) in [(5, 'd'), (1, 'a'), (5, 'e'), (1, 'b'), (3, 'c')] {
            agenda.push(Instant::START + Nanos(after), what);
        }
        assert_eq!((agenda.len(), agenda.is_empty()), (5, false));
        assert_eq!(agenda.next_at(), Some(Instant::START + Nanos(1)));
        let order: Vec<(u64, char)> =
            std::iter::from_fn(|| agenda.pop()).map(|(at, what)| (at.since(Instant::START).0, what)).collect();
        assert_eq!(order, [(1, 'a'), (1, 'b'), (3, 'c'), (5, 'd'), (5, 'e')]);
        assert!(agenda.is_empty());
    }
}
