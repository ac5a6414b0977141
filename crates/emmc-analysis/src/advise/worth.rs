//! Was it worth it: how much is written before and after a change, from a monitor's samples.
//!
//! A day is the unit: the samples of one day differ from those of the next by what the system does, which is the spread
//! that a change has to stand out from.

use jiff::Timestamp;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::YearsLeft;
use crate::health::{ForecastOptions, HealthError, HistoryPoint, forecast};

const DAY_S: f64 = super::DAY_S;

/// Why samples do not say it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WorthError {
    /// A side has too few samples.
    #[error("{side} {split}: {found} samples that count what was written; expected at least 3, over at least 2 hours")]
    TooFew {
        /// `before` or `after`.
        side: &'static str,
        /// The change.
        split: String,
        /// How many there are.
        found: usize,
    },
    /// A counter that was reset.
    #[error("written_bytes falls from {from} to {to} at {at}; expected a total that only grows")]
    Falls {
        /// When.
        at: String,
        /// Before. Unit: bytes.
        from: u64,
        /// Then. Unit: bytes.
        to: u64,
    },
    /// Nothing to compare with.
    #[error("nothing was written before {0}")]
    NothingBefore(String),
    /// The samples themselves.
    #[error(transparent)]
    Health(#[from] HealthError),
}

/// One side of the change.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Period {
    /// Unit: days.
    pub days: f64,
    /// Intervals between samples.
    pub intervals: usize,
    /// Unit: bytes a day.
    pub bytes_per_day: f64,
    /// Its 95 % confidence interval. Unit: bytes a day.
    pub interval_bytes_per_day: [f64; 2],
    /// The years that are left at this rate, from the end of the samples.
    pub years_left: Option<YearsLeft>,
}

/// Before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Worth {
    /// When the change was made, RFC 3339.
    pub split: String,
    /// Until then.
    pub before: Period,
    /// From then on.
    pub after: Period,
    /// What is written less, negative if it is more. Unit: percent of before.
    pub saved_percent: f64,
    /// Its 95 % confidence interval. Unit: percent.
    pub saved_interval_percent: [f64; 2],
    /// Whether the interval does not contain zero.
    pub is_clear: bool,
    /// The answer in a sentence.
    pub verdict: String,
}

/// Compares what was written before `split` with what was written after it.
///
/// Errors: too few samples on a side; samples of several cards.
pub fn worth(points: &[HistoryPoint], split: Timestamp) -> Result<Worth, WorthError> {
    let forecast = forecast(points, &ForecastOptions::default())?;
    let left = [&forecast.life_a, &forecast.life_b].into_iter().filter_map(|area| area.by_written.as_ref());
    let left = left.min_by_key(|left| left.remaining_lower_bytes);
    let mut counted: Vec<(Timestamp, u64)> =
        points.iter().filter_map(|point| Some((point.time, point.written_bytes?))).collect();
    counted.sort_unstable();
    if let Some(pair) = counted.windows(2).find(|pair| pair[1].1 < pair[0].1) {
        return Err(WorthError::Falls { at: pair[1].0.to_string(), from: pair[0].1, to: pair[1].1 });
    }
    let side = |side, points: Vec<(Timestamp, u64)>| {
        let rates = Rates::of(&points);
        rates.ok_or(WorthError::TooFew { side, split: split.to_string(), found: points.len() })
    };
    let before = side("before", counted.iter().copied().filter(|(time, _)| *time <= split).collect())?;
    let after = side("after", counted.iter().copied().filter(|(time, _)| *time >= split).collect())?;
    if before.mean <= 0.0 {
        return Err(WorthError::NothingBefore(split.to_string()));
    }
    let difference = 1.0 - after.mean / before.mean;
    // The quotient's variance by the delta method; the smaller side's degrees of freedom, which is the wider interval.
    let relative = |side: &Rates| if side.mean > 0.0 { side.error / side.mean } else { 0.0 };
    let spread = (after.mean / before.mean) * relative(&before).hypot(relative(&after));
    let wide = before.quantile().max(after.quantile()) * spread;
    let saved = [difference - wide, difference + wide].map(|share| 100.0 * share);
    let is_clear = saved[0] > 0.0 || saved[1] < 0.0;
    let period = |side: &Rates| Period {
        days: side.seconds / DAY_S,
        intervals: side.count,
        bytes_per_day: side.mean,
        interval_bytes_per_day: [-1.0, 1.0].map(|sign| (side.mean + sign * side.quantile() * side.error).max(0.0)),
        years_left: left.and_then(|left| YearsLeft::at(left, side.mean)),
    };
    let (before, after) = (period(&before), period(&after));
    let verdict = verdict(100.0 * difference, saved, is_clear, &before, &after);
    Ok(Worth {
        split: split.to_string(),
        before,
        after,
        saved_percent: 100.0 * difference,
        saved_interval_percent: saved,
        is_clear,
        verdict,
    })
}

