//! The report of `rpmb` as a document.

use emmc_report::{Document, KeyValue, Tone};
use emmc_units::Bytes;

use super::RpmbDocument;
use super::protect::State;

pub(super) fn present(document: &RpmbDocument) -> Document {
    let mut report = Document::new(match document.action {
        "key" => "RPMB: key",
        "counter" => "RPMB: write counter",
        "read" => "RPMB: read",
        "protect" => "RPMB: secure write protection",
        _ => "RPMB: write",
    });
    report.subtitle = Some(subtitle(document));
    let section = report.section("verdict", "Result");
    let tone = if document.ended == "complete" { Tone::Good } else { Tone::Bad };
    section.note(tone, verdict(document));
    if let Some(reason) = &document.reason {
        section.note(Tone::Bad, format!("Reason: {reason}."));
    }
    if let Some([from, to]) = document.unsure_blocks {
        section.note(Tone::Bad, format!("Whether blocks {from} to {} are written is not known.", to - 1));
    }
    match (document.action, document.authenticated) {
        (_, Some(true)) => {
            section.note(Tone::Good, "Authenticated: every reply has the MAC of the key.");
        }
        (_, Some(false)) => {
            let what = "Not authenticated: without the key nothing proves that the card sent this.";
            section.note(Tone::Muted, what);
        }
        _ => {}
    }
    for warning in &document.warnings {
        section.note(Tone::Bad, format!("Warning: {warning}."));
    }
    if !document.next.is_empty() {
        let section = report.section("next", "Next");
        let steps = document.next.iter().enumerate();
        section
            .push(steps.map(|(index, step)| KeyValue::new((index + 1).to_string(), step.as_str())).collect::<Vec<_>>());
    }
    report
}

fn subtitle(document: &RpmbDocument) -> String {
    let mut words = vec![document.target.clone()];
    if let Some(card) = &document.card {
        words.extend(card.product.clone());
        words.extend(card.serial.as_ref().map(|serial| format!("serial number {serial}")));
    }
    let bytes = u64::from(document.size_blocks) * u64::from(document.block_bytes);
    words.push(format!("RPMB of {} blocks ({})", document.size_blocks, Bytes(bytes).rounded()));
    words.join("  ")
}

fn counter(document: &RpmbDocument) -> String {
    document.counter.map_or(String::new(), |counter| format!(" Write counter: {counter}."))
}

fn protection(state: State) -> &'static str {
    match (state.is_on, state.allows_changes) {
        (false, _) => "Secure write protection is off: any host may change write protection.",
        (true, false) => "Secure write protection is on: no host can change write protection.",
        (true, true) => "Secure write protection is on, and changes are allowed until `deny` or the next power cycle.",
    }
}

fn verdict(document: &RpmbDocument) -> String {
    let is_complete = document.ended == "complete";
    match document.action {
        "counter" => match document.has_key {
            Some(false) => "No key is programmed: there is no write counter.".into(),
            Some(true) => format!("A key is programmed.{}", counter(document)),
            None => "The write counter is not known.".into(),
        },
        "key" => match (is_complete, document.has_key) {
            (true, _) => format!("The key is programmed.{}", counter(document)),
            (false, Some(false)) => "The key is not programmed.".into(),
            (false, _) => "Whether the key is programmed is not known.".into(),
        },
        "protect" => match document.protection {
            Some(state) => format!("{}{}", protection(state), counter(document)),
            None => "Whether secure write protection is on is not known.".into(),
        },
        "read" => match (&document.output, document.first_block, document.count_blocks) {
            (Some(output), Some(address), Some(count)) => {
                format!("Blocks {address} to {} are saved in {output}.", address + count - 1)
            }
            _ => format!("Nothing is saved ({}).", document.ended),
        },
        _ => {
            let [written, count] = [document.written_blocks, document.count_blocks].map(Option::unwrap_or_default);
            let ended = if is_complete { "Complete" } else { document.ended };
            let mut text = format!("{ended}: {written} of {count} blocks are written.{}", counter(document));
            if let Some(first) = text.get_mut(..1) {
                first.make_ascii_uppercase();
            }
            text
        }
    }
}
