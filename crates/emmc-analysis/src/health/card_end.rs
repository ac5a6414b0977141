//! The card's end: 100 % of the rated life used, or read-only, whichever comes first.
//!
//! A life time register counts the average erases of its blocks. A card becomes read-only when its reserved blocks are
//! used up, and the most worn blocks fail first: before the average is at 100 %. So the end may come from the beginning
//! of the register's last step on, and from now on if PRE_EOL_INFO warns.
//! Absent on purpose: how much the most worn block is ahead. No register of the standard has it. Where it is more than
//! 10 % of the rating, or blocks fail before their rating, a card may end earlier than its bounds say.

use serde::Serialize;

use super::forecast::{AreaForecast, Moment, Outcome, moment, timestamp};
use super::history::HistoryPoint;
use super::series::{NANOSECONDS_PER_DAY, Series, Stretch};
use super::wear_line::Goal;

/// Loads repeat each week: a device that is idle on Sundays or updated on Mondays wears no line.
const PERIOD: i128 = 7 * NANOSECONDS_PER_DAY as i128;
/// Where the last step of the register begins.
const LAST_STEP: Goal = Goal { percent: 90, period: PERIOD };
const USED_UP: Goal = Goal { percent: 100, period: PERIOD };
/// The register's value in its last step: 90 % to 100 %.
const LAST_STEP_RAW: u8 = 10;

const ASSUMPTION: &str = "each week wears the card as much as each week of the observations used";
const WHY_EARLY: &str =
    "the last 10 % before 100 % are counted because the register is an average and reserved blocks run out first";

/// When a card ends.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CardEnd {
    /// Its state; `reached`: the card is read-only, or 100 % are used.
    pub outcome: Outcome,
    /// The forecast in one sentence.
    pub sentence: String,
    /// The assumption behind the bounds.
    pub assumption: &'static str,
    /// The earliest end, not before the last observation; if it is reached, the last observation before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earliest: Option<Moment>,
    /// What decides that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earliest_by: Option<EndEvidence>,
    /// The latest end; if it is reached, the first observation after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest: Option<Moment>,
    /// What decides that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_by: Option<EndEvidence>,
    /// The rate is that of the observations from this time on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_since: Option<String>,
    /// Whether earlier observations were left out because no constant rate fits all of them.
    pub rate_changed: bool,
}

/// What decides a bound of the card's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EndEvidence {
    /// DEVICE_LIFE_TIME_EST_TYP_A.
    LifeA,
    /// DEVICE_LIFE_TIME_EST_TYP_B.
    LifeB,
    /// PRE_EOL_INFO: 80 % of the reserved blocks are used, or more.
    PreEol,
    /// The disk is read-only, or a filesystem on it after an error.
    ReadOnly,
}

/// A register's series, its forecast and its name here.
pub(super) struct LifeEvidence<'a> {
    pub(super) series: &'a Series,
    pub(super) forecast: &'a AreaForecast,
    pub(super) evidence: EndEvidence,
}

/// A position on the axis of time, and what decides it.
type Bound = (i128, EndEvidence);

/// The end from all observations, ordered by time; `last` is the last one's.
pub(super) fn card_end(points: &[&HistoryPoint], lives: [LifeEvidence<'_>; 2], new_at: Option<i128>) -> CardEnd {
    let last = points.last().map_or(0, |point| point.time.as_nanosecond());
    if let Some((before, after)) = reached(points, &lives) {
        return CardEnd::of(Outcome::Reached, before, Some(after), last, "");
    }
    let reserve = pre_eol(points);
    let known = || lives.iter().filter(|life| life.series.ends().is_some());
    let earliest = match reserve {
        Some(_) => Some((last, EndEvidence::PreEol)),
        // Without a bound of one register, that of the other says nothing about the card.
        None => known().map(|life| life.earliest(new_at, last)).collect::<Option<Vec<_>>>().and_then(first_of),
    };
    let latest = first_of(known().filter_map(|life| life.latest(new_at, last)).collect());
    let why = reserve.unwrap_or(WHY_EARLY);
    let end = match (earliest, latest) {
        (Some(_), Some(_)) => CardEnd::of(Outcome::Bounded, earliest, latest, last, why),
        (Some(_), None) => CardEnd::of(Outcome::NotBefore, earliest, None, last, why),
        (None, _) => {
            let unbounded = known().find(|life| life.earliest(new_at, last).is_none()).unwrap_or(&lives[0]);
            CardEnd::of(Outcome::Unknown, None, None, last, unbounded.why_unknown(new_at))
        }
    };
    let deciding = [end.earliest_by, end.latest_by];
    let used = known().filter(|life| end.outcome == Outcome::Unknown || deciding.contains(&Some(life.evidence)));
    let stretches: Vec<Stretch> = used.map(|life| life.series.since_last_change(new_at, USED_UP)).collect();
    let first = stretches.iter().filter_map(|stretch| stretch.first).map(|seen| seen.at).max();
    CardEnd {
        used_since: first.and_then(timestamp),
        rate_changed: stretches.iter().any(|stretch| stretch.rate_changed),
        ..end
    }
}

fn first_of(bounds: Vec<Bound>) -> Option<Bound> {
    bounds.into_iter().min_by_key(|bound| bound.0)
}

impl LifeEvidence<'_> {
    fn earliest(&self, new_at: Option<i128>, last: i128) -> Option<Bound> {
        let (_, seen) = self.series.ends()?;
        let at = match seen.value >= LAST_STEP_RAW {
            true => last,
            false => self.series.since_last_change(new_at, LAST_STEP).fit.end_min?.max(last),
        };
        Some((at, self.evidence))
    }

    fn latest(&self, new_at: Option<i128>, last: i128) -> Option<Bound> {
        let end = self.series.since_last_change(new_at, USED_UP).fit.end_max?;
        Some((end.max(last), self.evidence))
    }

    fn why_unknown(&self, new_at: Option<i128>) -> &str {
        match self.series.since_last_change(new_at, USED_UP).rate_changed {
            true => "no forecast yet: the rate of wear has changed, and later observations must show the new one",
            false => &self.forecast.sentence,
        }
    }
}

