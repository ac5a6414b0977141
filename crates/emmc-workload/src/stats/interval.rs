//! Confidence intervals of the mean of correlated values.
//!
//! Consecutive requests are not independent, so an interval from their variance is too narrow. Means of long batches
//! are almost independent: Student's interval over at least ten of them (batch means).

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Fewest batches for an interval.
const BATCHES_MIN: usize = 10;
/// Batches are merged until at most this many are left: longer ones are less correlated.
const BATCHES_MAX: usize = 32;

/// A 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    /// Of the mean of equally long batches; nothing if there are fewer than ten.
    pub fn of_batches(values: &[f64]) -> Option<Self> {
        let size = values.len().div_ceil(BATCHES_MAX).max(1);
        let means: Vec<f64> = values.chunks_exact(size).map(|batch| batch.iter().sum::<f64>() / size as f64).collect();
        if means.len() < BATCHES_MIN {
            return None;
        }
        let count = means.len() as f64;
        let mean = means.iter().sum::<f64>() / count;
        let variance = means.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let quantile = StudentsT::new(0.0, 1.0, count - 1.0).ok()?.inverse_cdf(0.975);
        let half = quantile * (variance / count).sqrt();
        Some(Self { low: mean - half, high: mean + half })
    }

    /// Of the rate of equal amounts of work, from the rates of its parts: their times are what varies.
    pub fn of_rates(rates: &[f64]) -> Option<Self> {
        let times: Vec<f64> = rates.iter().map(|rate| 1.0 / rate).collect();
        let time = Self::of_batches(&times).filter(|time| time.low > 0.0 && time.high.is_finite())?;
        Some(Self { low: 1.0 / time.high, high: 1.0 / time.low })
    }

    /// Whether the two intervals are disjoint.
    pub fn is_apart_from(&self, other: &Self) -> bool {
        self.low > other.high || other.low > self.high
    }
}

#[cfg(test)]
mod tests {
    use emmc_units::Rng;

    use super::*;

    #[test]
    fn few_batches_give_no_interval() {
        assert_eq!(Interval::of_batches(&[1.0; 9]), None);
        assert_eq!(Interval::of_batches(&[2.0; 10]), Some(Interval { low: 2.0, high: 2.0 }));
    }

    /// Correlated values: each keeps 0.8 of the previous one.
    #[test]
    fn coverage_of_the_true_mean_is_nominal() {
        let mut rng = Rng::new(3);
        let inside = (0..1000)
            .filter(|_| {
                let mut last = 0.0;
                let values: Vec<f64> = (0..1280)
                    .map(|_| {
                        last = 0.8 * last + rng.unit_f64() - 0.5;
                        10.0 + last
                    })
                    .collect();
                let interval = Interval::of_batches(&values).unwrap();
                interval.low <= 10.0 && 10.0 <= interval.high
            })
            .count();
        // For independent values it would be 950; these intervals are still slightly too narrow.
        assert!((900..980).contains(&inside), "{inside}");
    }
}
