//! `sim life`: a whole device life in simulated time.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use emmc_card::nand::StoredContent;
use emmc_twin::what_if::{Life, LifeEnd, life};
use serde::Serialize;

use crate::CommandResult;
use crate::cli::SimLifeArgs;
use crate::commands::workload;
use crate::exit::Exit;
use crate::output::Output;
use crate::progress::Watched;
use crate::virtual_card::Powered;

pub(crate) const SCHEMA: &str = "emmclab.sim-life/1";

/// What `sim life --json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SimLife {
    /// Real time that the simulation took. Unit: seconds.
    wall_s: f64,
    /// The life.
    #[serde(flatten)]
    result: Life,
}

pub(crate) fn run(args: &SimLifeArgs, output: &mut Output) -> CommandResult {
    let mut question = workload::question(&args.workload)?;
    if let Some(change) = &args.change {
        change.apply(&mut question.today);
    }
    args.card.look(StoredContent::Nothing, args.seed_of_card)?;
    let make = || {
        let card = args.card.look(StoredContent::Nothing, args.seed_of_card);
        let Powered { card, now, .. } = card.map_err(|error| format!("{error:#}"))?;
        Ok((card, now))
    };
    let stop = Arc::new(AtomicBool::new(false));
    crate::signals::stop_by_signal(&stop)?;
    let mut watch = Watched::new(stop);
    let start = std::time::Instant::now();
    let result = life(&make, &question, &mut watch);
    watch.finish();
    let document = SimLife { result: result?, wall_s: start.elapsed().as_secs_f64() };
    output.print(SCHEMA, &document, |document| emmc_report::present::life(&document.result))?;
    Ok(if document.result.ended == LifeEnd::Stopped { Exit::Findings } else { Exit::Good })
}
