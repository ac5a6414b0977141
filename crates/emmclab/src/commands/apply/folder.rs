//! A virtual card in a folder as target: every command is recorded before the next, as of a served card, so that the
//! end of the process at any moment is a power cut for the card.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use emmc_analysis::plan::{CardIdentity, Plan, Stand, Standing};
use emmc_card::card::Card;
use emmc_card::nand::StoredContent;
use emmc_port::{Approved, ApprovedErase, CardData, CommandPort, PortError};
use emmc_regs::CardKind;
use emmc_regs::ext_csd::EXT_CSD_BYTES;
use emmc_serve::served::{Served, ServedOptions};
use emmc_serve::store::StoreError;
use emmc_sim::{CommandTarget, command_target};
use emmc_units::Instant;

use super::{ApplyDocument, consent, port_error, unsupported, work};
use crate::cli::ApplyArgs;
use crate::save::Refused;
use crate::signals::stop_by_signal;
use crate::virtual_card::{Powered, is_folder};

/// A powered card in a folder that is locked.
pub(in crate::commands) struct FolderPort(pub(in crate::commands) Served);

impl FolderPort {
    /// Opens the folder of a card, and powers the card on; `target` is what the user named.
    ///
    /// Errors: no card, damaged; [`Refused`]: in use.
    pub(in crate::commands) fn open(target: &str, folder: &str) -> anyhow::Result<Self> {
        if !is_folder(folder) {
            let what = "no folder of a virtual card: a new card is gone when the command ends; make one with \
                        `emmclab sim create`";
            return unsupported(target, what);
        }
        let served = Served::open(Path::new(folder), ServedOptions { delays: false, dilation: 1 });
        served.map(Self).map_err(|error| match error {
            StoreError::InUse(_) => Refused(format!("{error}; nothing was sent")).into(),
            // A folder that cannot be written, as on a read-only filesystem.
            StoreError::Io { .. } => {
                let reason = format!("{error}; nothing was sent");
                emmc_port::SourceError::Unsupported { name: target.into(), reason }.into()
            }
            error => anyhow::Error::from(error),
        })
    }

    /// Has the card identified, and reads what it says of itself.
    ///
    /// Errors: no answer.
    pub(in crate::commands) fn identify(&mut self, target: &str) -> anyhow::Result<CardData> {
        let failed = |error: PortError| port_error(target, &error);
        // Before the first command: an SD card has others.
        let card = self.with(8, |card, _| Ok(card.device().card_data(target))).map_err(failed)?;
        if card.kind == Some(CardKind::Sd) {
            return unsupported(target, "an SD card, and this is for eMMC only; nothing was sent");
        }
        self.with(1, command_target::identify).map_err(failed)?;
        self.with(10, |card, _| Ok(card.device().card_data(target))).map_err(failed)
    }

    /// Calls `act` with the card; what it did is recorded before this returns.
    ///
    /// Errors: those of `act`; the record cannot be written.
    pub(in crate::commands) fn with<T>(
        &mut self,
        opcode: u8,
        act: impl FnOnce(&mut Card, &mut Instant) -> Result<T, PortError>,
    ) -> Result<T, PortError> {
        let acted = self.0.with_card(|card, start| {
            let mut now = start;
            let result = act(card, &mut now);
            (result, now)
        });
        let (result, now) = acted.map_err(|error| PortError::Lost { opcode, reason: error.to_string() })?;
        self.0.advance_clock(now);
        result
    }
}

impl CommandPort for FolderPort {
    fn ext_csd(&mut self) -> Result<[u8; EXT_CSD_BYTES], PortError> {
        self.with(8, command_target::ext_csd)
    }

    fn protection(&mut self, address: u32) -> Result<u64, PortError> {
        self.with(31, |card, now| command_target::protection(card, now, address))
    }

    fn send(&mut self, command: Approved) -> Result<(), PortError> {
        self.with(command.opcode(), |card, now| command_target::send(card, now, command))
    }

    fn erase(&mut self, command: ApprovedErase) -> Result<(), PortError> {
        self.with(38, |card, now| command_target::erase(card, now, command))
    }
}

/// Carries a plan out on a card in a folder, which is powered on for it, and off again at its end.
pub(super) fn apply(plan: &Plan, folder: &str, args: &ApplyArgs, is_quiet: bool) -> anyhow::Result<ApplyDocument> {
    let mut port = FolderPort::open(&args.target, folder)?;
    let stop = Arc::new(AtomicBool::new(false));
    let done = on_port(plan, &mut port, args, is_quiet, &stop);
    let finished = port.0.finish();
    let mut document = done?;
    finished?;
    if let Some(before) = document.standing.take() {
        // The card is off now, and the next command powers it on.
        let mut standing = standing(plan, folder)?;
        if before.stand == Stand::Done && standing.stand == Stand::NothingDone {
            standing = before;
            standing
                .notes
                .push("a virtual card is powered off when the command ends, which clears these settings".into());
        }
        document.next = work::next(plan, Some(&standing), args);
        document.user_bytes = work::user_bytes(&crate::source::open_one(&format!("sim:{folder}"), None)?);
        document.standing = Some(standing);
    }
    Ok(document)
}

fn on_port(
    plan: &Plan,
    port: &mut FolderPort,
    args: &ApplyArgs,
    is_quiet: bool,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<ApplyDocument> {
    let card = port.identify(&args.target)?;
    let identity = CardIdentity::of(&card);
    let mut document = work::document("apply", plan, args, identity.clone());
    if work::check(plan, &identity, port, args)?.is_none() {
        document.standing = plan.standing(port).ok();
        return Ok(document);
    }
    let consent = consent::ask(plan, &identity, args, is_quiet).map_err(Refused)?;
    document.snapshot = Some(work::save_snapshot(plan, &card, args)?.display().to_string());
    stop_by_signal(stop)?;
    work::carry(plan, port, consent, stop, &mut document);
    document.next = work::next(plan, document.standing.as_ref(), args);
    Ok(document)
}

/// Where a virtual card stands; its folder stays as it is.
pub(super) fn standing(plan: &Plan, name: &str) -> anyhow::Result<Standing> {
    let Powered { mut card, now, .. } = Powered::named(name, StoredContent::Nothing)?;
    card.power_off(now);
    let now = card.power_on(now)?;
    let failed = |error: PortError| port_error(name, &error);
    let mut target = CommandTarget::new(card, now).map_err(failed)?;
    plan.standing(&mut target).map_err(failed)
}
