//! Streams of events put in the order of time: a bounded window for each stream, and a merge of all streams.

use emmc_units::Nanos;

use crate::event::{Event, What};
use crate::notes::{Batch, Notes};

/// Events that a stream may be out of order by, at least.
const WINDOW: usize = 1 << 12;
/// Windows of events that are read at once: a window of them is moved each time.
const FILLED: usize = 4;

/// A reader of one input.
pub trait EventSource {
    /// Appends some events in the order of the input; false at the end of the input.
    fn fill(&mut self, batch: &mut Batch) -> bool;
}

impl<S: EventSource + ?Sized> EventSource for Box<S> {
    fn fill(&mut self, batch: &mut Batch) -> bool {
        (**self).fill(batch)
    }
}

/// A stream with its window.
struct Stream<S> {
    source: S,
    batch: Batch,
    /// Events before it are given.
    next: usize,
    /// Time of the last event that was given, when the window was filled.
    given: Nanos,
    /// Events before it may be given without a refill.
    ready: usize,
    has_more: bool,
}

impl<S: EventSource> Stream<S> {
    /// The time of the next event; fills the window if less than all of it is left.
    #[inline]
    fn peek(&mut self, window: usize, late: &mut u64) -> Option<Nanos> {
        if self.next >= self.ready {
            self.refill(window, late);
        }
        self.batch.events.get(self.next).map(|event| event.at)
    }

    /// Events that may be given without a refill, and those that were.
    fn ready(&self) -> &[Event] {
        &self.batch.events[..self.ready.min(self.batch.events.len())]
    }

    /// Gives events up to a time, as long as a window of them is left.
    #[inline]
    fn give(&mut self, until: Nanos, sink: &mut impl FnMut(&Event)) {
        let events = self.ready();
        let mut next = self.next;
        while let Some(event) = events.get(next).filter(|event| event.at <= until) {
            sink(event);
            next += 1;
        }
        self.next = next;
    }

    #[cold]
    fn refill(&mut self, window: usize, late: &mut u64) {
        if self.has_more && self.batch.events.len() - self.next < window {
            self.read(window, late);
        }
        // It is filled again before its last window is given, but for one event.
        let all = self.batch.events.len();
        self.ready = if self.has_more { (all - window.min(all) + 1).max(self.next + 1).min(all) } else { all };
    }

    fn read(&mut self, window: usize, late: &mut u64) {
        if let Some(last) = self.next.checked_sub(1) {
            self.given = self.batch.events[last].at;
        }
        self.batch.events.drain(..self.next);
        self.next = 0;
        // What is left is in order.
        let kept = self.batch.events.len();
        while self.has_more && self.batch.events.len() < window.saturating_mul(FILLED) {
            self.has_more = self.source.fill(&mut self.batch);
        }
        let events = &mut self.batch.events;
        let follows = events.get(kept).is_none_or(|event| self.given <= event.at);
        if follows && events[kept.saturating_sub(1)..].is_sorted_by_key(|event| event.at) {
            return;
        }
        // What comes too late to be paired is dropped; a loss is still a loss.
        let given = self.given;
        events.iter_mut().filter(|event| event.at < given && is_loss(event)).for_each(|event| event.at = given);
        events.sort_by_key(|event| event.at);
        let too_late = events.partition_point(|event| event.at < given);
        events.drain(..too_late);
        *late += too_late as u64;
    }
}

fn is_loss(event: &Event) -> bool {
    matches!(event.what, What::Lost { .. })
}

/// Gives the events of two streams, until one of them ends: those of two processors change after each event or two.
fn pair<S: EventSource>(
    a: &mut Stream<S>,
    b: &mut Stream<S>,
    (window, late): (usize, &mut u64),
    sink: &mut impl FnMut(&Event),
) {
    while a.peek(window, late).is_some() && b.peek(window, late).is_some() {
        let [first, second] = [&*a, &*b].map(|stream| stream.ready());
        let (mut of_a, mut of_b) = (a.next, b.next);
        while let (Some(one), Some(other)) = (first.get(of_a), second.get(of_b)) {
            let is_first = one.at <= other.at;
            of_a += usize::from(is_first);
            of_b += usize::from(!is_first);
            sink(if is_first { one } else { other });
        }
        (a.next, b.next) = (of_a, of_b);
    }
}

/// All streams of a recording, as one.
pub struct Merge<S> {
    streams: Vec<Stream<S>>,
    window: usize,
    /// Events that came later in their stream than the window allows; they are dropped.
    pub late: u64,
}

impl<S: EventSource> Merge<S> {
    /// Of one reader for each input.
    pub fn new(sources: Vec<S>) -> Self {
        let stream =
            |source| Stream { source, batch: Batch::default(), next: 0, ready: 0, given: Nanos::ZERO, has_more: true };
        Self { streams: sources.into_iter().map(stream).collect(), window: WINDOW, late: 0 }
    }

    /// Sorts everything, whatever memory that takes: for files of all processors, one behind the other.
    #[must_use]
    pub fn unbounded(self) -> Self {
        Self { window: usize::MAX, ..self }
    }

    /// One more reader.
    pub(crate) fn add(&mut self, source: S) {
        let stream = Stream { source, batch: Batch::default(), next: 0, given: Nanos::ZERO, ready: 0, has_more: true };
        self.streams.push(stream);
    }

    /// Gives all events in the order of time; of two at the same time, that of the earlier input first.
    pub fn run(&mut self, mut sink: impl FnMut(&Event)) {
        if let [first, second] = &mut self.streams[..] {
            pair(first, second, (self.window, &mut self.late), &mut sink);
        }
        // The time of each stream's next event, the earliest first.
        let mut order: Vec<(Nanos, usize)> = Vec::with_capacity(self.streams.len());
        for (number, stream) in self.streams.iter_mut().enumerate() {
            order.extend(stream.peek(self.window, &mut self.late).map(|at| (at, number)));
        }
        order.sort_unstable();
        while let Some(&(_, number)) = order.first() {
            let stream = &mut self.streams[number];
            // Up to the next stream's event it goes on alone.
            let until = match order.get(1) {
                Some(&(at, other)) if number > other => Nanos(at.0.saturating_sub(1)),
                Some(&(at, _)) => at,
                None => Nanos(u64::MAX),
            };
            let next = loop {
                stream.give(until, &mut sink);
                match stream.peek(self.window, &mut self.late) {
                    Some(at) if at <= until => {}
                    next => break next,
                }
            };
            let Some(at) = next else {
                order.remove(0);
                continue;
            };
            let mut place = 0;
            while let Some(&after) = order.get(place + 1).filter(|after| **after < (at, number)) {
                order[place] = after;
                place += 1;
            }
            order[place] = (at, number);
        }
    }

    /// What the readers have to say, after `run`.
    pub fn notes(self) -> Notes {
        let mut all = Notes::default();
        self.streams.into_iter().for_each(|stream| all.absorb(stream.batch.notes));
        all
    }
}
