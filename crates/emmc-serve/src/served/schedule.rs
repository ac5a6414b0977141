//! What happens to a card at given instants of a driven clock.

use std::collections::VecDeque;

use emmc_units::Instant;

use super::Served;

/// What is done with a card at its instant.
type Act = Box<dyn FnOnce() -> Result<(), String> + Send>;

#[derive(Default)]
pub(super) struct Schedule {
    /// By instant; of the same instant in the sequence of the orders.
    due: VecDeque<(Instant, Act)>,
    /// What went wrong so far, in words.
    failed: Vec<String>,
}

impl std::fmt::Debug for Schedule {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.due.iter().map(|(at, _)| at)).finish()
    }
}

impl Served {
    /// When a driven clock was set for the first time: instants of its client count from there.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Has `act` called at `at` of a driven clock, by whoever advances it.
    ///
    /// Errors: the present instant, which is later.
    pub fn schedule(
        &self,
        at: Instant,
        act: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) -> Result<(), Instant> {
        let mut schedule = self.scheduled();
        let now = self.now();
        if at < now {
            return Err(now);
        }
        let place = schedule.due.partition_point(|(other, _)| *other <= at);
        schedule.due.insert(place, (at, Box::new(act)));
        Ok(())
    }

    /// When the next scheduled act is due; absent: there is none.
    pub fn next_scheduled(&self) -> Option<Instant> {
        self.scheduled().due.front().map(|(at, _)| *at)
    }

    /// Does what is scheduled by `now`, each at its own instant.
    pub fn act_until(&self, now: Instant) {
        loop {
            let mut schedule = self.scheduled();
            let is_due = schedule.due.front().is_some_and(|(at, _)| *at <= now);
            let Some((at, act)) = is_due.then(|| schedule.due.pop_front()).flatten() else { return };
            drop(schedule);
            self.advance_clock(at);
            if let Err(why) = act() {
                let ns = at.since(self.started).0;
                self.scheduled().failed.push(format!("at {ns} ns: {why}"));
            }
        }
    }

    /// Why scheduled acts failed, each with its instant on the client's clock.
    pub fn failed_acts(&self) -> Vec<String> {
        self.scheduled().failed.clone()
    }
}
