//! Forecast: the earliest and the latest time at which the registers will show 100 % used.
//!
//! The registers move in steps of 10 %, so a forecast is an interval, often without an upper bound: until a register
//! has moved twice, zero wear since the first step also fits. Absent on purpose: a most likely date. Nothing in
//! the registers supports one.

use jiff::Timestamp;
use serde::Serialize;

use super::HealthError;
use super::card_end::{CardEnd, EndEvidence, LifeEvidence, card_end};
use super::history::HistoryPoint;
use super::series::{self, Series};
use super::wear_line::USED_UP;

/// The assumption behind every bound here.
const ASSUMPTION: &str = "wear continues at the constant rate of the observations used";

/// What is known beside the observations.
#[derive(Clone, Copy, Debug, Default)]
pub struct ForecastOptions {
    /// When the part was put in service as new, with no life used.
    pub in_service_since: Option<Timestamp>,
}

/// When a card's life will be used up.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Forecast {
    /// The cell type whose life may end first, or the missing values.
    pub sentence: String,
    /// The assumption behind the bounds.
    pub assumption: &'static str,
    /// Observations given.
    pub observations: usize,
    /// Time of the first observation.
    pub first: String,
    /// Time of the last one; days are counted from here.
    pub last: String,
    /// The card's end: 100 % used, or read-only before.
    pub end: CardEnd,
    /// Type A cells.
    pub life_a: AreaForecast,
    /// Type B cells.
    pub life_b: AreaForecast,
    /// Anomalies of the history: used life that decreases, counters that jump.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub anomalies: Vec<String>,
}

/// State of a forecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// 100 % is used already.
    Reached,
    /// There is an earliest and a latest time.
    Bounded,
    /// There is only an earliest time.
    NotBefore,
    /// No forecast is possible yet.
    Unknown,
}

/// The forecast for one cell type.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AreaForecast {
    /// The register.
    pub register: &'static str,
    /// Its state.
    pub outcome: Outcome,
    /// The forecast in one sentence.
    pub sentence: String,
    /// What would improve it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<&'static str>,
    /// Number of observations used for the bounds.
    pub observations_used: usize,
    /// Time of the first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_since: Option<String>,
    /// Whether earlier observations were left out because no constant rate fits all of them.
    pub rate_changed: bool,
    /// Slowest rate that fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_lower_percent_per_day: Option<f64>,
    /// Fastest rate that fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_upper_percent_per_day: Option<f64>,
    /// When 100 % is used, at the earliest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earliest: Option<Moment>,
    /// When 100 % is used, at the latest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest: Option<Moment>,
    /// The remaining host writes until then, if the observations count them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_written: Option<WrittenForecast>,
}

/// A time, counted from the last observation.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Moment {
    /// RFC 3339; absent past the year 9999.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Days after the last observation; negative before it.
    pub days: f64,
}

/// The forecast in bytes written by the host: it also holds if the write volume varies from day to day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WrittenForecast {
    /// At least this much can still be written until 100 % is used.
    pub remaining_lower_bytes: u64,
    /// At most this much; absent while there is no upper limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_upper_bytes: Option<u64>,
}

impl Forecast {
    /// When the card ends, in words for everyone: `at the present rate it ends between 2027-07-13 and 2028-03-31`.
    ///
    /// `None` if nothing bounds the end, or all of the rated life is used.
    pub fn end_of_life(&self) -> Option<String> {
        self.end.in_words()
    }
}

impl Moment {
    /// The day: `2027-07-13`; past the year 9999 `in 5000000 days`.
    pub(super) fn day(&self) -> String {
        match &self.time {
            Some(time) => time.split('T').next().unwrap_or(time).to_owned(),
            None => format!("in {} days", self.days.floor()),
        }
    }
}

