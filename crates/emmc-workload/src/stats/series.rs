//! Means of consecutive values, in a bounded number of equal batches over a run of any length.

use crate::stats::interval::Interval;

/// At this number of batches, neighbours are merged in pairs.
const BATCHES_MAX: usize = 256;

/// Values in the order of arrival.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    count: u64,
    sum: f64,
    /// Values of a batch.
    each: u64,
    /// Sum and number of values of the incomplete batch.
    open: (f64, u64),
    means: Vec<f64>,
}

impl Default for Series {
    fn default() -> Self {
        Self { count: 0, sum: 0.0, each: 1, open: (0.0, 0), means: Vec::new() }
    }
}

impl Series {
    /// Counts a value.
    pub(crate) fn record(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.open = (self.open.0 + value, self.open.1 + 1);
        if self.open.1 < self.each {
            return;
        }
        self.means.push(self.open.0 / self.each as f64);
        self.open = (0.0, 0);
        if self.means.len() == BATCHES_MAX {
            self.means = self.means.chunks_exact(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
            self.each *= 2;
        }
    }

    /// How many.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The mean of all of them.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// The 95 % confidence interval of the mean, around the mean of all; nothing if there are too few values.
    pub(crate) fn interval(&self) -> Option<Interval> {
        let (found, mean) = Interval::of_batches(&self.means).zip(self.mean())?;
        // The values of the incomplete batch count in the mean only.
        Some(Interval { low: found.low.min(mean), high: found.high.max(mean) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_stay_bounded_and_the_mean_is_exact() {
        let mut series = Series::default();
        (0..100_000u32).for_each(|value| series.record(f64::from(value % 10)));
        assert_eq!((series.count(), series.mean()), (100_000, Some(4.5)));
        assert!(series.means.len() < BATCHES_MAX && series.each == 512, "{} of {}", series.means.len(), series.each);
        let interval = series.interval().unwrap();
        assert!(interval.low <= 4.5 && 4.5 <= interval.high && interval.high - interval.low < 0.1, "{interval:?}");
        assert_eq!(Series::default().mean(), None);
    }

    #[test]
    fn fewer_than_ten_values_have_no_interval() {
        let mut series = Series::default();
        (0..9).for_each(|_| series.record(1.0));
        assert_eq!(series.interval(), None);
        series.record(1.0);
        assert_eq!(series.interval(), Some(Interval { low: 1.0, high: 1.0 }));
    }
}
