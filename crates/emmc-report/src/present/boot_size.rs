//! A plan of other sizes of the boot areas as a document.

use emmc_analysis::plan::{BootSizePlan, SizeChange};
use emmc_analysis::{Finding, Severity};

use super::change::refused;
use super::plan::equivalent;
use crate::{Align, Document, KeyValue, Table, Tone};

/// Verdict, sizes, the sequence, what is lost and not known, and U-Boot's command.
pub fn boot_size(plan: &BootSizePlan) -> Document {
    let mut document = Document::new("Plan: boot-size");
    document.subtitle = Some(plan.source.clone());
    let section = document.section("verdict", "Verdict");
    let mut findings: Vec<Finding> = plan.refusals.iter().map(refused).collect();
    if let (true, Some(vendor)) = (plan.ok, plan.vendor) {
        let text = format!("U-Boot can send {vendor}'s command; emmclab sends no vendor commands");
        findings.push(Finding::new(Severity::Good, "ok", text));
    }
    section.push(findings);
    if !plan.ok {
        return document;
    }
    let section = document.section("sizes", "Sizes");
    let change = |name: &str, change: SizeChange| {
        let before = change.before.map_or("unknown".into(), |size| size.to_string());
        KeyValue::new(name, format!("{before} -> {}", change.after))
    };
    section.push(vec![change("each boot area", plan.boot), change("RPMB", plan.rpmb)]);
    let section = document.section("sequence", "What U-Boot sends, in order");
    let mut table = Table::new([("command", Align::Left), ("argument", Align::Right), ("", Align::Left)]);
    for sent in &plan.sequence {
        table.row([format!("CMD{}", sent.opcode), format!("{:#010x}", sent.argument), sent.what.clone()]);
    }
    section.push(table);
    for lost in &plan.lost {
        section.note(Tone::Bad, format!("Assume that this is lost: {lost}"));
    }
    for unknown in &plan.unknown {
        section.note(Tone::Warn, format!("Not known: {unknown}"));
    }
    equivalent(document.section("u-boot", "In U-Boot"), &plan.u_boot);
    document
}
