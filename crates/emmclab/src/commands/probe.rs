//! `probe`: the geometry and the limits of a card, inferred from the times of requests.

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use emmc_port::TargetKind;
use emmc_probe::{Findings, Part, ProbeSuite};
use emmc_report::present::ProbeSubject;
use emmc_units::Nanos;
use emmc_workload::Context;
use serde::Serialize;

use super::bench;
use crate::CommandResult;
use crate::cli::{BenchArgs, ProbeArgs};
use crate::exit::Exit;
use crate::output::Output;

pub(crate) const SCHEMA: &str = "emmclab.probe/1";

/// The time limit, if none is given.
const TIME_BUDGET: Duration = Duration::from_secs(20 * 60);

/// What `probe --json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ProbeDocument {
    /// The target as the user named it; with `--from` the one that the files name.
    target: Option<String>,
    /// Its kind, if known.
    target_kind: Option<TargetKind>,
    /// Unknown with `--from`. Unit: bytes.
    size_bytes: Option<u64>,
    /// How requests were submitted, if known.
    engine: Option<String>,
    /// Seed of everything random; none with `--from`.
    seed: Option<u64>,
    /// The saved results of `--from`.
    from: Vec<String>,
    #[serde(flatten)]
    findings: Findings,
    /// The conditions of the measurement.
    context: Context,
}

pub(crate) fn run(args: &ProbeArgs, output: &mut Output) -> CommandResult {
    if !args.from.is_empty() {
        return from_saved(args, output);
    }
    if let Some(path) = args.target.as_ref().map(Path::new).filter(|path| path.is_dir()) {
        bail!("{}: a folder; probe expects a block device, a file or a virtual card (sim:PROFILE)", path.display());
    }
    let is_card = |path: &Path| path.as_os_str().as_encoded_bytes().starts_with(b"sim:");
    let missing = args.target.as_ref().map(Path::new).filter(|path| !is_card(path) && !path.exists());
    if let Some(path) = missing.filter(|_| !args.write) {
        bail!("{}: no such device or file; without --write no new file is made", path.display());
    }
    anyhow::ensure!(
        !args.save_restore || args.only != [Part::Capacity],
        "--save-restore: --only capacity restores what it overwrites anyway"
    );
    let time = args.time_budget.unwrap_or(TIME_BUDGET);
    let suite = ProbeSuite::new(args.only.clone(), Some(Nanos(time.as_nanos().min(u128::from(u64::MAX)) as u64)));
    // With JSON, only the document or the error is printed, unless a user can be asked.
    let is_quiet = output.is_json() && !std::io::stdin().is_terminal();
    let measured = bench::measure(&suite, &bench_args(args), is_quiet)?;
    let (result, restore_error) = (measured.result, measured.restore_error);
    let mut findings = suite.take().context("the probe ended without a result")?;
    findings.declare(&result.context);
    let document = ProbeDocument {
        target: Some(result.target),
        target_kind: Some(result.target_kind),
        size_bytes: Some(result.size_bytes),
        engine: Some(result.engine),
        seed: Some(result.seed),
        from: Vec::new(),
        findings,
        context: result.context,
    };
    print(&document, args.full, output)?;
    match restore_error {
        // The result is printed too; the failed restore sets the exit code.
        Some(error) => Err(error),
        None if is_fake(&document.findings) => Ok(Exit::Findings),
        None => Ok(Exit::Good),
    }
}

/// Whether less is there than the target states.
fn is_fake(findings: &Findings) -> bool {
    let capacity = findings.parameters.get("capacity");
    let conflicts = |declared: &emmc_probe::Declared| declared.agrees == Some(false);
    capacity.is_some_and(|capacity| capacity.declared.iter().any(conflicts))
}

fn print(document: &ProbeDocument, full: bool, output: &mut Output) -> anyhow::Result<()> {
    output.print(SCHEMA, document, |document| {
        let name = document.target.clone().unwrap_or_else(|| document.from.join(", "));
        let subject = ProbeSubject { target: &name, size_bytes: document.size_bytes, from: &document.from, full };
        emmc_report::present::probe(&subject, &document.findings)
    })
}

/// Conclusions from results that are there.
fn from_saved(args: &ProbeArgs, output: &mut Output) -> CommandResult {
    anyhow::ensure!(
        args.from.iter().filter(|name| *name == "-").count() < 2,
        "standard input can be only one of the results"
    );
    let results = args.from.iter().map(|name| super::compare::open(name)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut targets: Vec<&String> = results.iter().filter_map(|result| result.target.as_ref()).collect();
    targets.dedup();
    anyhow::ensure!(targets.len() < 2, "results of {} and {}; expected those of one card", targets[0], targets[1]);
    let context = results.iter().map(|result| &result.context).find(|context| context.card.is_some());
    let context = context.cloned().unwrap_or_default();
    let mut findings = emmc_probe::conclude(&results)?;
    findings.declare(&context);
    let document = ProbeDocument {
        target: targets.first().map(|target| (*target).clone()),
        target_kind: results.iter().find_map(|result| result.target_kind),
        size_bytes: None,
        engine: results.iter().find_map(|result| result.engine.clone()),
        seed: None,
        from: results.into_iter().map(|result| result.name).collect(),
        findings,
        context,
    };
    print(&document, args.full, output)?;
    Ok(Exit::Good)
}

/// The same target and permissions as a bench.
fn bench_args(args: &ProbeArgs) -> BenchArgs {
    BenchArgs {
        target: args.target.clone(),
        suite: "probe".into(),
        from: args.start,
        size: args.size,
        write_budget: args.write_budget,
        read_only: !args.write,
        seed: args.seed,
        destroy: args.destroy,
        yes_i_mean: args.yes_i_mean.clone(),
        save_restore: args.save_restore,
        save_to: args.save_to.clone(),
        engine: args.engine,
        ..BenchArgs::default()
    }
}
