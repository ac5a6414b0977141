//! Span 5 in its parts, of the requests that a call waits for.

use super::result::PostParts;
use super::track::Track;
use crate::request::Request;

/// Distributions of the parts.
#[derive(Default)]
pub(super) struct Returns {
    /// Requests that a call waits for.
    count: u64,
    completion: Track,
    wake: Track,
    run: Track,
    exit: Track,
}

impl Returns {
    #[inline]
    pub(super) fn add(&mut self, request: &Request) {
        let Some(parts) = request.returning() else { return };
        self.count += 1;
        self.completion.add_some(parts.completion);
        self.wake.add_some(parts.wake);
        self.run.add_some(parts.run);
        self.exit.add_some(parts.exit);
    }

    pub(super) fn absorb(&mut self, other: &Self) {
        self.count += other.count;
        self.completion.absorb(&other.completion);
        self.wake.absorb(&other.wake);
        self.run.absorb(&other.run);
        self.exit.absorb(&other.exit);
    }

    pub(super) fn row(&self) -> Option<PostParts> {
        (self.count > 0).then(|| PostParts {
            count: self.count,
            with_wake: self.wake.count,
            with_run: self.run.count,
            completion_us: self.completion.times(),
            wake_us: self.wake.times(),
            run_us: self.run.times(),
            return_us: self.exit.times(),
        })
    }
}
