//! `erase`: what a card has for it, and doing it: asked, in chunks, verified by samples, with a report.

mod consent;
#[cfg(feature = "sim")]
mod folder;
mod job;
mod real;
mod report;

use std::path::Path;

use emmc_analysis::erase::{self, EraseKind, Geometry, Offer, Verification};
use emmc_analysis::plan::CardIdentity;
use emmc_port::{CardData, SourceError};
use emmc_regs::{Area, CardKind};
use serde::Serialize;

use self::job::Job;
use crate::CommandResult;
use crate::cli::EraseArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::save::Refused;

pub(crate) const SCHEMA: &str = "emmclab.erase/1";

/// What `erase --json` prints.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct EraseDocument {
    /// `list` or `erase`.
    action: &'static str,
    /// The target, as named.
    target: String,
    /// How it is erased: `card`: its own commands, `kernel`, `registers`: not at all.
    way: &'static str,
    /// What identifies the card.
    card: Option<CardIdentity>,
    /// Of an eMMC: `user`, `boot0`, `boot1`, `gp1` to `gp4`.
    area: Option<&'static str>,
    /// The area, the device or the file. Unit: bytes.
    size_bytes: Option<u64>,
    /// What is erased: first byte and end. Unit: bytes.
    ranges: Vec<[u64; 2]>,
    /// What is on it, as far as its first bytes show, and that the card is set to boot from it.
    contents: Vec<String>,
    /// What it has, and what each does.
    kinds: Vec<Offer>,
    /// Areas of the card that no kind but sanitize touches.
    untouched: Vec<String>,
    /// When it began, in whole seconds.
    began_at: Option<String>,
    /// When it ended.
    ended_at: Option<String>,
    /// What was done, in order.
    done: Vec<Done>,
    /// What to do next.
    next: Vec<String>,
}

/// A kind that was carried out.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Done {
    /// The kind.
    kind: EraseKind,
    /// `complete`, `stopped` by a signal, `unsupported` or `refused` by the target, `lost`: no answer, or
    /// an error.
    ended: &'static str,
    /// Why it ended early.
    reason: Option<String>,
    /// Everything of the ranges below this byte is erased. Unit: bytes.
    to_bytes: Option<u64>,
    /// What was erased in this run. Unit: bytes.
    erased_bytes: u64,
    /// What may be erased in whole, in part or not at all. Unit: bytes.
    unsure: Option<[u64; 2]>,
    /// How long it took, in the target's time. Unit: ms.
    time_ms: u64,
    /// What samples show.
    verification: Option<Verification>,
}

/// An error of the system or the card, with the name of what failed.
fn unable(name: &str, reason: impl ToString) -> anyhow::Error {
    SourceError::Unsupported { name: name.into(), reason: reason.to_string() }.into()
}

pub(crate) fn run(args: &EraseArgs, output: &mut Output) -> CommandResult {
    if let Some(path) = &args.output {
        crate::save::check(path, args.force, &[Path::new(args.target.trim_start_matches("sim:"))])?;
    }
    let is_quiet = output.is_json() && !std::io::IsTerminal::is_terminal(&std::io::stdin());
    let mut document = on_target(args, is_quiet)?;
    document.next.extend(report::next(&document, args));
    let file = args.output.as_deref().filter(|path| *path != Path::new("-"));
    let saved = file.map_or(Ok(()), |path| {
        let is_json = path.extension().is_some_and(|ending| ending == "json");
        let text = if is_json { crate::output::json(SCHEMA, &document)? + "\n" } else { report::text(&document) };
        crate::save::write_whole(path, text.as_bytes(), args.force)
    });
    // What was erased is said, also where it cannot be saved.
    output.print(SCHEMA, &document, report::present)?;
    saved?;
    Ok(exit(&document))
}

fn on_target(args: &EraseArgs, is_quiet: bool) -> anyhow::Result<EraseDocument> {
    let name = args.target.as_str();
    let virtual_card = name.strip_prefix("sim:").or_else(|| Path::new(name).is_dir().then_some(name));
    if let Some(card) = virtual_card {
        return on_virtual(card, args, is_quiet);
    }
    let is_device = emmc_linux::is_card_name(name) || name.starts_with("/dev/");
    if args.kinds.is_empty() && !is_device {
        // A file of registers, or an image.
        if let Ok(card) = crate::source::open_one(name, None) {
            return of_registers(&card, args);
        }
    }
    real::erase(args, is_quiet)
}

