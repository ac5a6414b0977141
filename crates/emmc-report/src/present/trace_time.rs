//! Requests over time, and the named parts of spans 1 and 5.

use emmc_trace::result::{Analysis, NamedPart, OverTime};

use super::trace::{kind, size, us};
use crate::{Align, Cell, Document, Table};

/// Fewer requests have no histogram in the text.
const REQUESTS_MIN: u64 = 20;
/// Rows of kinds that the text shows.
const ROWS: usize = 12;

/// Page cache, write-back and journal, as far as events show them.
pub(super) fn named(analysis: &Analysis, document: &mut Document) {
    let right = ["requests", "page cache", "write-back", "journal in 1", "journal in 5"];
    let columns = [("request", Align::Left), ("mode", Align::Left)];
    let mut table = Table::new(columns.into_iter().chain(right.map(|name| (name, Align::Right))));
    let mut is_empty = true;
    for row in analysis.spans.iter().take(ROWS) {
        let Some(parts) = row.named_parts else { continue };
        is_empty = false;
        let part = |part: Option<NamedPart>| match part {
            Some(part) if part.count == row.count => us(part.us.mean),
            Some(part) => format!("{} of {}", us(part.us.mean), part.count),
            None => "-".into(),
        };
        table.row([
            Cell::from(kind(row)),
            Cell::from(row.mode.as_str()),
            Cell::from(row.count.to_string()),
            Cell::from(part(parts.page_cache)),
            Cell::from(part(parts.write_back)),
            Cell::from(part(parts.journal_before)),
            Cell::from(part(parts.journal_after)),
        ]);
    }
    if is_empty {
        return;
    }
    let caption = "means in us of the requests that have the part (all, or this many): in span 1 up to the last event of \
                   the page cache, from there in write-back, and while the journal commits that a sync waits for; the \
                   same in span 5";
    document.section("named-parts", "Page cache and journal in spans 1 and 5").push(table.caption(caption));
}

/// A histogram of the requests' times for each column of time.
pub(super) fn over_time(analysis: &Analysis, document: &mut Document) {
    let Some(found) = &analysis.over_time else { return };
    let requests: u64 = found.columns.iter().map(|column| column.requests).sum();
    if requests < REQUESTS_MIN {
        return;
    }
    let right = ["from", "requests", "read", "written", "mean", "longest"].map(|name| (name, Align::Right));
    let mut table = Table::new(right.into_iter().chain([("by their time", Align::Left)]));
    for (place, column) in found.columns.iter().enumerate() {
        let time = |time: Option<f64>| time.map_or("-".into(), us);
        table.row([
            Cell::from(seconds(place as f64 * found.column_s)),
            Cell::from(column.requests.to_string()),
            Cell::from(size(column.read_bytes)),
            Cell::from(size(column.written_bytes)),
            Cell::from(time(column.mean_us)),
            Cell::from(time(column.max_us)),
            Cell::from(column.counts.iter().map(|count| share(*count, column.requests)).collect::<String>()),
        ]);
    }
    let caption = format!(
        "{} a row, by completion; times in us; the last column has a place for each power of two, {}: the tenths of the \
         row's requests, rounded up, # for all ten",
        seconds(found.column_s),
        classes(found)
    );
    document.section("over-time", "Requests over time").push(table.caption(caption));
}

/// From where to where the classes are.
fn classes(found: &OverTime) -> String {
    let [first, last] = [found.classes_us.first(), found.classes_us.last()].map(|class| class.copied().unwrap_or(0.0));
    if found.classes_us.len() == 1 {
        return format!("here {first:.0} us");
    }
    format!("from {first:.0} us in the first to {last:.0} us in the last")
}

fn share(count: u64, of: u64) -> char {
    match (count * 10).div_ceil(of.max(1)) {
        0 => '.',
        tenths @ 1..=9 => char::from(b'0' + tenths as u8),
        _ => '#',
    }
}

fn seconds(value: f64) -> String {
    format!("{value:.3} s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_request_is_lost_in_a_share() {
        assert_eq!(
            [(0, 7), (1, 1000), (1, 10), (2, 10), (899, 1000), (901, 1000), (5, 5), (0, 0)].map(|(a, b)| share(a, b)),
            ['.', '1', '1', '2', '9', '#', '#', '.']
        );
    }
}