/// Rates of writing between samples.
struct Rates {
    /// Over all of it. Unit: bytes a day.
    mean: f64,
    /// Standard error of the mean. Unit: bytes a day.
    error: f64,
    seconds: f64,
    count: usize,
}

impl Rates {
    fn of(points: &[(Timestamp, u64)]) -> Option<Self> {
        let (first, last) = (points.first()?, points.last()?);
        let seconds = |from: Timestamp, to: Timestamp| to.duration_since(from).as_secs_f64();
        let whole = seconds(first.0, last.0);
        // Samples closer than an hour, or than a hundredth of the side, are of the same moment.
        let apart = (whole / 100.0).max(3600.0);
        let mut kept = vec![*first];
        for point in &points[1..] {
            if kept.last().is_some_and(|kept| seconds(kept.0, point.0) >= apart) {
                kept.push(*point);
            }
        }
        let last = kept.last()?;
        let whole = seconds(first.0, last.0);
        let pieces: Vec<(f64, f64)> = kept
            .windows(2)
            .map(|pair| (seconds(pair[0].0, pair[1].0), pair[1].1.saturating_sub(pair[0].1) as f64))
            .collect();
        if pieces.len() < 2 {
            return None;
        }
        let mean = (last.1.saturating_sub(first.1)) as f64 / whole;
        // Of a ratio of sums: intervals may differ in length.
        let squares: f64 = pieces.iter().map(|(seconds, bytes)| (bytes - mean * seconds).powi(2)).sum();
        let count = pieces.len() as f64;
        let error = (squares * count / (count - 1.0)).sqrt() / whole;
        Some(Self { mean: mean * DAY_S, error: error * DAY_S, seconds: whole, count: pieces.len() })
    }

    /// Student's t for 95 %.
    fn quantile(&self) -> f64 {
        StudentsT::new(0.0, 1.0, (self.count - 1) as f64).map_or(f64::INFINITY, |t| t.inverse_cdf(0.975))
    }
}

fn verdict(saved: f64, interval: [f64; 2], is_clear: bool, before: &Period, after: &Period) -> String {
    let rates =
        format!("{} a day before, {} after", super::bytes(before.bytes_per_day), super::bytes(after.bytes_per_day));
    let interval = format!("95 % confidence interval {:.0} to {:.0} %", interval[0], interval[1]);
    let years = before.years_left.zip(after.years_left).map(|(before, after)| {
        let (before, after) = (super::years_text(before), super::years_text(after));
        format!("; what is left lasts {after} instead of {before}")
    });
    let years = years.unwrap_or_default();
    match (is_clear, saved >= 0.0) {
        (true, true) => format!("Yes: {saved:.0} % less is written ({interval}): {rates}{years}"),
        (true, false) => format!("No: {:.0} % more is written ({interval} less): {rates}{years}", -saved),
        (false, _) => format!(
            "Not to be told yet: {saved:.0} % less is written, but the days differ by more ({interval}): {rates}"
        ),
    }
}
