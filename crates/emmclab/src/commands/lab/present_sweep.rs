//! A sweep of the lab as a document.

use emmc_report::{Align, Document, KeyValue, Table, Tone};

use super::sweep::{LabSweep, SweepResult, SweepRun};

/// Columns of what the card saw.
const CARD: [&str; 6] = ["script s", "reads", "writes", "flushes", "MB written", "ampl."];
const ONLY_WITHOUT_FIO: [&str; 4] = ["reads", "writes", "flushes", "MB written"];
/// Columns of fio.
const FIO: [&str; 6] = ["job", "", "IOPS", "MB/s", "mean us", "p99 us"];

/// One table: a row for each run, or for each job of fio in it.
pub(super) fn sweep(sweep: &LabSweep) -> Document {
    let mut document = Document::new(format!("{}, {} runs", sweep.script, sweep.runs.len()));
    let section = document.section("settings", "In all runs");
    let mut lines: Vec<KeyValue> = sweep.kernel.iter().map(|kernel| KeyValue::new("kernel", kernel.as_str())).collect();
    let settings = sweep.runs.first().map(|run| run.settings.texts()).unwrap_or_default();
    let shared = settings.iter().filter(|(name, text)| !sweep.axes.contains(name) && text != "-");
    lines.extend(shared.map(|(name, text)| KeyValue::new(name.as_str(), text.as_str())));
    section.push(lines);
    document.section("runs", "Runs").push(table(sweep));
    if let Some(figures) = figures(sweep) {
        document.section("figures", "Figures of the script").push(figures);
    }
    if sweep.failed > 0 {
        let section = document.section("failed", format!("Failed: {} of {}", sweep.failed, sweep.runs.len()));
        for run in &sweep.runs {
            if let Some(error) = &run.error {
                section.note(Tone::Bad, format!("{}: {error}", name(sweep, run)));
            }
        }
    }
    document
}

/// The values of the settings that differ.
fn axes<'a>(sweep: &'a LabSweep, run: &'a SweepRun) -> impl Iterator<Item = (String, String)> + 'a {
    run.settings.texts().into_iter().filter(|(name, _)| sweep.axes.contains(name))
}

fn name(sweep: &LabSweep, run: &SweepRun) -> String {
    let texts: Vec<String> = axes(sweep, run).map(|(name, text)| format!("{name} {text}")).collect();
    if texts.is_empty() { "the run".into() } else { texts.join(", ") }
}

fn left(title: &str) -> (String, Align) {
    (title.to_owned(), Align::Left)
}

fn right(title: &str) -> (String, Align) {
    (title.to_owned(), Align::Right)
}

/// What the scripts reported, a row for each run; the last of figures with the same name.
fn figures(sweep: &LabSweep) -> Option<Table> {
    let results = sweep.runs.iter().filter_map(|run| run.result.as_ref());
    let mut names: Vec<&str> = Vec::new();
    for figure in results.flat_map(|result| &result.figures) {
        if !names.contains(&figure.name.as_str()) {
            names.push(&figure.name);
        }
    }
    if names.is_empty() {
        return None;
    }
    let columns = sweep.axes.iter().map(|axis| left(axis)).chain(names.iter().map(|name| right(name)));
    let mut table = Table::new(columns);
    for run in &sweep.runs {
        let figures = run.result.as_ref().map_or(&[][..], |result| &result.figures);
        let value = |name: &&str| figures.iter().rev().find(|figure| figure.name == **name);
        let values = names.iter().map(|name| value(name).map_or_else(|| "-".into(), |figure| figure.value.to_string()));
        table.row(axes(sweep, run).map(|(_, text)| text).chain(values).collect::<Vec<_>>());
    }
    Some(table)
}

fn table(sweep: &LabSweep) -> Table {
    let results: Vec<&SweepResult> = sweep.runs.iter().filter_map(|run| run.result.as_ref()).collect();
    let has_fio = results.iter().any(|result| !result.fio.is_empty());
    let mut columns: Vec<(String, Align)> = sweep.axes.iter().map(|axis| left(axis)).collect();
    // With fio only what fio does not say itself.
    let shown = |number: &usize| !has_fio || !ONLY_WITHOUT_FIO.contains(&CARD[*number]);
    let shown: Vec<usize> = (0..CARD.len()).filter(shown).collect();
    columns.extend(shown.iter().map(|&number| right(CARD[number])));
    if has_fio {
        columns.extend(FIO[..2].iter().map(|title| left(title)).chain(FIO[2..].iter().map(|title| right(title))));
    }
    let mut table = Table::new(columns);
    for run in &sweep.runs {
        let sides = run.result.as_ref().map_or(0, |result| result.fio.len());
        for number in 0..sides.max(1) {
            let mut cells: Vec<String> = axes(sweep, run).map(|(_, text)| text).collect();
            let mut card = card(run.result.as_ref(), number == 0);
            if run.error.is_some() {
                card[0] = "failed".into();
            }
            cells.extend(shown.iter().map(|&number| card[number].clone()));
            if has_fio {
                cells.extend(fio(run.result.as_ref(), number));
            }
            table.row(cells);
        }
    }
    table
}

/// What the card saw; in the first row of a run.
fn card(result: Option<&SweepResult>, is_first: bool) -> [String; CARD.len()] {
    let Some(result) = result.filter(|_| is_first) else { return Default::default() };
    let of = |kind: &str| result.requests.get(kind).map_or((0, 0), |sum| (sum.requests, sum.bytes));
    [
        format!("{:.3}", result.script_s),
        of("read").0.to_string(),
        of("write").0.to_string(),
        of("flush").0.to_string(),
        format!("{:.1}", of("write").1 as f64 / 1e6),
        result.write_amplification.map_or_else(|| "-".into(), |factor| format!("{factor:.2}")),
    ]
}

fn fio(result: Option<&SweepResult>, number: usize) -> [String; FIO.len()] {
    let Some(side) = result.and_then(|result| result.fio.get(number)) else { return Default::default() };
    [
        side.job.clone(),
        side.kind.to_owned(),
        format!("{:.0}", side.iops),
        format!("{:.2}", side.mb_s),
        format!("{:.1}", side.mean_us),
        format!("{:.1}", side.p99_us),
    ]
}
