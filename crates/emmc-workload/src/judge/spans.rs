//! Two recordings: the spans of the same kind of request side by side.
//!
//! Whether a span differs is decided as for results of benchmarks: disjoint 95 % confidence intervals of its mean, by
//! batch means. Absent on purpose: causes of a difference.

use std::collections::HashMap;

use emmc_trace::{Op, Request};
use serde::{Deserialize, Serialize};

use crate::judge::compare::{Certainty, of_intervals};
use crate::stats::interval::Interval;
use crate::stats::series::Series;

/// Kinds of requests of a recording that are told apart.
const KINDS_MAX: usize = 4096;
/// The five spans, the time at driver and device, and all of it.
const SPANS: [&str; 7] = ["vfs", "block", "issue", "hardware", "post", "device", "total"];

/// The spans of a recording by kind of request.
#[derive(Clone, Debug, Default)]
pub struct SpanStatistics {
    kinds: Vec<Kind>,
    places: HashMap<Key, usize>,
    /// Requests of kinds beyond the first 4096.
    left_out: u64,
}

type Key = (Op, u32, &'static str);

#[derive(Clone, Debug, Default)]
struct Kind {
    spans: [Series; SPANS.len()],
}

impl SpanStatistics {
    /// Counts a request.
    pub fn add(&mut self, request: &Request) {
        let key = (request.op, request.sectors, request.mode.name());
        let next = self.kinds.len();
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None if next == KINDS_MAX => return self.left_out += 1,
            None => {
                self.kinds.push(Kind::default());
                self.places.insert(key, next);
                next
            }
        };
        let spans = request.spans();
        let own = [spans.vfs, spans.block, spans.issue, spans.hardware, spans.post];
        let whole = [Some(request.device_time()), Some(request.total())];
        for (series, time) in self.kinds[place].spans.iter_mut().zip(own.into_iter().chain(whole)) {
            if let Some(time) = time {
                series.record(time.0 as f64 / 1e3);
            }
        }
    }

    /// Requests of all kinds.
    pub fn requests(&self) -> u64 {
        self.kinds.iter().map(Kind::count).sum::<u64>() + self.left_out
    }
}

impl Kind {
    fn total(&self) -> &Series {
        &self.spans[SPANS.len() - 1]
    }

    fn count(&self) -> u64 {
        self.total().count()
    }
}

/// Two recordings side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpanComparison {
    /// The first recording: the baseline.
    pub first: ComparedRecording,
    /// The second.
    pub second: ComparedRecording,
    /// Kinds of requests in both; most time in the first recording first.
    pub kinds: Vec<ComparedKind>,
}

/// A recording that is compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedRecording {
    /// Its file.
    pub name: String,
    /// Its requests.
    pub requests: u64,
    /// Requests of kinds that only this recording has.
    pub requests_alone: u64,
    /// Events without a partner.
    pub unpaired: u64,
    /// Events that were lost when it was recorded.
    pub lost_events: u64,
}

/// Requests of one kind in both recordings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedKind {
    /// read, write, discard, erase, flush or other.
    pub op: String,
    /// Unit: bytes; 0 for a flush.
    pub size_bytes: u64,
    /// Who waits, as in `trace analyse`.
    pub mode: String,
    /// Requests in the first recording.
    pub first_count: u64,
    /// Requests in the second.
    pub count: u64,
    /// The spans that both have: vfs, block, issue, hardware, post; device (driver to completion) and total.
    pub spans: Vec<ComparedSpan>,
}

/// The mean of a span in both recordings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedSpan {
    /// Which.
    pub span: String,
    /// In the first recording. Unit: microseconds.
    pub first_us: f64,
    /// Its 95 % confidence interval; `null` with fewer than ten requests. Unit: microseconds.
    pub first_interval: Option<Interval>,
    /// In the second. Unit: microseconds.
    pub us: f64,
    /// Its 95 % confidence interval. Unit: microseconds.
    pub interval: Option<Interval>,
    /// Second less first. Unit: microseconds.
    pub difference_us: f64,
    /// The same as a share of the first. Unit: percent.
    pub difference_percent: Option<f64>,
    /// Whether the difference is beyond noise: the intervals are disjoint.
    pub certainty: Certainty,
}