#[cfg(feature = "sim")]
fn on_virtual(card: &str, args: &EraseArgs, is_quiet: bool) -> anyhow::Result<EraseDocument> {
    match args.kinds.is_empty() {
        true => of_registers(&crate::source::open_one(&format!("sim:{card}"), None)?, args),
        false => folder::erase(card, args, is_quiet),
    }
}

#[cfg(not(feature = "sim"))]
fn on_virtual(_: &str, args: &EraseArgs, _: bool) -> anyhow::Result<EraseDocument> {
    Err(unable(&args.target, "this build has no virtual cards (feature `sim`)"))
}

/// What a card has, from its registers alone.
fn of_registers(card: &CardData, args: &EraseArgs) -> anyhow::Result<EraseDocument> {
    let geometry = area_geometry(card, args, "no EXT_CSD of an eMMC with its size")?;
    let job = Job::new(args, geometry.size_bytes, |_| {
        Err(unable(&args.target, "--partition needs the content of a device"))
    })?;
    Ok(of_card(card, args, &job, &geometry))
}

/// The area of an eMMC that the arguments name; `without`: what is said of a card without registers.
///
/// Errors: `--area` for a card that is no eMMC; [`Refused`]: the card has no such area; no registers.
fn area_geometry(card: &CardData, args: &EraseArgs, without: &str) -> anyhow::Result<Geometry> {
    let area = args.area();
    if args.area.is_some() && card.kind == Some(CardKind::Sd) {
        return Err(no_areas(args));
    }
    if let Some(geometry) = Geometry::of_area(card, area) {
        return Ok(geometry);
    }
    let info = card.ext_csd.as_ref().filter(|_| Geometry::of(card).is_some()).map(|ext_csd| ext_csd.decode().0);
    let Some(info) = info else { return Err(unable(&args.target, without)) };
    let has = erase::areas(&info).into_iter().filter(|(area, _)| *area != Area::Rpmb);
    let has: Vec<&str> = has.map(|(area, _)| area.name()).collect();
    let what = format!("has no area {area}; it has {}; nothing was sent", has.join(", "));
    Err(Refused(format!("{}: {what}", args.target)).into())
}

/// `--area` for what is no eMMC: an error of the arguments.
fn no_areas(args: &EraseArgs) -> anyhow::Error {
    anyhow::anyhow!("{}: --area is for an eMMC, and this is none; nothing was sent", args.target)
}

/// A document of an eMMC, before anything is done.
fn of_card(card: &CardData, args: &EraseArgs, job: &Job, geometry: &Geometry) -> EraseDocument {
    let area = geometry.area;
    let info = card.ext_csd.as_ref().map(|ext_csd| ext_csd.decode().0);
    EraseDocument {
        action: if job.kinds.is_empty() { "list" } else { "erase" },
        target: args.target.clone(),
        way: "card",
        card: Some(CardIdentity::of(card)),
        area: Some(area.name()),
        size_bytes: Some(geometry.size_bytes),
        ranges: job.ranges.clone(),
        contents: erase::boots(card, area).into_iter().collect(),
        kinds: erase::offers(card, area, job.bytes()).unwrap_or_default(),
        untouched: info.map(|info| erase::untouched(&info, area)).unwrap_or_default(),
        ..EraseDocument::default()
    }
}

/// The time, in whole seconds. The crate's own messages are large.
fn now() -> Option<String> {
    jiff::Timestamp::from_second(jiff::Timestamp::now().as_second()).ok().map(|now| now.to_string())
}

/// Of a card that does not answer nothing is known; what was ignored, stopped or refused is a finding.
fn exit(document: &EraseDocument) -> Exit {
    match document.done.last().map(|done| done.ended) {
        Some("lost" | job::UNSUPPORTED) => Exit::Unknown,
        Some("stopped" | "refused") => Exit::Findings,
        _ if job::is_ignored(document) => Exit::Findings,
        _ => Exit::Good,
    }
}
