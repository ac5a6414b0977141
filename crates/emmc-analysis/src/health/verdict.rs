//! Health in one word and one sentence: the worst of the standard's registers, the vendor's figures and the link.

use emmc_port::CardData;
use emmc_regs::CardKind;

use super::reading::{Absent, LifeReading, Reading};
use super::vendor_wear::{VendorWear, WearKind};
use super::{Health, Verdict};
use crate::finding::Severity;
use crate::maker_health::{Refusal, from_card};

pub(super) fn verdict(card: &CardData, health: &Health) -> Verdict {
    let conflicts = conflicts(card);
    let concerns: Vec<(Severity, &str)> = [
        (health.bkops_status.severity, health.bkops_status.text.as_str()),
        (health.exception_events.severity, health.exception_events.text.as_str()),
        (health.host_link.severity, health.host_link.text.as_str()),
    ]
    .into_iter()
    .chain(conflicts.as_deref().map(|text| (Severity::Warning, text)))
    .filter(|(severity, _)| *severity <= Severity::Notice)
    .collect();
    let mut parts = wear_parts(card, health);
    parts.extend(concerns.iter().map(|(_, text)| (*text).to_owned()));
    // If the wear is unknown, a good link must not make the card good.
    let worn = known_wear(health).unwrap_or(Severity::Unknown);
    let worst = concerns.iter().map(|(severity, _)| *severity).chain([worn]).min().unwrap_or(Severity::Unknown);
    // The worst register may be the lost or undefined one: the others can raise the severity, never lower it.
    let calm = worst > Severity::Warning;
    let damaged = damaged_report(card);
    let contradiction = contradiction(card);
    let is_doubtful = damaged.is_some() || contradiction.is_some();
    let is_incomplete = !is_life_known(health) || !lost(health).is_empty() || is_doubtful;
    let severity = if calm && is_incomplete { Severity::Unknown } else { worst };
    parts.extend(damaged.into_iter().chain(contradiction).filter(|_| calm));
    Verdict { severity, sentence: parts.join("; ") }
}

/// Fields of EXT_CSD at odds with each other: its health may be another part's.
fn contradiction(card: &CardData) -> Option<String> {
    let first = card.ext_csd.as_ref()?.contradictions().into_iter().next()?;
    Some(format!("EXT_CSD contradicts itself, it may be damaged or of two parts: {first}"))
}

/// A vendor's report that was damaged on its way: it may be the one with the bad news.
fn damaged_report(card: &CardData) -> Option<String> {
    let damaged = |report| matches!(report, Err(Refusal::Damaged { .. }));
    let is_damaged = !card.reports.is_empty() && from_card(card).into_iter().any(damaged);
    is_damaged.then(|| "a vendor's report is damaged: save it again".to_owned())
}

/// Whether a life time register or a vendor's report gives the used life.
fn is_life_known(health: &Health) -> bool {
    let reported = |wear: &VendorWear| wear.kind == WearKind::Life && wear.severity != Severity::Unknown;
    health.life_a.reading.is_known() || health.life_b.reading.is_known() || health.vendor_wear.iter().any(reported)
}

/// The wear registers that another copy of the card would have, if this copy has some of them.
fn lost(health: &Health) -> Vec<&Reading> {
    let registers = registers(health);
    let some_known = registers.iter().any(|reading| reading.is_known());
    let lost = |reading: &&Reading| some_known && reading.absent.is_some_and(Absent::is_lost);
    registers.into_iter().filter(lost).collect()
}

fn registers(health: &Health) -> [&Reading; 3] {
    [&health.life_a.reading, &health.life_b.reading, &health.pre_eol]
}

/// The worst wear in registers and vendor reports.
fn known_wear(health: &Health) -> Option<Severity> {
    let registers = registers(health).into_iter().filter(|reading| reading.is_known()).map(|reading| reading.severity);
    let vendor = health.vendor_wear.iter().map(|wear| wear.severity).filter(|severity| *severity != Severity::Unknown);
    registers.chain(vendor).min()
}

fn conflicts(card: &CardData) -> Option<String> {
    let first = card.conflicts.first()?;
    let more = card.conflicts.len() - 1;
    let rest = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    Some(format!("sources disagree: {first}{rest}"))
}

