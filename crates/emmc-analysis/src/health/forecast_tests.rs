//! Forecasts from whole histories; the arithmetic of the bounds is tested in `wear_line`.

use super::forecast::{Forecast, ForecastOptions, Outcome, forecast};
use super::history::{HistoryPoint, parse_history};
use super::{HealthError, history};

const DAY: i64 = 86_400;
const START: i64 = 1_700_006_400;

fn point(day: i64, life_a: u8) -> HistoryPoint {
    let time = jiff::Timestamp::from_second(START + day * DAY).unwrap();
    let (life_b, pre_eol, read_only, written_bytes, cid) = (None, None, None, None, None);
    HistoryPoint { time, life_a: Some(life_a), life_b, pre_eol, read_only, written_bytes, cid }
}

fn of(points: &[(i64, u8)]) -> Forecast {
    let points: Vec<HistoryPoint> = points.iter().map(|&(day, life_a)| point(day, life_a)).collect();
    forecast(&points, &ForecastOptions::default()).unwrap()
}

fn days(forecast: &Forecast) -> (Option<f64>, Option<f64>) {
    let area = &forecast.life_a;
    (area.earliest.as_ref().map(|moment| moment.days), area.latest.as_ref().map(|moment| moment.days))
}

#[test]
fn two_snapshots_with_one_value_give_one_bound() {
    let forecast = of(&[(0, 2), (100, 2)]);
    assert_eq!(forecast.life_a.outcome, Outcome::NotBefore);
    // At most 10 % in 100 days, and 80 % to go.
    assert_eq!(days(&forecast), (Some(800.0), None));
    assert_eq!(forecast.life_a.rate_lower_percent_per_day, Some(0.0));
    assert!(forecast.life_a.rate_upper_percent_per_day.is_some_and(|rate| (rate - 0.1).abs() < 1e-12));
    assert!(
        forecast.sentence.contains("in 800 days (2026-05-03) at the earliest, with no upper bound yet"),
        "{}",
        forecast.sentence
    );
    assert!(forecast.life_a.needs.is_some_and(|needs| needs.contains("twice")));
}

#[test]
fn a_history_with_two_steps_has_two_bounds_in_any_order() {
    let forecast = of(&[(210, 3), (0, 1), (90, 1), (110, 2), (190, 2), (300, 3)]);
    assert_eq!(forecast.life_a.outcome, Outcome::Bounded);
    assert_eq!((forecast.observations, forecast.life_a.observations_used), (6, 6));
    let (earliest, latest) = days(&forecast);
    // 10 % between day 90 and 110, 20 % between day 190 and 210, at most 30 % on day 300.
    let (earliest, latest) = (earliest.unwrap(), latest.unwrap());
    assert!(
        earliest >= 700.0 - 1.0 && latest <= 90.0 * 12.0 && earliest < 703.0 && latest > 703.0,
        "{earliest} {latest}"
    );
    assert!(forecast.sentence.contains("at the earliest") && forecast.sentence.contains("at the latest"));
    assert_eq!(forecast.first, "2023-11-15T00:00:00Z");
}

#[test]
fn the_end_is_said_with_its_dates_for_everyone() {
    let bounded = of(&[(0, 1), (90, 1), (110, 2), (190, 2), (210, 3), (300, 3)]).end_of_life().unwrap();
    let (start, dates) = bounded.split_at("at the present rate it ends between ".len());
    assert_eq!(start, "at the present rate it ends between ");
    let (earliest, latest) = dates.split_once(" and ").unwrap();
    assert!(earliest.len() == 10 && earliest < latest, "{bounded}");
    let open = of(&[(0, 2), (100, 2)]).end_of_life();
    assert_eq!(open.as_deref(), Some("at the present rate it ends on 2025-11-28 or later"));
    assert_eq!((of(&[(0, 2)]).end_of_life(), of(&[(0, 10), (100, 11)]).end_of_life()), (None, None));
}

#[test]
fn a_single_observation_gives_no_forecast_without_a_date_of_service() {
    let forecast_of = |options: &ForecastOptions| forecast(&[point(730, 2)], options).unwrap();
    let alone = forecast_of(&ForecastOptions::default());
    assert_eq!((alone.life_a.outcome, days(&alone)), (Outcome::Unknown, (None, None)));
    assert!(alone.life_a.needs.is_some());
    let since = ForecastOptions { in_service_since: Some(point(0, 1).time) };
    let known = forecast_of(&since);
    assert_eq!(known.life_a.outcome, Outcome::Bounded);
    assert_eq!(days(&known), (Some(3650.0 - 730.0), Some(7300.0 - 730.0)));
    let late = ForecastOptions { in_service_since: Some(point(731, 1).time) };
    assert!(matches!(forecast(&[point(730, 2)], &late), Err(HealthError::InServiceLate { .. })));
}

#[test]
fn a_changed_rate_is_reported_and_the_recent_period_used() {
    let forecast = of(&[(0, 1), (500, 1), (1000, 1), (1010, 3), (1020, 5), (1030, 7)]);
    assert!(forecast.life_a.rate_changed);
    assert_eq!(forecast.life_a.outcome, Outcome::Bounded);
    assert!(forecast.life_a.observations_used >= 4 && forecast.life_a.observations_used < 6);
    let (earliest, latest) = days(&forecast);
    assert!(earliest.unwrap() <= 20.0 && latest.unwrap() >= 15.0 && latest.unwrap() < 40.0, "{earliest:?} {latest:?}");
}

#[test]
fn a_decreasing_life_time_is_flagged_and_left_out() {
    let forecast = of(&[(0, 4), (10, 5), (20, 2), (120, 2)]);
    assert_eq!(forecast.anomalies.len(), 1);
    assert!(
        forecast.anomalies[0].contains("went down once, from 0x05 to 0x02 at 2023-12-05"),
        "{:?}",
        forecast.anomalies
    );
    assert_eq!((forecast.life_a.observations_used, days(&forecast)), (2, (Some(800.0), None)));
}

