//! A host's time for a request, from series of requests in the lab.
//!
//! Three cards that differ only in their firmware's time show it. Behind the slow one a lone request waits for the card
//! alone: what is left of fio's time is the host's. With others waiting, the time from the end of one to the start of
//! the next is the host's too. Behind the fast one a lone request shows what of the host's work overlaps with the card.
//! Behind the middle one the host is the limit: with others waiting it shows all that a request costs. There the card
//! ends while the host works on another request, as most cards do; the fast one has ended before the host has left the
//! driver, which saves a switch between threads. Absent on purpose: the runs themselves, and any fit: each figure is a
//! difference of two means.

use std::io::BufRead;

use emmc_host::RequestCost;
use emmc_serve::pci::RecordedRequest;
use serde::Serialize;

use crate::LabError;
use crate::account::Phase;

/// The guest's script: its variable CARD is one of `CARDS`.
pub const SCRIPT: &str = include_str!("guest/calibrate.sh");
/// The card, without its firmware's time.
const CARD: &str = include_str!("calibration/card.toml");
/// Commands that move data. Source: JESD84-B51, 6.10.4.
const DATA: [u8; 6] = [17, 18, 24, 25, 46, 47];

/// The cards: name, firmware's time of a command in us, and what it is longer for each ns of an instruction. A lone
/// request takes 25 000 to 40 000 instructions, of which the slow card must be longer than all that overlaps, and the
/// middle one about half of them.
pub const CARDS: [(&str, f64, f64); 3] = [("slow", 1000.0, 100.0), ("fast", 0.0, 0.0), ("middle", 0.0, 15.0)];

/// The profile of the card whose firmware needs this long for a command. Unit: microseconds.
pub fn card(overhead_us: f64) -> String {
    CARD.replace("OVERHEAD", &format!("{overhead_us:?}"))
}

/// A series of equal requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// `CARD-KIND-KIB-DEPTH`.
    pub name: String,
    /// How many.
    pub requests: u64,
    /// From the start of one to the start of the next, mean of the middle half. Unit: microseconds.
    pub period_us: f64,
    /// From the controller's doorbell or command to the card's end, mean. Unit: microseconds.
    pub card_us: f64,
    /// From the end of one to the start of the next, mean of the middle half; negative if they overlap. Unit:
    /// microseconds.
    pub gap_us: f64,
    /// fio's mean time of a submission. Unit: microseconds.
    pub submission_us: f64,
    /// fio's mean time from the submission to the result. Unit: microseconds.
    pub latency_us: f64,
}

impl Series {
    /// The series of a phase from the record of all requests; `fio` is its result.
    ///
    /// Errors: the record cannot be read; the phase or fio's result has not what a series has.
    pub fn of(phase: &Phase, fio: &serde_json::Value, record: impl BufRead) -> Result<Self, LabError> {
        let name = phase.name.clone();
        let wrong = |what: &str| LabError::Ended { seconds: phase.start_s, why: format!("series {name}: {what}") };
        let (from, to) = (phase.start_s * 1e9, (phase.start_s + phase.duration_s) * 1e9);
        let mut times = Vec::new();
        for line in record.lines() {
            let line = line.map_err(LabError::system("the record of requests"))?;
            let request: RecordedRequest = serde_json::from_str(&line)
                .map_err(|error| LabError::system("the record of requests")(std::io::Error::other(error)))?;
            let is_inside = (from..to).contains(&(request.issued_ns as f64));
            if is_inside && DATA.contains(&request.command) {
                times.push((request.issued_ns as f64 / 1e3, request.done_ns as f64 / 1e3));
            }
        }
        if times.len() < 16 {
            return Err(wrong("too few requests"));
        }
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (first, last) = (times.len() / 4, times.len() * 3 / 4);
        let middle = times.get(first..=last).unwrap_or_default();
        let mean = |of: fn(&[(f64, f64)]) -> f64| middle.windows(2).map(of).sum::<f64>() / (last - first) as f64;
        let side = ["read", "write"].map(|side| &fio["jobs"][0][side]);
        let side = side.into_iter().find(|side| side["total_ios"].as_u64() > Some(0));
        let number = |of: &str| side.and_then(|side| side[of]["mean"].as_f64()).map(|ns| ns / 1e3);
        Ok(Self {
            requests: times.len() as u64,
            period_us: mean(|pair| pair[1].0 - pair[0].0),
            card_us: times.iter().map(|(issued, done)| done - issued).sum::<f64>() / times.len() as f64,
            gap_us: mean(|pair| pair[1].0 - pair[0].1),
            submission_us: number("slat_ns").ok_or_else(|| wrong("fio has no submission latency"))?,
            latency_us: number("lat_ns").ok_or_else(|| wrong("fio has no latency"))?,
            name,
        })
    }
}

/// The series of one kind through one controller.
#[derive(Clone, Copy, Debug)]
pub struct KindSeries<'a> {
    /// Slow card, 4 KiB, alone.
    pub small: &'a Series,
    /// Slow card, 128 KiB, alone.
    pub large: &'a Series,
    /// Slow card, 4 KiB, with others waiting.
    pub waiting: &'a Series,
    /// Fast card, 4 KiB, alone.
    pub quick: &'a Series,
    /// Middle card, 4 KiB, with others waiting.
    pub busy: &'a Series,
}

