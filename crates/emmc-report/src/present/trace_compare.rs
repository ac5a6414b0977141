//! Two recordings side by side.

use emmc_workload::compare::Certainty;
use emmc_workload::spans::{ComparedKind, ComparedRecording, ComparedSpan, SpanComparison};

use super::trace::{size, us};
use crate::{Align, Cell, Document, KeyValue, Table, Tone};

/// Kinds that the text shows.
const KINDS: usize = 8;

/// The report of a comparison of recordings.
pub fn trace_compared(comparison: &SpanComparison) -> Document {
    let mut document = Document::new("Two recordings compared");
    let about = "means of the spans in us; + and - are beyond noise (95 % intervals are apart), = is not";
    document.subtitle = Some(about.into());
    let section = document.section("recordings", "Recordings");
    let row = |letter: &str, found: &ComparedRecording| {
        let ComparedRecording { requests, requests_alone, unpaired, lost_events, .. } = found;
        let more = format!("{requests_alone} of kinds only here, {unpaired} unpaired, {lost_events} events lost");
        KeyValue::new(letter, format!("{requests} requests, {more}")).note(found.name.clone())
    };
    section.push(vec![row("A", &comparison.first), row("B", &comparison.second)]);
    if comparison.kinds.is_empty() {
        section.note(Tone::Warn, "no kind of request is in both");
    }
    for (number, kind) in comparison.kinds.iter().take(KINDS).enumerate() {
        let title = format!("{}: {} and {} requests", name(kind), kind.first_count, kind.count);
        document.section(format!("kind-{number}"), title).push(table(kind));
    }
    if comparison.kinds.len() > KINDS {
        let more = comparison.kinds.len() - KINDS;
        document.section("more", "Other kinds").note(Tone::Muted, format!("{more} more kinds: --json has them"));
    }
    document
}

fn name(kind: &ComparedKind) -> String {
    let what = if kind.size_bytes == 0 { kind.op.clone() } else { format!("{} {}", kind.op, size(kind.size_bytes)) };
    format!("{what}, {}", kind.mode)
}

fn table(kind: &ComparedKind) -> Table {
    let right = ["A", "B", "B - A", "in %"].map(|title| (title, Align::Right));
    let columns = [("span", Align::Left)].into_iter().chain(right).chain([("beyond noise?", Align::Left)]);
    let mut table = Table::new(columns);
    for span in &kind.spans {
        let percent = span.difference_percent.map_or(String::new(), |percent| format!("{percent:+.1}"));
        let difference = if span.difference_us < 0.0 { "-" } else { "+" };
        table.row([
            Cell::from(span.span.as_str()),
            Cell::from(us(span.first_us)),
            Cell::from(us(span.us)),
            Cell::from(format!("{difference}{}", us(span.difference_us.abs()))),
            Cell::from(percent),
            verdict(span),
        ]);
    }
    table
}

fn verdict(span: &ComparedSpan) -> Cell {
    let intervals = match span.first_interval.zip(span.interval) {
        Some((a, b)) => format!("{} to {}, {} to {}", us(a.low), us(a.high), us(b.low), us(b.high)),
        None => "fewer than ten requests".into(),
    };
    match span.certainty {
        Certainty::Differs if span.difference_us > 0.0 => Cell::new(format!("+ {intervals}"), Tone::Warn),
        Certainty::Differs => Cell::new(format!("- {intervals}"), Tone::Good),
        Certainty::NoDifferenceShown => Cell::from(format!("= {intervals}")),
        Certainty::CannotTell => Cell::new(format!("? {intervals}"), Tone::Muted),
    }
}
