//! The verdict of pairs of rounds: ratios with confidence intervals, against the targets.

use std::fmt;

use emmc_workload::Latency;

use crate::{Round, fio};

/// From this share of fio's rate on, ours counts as not slower.
const IOPS_SHARE: f64 = 0.98;

/// Ours has three digits.
const OWN_RESOLUTION: f64 = 1e-3;

/// The median of the ratios, ours to fio's, with its 95 % confidence interval.
#[derive(Clone, Copy)]
pub(crate) struct Ratio {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Met.
    Yes,
    /// The variation is larger than the margin.
    Unclear,
    /// fio contradicts itself from round to round: the row shows the machine, not the programs.
    Machine,
    No,
}

/// The results of a row.
pub(crate) struct Row {
    pub(crate) iops: Ratio,
    pub(crate) cpu: Ratio,
    pub(crate) percentiles: [Ratio; 3],
    /// The largest difference between fio's percentiles and ours of the same requests, as a share.
    pub(crate) same_requests: f64,
    /// fio's p50 of its middle rounds: the upper quartile over the lower one.
    pub(crate) fio_spread: f64,
}

/// From this ratio on, fio contradicts itself. Source: wake-ups of halted virtual processors change its p50 by more
/// than twice; without them rounds differ by a few percent.
const SPREAD_MAX: f64 = 1.5;

/// The upper quartile of a figure of fio's rounds over the lower one.
pub(crate) fn spread(fios: &[Round], value: impl Fn(&Round) -> f64) -> f64 {
    let mut values: Vec<f64> = fios.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    crate::quantile(&values, 0.75) / crate::quantile(&values, 0.25)
}

impl Ratio {
    pub(crate) fn of(fios: &[Round], ours: &[Round], value: impl Fn(&Round) -> f64) -> Self {
        let mut ratios: Vec<f64> = fios.iter().zip(ours).map(|(fio, own)| value(own) / value(fio)).collect();
        ratios.sort_by(f64::total_cmp);
        let outer = cut_off(ratios.len());
        Self { median: crate::quantile(&ratios, 0.5), low: ratios[outer], high: ratios[ratios.len() - 1 - outer] }
    }

    /// Whether the ratio lies in a range.
    fn within(self, least: f64, most: f64) -> Verdict {
        match () {
            () if (least..=most).contains(&self.median) => Verdict::Yes,
            () if self.high >= least && self.low <= most => Verdict::Unclear,
            () => Verdict::No,
        }
    }
}

/// How many of the smallest and of the largest values lie outside the median's 95 % interval: each of `count` is above
/// or below it with equal probability.
fn cut_off(count: usize) -> usize {
    let (mut below, mut ways, mut outer) = (0.0, 1.0, 0);
    for index in 0..count / 2 {
        below += ways * 0.5f64.powi(count as i32);
        if 2.0 * below > 0.05 {
            break;
        }
        outer = index;
        ways *= (count - index) as f64 / (index + 1) as f64;
    }
    outer
}

/// Both histograms' resolution together.
pub(crate) fn resolution() -> f64 {
    fio::RESOLUTION + OWN_RESOLUTION
}

/// The difference between fio's percentiles and those of its own requests in our histogram.
pub(crate) fn difference(fio: &Round, ours: &Latency) -> f64 {
    let ours = [ours.p50, ours.p99, ours.p999];
    fio.percentiles_us.iter().zip(ours).map(|(fio, own)| (own / fio - 1.0).abs()).fold(0.0, f64::max)
}

impl Row {
    pub(crate) fn iops(&self) -> Verdict {
        self.iops.within(IOPS_SHARE, f64::INFINITY)
    }

    pub(crate) fn cpu(&self) -> Verdict {
        self.cpu.within(0.0, 1.0)
    }

    /// Whether the two histograms agree on the same requests.
    pub(crate) fn histogram(&self) -> Verdict {
        if self.same_requests <= resolution() { Verdict::Yes } else { Verdict::No }
    }

    /// Whether latencies were not longer than fio's.
    pub(crate) fn percentile(&self, index: usize) -> Verdict {
        self.percentiles[index].within(0.0, 1.0 + resolution())
    }

    /// Of what is asked, in its sequence. The two histograms are compared on the same requests, whatever the machine
    /// does.
    pub(crate) fn verdicts(&self) -> [Verdict; 6] {
        let [p50, p99, p999] = [0, 1, 2].map(|index| self.percentile(index));
        let judged = |verdict: Verdict| match verdict {
            Verdict::Unclear | Verdict::No if self.fio_spread > SPREAD_MAX => Verdict::Machine,
            verdict => verdict,
        };
        let [iops, cpu, p50, p99, p999] = [self.iops(), self.cpu(), p50, p99, p999].map(judged);
        [iops, cpu, self.histogram(), p50, p99, p999]
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ({:.2} to {:.2})", self.median, self.low, self.high)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Yes => "yes",
            Self::Unclear => "?",
            Self::Machine => "machine",
            Self::No => "NO",
        })
    }
}