/// Between which observations the card ended.
fn reached(points: &[&HistoryPoint], lives: &[LifeEvidence<'_>; 2]) -> Option<(Option<Bound>, Bound)> {
    let used_up = lives.iter().filter_map(|life| {
        let (before, after) = life.series.around_the_end();
        Some((before.map(|at| (at, life.evidence)), (after?, life.evidence)))
    });
    // A filesystem may be writable again; the last observation counts.
    let known: Vec<(i128, bool)> =
        points.iter().filter_map(|point| Some((point.time.as_nanosecond(), point.read_only?))).collect();
    let writable = known.iter().rposition(|(_, is_read_only)| !is_read_only);
    let first = known.get(writable.map_or(0, |index| index + 1));
    let before = writable.and_then(|index| known.get(index));
    let read_only =
        first.map(|(at, _)| (before.map(|(at, _)| (*at, EndEvidence::ReadOnly)), (*at, EndEvidence::ReadOnly)));
    used_up.chain(read_only).min_by_key(|(_, after)| after.0)
}

/// What PRE_EOL_INFO says if it warns; the last observation that has it counts.
fn pre_eol(points: &[&HistoryPoint]) -> Option<&'static str> {
    match points.iter().rev().find_map(|point| point.pre_eol.filter(|raw| (1..=3).contains(raw)))? {
        2 => Some("PRE_EOL_INFO: 80 % of the reserved blocks are used, and without them the card is read-only"),
        3 => Some("PRE_EOL_INFO: 90 % of the reserved blocks are used, and without them the card is read-only"),
        _ => None,
    }
}

impl CardEnd {
    fn of(outcome: Outcome, earliest: Option<Bound>, latest: Option<Bound>, last: i128, why: &str) -> Self {
        let moments = [earliest, latest].map(|bound| bound.map(|(at, _)| moment(at, last)));
        let [earliest_at, latest_at] = moments;
        let sentence = match (outcome, &earliest_at, &latest_at) {
            (Outcome::Bounded, Some(from), Some(to)) => {
                format!("the card's end: between {} and {} at the present rate; {why}", from.day(), to.day())
            }
            (Outcome::NotBefore, Some(from), _) => {
                format!("the card's end: {} or later, with no upper bound yet; {why}", from.day())
            }
            (Outcome::Reached, from, Some(to)) => {
                let what = match latest {
                    Some((_, EndEvidence::ReadOnly)) => "it is read-only",
                    _ => "100 % of the estimated life are used",
                };
                let since = match from {
                    Some(from) => format!("since a day between {} and {}", from.day(), to.day()),
                    None => format!("since {} or earlier", to.day()),
                };
                format!("the card's end: {what} {since}")
            }
            _ => format!("the card's end: {why}"),
        };
        Self {
            outcome,
            sentence,
            assumption: ASSUMPTION,
            earliest: earliest_at,
            earliest_by: earliest.map(|(_, by)| by),
            latest: latest_at,
            latest_by: latest.map(|(_, by)| by),
            used_since: None,
            rate_changed: false,
        }
    }

    /// The end in words for everyone, about the card: `at the present rate it ends between 2027-07-13 and 2028-03-31`.
    ///
    /// `None` if nothing bounds the end, or all of the rated life is used.
    pub fn in_words(&self) -> Option<String> {
        let is_read_only = self.latest_by == Some(EndEvidence::ReadOnly);
        let (from, to) = (self.earliest.as_ref(), self.latest.as_ref());
        match self.outcome {
            Outcome::Reached => is_read_only.then(|| "it is read-only".into()),
            Outcome::Bounded | Outcome::NotBefore => {
                let from = from?;
                let is_now = self.earliest_by == Some(EndEvidence::PreEol);
                Some(match (is_now, to) {
                    (true, Some(to)) => format!("it may end at any time, at the present rate by {}", to.day()),
                    (true, None) => "it may end at any time".into(),
                    (false, Some(to)) => format!("at the present rate it ends between {} and {}", from.day(), to.day()),
                    (false, None) => format!("at the present rate it ends on {} or later", from.day()),
                })
            }
            Outcome::Unknown => None,
        }
    }
}
