//! Health, forecast, endurance and vendor health as documents.

use emmc_analysis::health::{
    Absent, AreaForecast, CardEnd, Endurance, Forecast, Health, HostLink, LifeReading, Moment, Outcome, Reading,
};
use emmc_analysis::{Finding, Severity};

use crate::{Align, BarItem, Bars, Cell, Document, KeyValue, Section, Table, Tone};

/// The results of `health`.
#[derive(Clone, Copy, Debug)]
pub struct HealthParts<'a> {
    /// The standard's registers.
    pub health: &'a Health,
    /// The raw endurance estimate.
    pub endurance: Option<&'a Endurance>,
    /// The forecast.
    pub forecast: Option<&'a Forecast>,
}

/// The sections of a health report: verdict, registers, unknowns, forecast, endurance, host link.
pub fn health_sections(parts: HealthParts<'_>, document: &mut Document) {
    let health = parts.health;
    let section = document.section("health", "Health");
    section.push(vec![Finding::new(health.verdict.severity, "health", health.verdict.sentence.as_str())]);
    if let Some(bars) = life_bars(health) {
        section.push(bars);
    }
    let rows = registers(health);
    if !rows.is_empty() {
        section.push(rows);
    }
    for note in &health.notes {
        section.note(Tone::Notice, note.as_str());
    }
    if !health.cannot_tell.is_empty() {
        let section = document.section("cannot-tell", "Unknown");
        section.push(
            health.cannot_tell.iter().map(|one| KeyValue::new(one.what.as_str(), one.why.as_str())).collect::<Vec<_>>(),
        );
    }
    host_link(&health.host_link, document);
    if let Some(forecast) = parts.forecast {
        self::forecast(forecast, document);
    }
    if let Some(endurance) = parts.endurance {
        self::endurance(endurance, document);
    }
}

pub(super) fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Critical => Tone::Bad,
        Severity::Warning => Tone::Warn,
        Severity::Notice => Tone::Notice,
        Severity::Unknown => Tone::Muted,
        Severity::Good => Tone::Good,
    }
}

/// Used life as bands; absent if it is unknown for both cell types.
pub(super) fn life_bars(health: &Health) -> Option<Bars> {
    let mut bars = Bars::rows("Life used", "%").max(110.0);
    for (label, life) in [("type A cells", &health.life_a), ("type B cells", &health.life_b)] {
        if let Some(lower) = life.used_lower_percent {
            let upper = life.used_upper_percent.map_or(110.0, f64::from);
            let item = BarItem::range(label, f64::from(lower), upper).tone(tone(life.reading.severity));
            bars = bars.item(item.value(band(life)));
        }
    }
    (!bars.items.is_empty()).then_some(bars)
}

fn band(life: &LifeReading) -> String {
    match (life.used_lower_percent, life.used_upper_percent) {
        (Some(lower), Some(upper)) => format!("{lower} % to {upper} %"),
        (Some(lower), None) => format!("past {lower} %"),
        _ => "unknown".into(),
    }
}

fn registers(health: &Health) -> Vec<KeyValue> {
    let row = |reading: &Reading, note: Option<&str>| {
        let raw = reading.raw.map(|raw| format!("{raw:#04x}"));
        let pair = KeyValue::new(reading.field.name, Cell::new(reading.text.as_str(), tone(reading.severity)));
        match (raw, note) {
            (Some(raw), Some(note)) => pair.note(format!("{raw}, {note}")),
            (Some(raw), None) => pair.note(raw),
            (None, _) => pair,
        }
    };
    let readings = [
        (&health.life_a.reading, Some(health.life_a.cells)),
        (&health.life_b.reading, Some(health.life_b.cells)),
        (&health.pre_eol, None),
        (&health.bkops_status, None),
        (&health.exception_events, None),
    ];
    // The verdict already says that an SD card lacks the registers of an eMMC.
    let told = readings.into_iter().filter(|(reading, _)| reading.absent != Some(Absent::SdCard));
    told.map(|(reading, note)| row(reading, note)).collect()
}

