//! Who writes, and who waits.

use emmc_trace::{FileRow, LivePart, ThreadRow, Who};

use super::trace::spans_table;
use crate::{Align, Cell, Document, Table, Tone};

/// Rows that the text shows.
const ROWS: usize = 15;
/// The same of what is refreshed: it fits a terminal.
const LIVE_ROWS: usize = 5;

/// The report of threads and files.
pub fn trace_who(who: &Who, cost_percent: Option<f64>) -> Document {
    let mut document = Document::new(format!("Who writes, and who waits: {:.1} s", who.duration_s));
    let cost = cost_percent.map_or(String::new(), |cost| format!(", cost {cost:.4} % of one processor"));
    document.subtitle = Some(format!("{} events, {} lost{cost}", who.events, who.lost_events));
    let section = document.section("threads", "Threads");
    if who.threads.is_empty() {
        section.note(Tone::Muted, "no thread wrote, and none waited for a request");
    } else {
        section.push(threads(&who.threads));
    }
    if who.threads.len() > ROWS {
        section.note(Tone::Muted, format!("{} more: --json has them", who.threads.len() - ROWS));
    }
    let section = document.section("files", "Files");
    if who.files.is_empty() {
        let why = if who.has_file_writes { "no file was written" } else { "no write into a file is recorded" };
        section.note(Tone::Muted, why);
    } else {
        section.push(files(&who.files));
    }
    if who.files.iter().any(|file| !file.is_exact) {
        let about = "~ counts pages that became dirty, 4 KiB each: a large folio counts once, metadata counts too";
        section.note(Tone::Muted, about);
    }
    if who.left_out > 0 {
        section
            .note(Tone::Warn, format!("{} writes or requests are in no row: too many threads or files", who.left_out));
    }
    document
}

/// What happens now: spans of the last seconds, and who writes.
pub fn trace_live(part: &LivePart, duration_s: f64, cost_percent: Option<f64>) -> Document {
    let who = &part.who;
    let mut document = Document::new(format!("The last {duration_s:.1} s: {} requests", part.requests));
    let cost = cost_percent.map_or(String::new(), |cost| format!(", cost {cost:.2} % of one processor"));
    document.subtitle = Some(format!("{} events, {} lost{cost}", who.events, who.lost_events));
    if !part.spans.is_empty() {
        let rows = part.spans.iter().take(LIVE_ROWS);
        document.section("spans", "Spans").push(spans_table(rows, false));
    }
    if !who.threads.is_empty() {
        document.section("threads", "Threads").push(threads(who.threads.get(..LIVE_ROWS).unwrap_or(&who.threads)));
    }
    if !who.files.is_empty() {
        document.section("files", "Files").push(files(who.files.get(..LIVE_ROWS).unwrap_or(&who.files)));
    }
    document
}

fn threads(rows: &[ThreadRow]) -> Table {
    let right = ["pid", "into files", "at the device", "read", "requests", "waited"];
    let columns = [("thread", Align::Left)].into_iter().chain(right.map(|title| (title, Align::Right)));
    let mut table = Table::new(columns).one_line();
    for row in rows.iter().take(ROWS) {
        let pid = if row.pid == 0 { String::new() } else { row.pid.to_string() };
        table.row([
            Cell::from(row.name.clone().unwrap_or_else(|| "?".into())),
            Cell::from(pid),
            Cell::from(size(row.file_written_bytes)),
            Cell::from(size(row.written_bytes)),
            Cell::from(size(row.read_bytes)),
            Cell::from(row.requests.to_string()),
            Cell::from(format!("{:.1} ms", row.waited_ms)),
        ]);
    }
    table.caption("most bytes written first; requests of write-back are of the kernel's threads")
}

fn size(bytes: u64) -> String {
    emmc_units::Bytes(bytes).rounded()
}

fn files(rows: &[FileRow]) -> Table {
    let columns = [("written", Align::Right), ("file", Align::Left), ("by", Align::Left)];
    let mut table = Table::new(columns);
    for row in rows.iter().take(ROWS) {
        let mark = if row.is_exact { "" } else { "~" };
        let name = row.path.clone().unwrap_or_else(|| format!("inode {} of {}", row.inode, row.device));
        table.row([
            Cell::from(format!("{mark}{}", size(row.written_bytes))),
            Cell::from(name),
            Cell::from(row.writers.join(", ")),
        ]);
    }
    table
}
