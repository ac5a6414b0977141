//! The report of an erase: as a document, as the text that is signed, and what to do next.

use emmc_analysis::erase::{Offer, Verdict};
use emmc_report::{Align, Document, KeyValue, Table, TextOptions, Tone};
use emmc_units::Bytes;

use super::job::UNSUPPORTED;
use super::{Done, EraseDocument};
use crate::cli::EraseArgs;

/// The namespace of a signature, so that it counts for nothing else.
const NAMESPACE: &str = "emmclab-erase";

/// A time as people say it.
pub(super) fn time(ms: u64) -> String {
    match ms {
        0..=999 => format!("{ms} ms"),
        1_000..=9_999 => format!("{:.1} s", ms as f64 / 1e3),
        10_000..=599_999 => format!("{} s", ms / 1000),
        600_000..=35_999_999 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}

/// A size as arguments take it: whole sectors.
fn size(bytes: u64) -> String {
    match bytes {
        0 => "0".into(),
        _ if bytes % (1 << 20) == 0 => format!("{}MiB", bytes >> 20),
        _ => format!("{}s", bytes / 512),
    }
}

/// What to do next.
pub(super) fn next(document: &EraseDocument, args: &EraseArgs) -> Vec<String> {
    let word = |name: &str| crate::shell::word(name.as_ref()).unwrap_or_else(|| "TARGET".into());
    let mut next = Vec::new();
    let done = document.done.len();
    if let Some(last) = document.done.last().filter(|last| last.ended != "complete") {
        let kinds = document.done.iter().map(|done| done.kind.name());
        let rest = args.kinds[done..].iter().map(|kind| emmc_analysis::erase::EraseKind::from(*kind).name());
        let kinds: Vec<&str> = kinds.skip(done - 1).chain(rest).collect();
        let mut line = format!("emmclab erase {} {}", word(&args.target), kinds.join(" "));
        if let Some(area) = args.area {
            line += &format!(" --area {area}");
        }
        for range in &args.range {
            line += &format!(" --range {}:{}", size(range.start.0), size(range.size.0));
        }
        if let Some(number) = args.partition {
            line += &format!(" --partition {number}");
        }
        if let Some(to) = last.to_bytes {
            line += &format!(" --from {}", size(to));
        }
        if last.ended == "lost" && document.way == "card" {
            next.push("power the card off and on".into());
        }
        if last.ended != UNSUPPORTED {
            next.push(format!("resume: {line} --destroy"));
        }
    }
    if let Some(path) = args.output.as_ref().filter(|_| done > 0) {
        let file = crate::shell::word(path.as_os_str()).unwrap_or_else(|| "FILE".into());
        next.push(format!("sign the report: ssh-keygen -Y sign -f KEY -n {NAMESPACE} {file}"));
    }
    next
}

/// The report as plain text, the same on every terminal.
pub(super) fn text(document: &EraseDocument) -> String {
    let options = TextOptions { width: 100, colour: false, unicode: false };
    emmc_report::text(&present(document), &options)
}

pub(super) fn present(document: &EraseDocument) -> Document {
    let title = if document.action == "list" { "Ways to erase" } else { "Erase" };
    let mut report = Document::new(title);
    report.subtitle = Some(subtitle(document));
    match document.action {
        "list" => kinds(&document.kinds, &mut report),
        _ => done(document, &mut report),
    }
    if !document.contents.is_empty() {
        let erased: u64 = document.ranges.iter().map(|[from, to]| to - from).sum();
        let is_part = document.size_bytes.is_some_and(|size| erased < size);
        let title = match (document.action, is_part) {
            (_, true) => "What the whole of it held before",
            ("list", _) => "What would be lost",
            _ => "What was on it",
        };
        let section = report.section("contents", title);
        for line in &document.contents {
            section.note(Tone::Muted, line.as_str());
        }
    }
    if !document.untouched.is_empty() {
        let section = report.section("untouched", "Not part of it");
        let all = document.untouched.join("; ");
        section.note(Tone::Muted, format!("{all}. Sanitize removes what is unmapped of all areas."));
    }
    if !document.next.is_empty() {
        let section = report.section("next", "Next");
        let steps = document.next.iter().enumerate();
        section
            .push(steps.map(|(index, step)| KeyValue::new((index + 1).to_string(), step.as_str())).collect::<Vec<_>>());
    }
    report
}

fn subtitle(document: &EraseDocument) -> String {
    let mut words = vec![document.target.clone()];
    if let Some(card) = &document.card {
        words.extend(card.product.clone());
        words.extend(card.serial.as_ref().map(|serial| format!("serial number {serial}")));
        words.extend(card.cid.as_ref().map(|cid| format!("CID {cid}")));
    }
    words.extend(area(document));
    words.extend(document.size_bytes.map(|bytes| Bytes(bytes).rounded()));
    words.join("  ")
}

/// The area by both of its names.
fn area(document: &EraseDocument) -> Option<String> {
    document.area?.parse().ok().map(emmc_analysis::erase::called)
}

fn kinds(offers: &[Offer], report: &mut Document) {
    let section = report.section("kinds", "What the target has");
    let columns = [("kind", Align::Left), ("has it", Align::Left), ("unit", Align::Right), ("at most", Align::Right)];
    let mut table = Table::new(columns);
    for offer in offers {
        let has = offer.available.map_or("?", |has| if has { "yes" } else { "no" });
        let unit = offer.unit_bytes.map_or("-".into(), |bytes| Bytes(bytes).rounded());
        let most = offer.time_ms_max.map_or("-".into(), time);
        table.row([offer.kind.name().to_owned(), has.to_owned(), unit, most]);
    }
    section.push(table);
    let section = report.section("effects", "What each does");
    let effect = |offer: &Offer| {
        let value = format!("it reads {}", offer.reads_as);
        KeyValue::new(offer.kind.name(), value).note(format!("recoverable: {}", offer.recoverable))
    };
    section.push(offers.iter().map(effect).collect::<Vec<_>>());
    let section = report.section("sources", "Where that comes from");
    let source = |offer: &Offer| KeyValue::new(offer.kind.name(), format!("{}; {}", offer.why, offer.time_source));
    section.push(offers.iter().map(source).collect::<Vec<_>>());
}

fn done(document: &EraseDocument, report: &mut Document) {
    for one in &document.done {
        let section = report.section(one.kind.name(), one.kind.name());
        section.note(tone(one), verdict(one));
        if let Some(found) = &one.verification {
            let first = found.first_kept_bytes.filter(|_| found.verdict == Verdict::Ignored);
            let first = first.map_or(String::new(), |at| format!(" (the first one at byte {at})"));
            section.note(
                if first.is_empty() { Tone::Plain } else { Tone::Bad },
                format!("Read back: {}{first}.", found.what),
            );
        }
        let left = document.kinds.iter().find(|offer| offer.kind == one.kind).map(|offer| offer.recoverable);
        let is_ignored = one.verification.as_ref().is_some_and(|found| found.verdict == Verdict::Ignored);
        match left {
            Some(_) if is_ignored => section.note(Tone::Bad, "Recoverable: what reads as before, by reading it."),
            Some(_) if one.erased_bytes == 0 && one.ended != "complete" => section,
            Some(left) => section.note(Tone::Plain, format!("Recoverable: {left}.")),
            None => section,
        };
    }
    let section = report.section("when", "When");
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
    let ranges: Vec<String> = document.ranges.iter().map(|[from, to]| format!("{from} to {to}")).collect();
    let mut facts =
        vec![KeyValue::new("began", text(&document.began_at)), KeyValue::new("ended", text(&document.ended_at))];
    facts.extend(area(document).map(|area| KeyValue::new("area", area)));
    facts.push(KeyValue::new("bytes", ranges.join(", ")));
    let sender = if document.way == "card" { "the card's own commands" } else { "the kernel" };
    facts.push(KeyValue::new("sent by", sender));
    section.push(facts);
}

fn tone(done: &Done) -> Tone {
    let is_ignored = done.verification.as_ref().is_some_and(|found| found.verdict == Verdict::Ignored);
    if done.ended == "complete" && !is_ignored { Tone::Good } else { Tone::Bad }
}

fn verdict(done: &Done) -> String {
    let mut text = match (done.ended, done.to_bytes) {
        ("complete", Some(_)) => {
            format!(
                "Complete: {} ({} bytes) in {}.",
                Bytes(done.erased_bytes).rounded(),
                done.erased_bytes,
                time(done.time_ms)
            )
        }
        ("complete", None) => format!("Complete in {}.", time(done.time_ms)),
        (ended, Some(to)) => format!("Ended early ({ended}): everything below byte {to} is erased."),
        (ended, None) => format!("Ended early ({ended}): whether it had an effect is not known."),
    };
    if let Some([from, to]) = done.unsure {
        text +=
            &format!(" Bytes {from} to {to} may be erased in whole, in part or not at all; nothing behind them is.");
    }
    if let Some(reason) = &done.reason {
        text += &format!(" Reason: {reason}.");
    }
    text
}
