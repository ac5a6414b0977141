//! `study`: everything about one card, in one report.

use emmc_analysis::finding::Severity;
use emmc_analysis::study::{Study, StudyOptions, study};
use emmc_report::Document;
#[cfg(feature = "bench")]
use emmc_workload::BenchResult;
use serde::Serialize;

use crate::CommandResult;
use crate::cli::StudyArgs;
use crate::exit::Exit;
use crate::output::Output;
#[cfg(feature = "html")]
use crate::output::Page;

#[cfg(feature = "bench")]
mod speed;
mod subject;
#[cfg(feature = "bench")]
mod trust;

pub(crate) const SCHEMA: &str = "emmclab.study/1";

pub(crate) fn run(args: &StudyArgs, output: &mut Output) -> CommandResult {
    let subject = subject::subject(args, output)?;
    #[cfg(feature = "bench")]
    let benches = speed::benches(args, &subject)?;
    let options = StudyOptions {
        source: Some(subject.argument.clone()),
        before: subject.before.clone(),
        forecast: args.history.forecast(&subject.card)?,
        #[cfg(feature = "bench")]
        measured: benches.measured(),
        #[cfg(feature = "bench")]
        trust: args.trust.as_deref().map(|path| trust::saved(path, &subject.card)).transpose()?,
        ..StudyOptions::default()
    };
    #[cfg(feature = "trace")]
    let trace = args.trace.as_deref().map(super::trace::analysed).transpose()?;
    #[cfg(feature = "twin")]
    let what_if = args.what_if.as_deref().map(super::sim::what_if::saved).transpose()?;
    let study = StudyDocument {
        study: study(&subject.card, &options),
        #[cfg(feature = "twin")]
        what_if,
        #[cfg(feature = "trace")]
        trace,
        #[cfg(feature = "bench")]
        speed: benches.speed,
        #[cfg(feature = "bench")]
        benches: benches.others,
    };
    #[cfg(feature = "html")]
    if args.save.output.is_some() {
        let page = Page { path: args.save.output.as_deref(), force: args.save.force, inputs: inputs(args) };
        output.report(SCHEMA, &study, &page, present)?;
        return Ok(exit(&study));
    }
    let as_text = match args.full {
        true => emmc_report::present::study_in_full,
        false => emmc_report::present::study_in_brief,
    };
    output.print(SCHEMA, &study, |study| as_text(present(study)))?;
    Ok(exit(&study))
}

/// What `study --json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct StudyDocument {
    #[serde(flatten)]
    study: Study,
    /// What a recording of its requests shows: spans, the limit, stalls.
    #[cfg(feature = "trace")]
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<emmc_trace::result::Analysis>,
    /// What changes to the card or its use would give, from a saved result of `sim what-if`.
    #[cfg(feature = "twin")]
    #[serde(skip_serializing_if = "Option::is_none")]
    what_if: Option<emmc_twin::what_if::WhatIf>,
    /// Speed and its limits, if measured: always for a virtual card, else on request or from a saved result of `bench`.
    #[cfg(feature = "bench")]
    #[serde(skip_serializing_if = "Option::is_none")]
    speed: Option<BenchResult>,
    /// Other measurements, from saved results of `bench`.
    #[cfg(feature = "bench")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    benches: Vec<BenchResult>,
}

fn present(study: &StudyDocument) -> Document {
    let document = emmc_report::present::study(&study.study);
    #[cfg(feature = "bench")]
    let document = emmc_report::present::with_benches(document, study.speed.as_ref(), &study.benches);
    #[cfg(feature = "trace")]
    let document = match &study.trace {
        Some(trace) => emmc_report::present::with_trace(document, trace),
        None => document,
    };
    #[cfg(feature = "twin")]
    let document = match &study.what_if {
        Some(what_if) => emmc_report::present::with_what_if(document, what_if),
        None => document,
    };
    document
}

/// Every file that is read: none of them may be overwritten.
#[cfg(feature = "html")]
fn inputs(args: &StudyArgs) -> Vec<&std::path::Path> {
    let mut files = args.more.files(args.source.as_deref());
    files.extend(args.history.files());
    #[cfg(feature = "bench")]
    files.extend(args.bench.iter().chain(&args.trust).map(|path| path.as_path()));
    #[cfg(feature = "trace")]
    files.extend(args.trace.as_deref());
    #[cfg(feature = "twin")]
    files.extend(args.what_if.as_deref());
    files
}

fn exit(study: &StudyDocument) -> Exit {
    match study.study.findings.iter().map(|finding| finding.severity).min() {
        Some(Severity::Critical | Severity::Warning) => Exit::Findings,
        _ => Exit::Good,
    }
}
