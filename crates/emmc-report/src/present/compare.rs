//! Results side by side, and a single saved result.

use emmc_workload::compare::{Cell as Compared, Certainty, Comparison, Row};
use emmc_workload::import::SavedResult;

use super::bench;
use crate::{Align, Cell, Document, KeyValue, Table, Tone};

/// The report of a comparison.
pub fn compared(comparison: &Comparison) -> Document {
    let names: Vec<&str> = comparison.results.iter().map(|result| result.name.as_str()).collect();
    let mut document = Document::new(names.join(" : "));
    document.subtitle = Some("ratios are relative to the first; + and - are significant differences, = is not".into());
    let section = document.section("results", "Results");
    let letters = ('A'..='Z').map(String::from);
    let rows: Vec<KeyValue> = comparison
        .results
        .iter()
        .zip(letters)
        .map(|(result, letter)| {
            let target = result.target.as_deref().unwrap_or("target unknown");
            let note = format!("{}; {} figures only in this result", result.suites.join(", "), result.alone);
            KeyValue::new(letter, format!("{}: {target}", result.name)).note(note)
        })
        .collect();
    section.push(rows);
    for warning in &comparison.warnings {
        section.note(Tone::Warn, warning.clone());
    }
    for result in &comparison.results {
        for note in &result.notes {
            section.note(Tone::Muted, format!("{}: {note}", result.name));
        }
    }
    let mut tables: Vec<&str> = Vec::new();
    for row in &comparison.rows {
        if !tables.contains(&row.table.as_str()) {
            tables.push(&row.table);
        }
    }
    for (number, name) in tables.into_iter().enumerate() {
        let rows: Vec<&Row> = comparison.rows.iter().filter(|row| row.table == name).collect();
        document.section(format!("compared-{number}"), name).push(table(&rows, comparison.results.len()));
    }
    document
}

fn table(rows: &[&Row], results: usize) -> Table {
    let mut titles = vec![("what".to_owned(), Align::Left), ("unit".into(), Align::Left)];
    for letter in ('A'..='Z').take(results) {
        titles.push((letter.to_string(), Align::Right));
    }
    for letter in ('A'..='Z').take(results).skip(1) {
        titles.push((format!("{letter}/A"), Align::Right));
    }
    titles.push(("evidence".into(), Align::Left));
    let mut table = Table::new(titles);
    for row in rows {
        let value = |cell: &Compared| Cell::from(cell.value.map_or(String::new(), bench::number));
        let cells = row.cells.iter().map(value).chain(row.cells.iter().skip(1).map(ratio));
        let mut told: Vec<String> = Vec::new();
        for cell in &row.cells {
            let called = cell.called.as_ref().map(|called| format!("there: {called}"));
            let evidence = cell.certainty.filter(|told| *told != Certainty::CannotTell).map(|_| cell.evidence.clone());
            let apart = cell.percentiles.iter().filter(|found| found.certainty == Certainty::Differs);
            let apart: Vec<String> = apart
                .map(|found| {
                    format!("{} {} to {} us", found.rank, bench::number(found.first_us), bench::number(found.us))
                })
                .collect();
            let ranks = (!apart.is_empty()).then(|| format!("latencies differ: {}", apart.join(", ")));
            told.extend(called.into_iter().chain(evidence).chain(ranks));
        }
        let ends = [Cell::from(told.join("; "))];
        table.row([Cell::from(row.what.as_str()), Cell::from(row.unit.as_str())].into_iter().chain(cells).chain(ends));
    }
    table
}

fn ratio(cell: &Compared) -> Cell {
    let Some(ratio) = cell.ratio else { return Cell::from("") };
    let text = if ratio.abs() < 0.1 { format!("{ratio:.4}") } else { format!("{ratio:.2}") };
    match cell.certainty {
        Some(Certainty::Differs) if ratio >= 1.0 => Cell::new(format!("{text} +"), Tone::Notice),
        Some(Certainty::Differs) => Cell::new(format!("{text} -"), Tone::Notice),
        Some(Certainty::NoDifferenceShown) => Cell::from(format!("{text} =")),
        _ => Cell::new(format!("{text}  "), Tone::Muted),
    }
}

/// The report of a result saved by another tool.
pub fn imported(result: &SavedResult) -> Document {
    let mut document = Document::new(format!("Results in {}", result.name));
    document.subtitle.clone_from(&result.target);
    for note in &result.context.notes {
        document.section("notes", "Notes").note(Tone::Muted, note.clone());
    }
    for outcome in &result.outcomes {
        bench::outcome(outcome, &mut document);
    }
    document
}
