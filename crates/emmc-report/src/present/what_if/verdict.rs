//! The answer to a what-if question in a few lines: today, what changes life and speed, what the card cannot do.

use emmc_twin::what_if::{Answer, WhatIf};

use super::super::sim::micros;
use super::years;
use crate::{BarItem, Bars, Lead, LeadLine, Tone};

/// Changes that a line names.
const NAMED_MAX: usize = 4;

pub(super) fn lead(result: &WhatIf) -> Lead {
    let Some((today, changed)) = result.answers.split_first() else { return Lead::default() };
    let mut lines = vec![LeadLine::words("TODAY", Tone::Plain, as_it_is(today))];
    let lives = changed.iter().filter_map(|answer| Some((answer, answer.life_times_today?))).collect();
    lines.extend(times("LIFE", lives));
    let speed = |answer: &Answer| answer.write_mb_per_s / today.write_mb_per_s;
    lines.extend(times("SPEED", changed.iter().map(|answer| (answer, speed(answer))).collect()));
    let late: Vec<&str> =
        result.answers.iter().filter(|answer| answer.busy_share >= 1.0).map(|answer| answer.change.as_str()).collect();
    if !late.is_empty() {
        let text = format!("the card cannot keep up with the load: {}", late.join("; "));
        lines.push(LeadLine::words("TOO SLOW", Tone::Bad, text));
    }
    Lead { lines, pictures: pictures(&result.answers) }
}

fn as_it_is(today: &Answer) -> String {
    let is_log = today.years_to_end_of_life.is_some() && today.years_to_log_end == today.years_to_end_of_life;
    let what = if is_log { "the log of small writes lives" } else { "lives" };
    let life = format!("{what} {}", years(today.years_to_end_of_life));
    let longest = [("write", &today.write_us), ("flush", &today.flush_us)];
    let longest = longest.into_iter().filter_map(|(what, found)| Some((what, found.as_ref()?.max)));
    let longest: String = longest.map(|(what, max)| format!(", longest {what} {}", micros(max))).collect();
    let digits = if today.write_mb_per_s < 1.0 { 2 } else { 1 };
    format!("{life}; WA {:.2}; {:.digits$} MB/s{longest}", today.write_amplification, today.write_mb_per_s)
}

/// Changes with what they multiply today's figure by, the best first.
fn times(label: &'static str, mut found: Vec<(&Answer, f64)>) -> Option<LeadLine> {
    found.sort_by(|one, other| other.1.total_cmp(&one.1));
    let (best, worst) = (found.first()?.1, found.last()?.1);
    let tone = match (best >= 1.05, worst <= 0.95) {
        (true, false) => Tone::Good,
        (false, true) => Tone::Warn,
        _ => Tone::Plain,
    };
    let named: Vec<String> = found
        .iter()
        .take(NAMED_MAX)
        .map(|(answer, times)| format!("{times:.2} times with {}", answer.change))
        .collect();
    let more = match found.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!("; {more} more below"),
    };
    Some(LeadLine::words(label, tone, format!("{}{more}", named.join("; "))))
}

/// Years and MB/s of every row.
fn pictures(answers: &[Answer]) -> Vec<Bars> {
    let bars = |title: &str, unit: &str, of: &dyn Fn(&Answer) -> Option<f64>| {
        let mut bars = Bars::rows(title, unit);
        bars.items = answers.iter().filter_map(|answer| Some(BarItem::new(&answer.change, of(answer)?))).collect();
        bars
    };
    let years = bars("Life", "years", &|answer| answer.years_to_end_of_life);
    let speed = bars("Speed", "MB/s", &|answer| Some(answer.write_mb_per_s));
    [years, speed].into_iter().filter(|bars| !bars.items.is_empty()).collect()
}
