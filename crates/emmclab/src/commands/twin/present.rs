//! Twins as documents.

use emmc_report::{Align, Cell, Document, KeyValue, Table, Tone};
use emmc_twin::{Baseline, CellError, Checked, Column, ErrorSummary, HoldOut, Twin};

/// Measurements that were not used and are listed.
const LEFT_OUT_MAX: usize = 6;
/// Errors beyond it stand out.
const FAR_PERCENT: f64 = 20.0;

pub(super) fn fitted(twin: &Twin) -> Document {
    let mut document = Document::new(title("twin of", twin.target.as_deref(), &twin.measurements));
    document.subtitle = Some(verdict(&twin.error));
    errors(&twin.cells, "errors", "Twin against measurements", &mut document);
    if let Some(held) = &twin.held_out {
        let what = match held.split {
            HoldOut::EverySecond => "record sizes that the fit did not see",
            HoldOut::Columns => "rewrite, reread and random write, which the fit did not see",
        };
        let section = document.section("held-out", "Prediction");
        let summary = ErrorSummary { median: held.median, p90: held.p90, cells: held.cells.len() };
        let mut rows = vec![KeyValue::new("this fit", short(&summary)).note(what)];
        let simple = [("a line a column", &held.lines), ("copied columns", &held.copied)];
        rows.extend(simple.into_iter().filter_map(|(name, found)| Some(KeyValue::new(name, short(found.as_ref()?)))));
        section.push(rows);
        errors(&held.cells, "held-out-errors", "Prediction against measurements", &mut document);
    }
    parameters(twin, &mut document);
    next(twin, &mut document);
    remarks(&twin.notes, &twin.left_out, &mut document);
    document
}

/// What to measure next.
fn next(twin: &Twin, document: &mut Document) {
    if twin.next.is_empty() {
        return;
    }
    let mut table =
        Table::new([("measurement", Align::Left), ("intervals narrower by %", Align::Right), ("most", Align::Left)]);
    for next in &twin.next {
        table.row([next.what.into(), format!("{:.0}", next.narrower_percent), next.parameters.join(", ")]);
    }
    let section = document.section("next", "What to measure next");
    section.push(table.caption("expected from the slopes of the simulated cells, if they match as well as the others"));
    if let Some(first) = twin.next.first() {
        section.note(Tone::Muted, format!("the first of them: {}", first.command));
    }
}

/// Notes, and measurements that were not used.
fn remarks(notes: &[String], left_out: &[String], document: &mut Document) {
    if notes.is_empty() && left_out.is_empty() {
        return;
    }
    let section = document.section("remarks", "Remarks");
    for note in notes {
        section.note(Tone::Warn, note.clone());
    }
    let (shown, more) = left_out.split_at(left_out.len().min(LEFT_OUT_MAX));
    for left in shown {
        section.note(Tone::Muted, format!("not used: {left}"));
    }
    if !more.is_empty() {
        section.note(Tone::Muted, format!("not used: {} more measurements", more.len()));
    }
}

pub(super) fn checked(checked: &Checked) -> Document {
    let part = checked.target.as_deref().unwrap_or(&checked.measurements);
    let mut document = Document::new(format!("{} against {part}", checked.profile));
    document.subtitle = Some(verdict(&checked.error));
    errors(&checked.cells, "errors", "Profile against measurements", &mut document);
    remarks(&checked.notes, &checked.left_out, &mut document);
    document
}

pub(super) fn baseline(baseline: &Baseline) -> Document {
    let title = match baseline.measurements.len() {
        1 => "baseline of 1 table".into(),
        tables => format!("baseline of {tables} tables"),
    };
    let mut document = Document::new(title);
    document.subtitle = Some("what a fit must beat".into());
    let mut table = Table::new([
        ("prediction", Align::Left),
        ("median %", Align::Right),
        ("90th percentile %", Align::Right),
        ("cells", Align::Right),
    ]);
    for (name, found) in [
        ("a line for each column, fitted to all cells", Some(baseline.lines)),
        ("the same, every second record size left out", baseline.lines_every_second),
        ("write for rewrite and random write, read for rereads", baseline.copied),
    ] {
        table.row([
            name.to_owned(),
            found.map_or("-".into(), |found| format!("{:.1}", found.median)),
            found.map_or("-".into(), |found| format!("{:.1}", found.p90)),
            found.map_or(0, |found| found.cells).to_string(),
        ]);
    }
    document.section("baseline", "Errors").push(table);
    document
}

fn title(what: &str, target: Option<&str>, measurements: &str) -> String {
    match target {
        Some(target) => format!("{what} {target} ({measurements})"),
        None => format!("{what} {measurements}"),
    }
}