fn wear_parts(card: &CardData, health: &Health) -> Vec<String> {
    let bands = [("A", &health.life_a), ("B", &health.life_b)].map(|(cells, life)| (cells, life, band(life)));
    let mut lives: Vec<String> = Vec::new();
    for (cells, _, band) in &bands {
        if let Some(band) = band {
            let of_life = if lives.is_empty() { " of life used" } else { "" };
            lives.push(format!("{band}{of_life} (type {cells} cells)"));
        }
    }
    // A meaningless value is named, so that the other one is not taken for the only one.
    let silent = bands.iter().filter_map(|(cells, life, _)| undefined(&format!("type {cells}"), &life.reading));
    let words = lives.into_iter().chain(silent).collect::<Vec<_>>().join(", ");
    // Reserved blocks alone do not give the used life.
    let is_missing = !is_life_known(health) && known_wear(health).is_some() && !words.is_empty();
    let mut parts = vec![if is_missing { format!("life used is not known: {words}") } else { words }];
    if health.pre_eol.is_known() {
        let consumed = health.pre_eol.text.split_once(": ").map(|(_, consumed)| consumed.to_owned());
        parts.push(consumed.unwrap_or_else(|| format!("reserved blocks {}", health.pre_eol.text)));
    } else {
        parts.extend(undefined(health.pre_eol.field.name, &health.pre_eol));
    }
    // A value that the standard does not assign is named as such already.
    let lost: Vec<&Reading> =
        lost(health).into_iter().filter(|reading| reading.absent != Some(Absent::NotAssigned)).collect();
    if !lost.is_empty() {
        let names: Vec<&str> = lost.iter().map(|reading| reading.field.name).collect();
        let why =
            if lost.iter().any(|reading| reading.absent == Some(Absent::Damaged)) { "damaged" } else { "missing" };
        parts.push(format!("{} {why} in this source: save all of EXT_CSD", names.join(", ")));
    }
    parts.extend(health.vendor_wear.iter().filter(|wear| is_worth_saying(wear, health)).map(VendorWear::sentence));
    parts.retain(|part| !part.is_empty());
    if known_wear(health).is_none() {
        let registers = registers(health);
        // One word is enough if all are 0.
        if registers.iter().all(|reading| reading.raw.is_none_or(|raw| raw == 0)) {
            parts.retain(|part| part.contains("vendor's report"));
        }
        parts.insert(0, why_unknown(card, health).to_owned());
    }
    parts
}

fn band(life: &LifeReading) -> Option<String> {
    match (life.used_lower_percent, life.used_upper_percent) {
        (Some(lower), Some(upper)) => Some(format!("{lower} % to {upper} %")),
        (Some(lower), None) => Some(format!("past {lower} %")),
        _ => None,
    }
}

/// A register with a meaningless value.
fn undefined(name: &str, reading: &Reading) -> Option<String> {
    match (reading.absent?, reading.raw) {
        (Absent::NotDefined, _) => Some(format!("{name} not defined")),
        (Absent::NotAssigned, Some(raw)) => Some(format!("{name} not assigned ({raw:#04x})")),
        _ => None,
    }
}

/// Life always; spare blocks where they matter or PRE_EOL_INFO is unknown.
fn is_worth_saying(wear: &VendorWear, health: &Health) -> bool {
    wear.kind == WearKind::Life || wear.severity <= Severity::Notice || !health.pre_eol.is_known()
}

fn why_unknown(card: &CardData, health: &Health) -> &'static str {
    match (card.kind, health.life_a.reading.absent) {
        (Some(CardKind::Sd), _) => "wear is unknown: SD cards have no standard health register",
        (_, Some(Absent::PartTooOld)) => "wear is unknown: the part is older than eMMC 5.0 (EXT_CSD_REV < 7)",
        (_, Some(Absent::NotInSource)) => "wear is unknown: this source has no health registers",
        (_, Some(Absent::Damaged)) => "wear is unknown: the health values of this source are damaged",
        (_, Some(Absent::Implausible)) => {
            "wear is unknown: EXT_CSD holds values that no part can have; the copy is damaged"
        }
        _ => "wear is unknown: the part leaves its health registers undefined",
    }
}
