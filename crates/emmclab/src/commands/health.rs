//! `health`: wear, forecast, endurance, vendor health, host link.

use anyhow::Context;
use emmc_analysis::finding::Severity;
use emmc_analysis::health::{
    Endurance, Forecast, ForecastOptions, Health, HealthOptions, HistoryPoint, endurance, forecast, health_with,
    parse_history,
};
use emmc_analysis::maker_health::{self, Refusal, VendorHealth};
use emmc_port::{CardData, Origin, Snapshot};
use emmc_report::Document;
use emmc_report::present::{HealthParts, health_sections, sources, vendor_sections};
use emmc_units::Size;
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
    if let Some(at) = &args.at {
        source::set_time(&mut card, at)?;
    }
    if args.vendor_health {
        source::add_live_vendor(&mut card, &args.source.source, &args.source.more)?;
    }
    let forecast = forecast_from(args, &card)?;
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
    text.subtitle = Some(document.sources.iter().map(|origin| origin.name.as_str()).collect::<Vec<_>>().join(" + "));
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
    let Size::Exact(block) = args.block_size else {
        anyhow::bail!("--block-size {}: expected a size such as 4MiB", args.block_size);
    };
    let estimate = endurance(block, blocks, cycles)?;
    Ok(Some(match args.write_amplification {
        Some(factor) => estimate.with_write_amplification(factor)?,
        None => estimate,
    }))
}

/// The forecast from all observations; absent without an earlier one.
fn forecast_from(args: &HealthArgs, card: &CardData) -> anyhow::Result<Option<Forecast>> {
    if args.since.is_empty() && args.history.is_none() {
        return Ok(None);
    }
    let mut points = Vec::new();
    for earlier in &args.since {
        let (name, at) = earlier.rsplit_once('@').map_or((earlier.as_str(), None), |(name, at)| (name, Some(at)));
        let mut seen = source::open_one(name, None)?;
        if let Some(at) = at {
            source::set_time(&mut seen, at)?;
        }
        points.push(HistoryPoint::from_card(&seen)?);
    }
    if let Some(path) = &args.history {
        let name = path.display().to_string();
        let text =
            String::from_utf8(source::read_limited(&name)?).with_context(|| format!("{name}: is not UTF-8 text"))?;
        points.extend(parse_history(&name, &text)?);
    }
    match HistoryPoint::from_card(card) {
        Ok(point) => points.push(point),
        // A history alone can be enough for a forecast; one earlier snapshot is not.
        Err(error) if args.history.is_none() => return Err(error.into()),
        Err(_) => {}
    }
    Ok(Some(forecast(&points, &ForecastOptions::default())?))
}
