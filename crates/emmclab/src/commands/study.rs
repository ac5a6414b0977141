//! `study`: everything about one card, in one report.

#[cfg(feature = "bench")]
use anyhow::{Context, bail, ensure};
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
    let study = StudyDocument {
        study: study(&card, &StudyOptions::default()),
        #[cfg(feature = "bench")]
        speed: speed(args)?,
    };
    #[cfg(feature = "html")]
    if let Some(path) = &args.output {
        let page = html(&study);
        let saved = deliver(output, path, &page, args.force, &args.more.files(args.source.as_deref()))?;
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
    /// How fast it is and why, where it was measured: always of a virtual card, of any card from a saved result of `bench`.
    #[cfg(feature = "bench")]
    #[serde(skip_serializing_if = "Option::is_none")]
    speed: Option<BenchResult>,
}

/// How fast the card is: as a saved result tells, or measured on a copy of a virtual card.
#[cfg(feature = "bench")]
fn speed(args: &StudyArgs) -> anyhow::Result<Option<BenchResult>> {
    if let Some(path) = &args.bench {
        let name = path.display();
        let text = std::fs::read(path).with_context(|| format!("{name}: cannot read"))?;
        let result = serde_json::from_slice(&text);
        let result: BenchResult = result.with_context(|| format!("{name}: expected what bench --json printed"))?;
        let suite = &result.outcome.suite;
        ensure!(suite == "speed", "{name}: a result of suite {suite}; expected one of bench --suite speed");
        let is_speed = |value: f64| (0.0..1e6).contains(&value);
        let sound = |found: &emmc_workload::Measurement| is_speed(found.mb_per_s) && (0.0..1e9).contains(&found.iops);
        let wrong = result.outcome.measurements.iter().find(|found| !sound(found));
        if let Some(found) = wrong {
            let (mb_per_s, iops) = (found.mb_per_s, found.iops);
            bail!("{name}: {} {}: {mb_per_s} MB/s, {iops} IOPS; expected speeds of a card", found.row, found.column);
        }
        return Ok(Some(result));
    }
    #[cfg(feature = "sim")]
    {
        let name = args.source.as_deref().unwrap_or(WORN);
        if let Some(profile) = name.strip_prefix("sim:") {
            return super::bench::speed_of_virtual(name, profile).map(Some);
        }
    }
    Ok(None)
}

fn present(study: &StudyDocument) -> Document {
    let document = emmc_report::present::study(&study.study);
    #[cfg(feature = "bench")]
    if let Some(speed) = &study.speed {
        return emmc_report::present::with_speed(document, speed);
    }
    document
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
