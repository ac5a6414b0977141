//! `advise layout`: partitions and filesystems that fit a card.

use std::path::Path;

use anyhow::{Context, ensure};
use emmc_port::CardData;
use emmc_probe::{Advice, layout_advice};
use emmc_regs::CardKind;
use emmc_regs::ssr::Ssr;
use emmc_report::{Align, Document, Table};
use serde::Serialize;

use crate::CommandResult;
use crate::cli::AdviseLayoutArgs;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) const SCHEMA: &str = "emmclab.advise-layout/1";

/// What `advise layout --json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct AdvisedLayout {
    /// Sizes that the lines follow from.
    facts: Vec<Fact>,
    /// The lines.
    advice: Vec<Advice>,
}

/// A size of the card.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Fact {
    /// Its name, as `probe` has it.
    name: &'static str,
    /// Unit: bytes.
    bytes: u64,
    /// A register, or the probe.
    source: String,
}

pub(super) fn run(args: &AdviseLayoutArgs, output: &mut Output) -> CommandResult {
    let mut facts = Vec::new();
    if let Some(path) = &args.probe {
        facts.extend(probed(path)?);
    }
    if let Some(source) = &args.source {
        let card = crate::source::open_with(source, &args.more)?;
        for fact in stated(&card) {
            // What was measured is better than what is stated; a write-protect group can only be stated.
            if !facts.iter().any(|known: &Fact| known.name == fact.name) {
                facts.push(fact);
            }
        }
    }
    ensure!(
        !facts.is_empty(),
        "neither the registers nor the probe state a unit: `emmclab probe --write` measures them"
    );
    let known = |name: &str| facts.iter().find(|fact| fact.name == name).map(|fact| fact.bytes);
    let units: Vec<(&str, u64)> = facts.iter().map(|fact| (fact.name, fact.bytes)).collect();
    let mut advice = layout_advice(&units);
    if let Some(group) = known("wp_group") {
        let line = format!("start={}, size={}, type=83", group / 512, group / 512);
        let why = format!("a partition that is whole groups of {group} bytes can be write-protected alone");
        advice.push(Advice { tool: "sfdisk, protected".into(), line, why });
    }
    let document = AdvisedLayout { facts, advice };
    output.print(SCHEMA, &document, present)?;
    Ok(Exit::Good)
}

/// What the registers state.
fn stated(card: &CardData) -> Vec<Fact> {
    let fact = |name, bytes: Option<u64>, source: &str| Some(Fact { name, bytes: bytes?, source: source.into() });
    if card.kind == Some(CardKind::Sd) {
        let au = card.ssr.and_then(|ssr| Ssr(ssr).au_size_bytes());
        return fact("allocation_unit", au, "SSR.AU_SIZE").into_iter().collect();
    }
    let Some(csd) = &card.ext_csd else { return Vec::new() };
    let (info, _) = csd.decode();
    let bytes = |size: Option<emmc_units::Bytes>| size.map(|size| size.0).filter(|bytes| *bytes > 0);
    let facts = [
        fact("allocation_unit", bytes(info.hc_erase_group), "HC_ERASE_GRP_SIZE"),
        fact("wp_group", bytes(info.hc_wp_group), "HC_WP_GRP_SIZE"),
        fact("write_unit", bytes(info.optimal_read_write_trim[1]), "OPTIMAL_WRITE_SIZE"),
    ];
    facts.into_iter().flatten().collect()
}

fn probed(path: &Path) -> anyhow::Result<Vec<Fact>> {
    let parameters = crate::commands::trim::saved_probe(path).with_context(|| path.display().to_string())?;
    let names = ["allocation_unit", "write_unit", "page", "open_units"];
    let fact = |name: &'static str| {
        let bytes = parameters.get(name)?.value.as_ref()?.whole()?;
        Some(Fact { name, bytes, source: format!("probe ({})", path.display()) })
    };
    Ok(names.into_iter().filter_map(fact).collect())
}

fn present(document: &AdvisedLayout) -> Document {
    let mut report = Document::new("Partitions and filesystems for this card");
    let section = report.section("lines", "Lines");
    for one in &document.advice {
        section.paragraph(format!("{}: {}.", one.tool, one.why));
        section.code("sh", one.line.clone());
    }
    let mut table = Table::new([("size", Align::Left), ("bytes", Align::Right), ("from", Align::Left)]);
    for fact in &document.facts {
        table.row([fact.name.to_owned(), fact.bytes.to_string(), fact.source.clone()]);
    }
    report.section("facts", "What they follow from").push(table);
    report
}
