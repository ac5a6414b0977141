//! `lock`: whether a card is locked by a password, and CMD42: set, clear, lock, unlock, erase by force.
//!
//! Nothing is retried. Absent on purpose: passwords as arguments, which every user of the machine could see.

#[cfg(feature = "sim")]
mod folder;
mod report;
mod work;

use std::path::Path;

use emmc_analysis::plan::CardIdentity;
use emmc_linux::LivePort;
use emmc_port::lock::{LockPort, LockRegisters};
use emmc_port::{CardData, SourceError};
use emmc_regs::CardKind;
use emmc_regs::r1::R1;
use serde::Serialize;

use self::work::Wanted;
use crate::CommandResult;
use crate::cli::LockCommand;
use crate::commands::apply::device::{check_name, work_on_held};
use crate::commands::bench::consent::say;
use crate::exit::Exit;
use crate::output::Output;
use crate::save::Refused;
use crate::source;

pub(crate) const SCHEMA: &str = "emmclab.lock/1";

/// What `lock --json` prints.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LockDocument {
    /// `status`, `set`, `clear`, `on`, `off` or `force-erase`.
    action: &'static str,
    /// The target, as named.
    target: String,
    /// What identifies the card.
    card: Option<CardIdentity>,
    /// Whether the card takes passwords: command class 7 of the CSD.
    supported: Option<bool>,
    /// Whether passwords are switched off for ever: USER_WP.PERM_PSWD_DIS.
    disabled: Option<bool>,
    /// Whether the card was locked before.
    was_locked: Option<bool>,
    /// Whether it is locked now; absent if it does not answer.
    locked: Option<bool>,
    /// Whether it has a password. A card that is not locked does not say it: absent, unless this command
    /// has shown it.
    has_password: Option<bool>,
    /// How it ended: `done`, `already` so, `stopped` by a signal, `refused` by the card, `surprise`: the card is not as
    /// expected, `lost`: it does not answer. Absent of a status.
    ended: Option<&'static str>,
    /// Why it ended early.
    reason: Option<String>,
    /// What to look at.
    warnings: Vec<String>,
    /// What to do next.
    next: Vec<String>,
}

/// What the user named.
enum Target<'a> {
    /// A card of this machine.
    Device(&'a str),
    /// The folder of a virtual card.
    Folder(&'a str),
}

impl<'a> Target<'a> {
    fn of(name: &'a str) -> anyhow::Result<Self> {
        if let Some(folder) = name.strip_prefix("sim:") {
            return Ok(Self::Folder(folder));
        }
        match (Path::new(name).is_dir(), emmc_linux::is_card_name(name) || name.starts_with("/dev/")) {
            (true, _) => Ok(Self::Folder(name)),
            (false, true) => Ok(Self::Device(name)),
            // Whether a card is locked is in its status, which no saved form has.
            (false, false) => Err(unable(name, "not a card; expected /dev/mmcblkN, or the folder of a virtual card")),
        }
    }
}

/// An error of the system or the card, with the name of what failed.
fn unable(name: &str, reason: impl ToString) -> anyhow::Error {
    SourceError::Unsupported { name: name.into(), reason: reason.to_string() }.into()
}

fn refused(name: &str, what: impl std::fmt::Display) -> anyhow::Error {
    Refused(format!("{name}: {what}; nothing was sent")).into()
}

/// What the registers of a card say.
///
/// Errors: an SD card.
fn registers(name: &str, card: &CardData) -> anyhow::Result<LockRegisters> {
    if card.kind == Some(CardKind::Sd) {
        return Err(unable(name, "an SD card, which Linux cannot unlock once it is locked; nothing was sent"));
    }
    Ok(LockRegisters::of(card.csd.as_ref(), card.ext_csd.as_ref()))
}

pub(crate) fn run(command: &LockCommand, output: &mut Output) -> CommandResult {
    // A program that reads JSON gets one object, also where it cannot be asked.
    let is_quiet = output.is_json() && !std::io::IsTerminal::is_terminal(&std::io::stdin());
    let document = match command {
        LockCommand::Status(args) => status(&args.target.target)?,
        LockCommand::Change(change) => {
            let wanted = Wanted::read(change, is_quiet)?;
            match Target::of(wanted.target)? {
                Target::Device(name) => on_device(name, &wanted)?,
                Target::Folder(folder) => on_folder(folder, &wanted)?,
            }
        }
    };
    if output.is_json() {
        document.warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
    }
    output.print(SCHEMA, &document, report::present)?;
    Ok(exit(&document))
}

/// A locked card, and what did not end as wanted, is a finding; of a card that does not answer nothing is known.
fn exit(document: &LockDocument) -> Exit {
    match (document.ended, document.locked) {
        (None, Some(true)) => Exit::Findings,
        (None | Some("done" | "already"), _) => Exit::Good,
        (Some("lost"), _) => Exit::Unknown,
        _ => Exit::Findings,
    }
}

fn on_device(name: &str, wanted: &Wanted<'_>) -> anyhow::Result<LockDocument> {
    work_on_held(
        name,
        |card| wanted.check(card),
        |card, _, found| wanted.ask(&CardIdentity::of(card), &found.name, true),
        |port, (card, registers), consent, stop| {
            let mut document = LockDocument::of(wanted.action(), name, card, registers);
            wanted.carry(port, consent, stop, &mut document);
            document
        },
    )
}

#[cfg(feature = "sim")]
fn on_folder(folder: &str, wanted: &Wanted<'_>) -> anyhow::Result<LockDocument> {
    folder::change(folder, wanted)
}

#[cfg(not(feature = "sim"))]
fn on_folder(folder: &str, _: &Wanted<'_>) -> anyhow::Result<LockDocument> {
    Err(unable(folder, "this build has no virtual cards (feature `sim`)"))
}

#[cfg(feature = "sim")]
fn status_of_folder(name: &str, folder: &str) -> anyhow::Result<(CardData, R1)> {
    folder::status(name, folder)
}

#[cfg(not(feature = "sim"))]
fn status_of_folder(name: &str, _: &str) -> anyhow::Result<(CardData, R1)> {
    Err(unable(name, "this build has no virtual cards (feature `sim`)"))
}

fn status(name: &str) -> anyhow::Result<LockDocument> {
    let (card, status) = match Target::of(name)? {
        Target::Device(device) => {
            let node = check_name(device)?;
            if !node.exists() {
                return Err(unable(name, "no such device"));
            }
            let card = source::open_one(&node.to_string_lossy(), None)?;
            // An SD card has another address, at which this asks.
            registers(name, &card)?;
            let mut port = LivePort::open(&node).map_err(|error| unable(name, error))?;
            (card, LockPort::status(&mut port).map_err(|error| unable(name, error))?)
        }
        Target::Folder(folder) => status_of_folder(name, folder)?,
    };
    let mut document = LockDocument::of("status", name, &card, registers(name, &card)?);
    let is_locked = status.contains(R1::IS_LOCKED);
    document.locked = Some(is_locked);
    document.has_password = is_locked.then_some(true);
    document.next = report::next(&document);
    Ok(document)
}

impl LockDocument {
    /// Without results yet.
    fn of(action: &'static str, name: &str, card: &CardData, registers: LockRegisters) -> Self {
        Self {
            action,
            target: name.into(),
            card: Some(CardIdentity::of(card)),
            supported: registers.supported,
            disabled: registers.disabled,
            ..Self::default()
        }
    }
}
