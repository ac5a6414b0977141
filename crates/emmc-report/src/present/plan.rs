//! A hardware-partition plan as a document.

use emmc_analysis::hwpart::{Certainty, Equivalent, HwPartPlan, Layout, RegisterWrite};
use emmc_analysis::{Finding, Severity};

use crate::{Align, Cell, Document, KeyValue, Section, Table, Tone};

/// The plan: verdict, layout, writes, losses, next steps, and other tools' commands.
pub fn hwpart_plan(plan: &HwPartPlan) -> Document {
    let mut document = Document::new("Hardware partition plan");
    document.subtitle = Some(format!("{}  {}", plan.source, plan.requested.join(" ")));
    verdict(plan, &mut document);
    if let Some(layout) = &plan.layout {
        self::layout(layout, plan.ok, &mut document);
    }
    if !plan.writes.is_empty() {
        let section = document.section("writes", "Register writes, in order");
        section.push(writes(&plan.writes));
        section.note(Tone::Bad, "One-time writes cannot be undone. Nothing has been sent to the card.");
    }
    if let Some(after) = &plan.after {
        let section = document.section("after", "After the last write");
        let steps = after.steps.iter().enumerate();
        section
            .push(steps.map(|(index, step)| KeyValue::new((index + 1).to_string(), step.as_str())).collect::<Vec<_>>());
        let mut table = Table::new([
            ("byte", Align::Right),
            ("register", Align::Left),
            ("expected", Align::Right),
            ("", Align::Left),
        ]);
        for check in &after.checks {
            let certainty = if check.certainty == Certainty::Exact { "exactly" } else { "about; the part decides" };
            let expected = format!("{:#x} ({})", check.expected, check.expected);
            table.row([check.offset.to_string(), check.name.to_owned(), expected, certainty.to_owned()]);
        }
        section.push(table);
    }
    if let Some(commands) = &plan.commands {
        equivalent(document.section("u-boot", "The same plan in U-Boot"), &commands.u_boot);
        equivalent(document.section("mmc-utils", "The same plan with mmc-utils"), &commands.mmc_utils);
    }
    document
}

fn verdict(plan: &HwPartPlan, document: &mut Document) {
    let section = document.section("verdict", "Verdict");
    let mut findings: Vec<Finding> = plan
        .refusals
        .iter()
        .map(|refusal| {
            let mut finding = Finding::new(Severity::Critical, refusal.rule, format!("refused: {}", refusal.what));
            finding.evidence.clone_from(&refusal.evidence);
            finding.advice.clone_from(&refusal.advice);
            finding
        })
        .collect();
    if plan.ok {
        findings.push(Finding::new(Severity::Good, "ok", "every rule holds; the plan can be executed"));
    }
    findings.extend(plan.warnings.iter().cloned());
    section.push(findings);
    for note in &plan.notes {
        section.note(Tone::Muted, note.as_str());
    }
}

fn layout(layout: &Layout, accepted: bool, document: &mut Document) {
    let title = if accepted { "Layout after the power cycle" } else { "Layout without the refusal" };
    let section = document.section("layout", title);
    let mut table = Table::new([
        ("area", Align::Left),
        ("size", Align::Right),
        ("bytes", Align::Right),
        ("sectors", Align::Right),
        ("groups", Align::Right),
        ("", Align::Left),
    ]);
    for area in &layout.areas {
        let mut words = Vec::new();
        if area.enhanced {
            words.push("enhanced");
        }
        match area.write_reliability {
            Some(true) => words.push("write reliability on"),
            Some(false) => words.push("write reliability off"),
            None => {}
        }
        if area.certainty == Certainty::Estimated {
            words.push("estimated");
        }
        table.row([
            area.name.to_owned(),
            area.bytes.to_string(),
            area.bytes.0.to_string(),
            area.sectors.0.to_string(),
            area.groups.map_or("-".into(), |groups| groups.to_string()),
            words.join(", "),
        ]);
    }
    section.push(table);
    section
        .note(Tone::Muted, format!("A group is the write-protect group of {}, the unit of every size.", layout.group));
    if let Some(cells) = &layout.cells {
        let cost = cells.cost_per_enhanced_group;
        let value = format!("{cost} ordinary groups for each enhanced one");
        section.push(vec![KeyValue::new("cost", value).note(cells.evidence.as_str())]);
    }
    for what in &layout.lost.what {
        section.note(Tone::Warn, format!("Lost: {what}"));
    }
    for certainty in &layout.certainty {
        section.note(Tone::Muted, certainty.as_str());
    }
}

fn writes(list: &[RegisterWrite]) -> Table {
    let mut table = Table::new([
        ("byte", Align::Right),
        ("register", Align::Left),
        ("old", Align::Right),
        ("new", Align::Right),
        ("", Align::Left),
    ]);
    for write in list {
        let one_time =
            if write.one_time { Cell::new("one-time", Tone::Bad) } else { Cell::new("until power-off", Tone::Muted) };
        table.row([
            Cell::from(write.offset.to_string()),
            Cell::from(write.name),
            Cell::from(write.old.map_or("unknown".into(), |old| format!("{old:#04x}"))),
            Cell::from(format!("{:#04x}", write.new)),
            one_time,
        ]);
    }
    table
}

pub(super) fn equivalent(section: &mut Section, equivalent: &Equivalent) {
    for cannot in &equivalent.cannot {
        section.note(Tone::Notice, format!("Not possible with this tool: {cannot}"));
    }
    if !equivalent.commands.is_empty() {
        section.code("sh", equivalent.commands.join("\n"));
    }
    for warning in &equivalent.warnings {
        section.note(Tone::Muted, warning.as_str());
    }
}
