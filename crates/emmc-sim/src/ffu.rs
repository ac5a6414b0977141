//! Steps of a firmware update to a virtual card, as a host's kernel sends them.
//!
//! The steps are separate, so that a caller can record what the card did after each.

use emmc_card::card::{Card, DataStatus};
use emmc_port::PortError;
use emmc_port::ffu::{FfuCommand, FfuPort, FfuStep};
use emmc_units::Instant;

use crate::command_target::{self, CommandTarget, RCA, check, command, lost};

/// Sends a step; returns when the card has worked on it.
///
/// Errors: refused, no answer.
pub fn step(card: &mut Card, now: &mut Instant, step: &FfuStep<'_>) -> Result<(), PortError> {
    let opcode = step.opcode();
    match *step {
        FfuStep::Switch(approved) => return command_target::send(card, now, approved),
        FfuStep::Count(blocks) => {
            let reply = command(card, now, opcode, blocks.into())?;
            return check(opcode, reply.response);
        }
        FfuStep::Write { address, data, .. } => {
            let reply = command(card, now, opcode, address)?;
            check(opcode, reply.response)?;
            for block in data.chunks(512) {
                match card.handle_data(block, *now) {
                    DataStatus::Accepted { busy_until } => *now = busy_until.map_or(*now, |until| until.max(*now)),
                    DataStatus::Rejected | DataStatus::Ignored => {
                        return Err(lost(opcode, "the card does not take the data"));
                    }
                }
                card.handle_timeout(*now);
            }
        }
        FfuStep::Stop => {
            let reply = command(card, now, opcode, 0)?;
            check(opcode, reply.response)?;
        }
    }
    let status = command(card, now, 13, RCA)?;
    check(opcode, status.response)
}

impl CommandTarget {
    /// Sends one step.
    ///
    /// Errors: refused, no answer.
    pub fn firmware_step(&mut self, next: &FfuStep<'_>) -> Result<(), PortError> {
        let (card, now) = self.parts();
        step(card, now, next)
    }
}

impl FfuPort for CommandTarget {
    fn update(&mut self, command: &FfuCommand<'_>) -> Result<(), PortError> {
        command.steps().iter().try_for_each(|next| self.firmware_step(next))
    }
}
