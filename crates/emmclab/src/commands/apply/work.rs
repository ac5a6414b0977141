//! What carrying out a plan has in common on every card: checks before, the run, and what is reported.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use emmc_analysis::plan::{CardIdentity, Ended, Event, Plan, Stand, Standing, carry_out};
use emmc_linux::hold::{self, Point};
use emmc_port::{CardData, CommandPort, Consent, Snapshot};
use emmc_regs::ext_csd::reg;
use emmc_units::{Bytes, printable_json};

use super::{ApplyDocument, port_error};
use crate::cli::ApplyArgs;
use crate::save::{Refused, refuse_device, write_whole};

/// A document without results yet.
pub(super) fn document(action: &'static str, plan: &Plan, args: &ApplyArgs, card: CardIdentity) -> ApplyDocument {
    ApplyDocument {
        action,
        change: plan.change.clone(),
        target: args.target.clone(),
        card,
        ended: None,
        reason: None,
        sent: Vec::new(),
        standing: None,
        user_bytes: None,
        snapshot: None,
        next: Vec::new(),
    }
}

/// Whether the plan can be carried out on the card as it is; `None`: there is nothing to send, and that is good.
///
/// Errors: [`Refused`]: another card, other values, a one-time change that is made already.
pub(super) fn check(
    plan: &Plan,
    card: &CardIdentity,
    port: &mut dyn CommandPort,
    args: &ApplyArgs,
) -> anyhow::Result<Option<Standing>> {
    let target = &args.target;
    let refused = |what: String| Err(Refused(format!("{target}: {what}; nothing was sent")).into());
    if plan.card.cid.is_none() {
        let what = "the plan does not say which card it is for: make it from the card itself, or add --with CID";
        return refused(what.into());
    }
    if let Err(other) = plan.card.is_of(card) {
        return refused(other.to_string());
    }
    let standing = plan.standing(port).map_err(|error| port_error(target, &error))?;
    match standing.stand {
        Stand::NothingDone | Stand::PartlyWritten => Ok(Some(standing)),
        Stand::Differs => refused(joined(&standing)),
        Stand::Done | Stand::PowerCycleDue if plan.permanent => refused(joined(&standing)),
        Stand::Done | Stand::PowerCycleDue => Ok(None),
    }
}

fn joined(standing: &Standing) -> String {
    let neither = standing.steps.iter().filter(|step| step.is == emmc_analysis::plan::Held::Other);
    let neither = neither.map(|step| format!("{}: the card holds {}", step.step, step.found));
    let lines: Vec<String> =
        std::iter::once(standing.what.clone()).chain(neither).chain(standing.notes.clone()).collect();
    lines.join("; ")
}

/// Saves what the card was like before; what a first attempt saved stays.
///
/// Errors: [`Refused`]: the file cannot be written, or is of another card.
pub(super) fn save_snapshot(plan: &Plan, card: &CardData, args: &ApplyArgs) -> anyhow::Result<PathBuf> {
    let path = args.snapshot.clone().unwrap_or_else(|| beside(&args.plan));
    refuse_device(&path)?;
    let name = path.display();
    if path.exists() {
        let earlier = crate::source::open_one(&path.to_string_lossy(), None)?;
        if CardIdentity::of(&earlier).cid == plan.card.cid {
            return Ok(path);
        }
        let what = "exists already and is of another card; name another file with --snapshot; nothing was sent";
        return Err(Refused(format!("{name}: {what}")).into());
    }
    let mut snapshot = Snapshot::from(card);
    snapshot.tool = Some(concat!("emmclab ", env!("CARGO_PKG_VERSION")).into());
    let text = printable_json(serde_json::to_string_pretty(&snapshot)?) + "\n";
    let unsaved = |error: anyhow::Error| {
        let what = "without saved registers nothing is sent; name another file with --snapshot";
        Refused(format!("{error:#}: {what}"))
    };
    write_whole(&path, text.as_bytes(), false).map_err(unsaved)?;
    Ok(path)
}

/// `plan.before.json` of `plan.json`.
fn beside(plan: &Path) -> PathBuf {
    match plan.file_stem().filter(|_| plan != Path::new("-")) {
        Some(stem) => plan.with_file_name(format!("{}.before.json", stem.to_string_lossy())),
        None => PathBuf::from("plan.before.json"),
    }
}

/// Carries the plan out and fills in what came of it.
pub(super) fn carry(
    plan: &Plan,
    port: &mut dyn CommandPort,
    consent: Consent,
    stop: &Arc<AtomicBool>,
    document: &mut ApplyDocument,
) {
    let mut sent = Vec::new();
    let ended = carry_out(plan, port, consent, &mut |event| {
        match event {
            Event::Sends(_) => hold::reached(Point::Step, stop),
            Event::Sent(step) => sent.push(step.clone()),
        }
        !stop.load(Ordering::Relaxed)
    });
    let (word, reason) = match ended {
        Ended::Complete => ("complete", None),
        Ended::Stopped => ("stopped", Some("by a signal, between two steps".to_owned())),
        Ended::Surprise(reason) => ("surprise", Some(reason)),
        Ended::Lost(reason) => ("lost", Some(reason)),
    };
    (document.ended, document.reason, document.sent) = (Some(word), reason, sent);
    document.standing = plan.standing(port).ok();
    if let Ok(ext_csd) = port.ext_csd() {
        let sectors = emmc_regs::ext_csd::ExtCsd::from_bytes(ext_csd).raw(reg::SEC_COUNT);
        document.user_bytes = sectors.map(|sectors| Bytes(sectors * 512));
    }
}

/// The user area as the card reports it.
pub(super) fn user_bytes(card: &CardData) -> Option<Bytes> {
    let sectors = card.ext_csd.as_ref()?.raw(reg::SEC_COUNT)?;
    Some(Bytes(sectors * 512))
}

/// What to do next.
pub(super) fn next(plan: &Plan, standing: Option<&Standing>, args: &ApplyArgs) -> Vec<String> {
    let command = |option: &str| {
        let permanent = match (&plan.card.serial, option) {
            (Some(serial), "") if plan.permanent => format!(" --permanent {serial}"),
            _ => String::new(),
        };
        let word = |name: &std::ffi::OsStr| crate::shell::word(name).unwrap_or_else(|| "FILE".into());
        let option = if option.is_empty() { String::new() } else { format!("{option} ") };
        format!("emmclab apply {option}{} {}{permanent}", word(args.plan.as_os_str()), word(args.target.as_ref()))
    };
    match standing.map(|standing| standing.stand) {
        None => vec![
            "power the card off and on".into(),
            format!("find out where it stands: {}", command("--verify")),
            format!("go on: {}", command("")),
        ],
        Some(Stand::NothingDone | Stand::PartlyWritten) => vec![format!("go on: {}", command(""))],
        Some(Stand::PowerCycleDue) => plan
            .after
            .iter()
            .filter(|step| !step.contains("apply --verify"))
            .cloned()
            .chain([format!("compare: {}", command("--verify"))])
            .collect(),
        Some(Stand::Differs) => vec!["make a new plan from the card as it is".into()],
        Some(Stand::Done) => Vec::new(),
    }
}
