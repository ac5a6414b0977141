//! Progress of a bench: a callback that may cancel it.

/// The progress of a bench.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// The current measurement, e.g. `4 KiB random write`.
    pub step: &'a str,
    /// The step under way, counted from 1, and how many there are, where that is known beforehand.
    pub number: u32,
    /// Steps in all; 0: not known beforehand.
    pub steps: u32,
    /// How much of the step is done, 0 to 1.
    pub done_share: f64,
}

/// A watcher.
pub trait Watch {
    /// Is called now and then, at most every few hundred requests; `false` stops the bench.
    fn progress(&mut self, progress: Progress<'_>) -> bool;
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn progress(&mut self, _: Progress<'_>) -> bool {
        true
    }
}