/// A difference below this share of the host's time is not seen: ticks and timers fall into some requests only.
const SEEN: f64 = 0.01;
/// Sizes of the small and the large requests. Unit: KiB.
const SIZES_KIB: [f64; 2] = [4.0, 128.0];

impl KindSeries<'_> {
    /// The costs; `starts_itself`: the controller starts the next request without the host.
    pub fn cost(&self, starts_itself: bool) -> RequestCost {
        let Self { small, large, waiting, quick, busy } = self;
        // The host's part of fio's latency, and what of it is the submission.
        let software = |series: &Series| (series.latency_us - series.card_us).max(0.0);
        let before = |series: &Series| series.submission_us.min(software(series));
        let after = |series: &Series| software(series) - before(series);
        let line = |of: &dyn Fn(&Series) -> f64| {
            let per_kib = ((of(large) - of(small)) / (SIZES_KIB[1] - SIZES_KIB[0])).max(0.0);
            ((of(small) - per_kib * SIZES_KIB[0]).max(0.0), per_kib)
        };
        let (before_us, before_us_per_kib) = line(&before);
        let (after_us, after_us_per_kib) = line(&after);
        let call_us = (small.period_us - small.latency_us).max(0.0);
        // Behind a card that is quicker than the overlapping work the rest of that shows.
        let longer = (quick.period_us - quick.card_us) - (small.period_us - small.card_us);
        let is_seen = longer > SEEN * (small.period_us - small.card_us);
        let overlap_us = if is_seen { longer + quick.card_us } else { 0.0 };
        let data_us = (before_us_per_kib + after_us_per_kib) * SIZES_KIB[0];
        // A card that is the limit even when fast hides some of it.
        let busy_us = (busy.period_us - data_us).max(call_us + before_us + overlap_us);
        let gap_us = if starts_itself { 0.0 } else { waiting.gap_us.max(0.0) };
        let rounded = |us: f64| (us * 1e3).round() / 1e3;
        RequestCost {
            call_us: rounded(call_us),
            before_us: rounded(before_us),
            before_us_per_kib: (before_us_per_kib * 1e6).round() / 1e6,
            after_us: rounded(after_us),
            after_us_per_kib: (after_us_per_kib * 1e6).round() / 1e6,
            overlap_us: rounded(overlap_us),
            busy_us: (busy_us * 1e3).ceil() / 1e3,
            gap_us: rounded(gap_us),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(period_us: f64, card_us: f64, gap_us: f64, submission_us: f64, latency_us: f64) -> Series {
        Series { name: String::new(), requests: 100, period_us, card_us, gap_us, submission_us, latency_us }
    }

    #[test]
    fn each_cost_is_a_difference_of_means() {
        // A host with call 10, before 20 + 0.5 a KiB, after 5, 8 beside the card, 50 + 0.5 a KiB when busy, gap 12.
        let small = series(10.0 + 22.0 + 1000.0 + 5.0, 1000.0, 37.0, 22.0, 1027.0);
        let large = series(10.0 + 84.0 + 1300.0 + 5.0, 1300.0, 99.0, 84.0, 1389.0);
        let waiting = series(1012.0, 1000.0, 12.0, 900.0, 30_000.0);
        let quick = series(10.0 + 22.0 + 8.0 + 5.0, 3.0, 42.0, 22.0, 35.0);
        let busy = series(52.0, 3.0, 49.0, 22.0, 1500.0);
        let all = KindSeries { small: &small, large: &large, waiting: &waiting, quick: &quick, busy: &busy };
        let cost = all.cost(false);
        let found = [cost.call_us, cost.before_us, cost.before_us_per_kib, cost.after_us, cost.after_us_per_kib];
        assert_eq!(found, [10.0, 20.0, 0.5, 5.0, 0.0]);
        assert_eq!((cost.overlap_us, cost.gap_us), (8.0, 12.0));
        assert!((cost.busy_us - 50.0).abs() < 0.01, "{cost:?}");
        assert_eq!(all.cost(true).gap_us, 0.0);
    }

    #[test]
    fn a_series_is_of_its_phase() {
        let phase =
            Phase { name: "slow-read-4-1".into(), boot: 1, start_s: 1e-3, duration_s: 1.0, requests: Vec::new() };
        let line = |command: u8, issued: u64| {
            let done = issued + 7_000;
            format!(
                r#"{{"command":{command},"argument":0,"blocks":8,"issued_ns":{issued},"answered_ns":{issued},"crossed_ns":{done},"done_ns":{done},"interrupt_ns":{done}}}"#
            )
        };
        let of_phase = (0..32).map(|number| line(46, 2_000_000 + number * 10_000));
        let record: Vec<String> = [line(46, 10), line(13, 1_500_000)].into_iter().chain(of_phase).collect();
        let fio = serde_json::json!({"jobs": [{
            "read": {"total_ios": 32, "slat_ns": {"mean": 1500.0}, "lat_ns": {"mean": 9000.0}},
            "write": {"total_ios": 0},
        }]});
        let found = Series::of(&phase, &fio, record.join("\n").as_bytes()).unwrap();
        assert_eq!((found.requests, found.submission_us, found.latency_us), (32, 1.5, 9.0));
        assert!((found.period_us - 10.0).abs() < 1e-6 && (found.card_us - 7.0).abs() < 1e-6, "{found:?}");
        assert!((found.gap_us - 3.0).abs() < 1e-6, "{found:?}");
        assert!(Series::of(&phase, &fio, record[..5].join("\n").as_bytes()).is_err());
    }
}
