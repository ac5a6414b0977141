//! The card's wear in one line.

use emmc_regs::CardKind;

use super::{Answer, Facts};
use crate::finding::Severity;
use crate::health::{Absent, Forecast, Health, LifeReading};

pub(super) fn answer(facts: &Facts<'_>) -> Answer {
    let health = &facts.study.health;
    let mut parts: Vec<String> = life(health).into_iter().collect();
    parts.extend(facts.study.forecast.as_ref().and_then(Forecast::end_of_life));
    if health.pre_eol.is_known() {
        let text = &health.pre_eol.text;
        let consumed = text.split_once(": ").map(|(_, consumed)| consumed.to_owned());
        parts.push(consumed.unwrap_or_else(|| format!("reserved blocks {text}")));
    }
    parts.extend(health.vendor_wear.iter().filter(|wear| is_news(wear.severity, health)).map(|wear| wear.sentence()));
    if parts.is_empty() {
        parts.push(why_unknown(facts).into());
    }
    let concerns = [
        (health.host_link.severity, "errors between host and card"),
        (health.bkops_status.severity, "background operations outstanding"),
        (health.exception_events.severity, "an exception event"),
    ];
    // The life alone gives a severity that the reader knows; whatever else raises it is named.
    parts.extend(concerns.iter().filter(|(severity, _)| *severity <= Severity::Notice).map(|(_, text)| (*text).into()));
    if !facts.card.conflicts.is_empty() {
        parts.push("the sources disagree".into());
    }
    let severity = health.verdict.severity;
    Answer::new(severity, format!("{}: {}", severity.word(), parts.join("; ")))
}

/// The cell type that is worn most, and the other type where its band differs.
fn life(health: &Health) -> Option<String> {
    let bands = [("A", band(&health.life_a)), ("B", band(&health.life_b))];
    let known: Vec<(&str, (u8, String))> =
        bands.iter().filter_map(|(cells, band)| Some((*cells, band.clone()?))).collect();
    let (cells, (_, worst)) = known.iter().max_by_key(|(_, (lower, _))| *lower)?;
    let other = known.iter().find(|(name, _)| name != cells);
    Some(match other {
        Some((_, (_, band))) if band == worst => format!("{worst} of rated life used"),
        Some((name, (_, band))) => format!("{worst} of rated life used (type {cells}; type {name}: {band})"),
        None => {
            let silent = if *cells == "A" { "B" } else { "A" };
            format!("{worst} of rated life used (type {cells}; type {silent} is not known)")
        }
    })
}

fn band(life: &LifeReading) -> Option<(u8, String)> {
    match (life.used_lower_percent?, life.used_upper_percent) {
        (lower, Some(upper)) => Some((lower, format!("{lower} % to {upper} %"))),
        (lower, None) => Some((lower, format!("past {lower} %"))),
    }
}

/// A vendor's figure that is worse than the registers, or the only figure.
fn is_news(severity: Severity, health: &Health) -> bool {
    let known = health.life_a.reading.is_known() || health.life_b.reading.is_known();
    severity <= Severity::Notice || !known
}

fn why_unknown(facts: &Facts<'_>) -> &'static str {
    match (facts.card.kind, facts.study.health.life_a.reading.absent) {
        (Some(CardKind::Sd), _) => "SD cards have no standard wear register",
        (_, Some(Absent::PartTooOld)) => "the part is older than eMMC 5.0 and has no wear registers",
        (_, Some(Absent::NotInSource)) => "this source has no wear registers",
        _ => "the part leaves its wear registers undefined",
    }
}