/// Forecasts from observations in any order.
///
/// Errors: no observation, observations of different cards, or one from before the part was in service.
pub fn forecast(points: &[HistoryPoint], options: &ForecastOptions) -> Result<Forecast, HealthError> {
    same_card(points)?;
    let mut points: Vec<&HistoryPoint> = points.iter().collect();
    points.sort_by_key(|point| point.time);
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Err(HealthError::NoObservation) };
    if let Some(since) = options.in_service_since.filter(|since| *since > first.time) {
        return Err(HealthError::InServiceLate { since: since.to_string(), first: first.time.to_string() });
    }
    let mut anomalies = Vec::new();
    let (name_a, name_b) = ("DEVICE_LIFE_TIME_EST_TYP_A", "DEVICE_LIFE_TIME_EST_TYP_B");
    let series_a = Series::new(name_a, &points, |point| point.life_a, &mut anomalies);
    let series_b = Series::new(name_b, &points, |point| point.life_b, &mut anomalies);
    let life_a = area(name_a, &points, |point| point.life_a, &series_a, options, &mut anomalies);
    let life_b = area(name_b, &points, |point| point.life_b, &series_b, options, &mut anomalies);
    let lives = [
        LifeEvidence { series: &series_a, forecast: &life_a, evidence: EndEvidence::LifeA },
        LifeEvidence { series: &series_b, forecast: &life_b, evidence: EndEvidence::LifeB },
    ];
    let end = card_end(&points, lives, options.in_service_since.map(|time| time.as_nanosecond()));
    Ok(Forecast {
        sentence: overall(&life_a, &life_b),
        assumption: ASSUMPTION,
        observations: points.len(),
        first: first.time.to_string(),
        last: last.time.to_string(),
        end,
        life_a,
        life_b,
        anomalies,
    })
}

fn same_card(points: &[HistoryPoint]) -> Result<(), HealthError> {
    let mut keys = points.iter().filter_map(HistoryPoint::card_key);
    let Some(first) = keys.next() else { return Ok(()) };
    match keys.find(|key| *key != first) {
        Some(other) => Err(HealthError::DifferentCards { first, other }),
        None => Ok(()),
    }
}

fn overall(a: &AreaForecast, b: &AreaForecast) -> String {
    let first = first_to_end(a, b);
    format!("{}: {}", first.register, first.sentence)
}

/// The cell type that ends first: an end already reached, then the earlier bound, unknown last.
fn first_to_end<'a>(a: &'a AreaForecast, b: &'a AreaForecast) -> &'a AreaForecast {
    let key = |area: &AreaForecast| match area.outcome {
        Outcome::Reached => f64::NEG_INFINITY,
        _ => area.earliest.as_ref().map_or(f64::INFINITY, |moment| moment.days),
    };
    if key(b) < key(a) { b } else { a }
}

fn area(
    register: &'static str,
    points: &[&HistoryPoint],
    value: impl Fn(&HistoryPoint) -> Option<u8>,
    series: &Series,
    options: &ForecastOptions,
    anomalies: &mut Vec<String>,
) -> AreaForecast {
    let Some((first, last)) = series.ends() else { return nothing(register, points, value) };
    if last.value == 11 {
        return reached(register, series);
    }
    let new_at = options.in_service_since.map(|time| time.as_nanosecond());
    let recent = series.longest_fit(new_at, USED_UP);
    let day = |rate: f64| rate * series::NANOSECONDS_PER_DAY;
    let moment = |at: Option<i128>| at.map(|at| moment(at, last.at));
    let (earliest, latest) = (moment(recent.fit.end_min), moment(recent.fit.end_max));
    let outcome = match (&earliest, &latest) {
        (Some(_), Some(_)) => Outcome::Bounded,
        (Some(_), None) => Outcome::NotBefore,
        _ => Outcome::Unknown,
    };
    let sentence = sentence(&earliest, &latest).unwrap_or_else(|| single_time(points, &value, series));
    AreaForecast {
        register,
        outcome,
        sentence,
        needs: needs(outcome),
        observations_used: recent.count,
        used_since: timestamp(recent.first.map_or(first.at, |seen| seen.at)),
        rate_changed: recent.rate_changed,
        rate_lower_percent_per_day: recent.fit.rate_max.map(|_| day(recent.fit.rate_min)),
        rate_upper_percent_per_day: recent.fit.rate_max.map(day),
        earliest,
        latest,
        by_written: series::by_written(points, value, anomalies)
            .map(|(lower, upper)| WrittenForecast { remaining_lower_bytes: lower, remaining_upper_bytes: upper }),
    }
}

