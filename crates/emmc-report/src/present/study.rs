//! The study of a card as one document.

use emmc_analysis::hwpart::{Certainty, HwPartOptions, Partitioned};
use emmc_analysis::study::{Configuration, Identity, Study};
use emmc_analysis::{Finding, Severity};

use super::{HealthParts, capacity, health_sections, sources, sources_line, vendor_sections};
use crate::{Align, Block, Cell, Document, KeyValue, Section, Table, Tone};

mod verdict;

/// The section that is not a detail.
const FINDINGS: &str = "findings";

/// The verdict and the findings, then in detail: identity, health, capacity, configuration, hardware partitioning,
/// vendor health, anomalies, sources.
pub fn study(study: &Study) -> Document {
    let mut document = Document::new(study.verdict.card.as_str());
    document.subtitle = Some(sources_line(&study.sources));
    document.lead = Some(verdict::lead(study));
    findings(&study.findings, &mut document);
    identity(&study.identity, &mut document);
    let forecast = study.forecast.as_ref();
    health_sections(HealthParts { health: &study.health, endurance: None, forecast }, &mut document);
    capacity(&study.capacity, &mut document);
    configuration(&study.configuration, &mut document);
    hw_partition(&study.hw_partition, &mut document);
    vendor_sections(&study.vendor, &study.vendor_refused, &mut document);
    if !study.anomalies.is_empty() {
        document.section("anomalies", "Register anomalies").push(super::anomaly_table(&study.anomalies));
    }
    sources(&study.sources, &mut document);
    let details = document.sections.iter_mut().filter(|section| section.id != FINDINGS);
    details.for_each(|section| section.is_detail = true);
    document
}

/// Urgent findings in full, the others on one line each; nothing that is already in the verdict.
fn findings(findings: &[Finding], document: &mut Document) {
    let of = |wanted: &dyn Fn(&Finding) -> bool| -> Vec<Finding> {
        findings.iter().filter(|finding| wanted(finding)).cloned().collect()
    };
    let urgent = of(&|finding| finding.severity <= Severity::Warning);
    let others = of(&|finding| finding.severity > Severity::Warning && !is_aside(finding));
    let section = document.section(FINDINGS, "Findings");
    if urgent.is_empty() && others.is_empty() {
        section.paragraph("None that needs action.");
    }
    if !urgent.is_empty() {
        section.push(urgent);
    }
    if !others.is_empty() {
        section.push(Block::Brief(others));
    }
    let aside = of(&|finding| finding.severity > Severity::Warning && is_aside(finding));
    if !aside.is_empty() {
        document.section("also", "Other findings").push(aside);
    }
}

/// Findings that are already in the verdict, good, or not actionable.
fn is_aside(finding: &Finding) -> bool {
    let is_known =
        matches!(finding.id, "no-health-registers" | "health-undefined" | "vendor-implied-rating" | "boot-enabled");
    is_known || finding.severity == Severity::Good
}

/// A study as text without details: the verdict, the findings and a pointer to the rest.
pub fn study_in_brief(mut document: Document) -> Document {
    document.sections.retain(|section| !section.is_detail);
    if let Some(section) = document.sections.iter_mut().find(|section| section.id == FINDINGS) {
        section.note(Tone::Muted, "`--full` prints the rest, `-o report.html` writes an HTML page.");
    }
    document
}

/// A study as text with all details and every finding in full.
pub fn study_in_full(mut document: Document) -> Document {
    for section in &mut document.sections {
        for block in &mut section.blocks {
            if let Block::Brief(findings) = block {
                *block = Block::Findings(std::mem::take(findings));
            }
        }
    }
    document
}

fn identity(identity: &Identity, document: &mut Document) {
    let mut pairs = Vec::new();
    let mut add = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            pairs.push(KeyValue::new(key, value));
        }
    };
    add("kind", identity.kind.map(|kind| kind.to_string()));
    add("standard", identity.standard.clone());
    add("made by", identity.manufacturer.as_ref().map(ToString::to_string));
    add("manufacturer id", identity.manufacturer_id.map(|id| format!("{id:#04x}")));
    add("OEM id", identity.oemid.map(|id| format!("{id:#06x}")));
    add("package", identity.package.clone());
    add("product name", identity.product_name.clone());
    add("product revision", identity.product_revision.clone());
    add("firmware", identity.firmware.clone());
    add("serial number", identity.serial_number.map(|serial| format!("{serial:#010x}")));
    add("made in", identity.manufacture_date.as_ref().map(ToString::to_string));
    let section = document.section("identity", "Identity");
    if pairs.is_empty() {
        section.paragraph("This source does not identify the card; add its CID with --with.");
    } else {
        section.push(pairs);
    }
    for note in &identity.notes {
        section.note(Tone::Muted, note.as_str());
    }
}