#[test]
fn a_used_up_life_is_not_forecast() {
    let forecast = of(&[(0, 9), (10, 10), (20, 11), (30, 11)]);
    assert_eq!(forecast.life_a.outcome, Outcome::Reached);
    assert_eq!(days(&forecast), (Some(-20.0), Some(-10.0)));
    assert_eq!(of(&[(0, 11)]).life_a.latest.map(|moment| moment.days), Some(0.0));
}

#[test]
fn undefined_values_are_unknown_not_failed() {
    let forecast = of(&[(0, 0), (10, 0)]);
    assert_eq!(forecast.life_a.outcome, Outcome::Unknown);
    assert!(forecast.life_a.sentence.contains("reports 0, not defined"), "{}", forecast.life_a.sentence);
    assert!(forecast.life_b.sentence.contains("no observation has the register"));
    let odd = of(&[(0, 0x40), (5, 1), (10, 1)]);
    assert_eq!((odd.anomalies.len(), odd.life_a.outcome), (1, Outcome::NotBefore));
}

#[test]
fn the_reason_names_the_observation_that_was_left_out() {
    let sentence = |points: &[(i64, u8)]| of(points).life_a.sentence;
    let start = "no forecast: the register has values of a single time; ";
    for (points, reason) in [
        (&[(0, 0), (10, 2)][..], "in 1 of 2 observations it is 0, not defined"),
        (&[(0, 0), (10, 2), (20, 0)], "in 2 of 3 observations it is 0, not defined"),
        (&[(0, 0xff), (10, 2)], "in 1 of 2 observations it holds a value that the standard does not assign"),
        (&[(0, 5), (10, 2)], "in 1 of 2 observations it is older than a decrease of wear"),
    ] {
        assert_eq!(sentence(points), format!("{start}{reason}"));
    }
    assert_eq!(sentence(&[(0, 2)]), "no forecast from observations at a single time");
    assert_eq!(sentence(&[(0, 0x40)]), "no forecast: the register holds a value that the standard does not assign");
    let mut points = vec![point(0, 2), point(10, 2)];
    points[1].life_a = None;
    let missing = forecast(&points, &ForecastOptions::default()).unwrap().life_a.sentence;
    assert_eq!(missing, format!("{start}in 1 of 2 observations the source does not have it"));
}

#[test]
fn the_cell_type_that_ends_first_decides_the_forecast() {
    let text = concat!(
        "{\"time\": \"2025-01-01T00:00:00Z\", \"life_a\": 1, \"life_b\": 5, \"cid\": \"1501004D384731474303DC0DB061506F\"}\n",
        "{\"time\": \"2026-01-01T00:00:00Z\", \"life_a\": 2, \"life_b\": 8, \"cid\": \"1501004d384731474303dc0db0615000\"}\n",
    );
    let forecast = forecast(&parse_history("h", text).unwrap(), &ForecastOptions::default()).unwrap();
    assert!(forecast.sentence.starts_with("DEVICE_LIFE_TIME_EST_TYP_B"), "{}", forecast.sentence);
}

#[test]
fn different_cards_are_refused() {
    let mut points = vec![point(0, 1), point(1, 1), point(2, 1)];
    points[0].cid = Some("1501004d384731474303dc0db061506f".into());
    points[2].cid = Some("1501004d384731474303dc0db062506f".into());
    let refused = forecast(&points, &ForecastOptions::default());
    assert!(matches!(refused, Err(HealthError::DifferentCards { .. })), "{refused:?}");
    assert_eq!(forecast(&[], &ForecastOptions::default()), Err(HealthError::NoObservation));
}

#[test]
fn a_forecast_from_bytes_written_ignores_idle_time() {
    const TB: u64 = 1_000_000_000_000;
    let written = |day, life_a, bytes| history::HistoryPoint { written_bytes: Some(bytes), ..point(day, life_a) };
    // 10 % a terabyte: fast at first, then idle for years, which no constant rate in time fits.
    let mut points = vec![written(0, 1, 0), written(10, 3, 2 * TB + 1), written(20, 5, 4 * TB + 1)];
    points.push(written(3000, 5, 4 * TB + 2));
    let known = forecast(&points, &ForecastOptions::default()).unwrap();
    assert!(known.life_a.rate_changed);
    let by_written = known.life_a.by_written.unwrap();
    assert!(by_written.remaining_lower_bytes <= 6 * TB && by_written.remaining_lower_bytes > 4 * TB, "{by_written:?}");
    assert!(by_written.remaining_upper_bytes.is_some_and(|most| (6 * TB..9 * TB).contains(&most)), "{by_written:?}");
    points.push(written(3001, 5, 7));
    let reset = forecast(&points, &ForecastOptions::default()).unwrap();
    assert!(reset.anomalies.iter().any(|anomaly| anomaly.contains("the counter was reset")), "{:?}", reset.anomalies);
    assert_eq!(reset.life_a.by_written, None);
}

#[test]
fn long_and_erratic_histories_are_handled() {
    let long: Vec<HistoryPoint> = (0..20_000).map(|day| point(day, 1 + u8::try_from(day / 2500).unwrap())).collect();
    assert_eq!(forecast(&long, &ForecastOptions::default()).unwrap().life_a.outcome, Outcome::Bounded);
    let wild: Vec<HistoryPoint> = (0..20_000).map(|day| point(day, (day * 7 % 256) as u8)).collect();
    assert!(forecast(&wild, &ForecastOptions::default()).unwrap().anomalies.len() <= 3);
}
