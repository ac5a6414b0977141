//! `trace compare`: the spans of two recordings side by side.

use std::path::Path;

use anyhow::bail;
use emmc_trace::{follow, open, survey};
use emmc_workload::compare::Certainty;
use emmc_workload::spans::{ComparedRecording, SpanStatistics, compare_spans};

use crate::CommandResult;
use crate::cli::TraceCompareArgs;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) const SCHEMA: &str = "emmclab.trace-compare/1";

pub(crate) fn run(args: &TraceCompareArgs, output: &mut Output) -> CommandResult {
    let is_input = |path: &Path| path.as_os_str() == "-";
    anyhow::ensure!(
        !(is_input(&args.first) && is_input(&args.second)),
        "standard input can be only one of the recordings"
    );
    let ((first, ours), (second, theirs)) = (read(&args.first, args.device)?, read(&args.second, args.device)?);
    let comparison = compare_spans((first, &ours), (second, &theirs));
    output.print(SCHEMA, &comparison, emmc_report::present::trace_compared)?;
    let mut spans = comparison.kinds.iter().flat_map(|kind| &kind.spans);
    Ok(match comparison.kinds.is_empty() {
        true => Exit::Unknown,
        false if spans.any(|span| span.certainty == Certainty::Differs) => Exit::Findings,
        false => Exit::Good,
    })
}

fn read(path: &Path, device: Option<u32>) -> anyhow::Result<(ComparedRecording, SpanStatistics)> {
    let input = super::storage(path)?;
    let name = input.name.clone();
    let found = survey(open(vec![input.clone()])?, device);
    if found.requests == 0 {
        bail!("{name}: no complete request is in it");
    }
    let mut all = SpanStatistics::default();
    follow(open(vec![input])?, found.selection, |request| all.add(request));
    let (unpaired, lost_events) = (found.unpaired, found.notes.lost);
    Ok((ComparedRecording { name, unpaired, lost_events, ..ComparedRecording::default() }, all))
}
