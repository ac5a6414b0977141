//! Commits of journals, for those who wait for them.

use std::collections::VecDeque;

use emmc_units::Nanos;

use crate::event::Event;
use crate::request::since;

/// Commits that are remembered: a call that waits for one asks when it returns.
const MAX: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Commit {
    pid: u32,
    /// The file system; 0 if it is not known.
    on: u32,
    began: Nanos,
    ended: Option<Nanos>,
}

/// The last commits, in the order of their begins.
#[derive(Debug, Default)]
pub(super) struct Commits(VecDeque<Commit>);

impl Commits {
    /// A thread begins or ends a commit.
    pub(super) fn take(&mut self, event: &Event, on: u32, began: bool) {
        let open = self.0.iter().rposition(|commit| commit.pid == event.pid && commit.ended.is_none());
        match open {
            Some(open) if !began => self.0[open].ended = Some(event.at),
            // Its end is not recorded.
            Some(open) => drop(self.0.remove(open)),
            None => {}
        }
        if began {
            if self.0.len() >= MAX {
                self.0.pop_front();
            }
            self.0.push_back(Commit { pid: event.pid, on, began: event.at, ended: None });
        }
    }

    /// How long a journal of this file system committed within a time.
    pub(super) fn within(&self, on: u32, from: Nanos, to: Nanos) -> Nanos {
        let (mut sum, mut until) = (0, from);
        for commit in self.0.iter().filter(|commit| commit.on == on || commit.on == 0 || on == 0) {
            let ended = commit.ended.unwrap_or(to).min(to);
            sum += since(commit.began.max(until), ended).0;
            until = until.max(ended);
        }
        Nanos(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{File, Mark, What};

    #[test]
    fn commits_of_other_file_systems_and_of_other_times_do_not_count() {
        let mut commits = Commits::default();
        let mut take = |at: u64, pid: u32, on: u32, began: bool| {
            let what = What::Mark(Mark::Commit { began }, File { device: on, inode: 0 });
            commits.take(&Event { at: Nanos(at), pid, cpu: 0, what }, on, began);
        };
        take(100, 1, 7, true);
        take(150, 2, 8, true);
        take(200, 1, 7, false);
        take(250, 2, 8, false);
        // The end of this one is lost.
        take(300, 1, 7, true);
        take(400, 1, 7, true);
        let within = |on: u32, from: u64, to: u64| commits.within(on, Nanos(from), Nanos(to)).0;
        assert_eq!((within(7, 0, 1000), within(8, 0, 1000)), (700, 100));
        assert_eq!((within(7, 120, 180), within(7, 210, 390), within(9, 0, 1000)), (60, 0, 0));
        // Of any file system: what overlaps counts once.
        assert_eq!((within(0, 0, 390), within(7, 350, 450)), (150, 50));
    }
}
