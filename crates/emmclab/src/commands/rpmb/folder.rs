//! The RPMB of a virtual card in a folder: what the card did is recorded after each transfer, so that the end of the
//! process between two of them is a power cut for the card.

use std::sync::atomic::AtomicBool;

use emmc_linux::hold::{self, Point};
use emmc_port::PortError;
use emmc_port::rpmb::{RpmbCommand, RpmbPort};
use emmc_regs::rpmb::Frame;
use emmc_sim::rpmb;

use crate::commands::apply::folder::FolderPort;

impl RpmbPort for FolderPort {
    fn exchange(&mut self, command: &RpmbCommand) -> Result<Vec<Frame>, PortError> {
        self.with(6, |card, now| rpmb::select(card, now, true))?;
        self.with(25, |card, now| rpmb::send(card, now, command.frames(), command.changes_card()))?;
        if let Some(request) = command.result_request() {
            hold::reached(Point::Written, &AtomicBool::new(false));
            self.with(25, |card, now| rpmb::send(card, now, &[request], false))?;
        }
        let answer = self.with(18, |card, now| rpmb::receive(card, now, command.answer_frames()))?;
        self.with(6, |card, now| rpmb::select(card, now, false))?;
        Ok(answer)
    }
}
