//! `study`: everything about one card, in one report.

use emmc_analysis::finding::Severity;
use emmc_analysis::study::{Study, StudyOptions, study};
use emmc_port::CardData;
#[cfg(not(feature = "sim"))]
use emmc_port::{RegisterSource, saved::SavedSource};

use emmc_report::Document;
#[cfg(feature = "bench")]
use emmc_workload::BenchResult;
use serde::Serialize;

use crate::CommandResult;
use crate::cli::StudyArgs;
use crate::exit::Exit;
use crate::output::Output;
#[cfg(feature = "html")]
use crate::save::deliver;
use crate::source;

#[cfg(feature = "bench")]
mod speed;

pub(crate) const SCHEMA: &str = "emmclab.study/1";

/// What is studied when no card is given: a virtual card that has lived.
#[cfg(feature = "sim")]
const WORN: &str = "sim:generic-8g@62%";

/// A real part's EXT_CSD, as its owner published it: the same where there are no virtual cards.
#[cfg(not(feature = "sim"))]
const EXAMPLE: &[u8] = include_bytes!("../../../../testdata/ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex");
#[cfg(not(feature = "sim"))]
const EXAMPLE_NAME: &str = "samsung-klm-8g (a real 8 GB eMMC's dump that ships with emmclab)";

pub(crate) fn run(args: &StudyArgs, output: &mut Output) -> CommandResult {
    let card = card(args)?;
    #[cfg(feature = "bench")]
    let benches = speed::benches(args, &card, output.is_json())?;
    let study = StudyDocument {
        study: study(&card, &StudyOptions::default()),
        #[cfg(feature = "bench")]
        speed: benches.speed,
        #[cfg(feature = "bench")]
        benches: benches.others,
    };
    #[cfg(feature = "html")]
    if let Some(path) = args.output.as_ref().filter(|path| !output.is_json_to_stdout(path)) {
        let page = html(&study);
        let saved = deliver(output, path, &page, args.force, &inputs(args))?;
        if saved && !output.is_json() {
            output.said(&format!("{}: written", path.display()))?;
        }
        if !(saved && output.is_json()) {
            return Ok(exit(&study));
        }
    }
    output.print(SCHEMA, &study, present)?;
    Ok(exit(&study))
}

/// What `study --json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct StudyDocument {
    #[serde(flatten)]
    study: Study,
    /// How fast it is and why, where it was measured: always of a virtual card, else when asked for, or from a saved result of `bench`.
    #[cfg(feature = "bench")]
    #[serde(skip_serializing_if = "Option::is_none")]
    speed: Option<BenchResult>,
    /// What else was measured of it, as saved results of `bench` tell.
    #[cfg(feature = "bench")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    benches: Vec<BenchResult>,
}

fn present(study: &StudyDocument) -> Document {
    let document = emmc_report::present::study(&study.study);
    #[cfg(feature = "bench")]
    let document = emmc_report::present::with_benches(document, study.speed.as_ref(), &study.benches);
    document
}

/// Every file that is read: none of them may be written over.
#[cfg(feature = "html")]
fn inputs(args: &StudyArgs) -> Vec<&std::path::Path> {
    #[cfg_attr(not(feature = "bench"), allow(unused_mut))]
    let mut files = args.more.files(args.source.as_deref());
    #[cfg(feature = "bench")]
    files.extend(args.bench.iter().map(|path| path.as_path()));
    files
}

fn card(args: &StudyArgs) -> anyhow::Result<CardData> {
    let Some(name) = &args.source else {
        anyhow::ensure!(!args.vendor_health, "--vendor-health asks a live card: name one");
        let mut card = example()?;
        source::add(&mut card, &args.more)?;
        return Ok(card);
    };
    let mut card = source::open_with(name, &args.more)?;
    if args.vendor_health {
        source::add_live_vendor(&mut card, name, &args.more)?;
    }
    Ok(card)
}

#[cfg(feature = "sim")]
fn example() -> anyhow::Result<CardData> {
    source::open_one(WORN, None)
}

#[cfg(not(feature = "sim"))]
fn example() -> anyhow::Result<CardData> {
    Ok(SavedSource::new(EXAMPLE_NAME, EXAMPLE.to_vec()).read()?)
}

#[cfg(feature = "html")]
fn html(study: &StudyDocument) -> String {
    let options = emmc_report::HtmlOptions { generated_by: concat!("emmclab ", env!("CARGO_PKG_VERSION")).into() };
    emmc_report::html(&present(study), &options)
}

fn exit(study: &StudyDocument) -> Exit {
    match study.study.findings.iter().map(|finding| finding.severity).min() {
        Some(Severity::Critical | Severity::Warning) => Exit::Findings,
        _ => Exit::Good,
    }
}
