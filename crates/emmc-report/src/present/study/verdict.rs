//! The verdict of a study: its lines and pictures.

use emmc_analysis::Severity;
use emmc_analysis::study::{Answer, Study};

use super::super::capacity::area_bars;
use super::super::health::{life_bars, tone};
use crate::{Bars, Lead, LeadLine, Tone};

pub(super) fn lead(study: &Study) -> Lead {
    let verdict = &study.verdict;
    let mut lines: Vec<LeadLine> = verdict.trust.iter().map(|trust| line("TRUST", trust)).collect();
    lines.push(line("HEALTH", &verdict.health));
    lines.extend(verdict.speed.iter().map(|speed| line("SPEED", speed)));
    lines.push(line("SAFETY", &verdict.safety));
    lines.push(line("SETUP", &verdict.setup));
    for command in &verdict.todo {
        lines.push(LeadLine::command("DO", command.command.as_str(), command.why.as_str()));
    }
    if !verdict.cannot_tell.is_empty() {
        let names: Vec<&str> = verdict.cannot_tell.iter().map(|one| one.what.as_str()).collect();
        lines.push(LeadLine::words("CANNOT TELL", Tone::Muted, names.join(", ")));
    }
    Lead { lines, pictures: pictures(study) }
}

fn line(label: &'static str, answer: &Answer) -> LeadLine {
    // Only bad lines are coloured.
    let tone = match (label, answer.severity) {
        ("HEALTH", severity) => tone(severity),
        (_, severity) if severity <= Severity::Warning => tone(severity),
        _ => Tone::Plain,
    };
    LeadLine { note: answer.evidence.clone(), ..LeadLine::words(label, tone, answer.text.as_str()) }
}

/// Life and capacity; the speed is among the measurements.
fn pictures(study: &Study) -> Vec<Bars> {
    let life = life_bars(&study.health).map(|bars| Bars { title: "Life used".into(), ..bars });
    let capacity = area_bars(&study.capacity.areas).map(|bars| Bars { title: "Capacity".into(), ..bars });
    [life, capacity].into_iter().flatten().collect()
}