/// Compares two recordings.
pub fn compare_spans(
    (first, ours): (ComparedRecording, &SpanStatistics),
    (second, theirs): (ComparedRecording, &SpanStatistics),
) -> SpanComparison {
    let mut kinds: Vec<(f64, ComparedKind)> = Vec::new();
    let (mut in_first, mut in_second) = (0, 0);
    for (key, place) in &ours.places {
        let Some(other) = theirs.places.get(key) else { continue };
        let (a, b) = (&ours.kinds[*place], &theirs.kinds[*other]);
        (in_first, in_second) = (in_first + a.count(), in_second + b.count());
        let spans = SPANS.iter().zip(a.spans.iter().zip(&b.spans));
        let kind = ComparedKind {
            op: key.0.name().into(),
            size_bytes: u64::from(key.1) * 512,
            mode: key.2.into(),
            first_count: a.count(),
            count: b.count(),
            spans: spans.filter_map(|(name, (a, b))| span(name, a, b)).collect(),
        };
        kinds.push((a.total().mean().unwrap_or(0.0) * a.count() as f64, kind));
    }
    let name = |kind: &ComparedKind| (kind.op.clone(), kind.size_bytes, kind.mode.clone());
    kinds.sort_by(|(a, left), (b, right)| b.total_cmp(a).then_with(|| name(left).cmp(&name(right))));
    let (all_first, all_second) = (ours.requests(), theirs.requests());
    SpanComparison {
        first: ComparedRecording { requests: all_first, requests_alone: all_first - in_first, ..first },
        second: ComparedRecording { requests: all_second, requests_alone: all_second - in_second, ..second },
        kinds: kinds.into_iter().map(|(_, kind)| kind).collect(),
    }
}

fn span(name: &str, first: &Series, second: &Series) -> Option<ComparedSpan> {
    let (first_us, us) = first.mean().zip(second.mean())?;
    let (first_interval, interval) = (first.interval(), second.interval());
    let certainty = match first_interval.zip(interval) {
        Some((a, b)) => of_intervals(&a, &b).0,
        None => Certainty::CannotTell,
    };
    Some(ComparedSpan {
        span: name.into(),
        first_us,
        first_interval,
        us,
        interval,
        difference_us: us - first_us,
        difference_percent: (first_us > 0.0).then(|| 100.0 * (us - first_us) / first_us),
        certainty,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use emmc_trace::{Input, Storage, follow, open, survey};

    use super::*;

    /// Direct writes of 4 KiB in blkparse's form that take about this long; every third is of 8 KiB if so wished.
    fn recording(count: u64, micros: u64, mixed: bool) -> SpanStatistics {
        let mut text = String::new();
        for number in 0..count {
            let (at, sectors) = (number * 10_000, if mixed && number % 3 == 0 { 16 } else { 8 });
            let done = at + micros + number % 7;
            let line = |at: u64, action: &str| {
                format!(
                    "8,0 0 {number} {}.{:06}000 1 {action} WS {} + {sectors} [a]\n",
                    at / 1_000_000,
                    at % 1_000_000,
                    64 * number
                )
            };
            text += &[line(at, "Q"), line(at + 1, "G"), line(at + 3, "D"), line(done, "C")].concat();
        }
        let storage: Arc<dyn Storage> = Arc::new(text.into_bytes());
        let inputs = vec![Input { name: "f".into(), storage }];
        let mut all = SpanStatistics::default();
        let found = survey(open(inputs.clone()).unwrap(), None);
        assert_eq!((found.requests, found.unpaired), (count, 0));
        follow(open(inputs).unwrap(), found.selection, |request| all.add(request));
        all
    }

    fn compared(a: &SpanStatistics, b: &SpanStatistics) -> SpanComparison {
        compare_spans((ComparedRecording::default(), a), (ComparedRecording::default(), b))
    }

    #[test]
    fn a_slower_device_differs_and_the_same_one_does_not() {
        let (fast, slow) = (recording(400, 100, false), recording(300, 130, false));
        let found = compared(&fast, &slow);
        assert_eq!((found.first.requests, found.second.requests, found.first.requests_alone), (400, 300, 0));
        let [kind] = &found.kinds[..] else { panic!("{found:?}") };
        assert_eq!((kind.op.as_str(), kind.size_bytes, kind.first_count, kind.count), ("write", 4096, 400, 300));
        let named = |name: &str| kind.spans.iter().find(|span| span.span == name).unwrap();
        assert_eq!(named("device").certainty, Certainty::Differs);
        assert!((named("device").difference_us - 30.0).abs() < 0.2, "{:?}", named("device"));
        assert_eq!((named("block").certainty, named("block").difference_us), (Certainty::NoDifferenceShown, 0.0));
        assert!(kind.spans.iter().all(|span| span.span != "hardware"));
        let same = compared(&fast, &recording(350, 100, false));
        assert!(same.kinds[0].spans.iter().all(|span| span.certainty == Certainty::NoDifferenceShown));
    }

    #[test]
    fn few_requests_give_no_verdict_and_other_kinds_are_counted() {
        let found = compared(&recording(300, 100, true), &recording(9, 300, false));
        let [kind] = &found.kinds[..] else { panic!("{found:?}") };
        assert!(kind.spans.iter().all(|span| span.certainty == Certainty::CannotTell && span.interval.is_none()));
        assert_eq!((found.first.requests_alone, found.second.requests_alone), (100, 0));
    }
}
