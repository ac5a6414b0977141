//! Counts of what has no partner, and of events.

use serde::Serialize;

/// What has no partner, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unpaired {
    /// Completions of requests that were issued before the recording, or whose issue is missing.
    pub completions_without_issue: u64,
    /// Requests that are not complete when the recording ends.
    pub open_at_end: u64,
    /// Requests that were issued again, or whose place was needed, without a completion.
    pub issues_without_completion: u64,
    /// Merges and splits into or of something that is not there.
    pub merges_without_request: u64,
    /// Requests that were open when events were lost, or events within the loss.
    pub near_losses: u64,
    /// Commands with data without a request of the block layer.
    pub commands_without_request: u64,
    /// Ends of commands without a start.
    pub commands_without_start: u64,
    /// Starts of commands without an end.
    pub commands_without_end: u64,
    /// System calls whose return is missing though the thread called again.
    pub calls_without_return: u64,
    /// Events that came too late in their file to be put in order; the reader counts them.
    pub late_events: u64,
}

impl Unpaired {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.completions_without_issue
            + self.open_at_end
            + self.issues_without_completion
            + self.merges_without_request
            + self.near_losses
            + self.commands_without_request
            + self.commands_without_start
            + self.commands_without_end
            + self.calls_without_return
            + self.late_events
    }
}

/// Counts of events, beside the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All events.
    pub events: u64,
    /// Bios.
    pub bios: u64,
    /// Bios that were merged into a request.
    pub merges: u64,
    /// Splits.
    pub splits: u64,
    /// Requests that the driver returned.
    pub requeues: u64,
    /// Bios of devices above others, which are complete without a request of their own.
    pub stacked: u64,
    /// System calls that storage is used by.
    pub calls: u64,
    /// Commits of a journal.
    pub commits: u64,
    /// Threads that were woken up.
    pub wakes: u64,
    /// Switches from one thread to another.
    pub switches: u64,
}
