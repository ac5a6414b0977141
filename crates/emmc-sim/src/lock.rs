//! Requests of CMD42 to a virtual card, as a host's kernel sends them.

use emmc_card::card::{Card, DataStatus};
use emmc_port::PortError;
use emmc_port::lock::{LockAnswer, LockCommand, LockPort};
use emmc_regs::command::Response;
use emmc_regs::r1::R1;
use emmc_units::Instant;

use crate::command_target::{CommandTarget, RCA, command, lost};

/// CMD13.
///
/// Errors: no answer.
pub fn status(card: &mut Card, now: &mut Instant) -> Result<R1, PortError> {
    match command(card, now, 13, RCA)?.response {
        Response::R1(r1) => Ok(r1),
        _ => Err(lost(13, "another response than R1")),
    }
}

/// CMD42 with its block, and the status when the card has worked on it.
///
/// Errors: no answer.
pub fn send(card: &mut Card, now: &mut Instant, request: &LockCommand) -> Result<LockAnswer, PortError> {
    command(card, now, 42, 0)?;
    match card.handle_data(request.block(), *now) {
        DataStatus::Accepted { busy_until } => *now = busy_until.map_or(*now, |until| until.max(*now)),
        DataStatus::Rejected | DataStatus::Ignored => return Err(lost(42, "the card does not take the data")),
    }
    card.handle_timeout(*now);
    Ok(LockAnswer { status: status(card, now)?, doubt: None })
}

impl LockPort for CommandTarget {
    fn status(&mut self) -> Result<R1, PortError> {
        let (card, now) = self.parts();
        status(card, now)
    }

    fn lock(&mut self, command: &LockCommand) -> Result<LockAnswer, PortError> {
        let (card, now) = self.parts();
        send(card, now, command)
    }
}
