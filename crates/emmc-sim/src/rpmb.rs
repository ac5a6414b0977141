//! Requests to the RPMB of a virtual card, as a host's kernel sends them: CMD6, CMD23 with CMD25 or CMD18, CMD6.
//!
//! The parts are separate, so that a caller can record what the card did after each.

#[cfg(test)]
mod tests;

use emmc_card::card::{Card, DataStatus};
use emmc_port::PortError;
use emmc_port::rpmb::{RpmbCommand, RpmbPort};
use emmc_regs::Area;
use emmc_regs::rpmb::Frame;
use emmc_units::Instant;

use crate::command_target::{self, CommandTarget, RCA, check, command, lost};

/// Has the following transfers go to the RPMB, or to the user area again (CMD6).
///
/// Errors: refused, no answer.
pub fn select(card: &mut Card, now: &mut Instant, is_rpmb: bool) -> Result<(), PortError> {
    command_target::select(card, now, if is_rpmb { Area::Rpmb } else { Area::User })
}

/// CMD23 and CMD25 with frames; returns when the card has worked on them.
///
/// Errors: refused, no answer.
pub fn send(card: &mut Card, now: &mut Instant, frames: &[Frame], is_reliable: bool) -> Result<(), PortError> {
    let reliable = if is_reliable { 1 << 31 } else { 0 };
    let reply = command(card, now, 23, frames.len() as u32 | reliable)?;
    check(23, reply.response)?;
    let reply = command(card, now, 25, 0)?;
    check(25, reply.response)?;
    for frame in frames {
        match card.handle_data(frame.bytes(), *now) {
            DataStatus::Accepted { busy_until } => *now = busy_until.map_or(*now, |until| until.max(*now)),
            DataStatus::Rejected | DataStatus::Ignored => return Err(lost(25, "the card does not take the data")),
        }
        card.handle_timeout(*now);
    }
    status(card, now, 25)
}

/// CMD23 and CMD18: the frames that answer the last request.
///
/// Errors: refused, no answer.
pub fn receive(card: &mut Card, now: &mut Instant, frames: u16) -> Result<Vec<Frame>, PortError> {
    let reply = command(card, now, 23, frames.into())?;
    check(23, reply.response)?;
    let reply = command(card, now, 18, 0)?;
    check(18, reply.response)?;
    let ready = reply.data.map(|data| data.ready).ok_or_else(|| lost(18, "no data"))?;
    *now = ready.max(*now);
    let mut answer = Vec::with_capacity(frames.into());
    for _ in 0..frames {
        let block = card.poll_data(*now).ok_or_else(|| lost(18, "no data"))?;
        *now = block.at.max(*now);
        answer.push(Frame::from_bytes(&block.bytes));
    }
    card.handle_timeout(*now);
    status(card, now, 18)?;
    Ok(answer)
}

fn status(card: &mut Card, now: &mut Instant, opcode: u8) -> Result<(), PortError> {
    let status = command(card, now, 13, RCA)?;
    check(opcode, status.response)
}

impl RpmbPort for CommandTarget {
    fn exchange(&mut self, command: &RpmbCommand) -> Result<Vec<Frame>, PortError> {
        let (card, now) = self.parts();
        select(card, now, true)?;
        send(card, now, command.frames(), command.changes_card())?;
        if let Some(request) = command.result_request() {
            send(card, now, &[request], false)?;
        }
        let answer = receive(card, now, command.answer_frames())?;
        select(card, now, false)?;
        Ok(answer)
    }
}
