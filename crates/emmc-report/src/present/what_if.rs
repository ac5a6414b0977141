//! What changes if something is changed, as a document.

mod verdict;

use emmc_twin::what_if::{Answer, Latencies, WhatIf};
use emmc_units::Bytes;

use super::sim::{count, micros};
use crate::{Align, Cell, Document, Table, Tone};

/// A life, in words: years, or days below one; or that nobody lives to see its end.
pub(super) fn years(years: Option<f64>) -> String {
    let days = |years: f64| years * 365.25;
    match years {
        None => "more than 1000 years".into(),
        Some(years) if years >= 100.0 => format!("{years:.0} years"),
        Some(years) if years >= 10.0 => format!("{years:.1} years"),
        Some(years) if years >= 1.0 => format!("{years:.2} years"),
        Some(years) if days(years) >= 10.0 => format!("{:.0} days", days(years)),
        Some(years) => format!("{:.1} days", days(years)),
    }
}

/// The same in a table.
pub(super) fn short_years(life: Option<f64>) -> String {
    years(life).replace("more than ", "> ").replace(" years", " y").replace(" days", " d")
}

/// A study with the answers of what-if questions as sections.
pub fn with_what_if(mut document: Document, result: &WhatIf) -> Document {
    for mut section in what_if(result).sections {
        section.id = format!("what-if-{}", section.id);
        section.title = format!("What if: {}", section.title.to_lowercase());
        if section.id == "what-if-life" {
            let text = format!("Virtual card {}: {}.", result.profile, result.duty.sentence);
            section.blocks.insert(0, crate::Block::Paragraph(text));
        }
        document.sections.push(section);
    }
    document
}

/// The report of answers side by side.
pub fn what_if(result: &WhatIf) -> Document {
    let mut document = Document::new(format!("What if: virtual card {}", result.profile));
    document.subtitle = Some(result.duty.sentence.clone());
    document.lead = Some(verdict::lead(result));
    life(result, &mut document);
    speed(result, &mut document);
    notes(&result.answers, &mut document);
    document
}

fn life(result: &WhatIf, document: &mut Document) {
    let right = Align::Right;
    let mut table = Table::new([
        ("", Align::Left),
        ("usable", right),
        ("card gets/day", right),
        ("WA", right),
        ("wear %/day", right),
        ("warning", right),
        ("end", right),
        ("x today", right),
    ])
    .optional(&["usable", "card gets/day", "warning"]);
    for answer in &result.answers {
        let ratio = answer.life_times_today;
        let tone = match ratio {
            Some(ratio) if ratio >= 1.05 => Tone::Good,
            Some(ratio) if ratio <= 0.95 => Tone::Warn,
            _ => Tone::Plain,
        };
        table.row([
            Cell::from(answer.change.as_str()),
            Cell::from(Bytes(answer.usable_bytes).rounded()),
            Cell::from(format!("{:.2} GB", answer.host_bytes_per_day / 1e9)),
            Cell::from(format!("{:.2}", answer.write_amplification)),
            Cell::from(format!("{:.4}", answer.wear_percent_per_day)),
            Cell::from(short_years(answer.years_to_pre_eol_warning)),
            Cell::from(short_years(answer.years_to_end_of_life)),
            Cell::new(ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")), tone),
        ]);
    }
    let caption = "WA: programmed over received. warning: PRE_EOL_INFO 2; end: rated erases used, read-only, or the log \
worn out; in years (y) or days (d), by the steady wear of the simulation";
    document.section("life", "Life").push(table.caption(caption));
}

fn speed(result: &WhatIf, document: &mut Document) {
    let right = Align::Right;
    let mut table = Table::new([
        ("", Align::Left),
        ("MB/s", right),
        ("busy %", right),
        ("p50", right),
        ("p99", right),
        ("p99.9", right),
        ("longest", right),
        ("flush p99", right),
        ("longest", right),
    ])
    .optional(&["p50", "p99.9"]);
    for answer in &result.answers {
        let of = |found: &Option<Latencies>, of: fn(&Latencies) -> f64| {
            found.as_ref().map_or(String::new(), |found| micros(of(found)))
        };
        let (us, flush) = (|which| of(&answer.write_us, which), |which| of(&answer.flush_us, which));
        let busy = answer.busy_share * 100.0;
        let tone = if busy >= 100.0 { Tone::Bad } else { Tone::Plain };
        table.row([
            Cell::from(answer.change.as_str()),
            Cell::from(format!("{:.2}", answer.write_mb_per_s)),
            Cell::new(format!("{busy:.3}"), tone),
            Cell::from(us(|found| found.p50)),
            Cell::from(us(|found| found.p99)),
            Cell::from(us(|found| found.p999)),
            Cell::from(us(|found| found.max)),
            Cell::from(flush(|found| found.p99)),
            Cell::from(flush(|found| found.max)),
        ]);
    }
    let caption = "MB/s: the same requests as fast as the card takes them, without flushes. Latencies of writes at the \
load's own times";
    document.section("speed", "Speed and stalls").push(table.caption(caption));
}

fn notes(answers: &[Answer], document: &mut Document) {
    let section = document.section("notes", "Notes");
    for answer in answers {
        if !answer.is_steady {
            let what = format!("{}: write amplification had not settled when it was measured", answer.change);
            section.note(Tone::Warn, what);
        }
        if answer.stalls_over_100_ms > 0 {
            let (stalls, writes) = (count(answer.stalls_over_100_ms), count(answer.writes));
            section.note(Tone::Warn, format!("{}: {stalls} of {writes} writes took more than 100 ms", answer.change));
        }
        if answer.busy_share >= 1.0 {
            section.note(Tone::Bad, format!("{}: the card cannot keep up with the load", answer.change));
        }
    }
    // What holds for several rows stands once.
    let mut shared: Vec<(&str, Vec<&str>)> = Vec::new();
    for (note, change) in answers.iter().flat_map(|answer| answer.notes.iter().map(|note| (note, &answer.change))) {
        match shared.iter_mut().find(|(known, _)| known == note) {
            Some((_, changes)) => changes.push(change),
            None => shared.push((note, vec![change])),
        }
    }
    for (note, changes) in shared {
        section.note(Tone::Muted, format!("{}: {note}", changes.join("; ")));
    }
    if let Some(text) = unpartitioned(answers) {
        section.paragraph(text);
    }
    section.note(
        Tone::Muted,
        "Each card programmed its whole flash three times or more before it was measured; wear is extended linearly from \
there.",
    );
}

/// Space without partition beside one bit a cell, if both were computed.
fn unpartitioned(answers: &[Answer]) -> Option<String> {
    // Rows with other changes beside would say nothing of either.
    let alone =
        |key: &str| answers.iter().find(|answer| answer.change.starts_with(key) && !answer.change.contains(','));
    let (free, pslc, today) = (alone("unpartitioned=")?, alone("pslc=")?, answers.first()?);
    let (by_free, by_pslc) = (free.life_times_today?, pslc.life_times_today?);
    let verdict = if by_pslc > by_free * 1.05 { ": the one is no substitute for the other" } else { "" };
    Some(format!(
        "Space without a partition takes write amplification from {:.2} to {:.2}: {by_free:.2} times the life of today. One \
bit a cell ({}), whose blocks bear other numbers of erases, gives {by_pslc:.2} times{verdict}.",
        today.write_amplification, free.write_amplification, pslc.change
    ))
}
