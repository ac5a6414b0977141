//! `probe`: the geometry and the limits of a card, inferred from the times of requests.

use std::io::IsTerminal;
use std::path::Path;

use anyhow::{Context as _, bail};
use emmc_port::TargetKind;
use emmc_probe::{Findings, ProbeSuite};
use emmc_report::present::ProbeSubject;
use emmc_workload::Context;
use serde::Serialize;

use super::bench;
use crate::CommandResult;
use crate::cli::{BenchArgs, ProbeArgs};
use crate::exit::Exit;
use crate::output::Output;

pub(crate) const SCHEMA: &str = "emmclab.probe/1";

/// What `probe --json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ProbeDocument {
    /// The target as the user named it.
    target: String,
    /// Its kind.
    target_kind: TargetKind,
    /// Unit: bytes.
    size_bytes: u64,
    /// How requests were submitted.
    engine: String,
    /// Seed of everything random.
    seed: u64,
    #[serde(flatten)]
    findings: Findings,
    /// The conditions of the measurement.
    context: Context,
}

pub(crate) fn run(args: &ProbeArgs, output: &mut Output) -> CommandResult {
    let path = Path::new(&args.target);
    if path.is_dir() {
        bail!("{}: a folder; probe expects a block device, a file or a virtual card (sim:PROFILE)", path.display());
    }
    let suite = ProbeSuite::default();
    // With JSON, only the document or the error is printed, unless a user can be asked.
    let is_quiet = output.is_json() && !std::io::stdin().is_terminal();
    let measured = bench::measure(&suite, &bench_args(args), is_quiet)?;
    let (result, restore_error) = (measured.result, measured.restore_error);
    let mut findings = suite.take().context("the probe ended without a result")?;
    findings.declare(&result.context);
    let document = ProbeDocument {
        target: result.target,
        target_kind: result.target_kind,
        size_bytes: result.size_bytes,
        engine: result.engine,
        seed: result.seed,
        findings,
        context: result.context,
    };
    output.print(SCHEMA, &document, |document| {
        let ProbeDocument { target, size_bytes, .. } = document;
        let subject = ProbeSubject { target, size_bytes: *size_bytes, full: args.full };
        emmc_report::present::probe(&subject, &document.findings)
    })?;
    match restore_error {
        // The result is printed too; the failed restore sets the exit code.
        Some(error) => Err(error),
        None => Ok(Exit::Good),
    }
}

/// The same target and permissions as a bench.
fn bench_args(args: &ProbeArgs) -> BenchArgs {
    BenchArgs {
        target: Some(args.target.clone()),
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
