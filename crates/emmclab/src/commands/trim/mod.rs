//! `trim`: whether deleted data reaches a card, trimming it, and what keeps it trimmed.
//!
//! Absent on purpose: a discard of anything but a filesystem's own free space; changes of a file that exists.

mod advise;
mod evidence;
mod place;
mod run;

use emmc_analysis::Severity;
use emmc_analysis::trim::{TrimStatus, trim_status};

use crate::CommandResult;
use crate::cli::{TrimCommand, TrimStatusArgs};
use crate::exit::Exit;
use crate::output::Output;

#[cfg(feature = "schema")]
pub(crate) use advise::{ADVISE_SCHEMA, TrimAdvised};
pub(crate) use evidence::saved_probe;
pub(crate) use place::Place;
#[cfg(feature = "schema")]
pub(crate) use run::{RUN_SCHEMA, TrimRun};

pub(crate) const SCHEMA: &str = "emmclab.trim/1";

pub(crate) fn run(command: &TrimCommand, output: &mut Output) -> CommandResult {
    match command {
        TrimCommand::Status(args) => status(args, output),
        TrimCommand::Run(args) => run::run(args, output),
        TrimCommand::Advise(args) => advise::run(args, output),
    }
}

fn status(args: &TrimStatusArgs, output: &mut Output) -> CommandResult {
    let place = place::Place::of(args.place.place.as_deref(), args.place.tree.sysroot.as_deref())?;
    let card = place.card(args.evidence.registers.as_deref(), output)?;
    let obedience = match (&args.evidence.probe, &args.test) {
        (Some(path), _) => Some(evidence::probed(path)?),
        (None, Some(folder)) => Some(evidence::tested(folder, args.test_size.0)?),
        (None, None) => None,
    };
    let status: TrimStatus = trim_status(card.as_ref(), place.stack()?, obedience, place.now());
    output.print(SCHEMA, &status, emmc_report::present::trim_status)?;
    Ok(match status.severity {
        Severity::Critical | Severity::Warning => Exit::Findings,
        _ => Exit::Good,
    })
}
