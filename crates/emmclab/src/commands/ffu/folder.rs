//! A virtual card in a folder as target: what the card did is recorded after each step, so that the end of the process
//! between two of them is a power cut for the card. It is powered off at the end, and runs new firmware when it is
//! powered on.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use emmc_analysis::plan::CardIdentity;
use emmc_card::nand::StoredContent;
use emmc_linux::hold::{self, Point};
use emmc_port::ffu::{FfuCommand, FfuPort};
use emmc_port::{CardData, PortError};

use super::update::Wanted;
use super::{FfuDocument, Registers, state, updated};
use crate::commands::apply::folder::FolderPort;
use crate::signals::stop_by_signal;
use crate::virtual_card::Powered;

impl FfuPort for FolderPort {
    fn update(&mut self, command: &FfuCommand<'_>) -> Result<(), PortError> {
        for step in command.steps() {
            self.with(step.opcode(), |card, now| emmc_sim::ffu::step(card, now, step))?;
            hold::reached(Point::Written, &AtomicBool::new(false));
        }
        Ok(())
    }
}

/// Registers after the next power-up; the folder stays as it is.
pub(super) fn read(name: &str) -> anyhow::Result<CardData> {
    let Powered { mut card, now, .. } = Powered::named(name, StoredContent::Nothing)?;
    card.power_off(now);
    card.power_on(now)?;
    Ok(card.device().card_data(name))
}

/// Updates its firmware.
pub(super) fn update(folder: &str, wanted: &Wanted<'_>) -> anyhow::Result<FfuDocument> {
    let mut port = FolderPort::open(wanted.target(), folder)?;
    let done = on_port(&mut port, wanted);
    let finished = port.0.finish();
    let mut document = done?;
    finished?;
    // The card is off now, and the next command powers it on.
    let card = read(folder)?;
    let after = state(wanted.target(), &card)?;
    let before = document.before.as_ref().and_then(|before| before.firmware.clone()).unwrap_or_default();
    let is_done = matches!(document.ended, Some("installed" | "power cycle due"));
    if is_done {
        // The same version with success: nobody knows whether the image has it, too.
        document.updated = updated(&after, &before).filter(|updated| *updated || after.status != Some(0));
    }
    if document.updated == Some(true) {
        document.next.clear();
    }
    document.now = Some(Registers::from(&after));
    Ok(document)
}

fn on_port(port: &mut FolderPort, wanted: &Wanted<'_>) -> anyhow::Result<FfuDocument> {
    let card = port.identify(wanted.target())?;
    let before = wanted.check(&card)?;
    let identity = CardIdentity::of(&card);
    let mut document = wanted.document(&identity, &before);
    let consent = wanted.ask(&identity, &before)?;
    let stop = Arc::new(AtomicBool::new(false));
    stop_by_signal(&stop)?;
    wanted.carry(port, consent, &stop, &mut document);
    Ok(document)
}
