//! Context switches of a round: voluntary, when a program waits, and involuntary, when another takes its processor.

use nix::sys::resource::{Usage, UsageWho, getrusage};

/// Voluntary and involuntary switches.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Switches(pub(crate) [f64; 2]);

fn so_far(who: UsageWho) -> [f64; 2] {
    let counts = |usage: Usage| [usage.voluntary_context_switches(), usage.involuntary_context_switches()];
    getrusage(who).map_or([f64::NAN; 2], |usage| counts(usage).map(|count| count as f64))
}

/// Those of ended child processes during `act`: of a whole fio, with its start.
pub(crate) fn of_children<T>(act: impl FnOnce() -> T) -> (T, Switches) {
    counted(UsageWho::RUSAGE_CHILDREN, act)
}

/// Those of this process during `act`.
pub(crate) fn own<T>(act: impl FnOnce() -> T) -> (T, Switches) {
    counted(UsageWho::RUSAGE_SELF, act)
}

fn counted<T>(who: UsageWho, act: impl FnOnce() -> T) -> (T, Switches) {
    let before = so_far(who);
    let done = act();
    let after = so_far(who);
    (done, Switches([0, 1].map(|index| after[index] - before[index])))
}

impl Switches {
    /// Per request.
    pub(crate) fn per(self, requests: f64) -> [f64; 2] {
        self.0.map(|count| count / requests.max(1.0))
    }
}