fn configuration(configuration: &Configuration, document: &mut Document) {
    let section = document.section("configuration", "Configuration");
    let mut table =
        Table::new([("setting", Align::Left), ("value", Align::Left), ("meaning", Align::Left), ("from", Align::Left)]);
    for row in &configuration.rows {
        table.row([
            Cell::from(row.name),
            Cell::from(row.value.as_str()),
            Cell::new(row.meaning.as_str(), Tone::Muted),
            Cell::new(row.source.short(), Tone::Muted),
        ]);
    }
    if table.rows.is_empty() {
        section.paragraph("This source has no settings.");
    } else {
        section.push(table.optional(&["from"]));
    }
    if !configuration.not_in_revision.is_empty() {
        let names = configuration.not_in_revision.join(", ");
        section.note(Tone::Muted, format!("Not in the part's revision of the standard: {names}."));
    }
    if !configuration.not_told.is_empty() {
        section.note(Tone::Muted, format!("Not in this source: {}.", configuration.not_told.join(", ")));
    }
}

fn hw_partition(options: &HwPartOptions, document: &mut Document) {
    let section = document.section("hw-partition", "Hardware partitioning");
    match (&options.partitioned, options.partitionable) {
        (Some(done), _) => partitioned(done, section),
        (None, Some(true)) => {
            section.paragraph("The part can be partitioned once. It is not partitioned yet.");
        }
        (None, Some(false)) => {
            section.paragraph("The part cannot be partitioned.");
        }
        (None, None) => {
            section.paragraph("This source does not show whether the part can be partitioned.");
        }
    }
    let mut pairs = Vec::new();
    if let Some(group) = options.group_bytes {
        pairs.push(KeyValue::new("write-protect group", group.to_string()).note("the unit of every size"));
    }
    if let Some(max) = &options.max_enhanced {
        let about = if max.user_after_certainty == Certainty::Estimated { "about " } else { "" };
        let value = format!("{} ({} groups)", max.enhanced_bytes, max.enhanced_groups);
        pairs.push(KeyValue::new("possible pSLC", value).note("plan hwpart SOURCE --enh-user max"));
        let after = format!("{} -> {about}{}", max.user_before_bytes.rounded(), max.user_after_bytes.rounded());
        pairs.push(
            KeyValue::new("user area after that", after).note(format!("{about}{} lost", max.lost_bytes.rounded())),
        );
        if let Some(cells) = &max.cells {
            let bits =
                cells.bits_per_cell.map_or("unclear".into(), |bits| format!("consistent with {bits} bits per cell"));
            pairs.push(KeyValue::new("cells", bits).note(cells.evidence.as_str()));
        }
    }
    let reliability = match (&options.wrrel.on, options.wrrel.can_set) {
        (Some(on), _) if on.is_empty() => "off for every area".into(),
        (Some(on), _) => format!("on for {}", on.join(", ")),
        (None, Some(true)) => "can be set".into(),
        (None, Some(false)) => "cannot be set".into(),
        (None, None) => "unknown".to_owned(),
    };
    pairs.push(KeyValue::new("write reliability", reliability).note(options.wrrel.why.as_str()));
    section.push(pairs);
    let findings: Vec<Finding> = options
        .why_not
        .iter()
        .map(|refusal| {
            let mut finding = Finding::new(Severity::Notice, refusal.rule, refusal.what.as_str());
            finding.evidence.clone_from(&refusal.evidence);
            finding
        })
        .collect();
    if !findings.is_empty() {
        section.push(findings);
    }
}

fn partitioned(done: &Partitioned, section: &mut Section) {
    section.paragraph("The part is already partitioned; the layout can no longer change.");
    let mut pairs = Vec::new();
    if let Some(bytes) = done.enh_user_bytes {
        let start = done.enh_user_start_bytes.map_or(String::new(), |start| format!(" from byte {}", start.0));
        let whole = if done.user_is_enhanced_whole == Some(true) { ", all of it" } else { "" };
        pairs.push(KeyValue::new("enhanced user area", format!("{bytes}{start}{whole}")));
    }
    for (index, bytes) in done.gp_bytes.iter().enumerate() {
        if let Some(bytes) = bytes.filter(|bytes| bytes.0 > 0) {
            pairs.push(KeyValue::new(format!("general purpose partition {}", index + 1), bytes.to_string()));
        }
    }
    if let Some(enhanced) = done.enhanced.as_ref().filter(|areas| !areas.is_empty()) {
        pairs.push(KeyValue::new("enhanced", enhanced.join(", ")));
    }
    if !pairs.is_empty() {
        section.push(pairs);
    }
}
