//! The card's end from whole histories; lives of virtual cards are in `emmclab/tests/it/whole_lives.rs`.

use super::card_end::{CardEnd, EndEvidence};
use super::forecast::{Forecast, ForecastOptions, Outcome, forecast};
use super::history::parse_history;

/// A day of 2026 and the rest of a line.
fn of(lines: &[(&str, &str)]) -> Forecast {
    let text: String = lines.iter().map(|(day, rest)| format!("{{\"time\": \"{day}T00:00:00Z\", {rest}}}\n")).collect();
    forecast(&parse_history("h", &text).unwrap(), &ForecastOptions::default()).unwrap()
}

fn days(end: &CardEnd) -> (Option<f64>, Option<f64>) {
    (end.earliest.as_ref().map(|moment| moment.days), end.latest.as_ref().map(|moment| moment.days))
}

/// Two steps of type B; type A stands still.
const TWO_STEPS: [(&str, &str); 3] = [
    ("2026-01-01", "\"life_a\": 1, \"life_b\": 3, \"pre_eol\": 1"),
    ("2026-04-11", "\"life_a\": 1, \"life_b\": 4, \"pre_eol\": 1"),
    ("2026-07-20", "\"life_a\": 1, \"life_b\": 5, \"pre_eol\": 1"),
];

#[test]
fn the_last_step_of_the_register_that_ends_first_is_counted() {
    let forecast = of(&TWO_STEPS);
    let (end, b) = (&forecast.end, &forecast.life_b);
    assert_eq!((end.outcome, b.outcome), (Outcome::Bounded, Outcome::Bounded));
    assert_eq!((end.earliest_by, end.latest_by), (Some(EndEvidence::LifeB), Some(EndEvidence::LifeB)));
    assert_eq!((end.used_since.as_deref(), end.rate_changed), (Some("2026-01-01T00:00:00Z"), false));
    // At most 30 % in 200 days and 50 % now, so 90 % in 266 days, and a load may come a week early.
    let (earliest, latest) = days(end);
    let (earliest, latest) = (earliest.unwrap(), latest.unwrap());
    assert!((earliest - (200.0 * 40.0 / 30.0 - 14.0)).abs() < 7.0, "{earliest}");
    assert!(earliest < b.earliest.as_ref().unwrap().days && latest >= b.latest.as_ref().unwrap().days);
    assert!(latest < b.latest.as_ref().unwrap().days + 200.0, "{latest}");
    let [from, to] = [&end.earliest, &end.latest].map(|moment| moment.as_ref().unwrap().day());
    let why = "because the register is an average and reserved blocks run out first";
    let sentence = format!(
        "the card's end: between {from} and {to} at the present rate; the last 10 % before 100 % are counted {why}"
    );
    assert_eq!(end.sentence, sentence);
    assert_eq!(forecast.end_of_life(), Some(format!("at the present rate it ends between {from} and {to}")));
}

#[test]
fn only_observations_after_a_change_of_the_rate_count() {
    let mut lines = vec![
        ("2024-01-01", "\"life_b\": 1"),
        ("2025-12-01", "\"life_b\": 1"),
        ("2026-01-01", "\"life_b\": 4"),
        ("2026-02-01", "\"life_b\": 7"),
    ];
    // At most 10 % in two years, then 20 % or more in a month: the third is the first after the change.
    let changed = of(&lines[..3]).end;
    assert_eq!((changed.outcome, changed.rate_changed), (Outcome::Unknown, true));
    assert_eq!(changed.used_since.as_deref(), Some("2026-01-01T00:00:00Z"));
    assert!(changed.sentence.contains("the rate of wear has changed"), "{}", changed.sentence);
    let later = of(&lines).end;
    assert_eq!((later.outcome, later.rate_changed), (Outcome::Bounded, true));
    assert!(days(&later).0.unwrap() < 31.0 && days(&later).1.unwrap() > 31.0, "{later:?}");
    lines[3].1 = "\"life_b\": 4, \"life_a\": 1";
    assert_eq!(of(&lines).end.outcome, Outcome::Unknown, "type A alone says nothing about the card");
}

