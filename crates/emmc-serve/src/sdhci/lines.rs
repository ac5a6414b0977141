//! The lines to the card: one command at a time, and one transfer or busy time.
//!
//! Commands that come while the line is taken go out when it is free, as on the bus; so the card is told of instants in
//! order, whoever sends (software by the controller's registers, or the command queueing engine).

use emmc_card::card::{Card, Reply};
use emmc_units::Instant;

/// What the lines are taken by.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lines {
    command_free: Instant,
    /// The card holds DAT0 low until then.
    pub(crate) busy_until: Instant,
}

/// A command that has been sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// What the card answered.
    pub(crate) reply: Reply,
    /// When the answer is there, or is known not to come.
    pub(crate) at: Instant,
}

impl Lines {
    /// Sends a command at `from`, or when the line is free.
    pub(crate) fn send(&mut self, card: &mut Card, index: u8, argument: u32, from: Instant) -> Sent {
        let begin = from.max(self.command_free);
        // CMD6 may change the bus; the command itself still goes as before.
        let took = card.device().bus().command();
        let reply = card.handle_command(index, argument, begin);
        let at = begin + took;
        self.command_free = at;
        if let Some(until) = reply.busy_until {
            self.busy_until = until;
        }
        Sent { reply, at }
    }

    /// Whether DAT0 is low.
    pub(crate) fn is_busy(&self, now: Instant) -> bool {
        now < self.busy_until
    }
}
