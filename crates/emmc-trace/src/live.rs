//! A recording in parts, each read when it is there: requests in progress at a border belong to the part in which they
//! end.

use std::collections::VecDeque;

use emmc_units::Nanos;

use crate::analysis::Kinds;
use crate::analysis::result::SpanRow;
use crate::correlate::Correlator;
use crate::event::{Event, What};
use crate::follow::Selection;
use crate::notes::Batch;
use crate::open::Recording;
use crate::request::Request;
use crate::who::{Collector, Who};

/// The last events of a part wait for the next one: processors are read one after the other, and the first may have
/// events since. Unit: nanoseconds.
const HOLD_NS: u64 = 100_000_000;

/// What is carried from part to part.
#[derive(Default)]
pub struct Live {
    correlator: Correlator,
    held: Vec<Event>,
    /// The last event that was given.
    given: Nanos,
    has_cards: bool,
}

/// A part: requests that ended in it.
#[derive(Clone, Debug)]
pub struct LivePart {
    /// How many: of eMMC and SD cards if a part had any, else of all devices.
    pub requests: u64,
    /// By kind; most time first.
    pub spans: Vec<SpanRow>,
    /// Threads and files.
    pub who: Who,
}

impl Live {
    /// Reads the next part. Of the last one everything counts.
    pub fn next(&mut self, recording: Recording, is_last: bool) -> LivePart {
        let Recording { mut events, .. } = recording;
        let held = std::mem::take(&mut self.held);
        events.add(Box::new(Batch { events: held, ..Batch::default() }));
        let (mut waiting, mut late) = (VecDeque::<Event>::new(), 0);
        let mut part = Part::default();
        let before = self.correlator.counts.events;
        self.correlator.times = None;
        events.run(|event| {
            if event.at < self.given {
                // It came more than the hold behind its part.
                late += 1;
                return;
            }
            waiting.push_back(*event);
            let until = Nanos(event.at.0.saturating_sub(HOLD_NS));
            while let Some(event) = waiting.front().filter(|event| event.at <= until).copied() {
                waiting.pop_front();
                self.given = event.at;
                part.take(&mut self.correlator, &event);
            }
        });
        self.held = waiting.into();
        if is_last {
            self.held.drain(..).for_each(|event| part.take(&mut self.correlator, &event));
            let Part { cards, others, writers } = &mut part;
            self.correlator.end(&mut |request| add(request, cards, others, writers));
        }
        self.correlator.unpaired.late_events += late;
        self.has_cards |= part.cards.requests > 0;
        let kinds = if self.has_cards { part.cards } else { part.others };
        let (times, events_read) = (self.correlator.times, self.correlator.counts.events - before);
        let who = part.writers.found(self.has_cards, times, events_read, &events.notes());
        LivePart { requests: kinds.requests, spans: kinds.rows(), who }
    }

    /// What has no partner, up to now.
    pub fn unpaired(&self) -> u64 {
        self.correlator.unpaired.total()
    }
}

#[derive(Default)]
struct Part {
    cards: Kinds,
    others: Kinds,
    writers: Collector,
}

impl Part {
    fn take(&mut self, correlator: &mut Correlator, event: &Event) {
        if let What::FileWrite(write) = &event.what {
            self.writers.file(event.pid, write);
        }
        let Self { cards, others, writers } = self;
        correlator.take(event, &mut |request| add(request, cards, others, writers));
    }
}

fn add(request: &Request, cards: &mut Kinds, others: &mut Kinds, writers: &mut Collector) {
    let kinds = if Selection::Cards.has(request.device) { cards } else { others };
    kinds.add(request);
    writers.request(request, Selection::Cards);
}
