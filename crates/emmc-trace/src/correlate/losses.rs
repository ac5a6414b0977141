//! Losses of events: nothing is paired across them.

use emmc_units::Nanos;

use super::Correlator;
use crate::event::{Event, What};

impl Correlator {
    /// Whether an event is within the last loss, and is counted only.
    #[cold]
    pub(super) fn is_near_loss(&mut self, event: &Event) -> bool {
        if let What::Lost { .. } = event.what {
            return false;
        }
        let is_near = self.lost_until.is_some_and(|until| event.at <= until);
        if is_near {
            self.unpaired.near_losses += 1;
        } else {
            self.lost_until = None;
        }
        is_near
    }

    /// Events up to `until` are lost.
    pub(super) fn lose(&mut self, until: Nanos) {
        self.threads.end(&mut self.ready);
        self.commands.late.end(&mut self.ready);
        self.unpaired.near_losses += self.table.clear();
        self.commands.lose();
        self.durable = None;
        let at = self.times.map_or(Nanos::ZERO, |(_, last)| last);
        self.processors.lose(at);
        for device in &mut self.devices {
            device.last = None;
            while device.depth > 0 {
                device.step(at, false);
            }
            device.free = None;
        }
        self.lost_until = Some(self.lost_until.map_or(until, |other| other.max(until)));
    }
}
