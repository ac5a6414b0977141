//! `health`: wear, forecast, endurance, vendor health, host link.

use emmc_analysis::finding::Severity;
use emmc_analysis::health::{Endurance, Forecast, Health, HealthOptions, endurance, health_with};
use emmc_analysis::maker_health::{self, Refusal, VendorHealth};
use emmc_port::{Origin, Snapshot};
use emmc_report::Document;
use emmc_report::present::{HealthParts, health_sections, sources, sources_line, vendor_sections};
use serde::Serialize;

use crate::CommandResult;
use crate::cli::HealthArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::source;

pub(crate) const SCHEMA: &str = "emmclab.health/1";

/// What `health` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct HealthDocument {
    /// The sources, with notes on each.
    sources: Vec<Origin>,
    #[serde(flatten)]
    health: Health,
    /// Vendor health reports that were decoded.
    vendor: Vec<VendorHealth>,
    /// Vendor health reports that were not decoded, and why.
    vendor_refused: Vec<Refusal>,
    /// Endurance of the raw flash, from --blocks and --cycles.
    endurance: Option<Endurance>,
    /// When life will be used up, from --since and --history.
    forecast: Option<Forecast>,
    /// The data of all sources, undecoded, so that the document is a source itself.
    card: Snapshot,
}

pub(crate) fn run(args: &HealthArgs, output: &mut Output) -> CommandResult {
    let mut card = source::open(&args.source)?;
    args.history.set_time(&mut card)?;
    if args.live.vendor_health {
        source::add_live_vendor(&mut card, &args.source.source, &args.source.more)?;
    }
    let forecast = args.history.forecast(&card)?;
    let (vendor, vendor_refused) = maker_health::sorted(&card);
    let document = HealthDocument {
        sources: card.origins.clone(),
        health: health_with(&card, &vendor, &HealthOptions::default()),
        vendor,
        vendor_refused,
        endurance: endurance_from(args)?,
        forecast,
        card: Snapshot::from(&card),
    };
    output.print(SCHEMA, &document, present)?;
    Ok(exit(&document))
}

fn exit(document: &HealthDocument) -> Exit {
    match document.health.verdict.severity {
        Severity::Critical | Severity::Warning => Exit::Findings,
        Severity::Unknown if document.vendor.is_empty() && document.endurance.is_none() => Exit::Unknown,
        _ => Exit::Good,
    }
}

fn present(document: &HealthDocument) -> Document {
    let mut text = Document::new("Health");
    text.subtitle = Some(sources_line(&document.sources));
    let parts = HealthParts {
        health: &document.health,
        endurance: document.endurance.as_ref(),
        forecast: document.forecast.as_ref(),
    };
    health_sections(parts, &mut text);
    vendor_sections(&document.vendor, &document.vendor_refused, &mut text);
    sources(&document.sources, &mut text);
    text
}

fn endurance_from(args: &HealthArgs) -> anyhow::Result<Option<Endurance>> {
    let (Some(blocks), Some(cycles)) = (args.blocks, args.cycles) else { return Ok(None) };
    let estimate = endurance(args.block_size, blocks, cycles)?;
    Ok(Some(match args.write_amplification {
        Some(factor) => estimate.with_write_amplification(factor)?,
        None => estimate,
    }))
}
