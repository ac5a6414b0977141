//! A virtual card in a folder as target: what the card did is recorded after each request, so that the end of the
//! process between two of them is a power cut for the card. It is powered off at the end.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use emmc_analysis::plan::CardIdentity;
use emmc_linux::hold::{self, Point};
use emmc_port::lock::{LockAnswer, LockCommand, LockPort};
use emmc_port::{CardData, PortError};
use emmc_regs::r1::R1;
use emmc_sim::lock;

use super::work::Wanted;
use super::{LockDocument, unable};
use crate::commands::apply::folder::FolderPort;
use crate::signals::stop_by_signal;

impl LockPort for FolderPort {
    fn status(&mut self) -> Result<R1, PortError> {
        self.with(13, lock::status)
    }

    fn lock(&mut self, command: &LockCommand) -> Result<LockAnswer, PortError> {
        let answer = self.with(42, |card, now| lock::send(card, now, command))?;
        hold::reached(Point::Written, &AtomicBool::new(false));
        Ok(answer)
    }
}

/// Works on a powered card, and powers it off whatever comes of it.
fn with<T>(
    name: &str,
    folder: &str,
    work: impl FnOnce(&mut FolderPort, CardData) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut port = FolderPort::open(name, folder)?;
    let done = port.identify(name).and_then(|card| work(&mut port, card));
    let finished = port.0.finish();
    let done = done?;
    finished?;
    Ok(done)
}

/// Its registers and its status, as after every power-up.
pub(super) fn status(name: &str, folder: &str) -> anyhow::Result<(CardData, R1)> {
    with(name, folder, |port, card| {
        let status = LockPort::status(port).map_err(|error| unable(name, error))?;
        Ok((card, status))
    })
}

/// Changes its lock.
pub(super) fn change(folder: &str, wanted: &Wanted<'_>) -> anyhow::Result<LockDocument> {
    with(wanted.target, folder, |port, card| {
        let registers = wanted.check(&card)?;
        let consent = wanted.ask(&CardIdentity::of(&card), wanted.target, false)?;
        let stop = Arc::new(AtomicBool::new(false));
        stop_by_signal(&stop)?;
        let mut document = LockDocument::of(wanted.action(), wanted.target, &card, registers);
        wanted.carry(port, consent, &stop, &mut document);
        // The card is powered off now, and the next power-up locks it if it has a password.
        if document.action == "off" && document.ended == Some("done") {
            let what = "a virtual card is powered off when the command ends: at its next power-up it is locked again";
            document.warnings.push(what.into());
        }
        Ok(document)
    })
}
