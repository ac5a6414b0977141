//! `sim what-if`: what changes if something is changed.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use emmc_card::nand::StoredContent;
use emmc_twin::what_if::{WhatIf, what_if};
use serde::Serialize;

use crate::CommandResult;
use crate::cli::SimWhatIfArgs;
use crate::commands::workload;
use crate::exit::Exit;
use crate::output::{Output, Page};
use crate::progress::Watched;
use crate::virtual_card::Powered;

pub(crate) const SCHEMA: &str = "emmclab.sim-what-if/1";

/// What `sim what-if --json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SimWhatIf {
    /// Real time that the simulation took. Unit: seconds.
    wall_s: f64,
    /// The answers.
    #[serde(flatten)]
    result: WhatIf,
}

pub(crate) fn run(args: &SimWhatIfArgs, output: &mut Output) -> CommandResult {
    let question = workload::question(&args.workload)?;
    let make = || {
        let Powered { card, now, .. } =
            args.card.look(StoredContent::Nothing, 1).map_err(|error| format!("{error:#}"))?;
        Ok((card, now))
    };
    // A card that cannot be opened is an error of its own, not of a change.
    args.card.look(StoredContent::Nothing, 1)?;
    let stop = Arc::new(AtomicBool::new(false));
    crate::signals::stop_by_signal(&stop)?;
    let mut watch = Watched::new(stop);
    let start = std::time::Instant::now();
    let result = what_if(&make, &question, &args.changes, &mut watch);
    watch.finish();
    let answer = SimWhatIf { result: result?, wall_s: start.elapsed().as_secs_f64() };
    #[cfg(feature = "html")]
    let page =
        Page { path: args.save.output.as_deref(), force: args.save.force, inputs: workload::inputs(&args.workload) };
    #[cfg(not(feature = "html"))]
    let page = Page::default();
    output.report(SCHEMA, &answer, &page, |answer| emmc_report::present::what_if(&answer.result))?;
    Ok(Exit::Good)
}