fn short(error: &ErrorSummary) -> String {
    format!("{:.1} % median, {:.1} % 90th percentile", error.median, error.p90)
}

fn verdict(error: &ErrorSummary) -> String {
    let cells = if error.cells == 1 {
        "the speed of 1 cell differs".into()
    } else {
        format!("speeds of {} cells differ", error.cells)
    };
    format!("{cells} by {}", short(error))
}

/// A row for each record, a column for each operation: errors in percent.
fn errors(cells: &[CellError], id: &str, title: &str, document: &mut Document) {
    let mut columns: Vec<Column> = cells.iter().map(|cell| cell.column).collect();
    columns.sort_unstable();
    columns.dedup();
    let (of_iozone, others): (Vec<Column>, Vec<Column>) = columns.iter().partition(|column| column.is_iozone());
    let section = document.section(id, title);
    let caption = "simulated over measured speed, less one, in %";
    let size = [(of_iozone, "record KiB"), (others, "block KiB")];
    for (columns, size) in size.into_iter().filter(|(columns, _)| !columns.is_empty()) {
        section.push(by_size(cells, &columns, size).caption(caption));
    }
}

/// A row for each size of a request.
fn by_size(cells: &[CellError], columns: &[Column], size: &'static str) -> Table {
    let names: Vec<String> = columns.iter().map(Column::to_string).collect();
    let mut titles = vec![(size, Align::Right)];
    titles.extend(names.iter().map(|name| (name.as_str(), Align::Right)));
    let cells: Vec<&CellError> = cells.iter().filter(|cell| columns.contains(&cell.column)).collect();
    let mut records: Vec<u64> = cells.iter().map(|cell| cell.record_kib).collect();
    records.sort_unstable();
    records.dedup();
    let mut table = Table::new(titles);
    for record in records {
        let mut row = vec![Cell::from(record.to_string())];
        row.extend(columns.iter().map(|column| {
            let found = cells.iter().find(|cell| (cell.column, cell.record_kib) == (*column, record));
            found.map_or(Cell::from(""), |cell| {
                let far = cell.error_percent.abs() > FAR_PERCENT;
                Cell::new(format!("{:+.1}", cell.error_percent), if far { Tone::Warn } else { Tone::Plain })
            })
        }));
        table.row(row);
    }
    table
}

fn parameters(twin: &Twin, document: &mut Document) {
    let mut table = Table::new([
        ("parameter", Align::Left),
        ("value", Align::Right),
        ("95 % interval", Align::Right),
        ("unit", Align::Left),
        ("what", Align::Left),
    ]);
    for found in &twin.parameters {
        let interval = match found.is_determined {
            true => format!("{} to {}", number(found.low), number(found.high)),
            false => "not determined".into(),
        };
        table.row([found.name.into(), number(found.value), interval, found.unit.into(), found.what.into()]);
    }
    let firmware = &twin.firmware;
    let ahead =
        if firmware.read_ahead_always { "every read starts a read-ahead" } else { "sequential reads are read ahead" };
    let merged = match firmware.merges_each_write {
        true => "completed by each write beyond the small ones",
        false => "open while writes are sequential",
    };
    let sectors = match (firmware.logs_sectors, firmware.keeps_pages) {
        (true, _) => ", as sectors; a full log is merged",
        (_, true) => ", as pages of 16 KiB; less than one reads the rest",
        _ => "",
    };
    let section = document.section("parameters", "Parameters");
    let pages = KeyValue::new(
        "pages",
        match firmware.channels {
            1 => format!("of {} KiB", firmware.page_kib),
            channels => format!("of {} KiB, spread over {channels} channels", firmware.page_kib),
        },
    );
    section.push(match &firmware.segment {
        None => vec![
            KeyValue::new("to the log", format!("writes of up to {} KiB{sectors}", firmware.threshold_kib)),
            KeyValue::new("read-ahead", ahead),
            pages,
            KeyValue::new("merge unit", merged),
            KeyValue::new("host", format!("commands of up to {} KiB", firmware.command_kib)),
        ],
        Some(segment) => vec![
            KeyValue::new(
                "allocation units",
                format!("of {} KiB, {} of them open", segment.unit_kib, segment.open_units),
            ),
            KeyValue::new("logs", format!("{} shared by the units", segment.random_logs)),
            pages,
            KeyValue::new("buffer", format!("{} KiB", segment.buffer_kib)),
            KeyValue::new(
                "while a page is programmed",
                if segment.cached_program { "the next is sent" } else { "nothing is sent" },
            ),
        ],
    });
    section.push(table);
    for found in twin.parameters.iter().filter(|found| !found.confounded_with.is_empty()) {
        let text = format!("{}: cannot be told from {}", found.name, found.confounded_with.join(", "));
        section.note(Tone::Muted, text);
    }
}

fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}