#[test]
fn in_the_last_step_the_end_may_come_at_any_time() {
    let last = [TWO_STEPS[1], TWO_STEPS[2], ("2026-10-28", "\"life_b\": 10, \"pre_eol\": 1")];
    let end = of(&last).end;
    assert_eq!((days(&end).0, end.earliest_by), (Some(0.0), Some(EndEvidence::LifeB)));
}

#[test]
fn a_warning_of_the_reserved_blocks_may_be_followed_by_the_end_at_once() {
    let with = |pre_eol: u8| {
        let line = format!("\"life_a\": 1, \"life_b\": 5, \"pre_eol\": {pre_eol}");
        of(&[TWO_STEPS[0], TWO_STEPS[1], ("2026-07-20", &line)])
    };
    for (raw, share) in [(2, "80 %"), (3, "90 %")] {
        let forecast = with(raw);
        let end = &forecast.end;
        assert_eq!((days(end).0, end.earliest_by), (Some(0.0), Some(EndEvidence::PreEol)));
        assert_eq!((days(end).1, end.latest_by), (days(&with(1).end).1, Some(EndEvidence::LifeB)));
        assert!(end.sentence.contains(&format!("PRE_EOL_INFO: {share} of the reserved blocks")), "{}", end.sentence);
        let latest = end.latest.as_ref().unwrap().day();
        assert_eq!(forecast.end_of_life(), Some(format!("it may end at any time, at the present rate by {latest}")));
    }
    assert_eq!(with(0).end, with(1).end, "0 is not defined");
    let alone = of(&[("2026-01-01", "\"pre_eol\": 3")]);
    assert_eq!((alone.end.outcome, days(&alone.end)), (Outcome::NotBefore, (Some(0.0), None)));
    assert_eq!(alone.end_of_life().as_deref(), Some("it may end at any time"));
}

#[test]
fn an_end_that_came_is_between_two_observations() {
    let read_only = of(&[
        ("2026-01-01", "\"life_b\": 9, \"read_only\": false"),
        ("2026-03-01", "\"life_b\": 10, \"read_only\": false"),
        ("2026-03-11", "\"life_b\": 10, \"read_only\": true"),
        ("2026-03-21", "\"life_b\": 11, \"read_only\": true"),
    ]);
    let end = &read_only.end;
    assert_eq!((end.outcome, days(end)), (Outcome::Reached, (Some(-20.0), Some(-10.0))));
    assert_eq!(end.latest_by, Some(EndEvidence::ReadOnly));
    assert_eq!(end.sentence, "the card's end: it is read-only since a day between 2026-03-01 and 2026-03-11");
    assert_eq!(read_only.end_of_life().as_deref(), Some("it is read-only"));
    let writable = "\"life_b\": 10, \"read_only\": false";
    let again = of(&[("2026-03-11", "\"life_b\": 10, \"read_only\": true"), ("2026-03-21", writable)]);
    assert_ne!(again.end.outcome, Outcome::Reached, "a filesystem was repaired");
    let used = of(&[("2026-01-01", "\"life_b\": 11")]);
    assert_eq!(used.end.sentence, "the card's end: 100 % of the estimated life are used since 2026-01-01 or earlier");
    assert_eq!((used.end.latest_by, used.end_of_life()), (Some(EndEvidence::LifeB), None));
}

#[test]
fn without_a_bound_the_reason_is_the_registers() {
    let none = of(&[("2026-01-01", "\"life_b\": 0, \"life_a\": 0")]).end;
    assert_eq!((none.outcome, days(&none)), (Outcome::Unknown, (None, None)));
    assert_eq!(none.sentence, "the card's end: no forecast: the part reports 0, not defined");
    let single = of(&[("2026-01-01", "\"life_b\": 2")]).end;
    assert_eq!(single.sentence, "the card's end: no forecast from observations at a single time");
}
