//! The bus to the card: one command at a time, and one transfer or busy time.
//!
//! A command that comes while the command line is in use is sent when it is free, as on a real bus. So the card sees
//! ascending instants from all senders (software through the controller's registers, or the command queueing engine).

use emmc_card::card::{Card, Reply};
use emmc_regs::command::Response;
use emmc_regs::r1::R1;
use emmc_units::Instant;

use super::account::Accounts;
use super::faults::{HostError, HostFaults};

/// State of the bus.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    command_free: Instant,
    /// The card holds DAT0 low until then.
    pub(crate) busy_until: Instant,
    /// Errors for commands.
    pub(crate) faults: HostFaults,
    /// What became of requests.
    pub(crate) accounts: Accounts,
}

/// A command that has been sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// What the card answered.
    pub(crate) reply: Reply,
    /// When the response has arrived, or is known not to come.
    pub(crate) at: Instant,
    /// How the controller sees it besides the response: damaged, or with a data error.
    pub(crate) fault: Option<HostError>,
}

impl Lines {
    /// Sends a command at `from`, or when the line is free.
    pub(crate) fn send(&mut self, card: &mut Card, index: u8, argument: u32, from: Instant) -> Sent {
        let begin = from.max(self.command_free);
        // CMD6 may change the bus mode; the command itself is still sent in the old mode.
        let bus = *card.device().bus();
        let took = bus.command();
        let at = begin + took;
        self.command_free = at;
        let fault = self.faults.strike(index, bus.hz());
        if fault == Some(HostError::CommandTimeout) {
            let reply = Reply { response: Response::None, busy_until: None, data: None };
            return Sent { reply, at, fault: None };
        }
        let mut reply = card.handle_command(index, argument, begin);
        if fault == Some(HostError::Status) {
            reply.response = with_error(reply.response);
        }
        if let Some(until) = reply.busy_until {
            self.busy_until = until;
        }
        Sent { reply, at, fault: fault.filter(|fault| *fault != HostError::Status) }
    }

    /// Whether DAT0 is low.
    pub(crate) fn is_busy(&self, now: Instant) -> bool {
        now < self.busy_until
    }
}

/// The response of a card with an error.
fn with_error(response: Response) -> Response {
    match response {
        Response::R1(status) => Response::R1(R1(status.0 | R1::ERROR.0)),
        Response::R1b(status) => Response::R1b(R1(status.0 | R1::ERROR.0)),
        other => other,
    }
}
