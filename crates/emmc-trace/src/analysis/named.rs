//! Parts of spans 1 and 5 with a name: page cache, write-back, journal.

use serde::Serialize;

use super::result::Times;
use super::track::Track;
use crate::request::{Parts, Request};

/// A part, of the requests that have it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamedPart {
    /// Requests that have it.
    pub count: u64,
    /// How long. Unit: microseconds.
    pub us: Times,
}

/// Parts of spans 1 and 5, by events of the page cache, of write-back and of the journal; a part is `null` if no event
/// shows it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamedParts {
    /// Of span 1: from its begin to the last event of the page cache before the bio.
    pub page_cache: Option<NamedPart>,
    /// Of span 1: from the write-back of a file, after that, to the bio.
    pub write_back: Option<NamedPart>,
    /// Of span 1: while a journal of the file system commits that the call syncs.
    pub journal_before: Option<NamedPart>,
    /// Of span 5: the same.
    pub journal_after: Option<NamedPart>,
}

/// Distributions of the parts.
#[derive(Default)]
pub(super) struct Named {
    page_cache: Track,
    write_back: Track,
    journal_before: Track,
    journal_after: Track,
}

impl Named {
    #[inline]
    pub(super) fn add(&mut self, request: &Request) {
        if request.parts != Parts::default() {
            self.add_some(&request.parts);
        }
    }

    fn add_some(&mut self, parts: &Parts) {
        let Parts { page_cache, write_back, journal_before, journal_after } = *parts;
        let parts = [page_cache, write_back, journal_before, journal_after];
        let own = [&mut self.page_cache, &mut self.write_back, &mut self.journal_before, &mut self.journal_after];
        for (track, part) in own.into_iter().zip(parts).filter(|(_, part)| part.0 > 0) {
            track.add(part.0);
        }
    }

    pub(super) fn absorb(&mut self, other: &Self) {
        self.page_cache.absorb(&other.page_cache);
        self.write_back.absorb(&other.write_back);
        self.journal_before.absorb(&other.journal_before);
        self.journal_after.absorb(&other.journal_after);
    }

    pub(super) fn row(&self) -> Option<NamedParts> {
        let part = |track: &Track| track.times().map(|us| NamedPart { count: track.count, us });
        let found = NamedParts {
            page_cache: part(&self.page_cache),
            write_back: part(&self.write_back),
            journal_before: part(&self.journal_before),
            journal_after: part(&self.journal_after),
        };
        let all = [found.page_cache, found.write_back, found.journal_before, found.journal_after];
        all.iter().any(Option::is_some).then_some(found)
    }
}