fn nothing(
    register: &'static str,
    points: &[&HistoryPoint],
    value: impl Fn(&HistoryPoint) -> Option<u8>,
) -> AreaForecast {
    let has = |silent: fn(u8) -> bool| points.iter().any(|point| value(point).is_some_and(silent));
    let why = match (has(|raw| raw == 0), has(|raw| raw > 11)) {
        (true, _) => "the part reports 0, not defined",
        (false, true) => "the register holds a value that the standard does not assign",
        (false, false) => "no observation has the register",
    };
    AreaForecast {
        register,
        outcome: Outcome::Unknown,
        sentence: format!("no forecast: {why}"),
        needs: None,
        observations_used: 0,
        used_since: None,
        rate_changed: false,
        rate_lower_percent_per_day: None,
        rate_upper_percent_per_day: None,
        earliest: None,
        latest: None,
        by_written: None,
    }
}

fn reached(register: &'static str, series: &Series) -> AreaForecast {
    let last = series.ends().map_or(0, |(_, last)| last.at);
    let (before, after) = series.around_the_end();
    let earliest = before.map(|at| moment(at, last));
    let latest = after.map(|at| moment(at, last));
    let when = match (before.and_then(timestamp), after.and_then(timestamp)) {
        (Some(before), Some(after)) => format!("between {before} and {after}"),
        (None, Some(after)) => format!("by {after}, the first observation"),
        _ => "already".into(),
    };
    AreaForecast {
        outcome: Outcome::Reached,
        sentence: format!("100 % of the estimated life was used {when}"),
        observations_used: series.seen.len(),
        earliest,
        latest,
        ..nothing(register, &[], |_| None)
    }
}

fn needs(outcome: Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Unknown => Some("a later observation of the register, or the date when the part was put in service"),
        Outcome::NotBefore => {
            Some("the register must move twice, or once if the date of being put in service is given")
        }
        Outcome::Bounded | Outcome::Reached => None,
    }
}

/// Why the values of a register are from a single time.
fn single_time(points: &[&HistoryPoint], value: impl Fn(&HistoryPoint) -> Option<u8>, series: &Series) -> String {
    let count = |silent: fn(Option<u8>) -> bool| points.iter().filter(|point| silent(value(point))).count();
    let reasons: Vec<String> = [
        (count(|raw| raw == Some(0)), "it is 0, not defined"),
        (count(|raw| raw.is_some_and(|raw| raw > 11)), "it holds a value that the standard does not assign"),
        (count(|raw| raw.is_none()), "the source does not have it"),
        (
            count(|raw| matches!(raw, Some(1..=11))).saturating_sub(series.seen.len()),
            "it is older than a decrease of wear",
        ),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, why)| format!("in {count} of {} observations {why}", points.len()))
    .collect();
    match reasons.is_empty() {
        true => "no forecast from observations at a single time".into(),
        false => format!("no forecast: the register has values of a single time; {}", reasons.join(", ")),
    }
}

fn sentence(earliest: &Option<Moment>, latest: &Option<Moment>) -> Option<String> {
    let when = |moment: &Moment, days: f64| match &moment.time {
        Some(time) => format!("in {days} days ({})", time.split('T').next().unwrap_or(time)),
        None => format!("in {days} days"),
    };
    let earliest = earliest.as_ref()?;
    let start = format!("100 % used {} at the earliest", when(earliest, earliest.days.floor()));
    Some(match latest {
        Some(latest) => format!("{start}, {} at the latest", when(latest, latest.days.ceil())),
        None => format!("{start}, with no upper bound yet"),
    })
}

pub(super) fn moment(at: i128, last: i128) -> Moment {
    Moment { time: timestamp(at), days: (at - last) as f64 / series::NANOSECONDS_PER_DAY }
}

pub(super) fn timestamp(at: i128) -> Option<String> {
    let seconds = i64::try_from(at.div_euclid(1_000_000_000)).ok()?;
    Timestamp::from_second(seconds).ok().map(|time| time.to_string())
}
