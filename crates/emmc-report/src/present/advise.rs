//! Advice for a system above a card.

use emmc_analysis::advise::{Advised, Period, SystemAdvice, Worth, bytes, years_text};

use crate::{Align, Document, Table};

/// What to change in a system.
pub fn system_advice(advice: &SystemAdvice) -> Document {
    let mut document = Document::new(format!("Advice for the system on {}", advice.disk));
    document.subtitle = Some(format!("{}.", advice.verdict));
    let measured: Vec<&Advised> =
        advice.findings.iter().filter(|advised| advised.saves_bytes_per_day.is_some()).collect();
    if !measured.is_empty() {
        let mut table = Table::new([("saves a day", Align::Right), ("then", Align::Right), ("by", Align::Left)]);
        for advised in measured {
            let saves = advised.saves_bytes_per_day.map(bytes).unwrap_or_default();
            let then = advised.years_then.map_or_else(|| "-".into(), years_text);
            table.row([saves, then, advised.finding.what.clone()]);
        }
        document.section("savings", "What it would bring").push(table);
    }
    let section = document.section("findings", "What to change");
    if advice.findings.is_empty() {
        section.paragraph("Nothing.");
    } else {
        section.push(advice.findings.iter().map(|advised| advised.finding.clone()).collect::<Vec<_>>());
    }
    if let Some(watched) = &advice.system.watched {
        let section = document.section("writers", "Who wrote");
        let disk = watched.disk_bytes.map_or_else(|| "an unknown amount".into(), |written| bytes(written as f64));
        section.paragraph(format!(
            "{disk} to {} in {:.0} s. By process, to any disk, without those that ended meanwhile:",
            advice.disk, watched.seconds
        ));
        let mut table = Table::new([("written", Align::Right), ("processes", Align::Right), ("name", Align::Left)]);
        for writer in watched.writers.iter().take(10) {
            table.row([bytes(writer.written_bytes as f64), writer.processes.to_string(), writer.name.clone()]);
        }
        section.push(table);
    }
    if !advice.unknown.is_empty() {
        let section = document.section("unknown", "Not judged");
        for unknown in &advice.unknown {
            section.paragraph(format!("{unknown}."));
        }
    }
    document
}

/// Whether a change was worth it.
pub fn worth(worth: &Worth) -> Document {
    let mut document = Document::new("Before and after");
    document.subtitle = Some(format!("{}.", worth.verdict));
    let mut table = Table::new([
        ("", Align::Left),
        ("days", Align::Right),
        ("samples apart", Align::Right),
        ("a day", Align::Right),
        ("95 % confidence", Align::Right),
        ("life left", Align::Right),
    ]);
    let mut row = |name: &str, period: &Period| {
        let [from, to] = period.interval_bytes_per_day.map(bytes);
        table.row([
            name.into(),
            format!("{:.1}", period.days),
            period.intervals.to_string(),
            bytes(period.bytes_per_day),
            format!("{from} to {to}"),
            period.years_left.map_or_else(|| "-".into(), years_text),
        ]);
    };
    row("before", &worth.before);
    row("after", &worth.after);
    document.section("rates", "Written").push(table);
    document
}
