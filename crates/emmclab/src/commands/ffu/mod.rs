//! `ffu`: how a card stands with firmware updates, and a field firmware update with an image of the maker.
//!
//! Nothing is retried. Absent on purpose: images, and any judgement of their content.

mod device;
#[cfg(feature = "sim")]
mod folder;
mod report;
mod update;

use std::path::Path;

use emmc_analysis::plan::CardIdentity;
use emmc_port::ffu::{FfuState, status_text, version_text};
use emmc_port::{CardData, SourceError};
use emmc_regs::CardKind;
use serde::Serialize;

use crate::CommandResult;
use crate::cli::{FfuArgs, FfuFor};
use crate::exit::Exit;
use crate::output::Output;
use crate::save::Refused;
use crate::source;

pub(crate) const SCHEMA: &str = "emmclab.ffu/1";

/// What `ffu --json` prints.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FfuDocument {
    /// `status`, `verify` or `update`.
    action: &'static str,
    /// The target, as named.
    target: String,
    /// What identifies the card.
    card: Option<CardIdentity>,
    /// The card's registers before the update.
    before: Option<Registers>,
    /// The card's registers now; absent if it does not answer.
    now: Option<Registers>,
    /// What is sent.
    image: Option<Image>,
    /// How it is sent: `chunks`, `stay`, `open`, `blocks`, `blocks-stay`.
    mode: Option<&'static str>,
    /// At most this much in one command. Unit: bytes.
    chunk_bytes: Option<u32>,
    /// What was sent with a good answer. Unit: bytes.
    sent_bytes: Option<u64>,
    /// Whether the card was told to install.
    install_sent: Option<bool>,
    /// How the update ended: `installed`: the card says so, `power cycle due`: the card has all of the image and
    /// installs it then, `stopped` by a signal, `refused` by the card, `surprise`: the card is not as expected, `lost`:
    /// it does not answer.
    ended: Option<&'static str>,
    /// Why it ended early.
    reason: Option<String>,
    /// Whether other firmware runs than before; absent if that is not known yet.
    updated: Option<bool>,
    /// What to do next.
    next: Vec<String>,
}

/// What the registers say of firmware updates; a value is absent if it is not known.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Registers {
    /// SUPPORTED_MODES.FFU.
    supported: Option<bool>,
    /// FW_CONFIG.UPDATE_DISABLE: disabled for ever.
    disabled: Option<bool>,
    /// FFU_FEATURES: MODE_OPERATION_CODES installs; else a power cycle does.
    operation_codes: Option<bool>,
    /// FFU_ARG.
    argument: Option<u32>,
    /// FIRMWARE_VERSION as text, or as hexadecimal digits.
    firmware: Option<String>,
    /// FFU_STATUS.
    status: Option<u8>,
    /// The same in words.
    status_text: Option<&'static str>,
    /// MODE_CONFIG: 0 is normal, 1 is firmware update.
    mode: Option<u8>,
    /// NUMBER_OF_FW_SECTORS_CORRECTLY_PROGRAMMED.
    programmed_sectors: Option<u32>,
    /// DATA_SECTOR_SIZE. Unit: bytes.
    sector_bytes: Option<u32>,
    /// OPERATION_CODES_TIMEOUT; absent if it is not defined. Unit: us.
    install_us_max: Option<u64>,
}

impl From<&FfuState> for Registers {
    fn from(state: &FfuState) -> Self {
        Self {
            supported: state.supported,
            disabled: state.disabled,
            operation_codes: state.operation_codes,
            argument: state.argument,
            firmware: state.firmware.as_ref().map(version_text),
            status: state.status,
            status_text: state.status.map(status_text),
            mode: state.mode,
            programmed_sectors: state.programmed,
            sector_bytes: state.sector_bytes,
            install_us_max: state.timeout_us,
        }
    }
}

/// An image.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Image {
    /// Its file, as named.
    file: String,
    /// Unit: bytes.
    size_bytes: u64,
    /// Hexadecimal digits.
    sha256: String,
}

/// An error of the system or the card, with the name of what failed.
fn unable(name: &str, reason: impl ToString) -> anyhow::Error {
    SourceError::Unsupported { name: name.into(), reason: reason.to_string() }.into()
}

fn refused(name: &str, what: impl std::fmt::Display) -> anyhow::Error {
    Refused(format!("{name}: {what}; nothing was sent")).into()
}

