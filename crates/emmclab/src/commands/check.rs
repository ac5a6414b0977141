//! `check`: one line per card for a monitoring system.

use std::path::Path;

use emmc_analysis::health::{CheckResult, CheckStatus, HealthOptions, check};
use emmc_port::CardData;
use serde::Serialize;

use crate::CommandResult;
use crate::cli::CheckArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::source;

pub(crate) const SCHEMA: &str = "emmclab.check/1";

/// One card, checked.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CheckedCard {
    /// The source as named; for all cards the folder of `--sysroot`; absent without either.
    source: Option<String>,
    /// The block device, if the source is a card of a machine: `/dev/mmcblk0`.
    device: Option<String>,
    /// CID.PNM, the product's name.
    name: Option<String>,
    #[serde(flatten)]
    result: CheckResult,
    /// Why the check failed; absent if it succeeded.
    reason: Option<String>,
}

/// What `check --json` prints, also if the check failed.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CheckDocument {
    #[serde(flatten)]
    checked: CheckedCard,
    /// With `--all` every card, the worst first.
    #[serde(skip_serializing_if = "Option::is_none")]
    cards: Option<Vec<CheckedCard>>,
}

impl CheckedCard {
    fn unknown(source: Option<&str>, reason: &str) -> Self {
        Self {
            source: source.map(str::to_owned),
            device: source.and_then(device),
            name: None,
            result: CheckResult::unknown(reason),
            reason: Some(reason.to_owned()),
        }
    }

    /// Reads and checks a source. An unreadable source is UNKNOWN, because CRITICAL would raise an alarm.
    fn read(source: &str, open: impl FnOnce() -> anyhow::Result<CardData>, options: &HealthOptions) -> Self {
        match open() {
            Ok(card) => Self {
                source: Some(source.to_owned()),
                device: device(source),
                name: product_name(&card),
                result: check(&card, options),
                reason: None,
            },
            Err(error) => Self::unknown(Some(source), &format!("{error:#}")),
        }
    }
}

pub(crate) fn run(args: &CheckArgs, output: &mut Output) -> CommandResult {
    let document = match HealthOptions::from_given(args.warning, args.critical) {
        Ok(options) => checked(args, &options),
        Err(error) => CheckDocument::failed(args.source.as_deref(), &error.to_string()),
    };
    let exit = Exit::Nagios(document.checked.result.exit_code);
    // A program that asked for a document gets one.
    if args.quiet && !output.is_json() && document.checked.result.status == CheckStatus::Ok {
        return Ok(exit);
    }
    // If standard output is closed, only the exit code is left; it is UNKNOWN, because the line was lost.
    match document.print(args.quiet, output) {
        Ok(()) => Ok(exit),
        Err(error) => {
            output.error(&format!("{error:#}"));
            Ok(Exit::Nagios(3))
        }
    }
}

/// The check for a command line that cannot be parsed.
pub(crate) fn usage_error(reason: &str, output: &mut Output) -> Exit {
    // If standard output is closed, only the exit code is left.
    let _ = CheckDocument::failed(None, reason).print(false, output);
    Exit::Nagios(3)
}

fn checked(args: &CheckArgs, options: &HealthOptions) -> CheckDocument {
    match &args.source {
        Some(source) => {
            let open = || source::open_with(source, &args.more);
            CheckDocument { checked: CheckedCard::read(source, open, options), cards: None }
        }
        None => all(args.more.tree.sysroot.as_deref(), options),
    }
}

/// Checks every card of the machine, or of a copied /sys.
fn all(sysroot: Option<&Path>, options: &HealthOptions) -> CheckDocument {
    let tree = sysroot.map(|folder| folder.display().to_string());
    let list = match emmc_linux::list(sysroot) {
        Ok(list) => list,
        Err(error) => return CheckDocument::failed(tree.as_deref(), &error.to_string()),
    };
    let mut cards: Vec<CheckedCard> = Vec::new();
    for listed in &list.cards {
        let mut card = CheckedCard::read(&listed.device, || source::open_one(&listed.device, sysroot), options);
        card.result = card.result.named(listed.device.trim_start_matches("/dev/"));
        card.name = card.name.or_else(|| listed.name.clone());
        cards.push(card);
    }
    cards.sort_by_key(|card| card.result.status.rank());
    let results: Vec<CheckResult> = cards.iter().map(|card| card.result.clone()).collect();
    let checked = match CheckResult::worst_of(&results) {
        Some(result) => CheckedCard { source: tree, device: None, name: None, result, reason: None },
        None => CheckedCard::unknown(tree.as_deref(), "no card found: no /sys/block/mmcblkN"),
    };
    CheckDocument { checked, cards: Some(cards) }
}

impl CheckDocument {
    fn failed(source: Option<&str>, reason: &str) -> Self {
        Self { checked: CheckedCard::unknown(source, reason), cards: None }
    }

    /// Prints the line, and with `--all` one for each further card; `quiet` leaves out the cards that are OK.
    fn print(&self, quiet: bool, output: &mut Output) -> anyhow::Result<()> {
        if output.is_json() {
            return output.line(&crate::output::json(SCHEMA, self)?);
        }
        let first = &self.checked.result;
        output.said(&first.line)?;
        // The first card is the worst, whose text the first line has.
        for card in self.cards.iter().flatten().skip(1) {
            if !quiet || card.result.status != CheckStatus::Ok {
                output.said(&card.result.text)?;
            }
        }
        Ok(())
    }
}

/// The block device that a source names, if it names one.
fn device(source: &str) -> Option<String> {
    emmc_linux::card_node(source).map(|node| node.display().to_string())
}

fn product_name(card: &CardData) -> Option<String> {
    let (kind, cid) = card.kind.zip(card.cid)?;
    Some(cid.decode(kind, None).product_name).filter(|name| !name.is_empty())
}
