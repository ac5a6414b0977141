//! `apply`: carries a plan out on a card, compares a card with it, or rehearses it.

pub(super) mod consent;
pub(super) mod device;
#[cfg(feature = "sim")]
pub(super) mod folder;
#[cfg(feature = "sim")]
mod rehearsal;
mod work;

use std::path::Path;

use emmc_analysis::plan::{CardIdentity, Plan, Stand, Standing};
use emmc_port::{CardData, PortError, SourceError};
use emmc_report::Document;
use emmc_units::Bytes;
use serde::Serialize;

use crate::CommandResult;
use crate::cli::ApplyArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::save::Refused;
use crate::source;

pub(crate) const SCHEMA: &str = "emmclab.apply/1";

/// What `apply --json` prints.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ApplyDocument {
    /// `apply`, `verify` or `rehearse`.
    action: &'static str,
    /// The kind of change.
    change: String,
    /// The card, as named.
    target: String,
    /// What identifies it.
    card: CardIdentity,
    /// How it ended: `complete`, `stopped` by a signal, `surprise`: the card is not as expected, `lost`: it does not
    /// answer; absent if nothing was to be sent.
    ended: Option<&'static str>,
    /// Why it ended early.
    reason: Option<String>,
    /// Each step that was sent and read back.
    sent: Vec<String>,
    /// Where the card stands now; of a rehearsal, the virtual card after its power cycle. Absent if it does not answer.
    standing: Option<Standing>,
    /// The user area as the card reports it now.
    user_bytes: Option<Bytes>,
    /// Where the registers before the change are saved.
    snapshot: Option<String>,
    /// What to do next, in order.
    next: Vec<String>,
}

/// A card that a plan is compared with or carried out on.
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
        // A device file is a device, whatever it turns out to be.
        match emmc_linux::is_card_name(name) || name.starts_with("/dev/") {
            true => Self::Device(name),
            false => Self::Saved(name),
        }
    }
}

pub(crate) fn run(args: &ApplyArgs, output: &mut Output) -> CommandResult {
    let name = args.plan.to_string_lossy();
    anyhow::ensure!(!(name == "-" && args.target == "-"), "PLAN and TARGET cannot both be standard input");
    let text = String::from_utf8(source::read_limited(&name)?)
        .map_err(|_| anyhow::anyhow!("{name}: not a plan: not UTF-8 text"))?;
    let plan = Plan::read(&text).map_err(|error| anyhow::anyhow!("{name}: {error}"))?;
    if !plan.ok {
        let why: Vec<&str> = plan.refusals.iter().map(|refusal| refusal.what.as_str()).collect();
        return Err(Refused(format!("{name}: the plan was refused: {}", why.join("; "))).into());
    }
    let target = Target::of(&args.target);
    let document = match (args.verify, args.rehearse) {
        (true, _) => verify(&plan, &target, args)?,
        (_, true) => rehearse(&plan, &target, args)?,
        _ => match target {
            Target::Device(card) => device::apply(&plan, card, args, output.is_json())?,
            Target::Virtual(card) => apply_virtual(&plan, card, args, output.is_json())?,
            Target::Saved(file) => {
                let what = "not a card: a plan is carried out on a device, or on the folder of a virtual card";
                return unsupported(file, what);
            }
        },
    };
    output.print(SCHEMA, &document, present)?;
    Ok(exit(&document))
}

/// A change that was sent is good even where a power cycle is due; a comparison is good only if all is as planned. Of a
/// card that does not answer nothing is known.
fn exit(document: &ApplyDocument) -> Exit {
    if document.ended == Some("lost") {
        return Exit::Unknown;
    }
    let stand = document.standing.as_ref().map(|standing| standing.stand);
    let is_good = match (document.action, document.ended) {
        ("verify", _) | (_, None) => stand == Some(Stand::Done),
        (_, Some("complete")) => matches!(stand, Some(Stand::Done | Stand::PowerCycleDue)),
        _ => false,
    };
    if is_good { Exit::Good } else { Exit::Findings }
}

fn unsupported<T>(name: &str, reason: &str) -> anyhow::Result<T> {
    Err(SourceError::Unsupported { name: name.into(), reason: reason.into() }.into())
}

#[cfg(feature = "sim")]
fn apply_virtual(plan: &Plan, card: &str, args: &ApplyArgs, is_quiet: bool) -> anyhow::Result<ApplyDocument> {
    folder::apply(plan, card, args, is_quiet)
}