/// What the user named.
enum Target<'a> {
    /// A card of this machine.
    Device(&'a str),
    /// A virtual card.
    Virtual(&'a str),
    /// Saved registers.
    Saved(&'a str),
}

impl<'a> Target<'a> {
    fn of(name: &'a str) -> Self {
        if let Some(card) = name.strip_prefix("sim:") {
            return Self::Virtual(card);
        }
        if Path::new(name).is_dir() {
            return Self::Virtual(name);
        }
        match emmc_linux::is_card_name(name) || name.starts_with("/dev/") {
            true => Self::Device(name),
            false => Self::Saved(name),
        }
    }
}

pub(crate) fn run(args: &FfuArgs, output: &mut Output) -> CommandResult {
    let is_quiet = output.is_json() && !std::io::IsTerminal::is_terminal(&std::io::stdin());
    let document = match (&args.image, &args.identity) {
        (Some(path), Some(wanted)) => {
            let order = update::Wanted::read(args, path, wanted, is_quiet)?;
            match Target::of(&args.target) {
                Target::Device(name) => device::update(name, &order)?,
                Target::Virtual(folder) => on_virtual(folder, &order)?,
                Target::Saved(name) => {
                    return Err(unable(name, "not a card; expected /dev/mmcblkN, or the folder of a virtual card"));
                }
            }
        }
        (_, wanted) => status(args, wanted.as_ref())?,
    };
    output.print(SCHEMA, &document, report::present)?;
    Ok(exit(&document))
}

#[cfg(feature = "sim")]
fn on_virtual(folder: &str, wanted: &update::Wanted<'_>) -> anyhow::Result<FfuDocument> {
    folder::update(folder, wanted)
}

#[cfg(not(feature = "sim"))]
fn on_virtual(folder: &str, _: &update::Wanted<'_>) -> anyhow::Result<FfuDocument> {
    Err(unable(folder, "this build has no virtual cards (feature `sim`)"))
}

/// A card's registers; nothing is sent but reads.
fn read(name: &str) -> anyhow::Result<CardData> {
    match Target::of(name) {
        #[cfg(feature = "sim")]
        Target::Virtual(card) => folder::read(card),
        Target::Device(card) => {
            let node = crate::commands::apply::device::check_name(card)?;
            source::open_one(&node.to_string_lossy(), None)
        }
        _ => source::open_one(name, None),
    }
}

/// What the registers of a card say.
fn state(name: &str, card: &CardData) -> anyhow::Result<FfuState> {
    if card.kind == Some(CardKind::Sd) {
        return Err(unable(name, "an SD card, which has no firmware update in the field"));
    }
    let ext_csd = card.ext_csd.as_ref().filter(|ext_csd| ext_csd.known_bytes() > 0);
    ext_csd.map(FfuState::of).ok_or_else(|| unable(name, "its EXT_CSD cannot be read: requires root"))
}

fn status(args: &FfuArgs, wanted: Option<&FfuFor>) -> anyhow::Result<FfuDocument> {
    let name = args.target.as_str();
    let version = wanted.and_then(|wanted| wanted.version.as_deref());
    let what = "--verify compares with the firmware before the update: use --for MID:PNM:VERSION";
    anyhow::ensure!(!args.verify || version.is_some(), what);
    let card = read(name)?;
    let state = state(name, &card)?;
    let mut document = FfuDocument {
        action: if args.verify { "verify" } else { "status" },
        target: name.into(),
        card: Some(CardIdentity::of(&card)),
        now: Some(Registers::from(&state)),
        ..FfuDocument::default()
    };
    if let Some(wanted) = wanted {
        update::check_card(name, &card, wanted)?;
    }
    if let (true, Some(version)) = (args.verify, version) {
        document.updated = updated(&state, version);
    }
    Ok(document)
}

/// Whether other firmware runs than before, and the card does not call the update failed.
fn updated(state: &FfuState, version: &str) -> Option<bool> {
    let (status, firmware) = (state.status?, state.firmware?);
    Some(status == 0 && !is_version(&firmware, version))
}

/// Whether the user means this version: as text, or as the digits of its bytes.
fn is_version(firmware: &[u8; 8], named: &str) -> bool {
    let digits = firmware.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}"));
    version_text(firmware) == named || digits.eq_ignore_ascii_case(named)
}

/// Of a card that does not answer nothing is known; a failed update and a card in the mode are findings.
fn exit(document: &FfuDocument) -> Exit {
    let now = document.now.as_ref();
    let is_good = match document.action {
        "update" => match document.ended {
            Some("installed" | "power cycle due") => document.updated != Some(false),
            Some("lost") => return Exit::Unknown,
            _ => false,
        },
        "verify" => match document.updated {
            Some(updated) => updated,
            None => return Exit::Unknown,
        },
        _ => now.is_some_and(|now| now.status.unwrap_or(0) == 0 && now.mode.unwrap_or(0) == 0),
    };
    if is_good { Exit::Good } else { Exit::Findings }
}
