//! `sim what-if`: what changes if something is changed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, ensure};
use emmc_card::nand::StoredContent;
use emmc_twin::what_if::{WhatIf, WhatIfError, what_if};
use serde::Serialize;
use serde_json::Value;

use crate::CommandResult;
use crate::cli::SimWhatIfArgs;
use crate::commands::workload;
use crate::exit::Exit;
use crate::output::{Output, Page};
use crate::progress::Watched;
use crate::virtual_card::Powered;

pub(crate) const SCHEMA: &str = "emmclab.sim-what-if/1";

/// The largest result that is read. Unit: bytes.
const RESULT_BYTES_MAX: u64 = 64 << 20;

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

/// A saved result.
///
/// Errors: a file that is not one.
pub(crate) fn saved(path: &Path) -> anyhow::Result<WhatIf> {
    let name = path.display();
    let bytes = crate::input::read(path, RESULT_BYTES_MAX)?;
    let value: Value = serde_json::from_slice(&bytes).with_context(|| format!("{name}: is not JSON"))?;
    let schema = value.get("schema").and_then(Value::as_str).unwrap_or("none");
    ensure!(schema == SCHEMA, "{name}: its schema is {schema}; expected {SCHEMA}, the output of sim what-if --json");
    serde_json::from_value(value).with_context(|| format!("{name}: is not a result of sim what-if"))
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
    #[cfg(feature = "html")]
    let page = {
        let mut inputs = workload::inputs(&args.workload);
        // A profile's file, or a card's folder.
        let card = args.card.card.as_deref().map(|card| card.strip_prefix("sim:").unwrap_or(card));
        inputs.extend(card.into_iter().chain(args.card.profile.as_deref()).map(Path::new));
        let path = args.save.output.as_deref();
        path.map_or(Ok(()), |path| crate::save::check(path, args.save.force, &inputs))?;
        Page { path, force: args.save.force, inputs }
    };
    #[cfg(not(feature = "html"))]
    let page = Page::default();
    let stop = Arc::new(AtomicBool::new(false));
    crate::signals::stop_by_signal(&stop)?;
    let mut watch = Watched::new(stop);
    let start = std::time::Instant::now();
    let result = what_if(&make, &question, &args.changes, &mut watch);
    watch.finish();
    let result = match result {
        Err(WhatIfError::Stopped) => {
            output.error("stopped: nothing is compared");
            return Ok(Exit::Findings);
        }
        result => result?,
    };
    let answer = SimWhatIf { result, wall_s: start.elapsed().as_secs_f64() };
    output.report(SCHEMA, &answer, &page, |answer| emmc_report::present::what_if(&answer.result))?;
    Ok(Exit::Good)
}
