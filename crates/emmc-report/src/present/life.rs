//! A whole life, and ranked parts, as documents.

use emmc_twin::what_if::{Answer, Latencies, Life, LifeEnd, Ranking};
use emmc_units::Bytes;

use super::sim::micros;
use super::what_if::{short_years, years};
use crate::{Align, Cell, Document, KeyValue, Lead, LeadLine, Table, Tone};

/// Decimal, as data sheets state it.
fn volume(bytes: f64) -> String {
    if bytes >= 1e12 { format!("{:.3} TB", bytes / 1e12) } else { format!("{:.2} GB", bytes / 1e9) }
}

/// The report of a life.
pub fn life(life: &Life) -> Document {
    let mut document = Document::new(format!("Life of virtual card {}", life.profile));
    document.subtitle = Some(life.duty.sentence.clone());
    document.lead = Some(Lead { lines: vec![lived(life)], ..Lead::default() });
    let section = document.section("summary", "Summary");
    let end = match life.ended {
        LifeEnd::ReadOnly => "no spare block is left: the card is read-only",
        LifeEnd::TwiceRated => "twice the rated erases, and the card still works",
        LifeEnd::Centuries => "after 500 years: the load is too small to wear the card",
        LifeEnd::Stopped => "interrupted",
    };
    let [fewest, mean, most] = life.erases;
    section.push(vec![
        KeyValue::new("end", end),
        KeyValue::new("card received", volume(life.written_bytes as f64))
            .note(format!("the programs wrote {}", volume(life.program_bytes))),
        KeyValue::new("time at this load", format!("{:.1} days", life.days))
            .note(format!("{:.2} years", life.days / 365.25)),
        KeyValue::new("write amplification", format!("{:.3}", life.write_amplification)),
        KeyValue::new("rated erases used", format!("{:.1} %", life.used_share * 100.0))
            .note(format!("erases of a block: {fewest:.0} to {most:.0}, {mean:.1} on average")),
        KeyValue::new("blocks gone bad", life.grown_bad.to_string()),
        KeyValue::new("capacity x cycles / amplification", volume(life.arithmetic_bytes))
            .note(format!("simulated: {:.3} times that", life.written_over_arithmetic)),
    ]);
    let right = Align::Right;
    let mut table = Table::new([
        ("register", Align::Left),
        ("becomes", right),
        ("card had received", right),
        ("days", right),
        ("rated erases used", right),
    ]);
    for step in &life.steps {
        table.row([
            step.register.to_owned(),
            format!("0x{:02x}", step.value),
            volume(step.written_bytes as f64),
            format!("{:.1}", step.days),
            format!("{:.1} %", step.used_share * 100.0),
        ]);
    }
    if !life.steps.is_empty() {
        document.section("steps", "Register steps").push(table);
    }
    document
}

fn lived(life: &Life) -> LeadLine {
    let (received, age) = (volume(life.written_bytes as f64), years(Some(life.days / 365.25)));
    let text = match life.ended {
        LifeEnd::ReadOnly => format!("{age}, {received}; then the card is read-only"),
        LifeEnd::Centuries => format!("more than {age}, {received}: the load is too small to wear the card"),
        LifeEnd::TwiceRated => format!("more than {age}, {received}: twice its rated erases, and it still works"),
        LifeEnd::Stopped => format!("interrupted after {age}, {received}"),
    };
    LeadLine::words("LIFE", Tone::Plain, format!("{text}; WA {:.2}", life.write_amplification))
}

/// The report of ranked parts.
pub fn ranking(ranking: &Ranking) -> Document {
    let mut document = Document::new("Parts for this load");
    document.subtitle = Some(ranking.duty.sentence.clone());
    document.lead = Some(Lead { lines: vec![best(ranking)], ..Lead::default() });
    let right = Align::Right;
    let mut table = Table::new([
        ("", right),
        ("part", Align::Left),
        ("usable", right),
        ("end", right),
        ("warning", right),
        ("WA", right),
        ("MB/s", right),
        ("write p99.9", right),
        ("longest", right),
        ("flush p99", right),
    ]);
    for (number, answer) in (1u32..).zip(&ranking.fitting) {
        table.row(row(number, answer));
    }
    let needed = ranking.years_needed;
    let section = document.section("fitting", "Parts that fit");
    let caption = format!("{needed} years or more at this load, by the steady wear of the simulation");
    if ranking.fitting.is_empty() {
        section.note(Tone::Bad, "No part fits.");
    } else {
        section.push(table.caption(caption));
    }
    if !ranking.unfit.is_empty() {
        let mut table = Table::new([("part", Align::Left), ("why", Align::Left)]);
        for part in &ranking.unfit {
            table.row([part.profile.as_str(), part.why.as_str()]);
        }
        document.section("unfit", "Parts that do not fit").push(table);
    }
    for answer in &ranking.fitting {
        for note in &answer.notes {
            let section = document.sections.last_mut();
            section.map(|section| section.note(Tone::Warn, format!("{}: {note}", answer.profile)));
        }
    }
    let note = "Parts are as their profiles describe them; endurance and over-provisioning of shipped profiles are assumed \
(see each profile's sources).";
    document.section("notes", "Notes").note(Tone::Muted, note);
    document
}

fn best(ranking: &Ranking) -> LeadLine {
    let of = ranking.fitting.len() + ranking.unfit.len();
    let Some(best) = ranking.fitting.first() else {
        return LeadLine::words("BEST", Tone::Bad, format!("no part of {of} fits"));
    };
    let end = years(best.years_to_end_of_life);
    let fit = ranking.fitting.len();
    LeadLine::words("BEST", Tone::Good, format!("{}: {end}; {fit} of {of} parts fit", best.profile))
}

fn row(number: u32, answer: &Answer) -> Vec<Cell> {
    let of = |found: &Option<Latencies>, of: fn(&Latencies) -> f64| {
        found.as_ref().map_or(String::new(), |found| micros(of(found)))
    };
    let cells = [
        number.to_string(),
        answer.profile.clone(),
        Bytes(answer.usable_bytes).rounded(),
        short_years(answer.years_to_end_of_life),
        short_years(answer.years_to_pre_eol_warning),
        format!("{:.2}", answer.write_amplification),
        format!("{:.2}", answer.write_mb_per_s),
        of(&answer.write_us, |found| found.p999),
        of(&answer.write_us, |found| found.max),
        of(&answer.flush_us, |found| found.p99),
    ];
    cells.map(Cell::from).into()
}
