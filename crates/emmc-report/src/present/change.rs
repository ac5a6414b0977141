//! A plan of a change of the configuration as a document, and where a card stands with it.

use emmc_analysis::hwpart::Certainty;
use emmc_analysis::plan::{Held, Objection, Plan, Stand, Standing, Step};
use emmc_analysis::{Finding, Severity};

use super::plan::equivalent;
use crate::{Align, Cell, Document, KeyValue, Section, Table, Tone};

/// The plan: verdict, steps, what is lost, areas, what to check, and other tools' commands.
pub fn plan(plan: &Plan) -> Document {
    let mut document = Document::new(format!("Plan: {}", plan.change));
    document.subtitle = Some(format!("{}  {}", plan.source, plan.requested.join(" ")));
    verdict(plan, &mut document);
    if !plan.steps.is_empty() {
        let section = document.section("steps", "Steps, in order");
        section.push(steps(plan));
        if plan.permanent {
            section.note(Tone::Bad, "One-time steps cannot be undone. Nothing has been sent to the card.");
        } else {
            section.note(Tone::Muted, "Nothing has been sent to the card.");
        }
    }
    capacity(plan, &mut document);
    if !plan.after.is_empty() {
        let section = document.section("after", "After the last step");
        let steps = plan.after.iter().enumerate();
        let steps = steps.map(|(index, step)| KeyValue::new((index + 1).to_string(), step.as_str()));
        section.push(steps.collect::<Vec<_>>());
    }
    if let Some(commands) = plan.commands.as_ref().filter(|_| !plan.steps.is_empty()) {
        equivalent(document.section("u-boot", "The same plan in U-Boot"), &commands.u_boot);
        equivalent(document.section("mmc-utils", "The same plan with mmc-utils"), &commands.mmc_utils);
    }
    document
}

fn objected(severity: Severity, id: &'static str, text: String, objection: &Objection) -> Finding {
    let finding = Finding::new(severity, id, text);
    let finding = objection.evidence.iter().fold(finding, |finding, text| finding.evidence(text.as_str()));
    objection.advice.iter().fold(finding, |finding, text| finding.advice(text.as_str()))
}

/// A broken rule.
pub(super) fn refused(refusal: &Objection) -> Finding {
    objected(Severity::Critical, "refused", format!("refused: {}", refusal.what), refusal)
}

fn verdict(plan: &Plan, document: &mut Document) {
    let section = document.section("verdict", "Verdict");
    let mut findings: Vec<Finding> = plan.refusals.iter().map(refused).collect();
    if plan.ok && plan.steps.is_empty() {
        findings.push(Finding::new(Severity::Good, "ok", "the card is so already: there is nothing to do"));
    } else if plan.ok {
        findings.push(Finding::new(Severity::Good, "ok", "every rule holds; the plan can be carried out"));
    }
    let warned = |warning: &Objection| objected(Severity::Warning, "warned", warning.what.clone(), warning);
    findings.extend(plan.warnings.iter().map(warned));
    section.push(findings);
    for lost in &plan.lost {
        section.note(Tone::Warn, format!("Lost: {lost}"));
    }
}

fn steps(plan: &Plan) -> Table {
    let columns = [
        ("byte", Align::Right),
        ("register", Align::Left),
        ("mask", Align::Right),
        ("old", Align::Right),
        ("new", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new(columns);
    for step in &plan.steps {
        match step {
            Step::Register(step) => {
                let lasts = match (step.one_time, step.passing) {
                    (true, _) => Cell::new("one-time", Tone::Bad),
                    (_, true) => Cell::new("during the change", Tone::Muted),
                    _ => Cell::new(step.lasts.replace('-', " "), Tone::Muted),
                };
                table.row([
                    Cell::from(step.offset.to_string()),
                    Cell::from(step.name.as_str()),
                    Cell::from(format!("{:#04x}", step.mask)),
                    Cell::from(step.old.map_or("unknown".into(), |old| format!("{old:#04x}"))),
                    Cell::from(format!("{:#04x}", step.new)),
                    lasts,
                ]);
            }
            Step::Groups(groups) => {
                let tone = if groups.one_time { Tone::Bad } else { Tone::Muted };
                let lasts = if groups.one_time { "one-time" } else { "" };
                let empty = || Cell::from(String::new());
                table.row([empty(), Cell::from(step.text()), empty(), empty(), empty(), Cell::new(lasts, tone)]);
            }
        }
    }
    table
}

fn capacity(plan: &Plan, document: &mut Document) {
    if plan.capacity.before == plan.capacity.after || plan.capacity.after.is_empty() {
        return;
    }
    let section = document.section("capacity", "Areas before and after");
    let mut table =
        Table::new([("area", Align::Left), ("before", Align::Right), ("after", Align::Right), ("", Align::Left)]);
    for after in &plan.capacity.after {
        let before = plan.capacity.before.iter().find(|before| before.area == after.area);
        let certainty = if after.certainty == Certainty::Estimated { "estimated" } else { "" };
        let before = before.map_or("-".into(), |before| before.bytes.to_string());
        table.row([after.area.clone(), before, after.bytes.to_string(), certainty.into()]);
    }
    section.push(table);
}

/// Where a card stands with a plan.
pub fn standing(standing: &Standing, section: &mut Section) {
    let severity = match standing.stand {
        Stand::Done => Severity::Good,
        Stand::PowerCycleDue | Stand::PartlyWritten | Stand::NothingDone => Severity::Notice,
        Stand::Differs => Severity::Warning,
    };
    section.push(vec![Finding::new(severity, "standing", standing.what.as_str())]);
    if !standing.steps.is_empty() {
        let mut table = Table::new([("step", Align::Left), ("the card holds", Align::Left), ("", Align::Left)]);
        for step in &standing.steps {
            let is = match step.is {
                Held::New => Cell::new("done", Tone::Good),
                Held::Old => Cell::new("not done", Tone::Muted),
                Held::Other => Cell::new("neither", Tone::Bad),
            };
            table.row([Cell::from(step.step.as_str()), Cell::from(step.found.as_str()), is]);
        }
        section.push(table);
    }
    for note in &standing.notes {
        section.note(Tone::Notice, note.as_str());
    }
}