fn host_link(link: &HostLink, document: &mut Document) {
    if link.severity == Severity::Unknown {
        // It is listed as unknown.
        return;
    }
    let section = document.section("host-link", "Between host and card");
    section.push(vec![Finding::new(link.severity, "host-link", link.text.as_str())]);
    if link.errors.iter().any(|error| error.count > 0) {
        let mut table = Table::new([("error", Align::Left), ("count", Align::Right), ("meaning", Align::Left)]);
        for error in link.errors.iter().filter(|error| error.count > 0) {
            let count = Cell::new(error.count.to_string(), tone(error.severity));
            table.row([Cell::from(error.name.as_str()), count, Cell::from(error.meaning)]);
        }
        section.push(table);
    }
}

fn forecast(forecast: &Forecast, document: &mut Document) {
    let section = document.section("forecast", "Forecast");
    section.push(vec![
        KeyValue::new(
            "observations",
            format!("{} from {} to {}", forecast.observations, forecast.first, forecast.last),
        ),
        KeyValue::new("assumption", forecast.assumption),
    ]);
    section.push(vec![card_end(&forecast.end)]);
    for area in [&forecast.life_a, &forecast.life_b] {
        area_forecast(area, section);
    }
    for anomaly in &forecast.anomalies {
        section.note(Tone::Warn, anomaly.as_str());
    }
}

/// Warning within a year.
fn forecast_severity(outcome: Outcome, earliest: Option<&Moment>) -> Severity {
    match (outcome, earliest.map(|moment| moment.days)) {
        (Outcome::Reached, _) => Severity::Critical,
        (Outcome::Unknown, _) => Severity::Unknown,
        (_, Some(days)) if days < 365.0 => Severity::Warning,
        _ => Severity::Notice,
    }
}

fn card_end(end: &CardEnd) -> Finding {
    let finding =
        Finding::new(forecast_severity(end.outcome, end.earliest.as_ref()), "card-end", end.sentence.as_str());
    match end.outcome {
        Outcome::Bounded | Outcome::NotBefore => finding.evidence(end.assumption),
        Outcome::Reached | Outcome::Unknown => finding,
    }
}

fn area_forecast(area: &AreaForecast, section: &mut Section) {
    let severity = forecast_severity(area.outcome, area.earliest.as_ref());
    let mut finding = Finding::new(severity, "forecast", format!("{}: {}", area.register, area.sentence));
    if let (Some(lower), Some(upper)) = (area.rate_lower_percent_per_day, area.rate_upper_percent_per_day) {
        finding = finding.evidence(format!("between {lower:.4} and {upper:.4} % of life a day"));
    }
    if let Some(written) = &area.by_written {
        let upper = written
            .remaining_upper_bytes
            .map_or("no upper bound yet".into(), |bytes| format!("at most {}", emmc_units::Bytes(bytes)));
        let lower = emmc_units::Bytes(written.remaining_lower_bytes);
        finding = finding.evidence(format!("host writes until then: at least {lower}, {upper}"));
    }
    if let Some(needs) = area.needs {
        finding = finding.advice(needs);
    }
    section.push(vec![finding]);
}

fn endurance(endurance: &Endurance, document: &mut Document) {
    let section = document.section("endurance", "Raw endurance");
    let blocks = format!("{} blocks of {}, {} cycles each", endurance.blocks, endurance.block_bytes, endurance.cycles);
    let gib = endurance.raw_bytes.0 as f64 / (1u64 << 30) as f64;
    let mut pairs = vec![
        KeyValue::new("flash", blocks),
        KeyValue::new("flash can take", format!("{gib:.0} GiB")).note(format!("{} bytes", endurance.raw_bytes.0)),
    ];
    match (endurance.write_amplification, endurance.host_bytes) {
        (Some(factor), Some(host)) => {
            let gib = host.0 as f64 / (1u64 << 30) as f64;
            pairs.push(
                KeyValue::new("host can write", format!("{gib:.0} GiB"))
                    .note(format!("at write amplification {factor}")),
            );
        }
        _ => pairs.push(
            KeyValue::new("host can write", "less")
                .note("divide by the write amplification; --write-amplification does it"),
        ),
    }
    section.push(pairs);
}
