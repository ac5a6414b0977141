//! How sure a mean is, when what it is the mean of hangs together.
//!
//! Requests one after the other are not independent, so their scatter makes an interval that is too narrow. Means of
//! long batches are nearly so: Student's interval over at least ten of them (batch means).

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Fewest batches that an interval is made of.
const BATCHES_MIN: usize = 10;
/// Batches are joined until no more than this many are left: longer ones hang together less.
const BATCHES_MAX: usize = 32;

/// A range that holds the true mean in 95 of 100 cases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    /// Of the mean of equally long batches; nothing where there are fewer than ten.
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

    /// Of the rate at which equally much work was done, from the rates of its parts: their times are what scatters.
    pub fn of_rates(rates: &[f64]) -> Option<Self> {
        let times: Vec<f64> = rates.iter().map(|rate| 1.0 / rate).collect();
        let time = Self::of_batches(&times).filter(|time| time.low > 0.0 && time.high.is_finite())?;
        Some(Self { low: 1.0 / time.high, high: 1.0 / time.low })
    }

    /// Whether the two have no value in common.
    pub fn is_apart_from(&self, other: &Self) -> bool {
        self.low > other.high || other.low > self.high
    }
}

#[cfg(test)]
mod tests {
    use emmc_units::Rng;

    use super::*;

    #[test]
    fn few_batches_make_no_interval() {
        assert_eq!(Interval::of_batches(&[1.0; 9]), None);
        assert_eq!(Interval::of_batches(&[2.0; 10]), Some(Interval { low: 2.0, high: 2.0 }));
    }

    /// Values that hang together: each keeps 0.8 of the last.
    #[test]
    fn the_true_mean_is_inside_about_as_often_as_it_says() {
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
        // Of independent values it would be 950; these intervals are a little too narrow still.
        assert!((900..980).contains(&inside), "{inside}");
    }
}