#[cfg(not(feature = "sim"))]
fn apply_virtual(_: &Plan, card: &str, _: &ApplyArgs, _: bool) -> anyhow::Result<ApplyDocument> {
    unsupported(card, "this build has no virtual cards (feature `sim`)")
}

#[cfg(feature = "sim")]
fn rehearse(plan: &Plan, target: &Target<'_>, args: &ApplyArgs) -> anyhow::Result<ApplyDocument> {
    rehearsal::run(plan, &read(target, args)?, args)
}

#[cfg(not(feature = "sim"))]
fn rehearse(_: &Plan, _: &Target<'_>, args: &ApplyArgs) -> anyhow::Result<ApplyDocument> {
    unsupported(&args.target, "this build has no virtual cards (feature `sim`)")
}

/// The card's data, as every command reads it.
fn read(target: &Target<'_>, args: &ApplyArgs) -> anyhow::Result<CardData> {
    match target {
        Target::Virtual(card) => source::open_one(&format!("sim:{card}"), None),
        Target::Device(card) => {
            device::check_name(card)?;
            source::open_one(card, None)
        }
        Target::Saved(_) => source::open_one(&args.target, None),
    }
}

/// Compares a card with a plan; nothing is sent but reads.
fn verify(plan: &Plan, target: &Target<'_>, args: &ApplyArgs) -> anyhow::Result<ApplyDocument> {
    let card = read(target, args)?;
    let identity = CardIdentity::of(&card);
    let same = plan.card.is_of(&identity);
    // Registers alone, without a CID, are of any card.
    if let Err(other) = same.or_else(|other| if identity.cid.is_none() { Ok(()) } else { Err(other) }) {
        return Err(Refused(format!("{}: {other}", args.target)).into());
    }
    let standing = match target {
        Target::Device(name) => device::standing(plan, name)?,
        #[cfg(feature = "sim")]
        Target::Virtual(name) => folder::standing(plan, name)?,
        _ => match card.ext_csd.as_ref().filter(|ext_csd| ext_csd.is_complete()) {
            Some(ext_csd) => plan.standing_of(ext_csd.bytes()),
            None => return unsupported(&args.target, "it does not have all 512 bytes of EXT_CSD"),
        },
    };
    let mut document = work::document("verify", plan, args, identity);
    document.next = work::next(plan, Some(&standing), args);
    document.user_bytes = work::user_bytes(&card);
    document.standing = Some(standing);
    Ok(document)
}

fn port_error(target: &str, error: &PortError) -> anyhow::Error {
    SourceError::Unsupported { name: target.into(), reason: error.to_string() }.into()
}

fn present(document: &ApplyDocument) -> Document {
    let title = match document.action {
        "verify" => "Verification of a plan",
        "rehearse" => "Rehearsal of a plan on a virtual card",
        _ => "A plan carried out",
    };
    let mut report = Document::new(title);
    report.subtitle = Some(format!("{}  {}", document.target, document.change));
    let section = report.section("standing", "Where the card stands");
    if let Some(reason) = &document.reason {
        let ended = document.ended.unwrap_or_default();
        section.note(emmc_report::Tone::Bad, format!("{ended}: {reason}"));
    }
    match &document.standing {
        Some(standing) => emmc_report::present::standing(standing, section),
        None => {
            section.note(emmc_report::Tone::Bad, "The card does not answer.");
        }
    }
    if document.ended.is_some() {
        let count = match document.sent.len() {
            1 => "1 step was sent and read back.".to_owned(),
            count => format!("{count} steps were sent and read back."),
        };
        section.note(emmc_report::Tone::Muted, count);
    }
    if let Some(bytes) = document.user_bytes {
        section.note(emmc_report::Tone::Muted, format!("User area: {bytes} ({}).", bytes.rounded()));
    }
    if let Some(snapshot) = &document.snapshot {
        section.note(emmc_report::Tone::Muted, format!("Registers before: {snapshot}"));
    }
    if !document.next.is_empty() {
        let section = report.section("next", "Next");
        let steps = document.next.iter().enumerate();
        let steps = steps.map(|(index, step)| emmc_report::KeyValue::new((index + 1).to_string(), step.as_str()));
        section.push(steps.collect::<Vec<_>>());
    }
    report
}
