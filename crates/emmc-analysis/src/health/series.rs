//! One register over time without values that cannot be wear, and the longest recent stretch with a constant rate.

use super::history::HistoryPoint;
use super::wear_line::{self, Fit, Goal, Seen, USED_UP};

pub(super) const NANOSECONDS_PER_DAY: f64 = 86_400e9;

/// Values of one register ordered by time, none of them 0 and none smaller than its predecessor.
pub(super) struct Series {
    pub(super) seen: Vec<Seen>,
}

/// What no observation bounds.
const NO_FIT: Fit = Fit { rate_min: 0.0, rate_max: None, end_min: None, end_max: None };

/// The stretch used for a forecast.
pub(super) struct Stretch {
    pub(super) fit: Fit,
    pub(super) first: Option<Seen>,
    pub(super) count: usize,
    pub(super) rate_changed: bool,
}

impl Series {
    /// The values of one register in points ordered by time; anomalies are added to `anomalies`.
    pub(super) fn new(
        register: &str,
        points: &[&HistoryPoint],
        value: impl Fn(&HistoryPoint) -> Option<u8>,
        anomalies: &mut Vec<String>,
    ) -> Self {
        let mut series = Self { seen: Vec::with_capacity(points.len()) };
        let (mut unassigned, mut falls, mut last_fall) = (0, 0, String::new());
        for point in points {
            match value(point) {
                Some(value @ 1..=11) => {
                    if let Some(before) = series.seen.last().filter(|before| value < before.value) {
                        falls += 1;
                        last_fall = format!("from {:#04x} to {value:#04x} at {}", before.value, point.time);
                        series.seen.clear();
                    }
                    series.seen.push(Seen { at: point.time.as_nanosecond(), value });
                }
                Some(0) | None => {}
                Some(_) => unassigned += 1,
            }
        }
        if falls > 0 {
            anomalies.push(format!(
                "{register} went down {}, {last_fall}: wear never decreases, so this is another card, new firmware \
                 or a damaged reading; earlier values are left out",
                times(falls)
            ));
        }
        if unassigned > 0 {
            anomalies.push(format!("{register} had a value that the standard does not assign {}", times(unassigned)));
        }
        series
    }

    pub(super) fn ends(&self) -> Option<(Seen, Seen)> {
        Some((*self.seen.first()?, *self.seen.last()?))
    }

    /// The last time with less than 100 %, and the first time with more.
    pub(super) fn around_the_end(&self) -> (Option<i128>, Option<i128>) {
        let below = self.seen.iter().rev().find(|seen| seen.value < 11).map(|seen| seen.at);
        (below, self.seen.iter().find(|seen| seen.value == 11).map(|seen| seen.at))
    }

    /// The longest stretch up to the last observation that a line fits.
    pub(super) fn longest_fit(&self, new_at: Option<i128>, goal: Goal) -> Stretch {
        if let Some(fit) = new_at.and_then(|_| wear_line::fit(&self.seen, new_at, goal)) {
            return Stretch { fit, first: self.seen.first().copied(), count: self.seen.len(), rate_changed: false };
        }
        let (start, fit) = longest_fit(&self.seen, goal);
        let fit = fit.unwrap_or(NO_FIT);
        Stretch {
            fit,
            first: self.seen.get(start).copied(),
            count: self.seen.len().saturating_sub(start),
            rate_changed: start > 0 || new_at.is_some(),
        }
    }

    /// The observations after the last change of the rate: it came before the first one that does not fit those before.
    ///
    /// The longest stretch up to the last observation may begin before the change, and its bounds do not hold then.
    pub(super) fn since_last_change(&self, new_at: Option<i128>, goal: Goal) -> Stretch {
        let (mut start, mut new_at) = (0, new_at);
        loop {
            let rest = self.seen.get(start..).unwrap_or_default();
            let count = fitting_prefix(rest, new_at, goal);
            if count >= rest.len() {
                let fit = wear_line::fit(rest, new_at, goal).unwrap_or(NO_FIT);
                return Stretch { fit, first: rest.first().copied(), count: rest.len(), rate_changed: start > 0 };
            }
            (start, new_at) = (start + count, None);
        }
    }
}

/// Observations from the beginning that one line fits. A shorter stretch has fewer bands to pass: a binary search.
fn fitting_prefix(seen: &[Seen], new_at: Option<i128>, goal: Goal) -> usize {
    let fits = |count: usize| seen.get(..count).is_some_and(|first| wear_line::fit(first, new_at, goal).is_some());
    let (mut low, mut high) = (1, seen.len());
    while low < high {
        let middle = high - (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// Where the longest fitting stretch begins. A shorter stretch has fewer bands to pass, so it fits if a longer one
/// does: a binary search finds the boundary.
fn longest_fit(seen: &[Seen], goal: Goal) -> (usize, Option<Fit>) {
    let fit_from = |start: usize| seen.get(start..).and_then(|rest| wear_line::fit(rest, None, goal));
    let (mut low, mut high) = (0, seen.len().saturating_sub(1));
    while low < high {
        let middle = low + (high - low) / 2;
        if fit_from(middle).is_some() {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    (low, fit_from(low))
}

/// Bytes that can still be written until 100 %: lower and upper bound. `None` if too few points count written bytes.
pub(super) fn by_written(
    points: &[&HistoryPoint],
    value: impl Fn(&HistoryPoint) -> Option<u8>,
    anomalies: &mut Vec<String>,
) -> Option<(u64, Option<u64>)> {
    let mut seen: Vec<Seen> = Vec::new();
    let (mut resets, mut last_reset) = (0, String::new());
    for point in points {
        let (Some(value @ 1..=11), Some(written)) = (value(point), point.written_bytes) else { continue };
        let at = i128::from(written);
        match seen.last() {
            Some(before) if at < before.at => {
                resets += 1;
                last_reset = format!("from {} to {written} at {}", before.at, point.time);
                seen.clear();
            }
            Some(before) if value < before.value => seen.clear(),
            _ => {}
        }
        seen.push(Seen { at, value });
    }
    if resets > 0 {
        let message = format!("written_bytes went down {}, {last_reset}: the counter was reset", times(resets));
        // Both registers use the same byte counter: one message is enough.
        if !anomalies.contains(&message) {
            anomalies.push(message);
        }
    }
    let (_, fit) = longest_fit(&seen, USED_UP);
    let last = seen.last().filter(|last| last.value < 11)?.at;
    let remaining = |end: i128| u64::try_from((end - last).max(0)).unwrap_or(u64::MAX);
    let fit = fit?;
    fit.end_min.map(|end| (remaining(end), fit.end_max.map(remaining)))
}

fn times(count: usize) -> String {
    if count == 1 { "once".into() } else { format!("{count} times") }
}
