//! Confidence intervals of percentiles for correlated requests.
//!
//! The share of requests up to the percentile is an average over batches. A circular block bootstrap (Politis and
//! Romano 1992) estimates its variation; the block length follows from the batches' autocorrelation (Politis and White
//! 2004, corrected by Patton, Politis and White 2009). The interval of shares is converted to latencies at those ranks
//! (Woodruff 1952). The same seed gives the same result. Absent on purpose: intervals of the maximum, which resampling
//! cannot estimate.

use emmc_units::Rng;

/// Resamples.
const RESAMPLES: usize = 400;
/// Fewest batches for a bootstrap.
pub(crate) const CELLS_MIN: usize = 40;

/// The 95 % confidence interval of the mean, as distances below and above it; nothing if there are too few values.
pub(crate) fn mean_range(values: &[f64], seed: u64) -> Option<(f64, f64)> {
    let count = values.len();
    if count < CELLS_MIN {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count as f64;
    if values.iter().all(|value| *value == values[0]) {
        return Some((0.0, 0.0));
    }
    let block = block_length(values);
    // Cumulative sums, wrapped around the end once.
    let mut sums = vec![0.0; count + block + 1];
    for at in 0..count + block {
        sums[at + 1] = sums[at] + values[at % count] - mean;
    }
    let mut rng = Rng::new(seed);
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let (mut left, mut sum) = (count, 0.0);
            while left > 0 {
                let (from, length) = (rng.below(count as u64) as usize, block.min(left));
                sum += sums[from + length] - sums[from];
                left -= length;
            }
            sum / count as f64
        })
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    // Blocks of b of n values vary less than independent values would, by the share b / n.
    let short = (count as f64 / (count - block.min(count / 2)) as f64).sqrt();
    let tail = RESAMPLES / 40;
    Some((means[tail] * short, means[RESAMPLES - 1 - tail] * short))
}

/// The block length with the best estimate of the mean's variance, from the values' autocorrelation.
pub(crate) fn block_length(values: &[f64]) -> usize {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let covariance = |lag: usize| {
        let products = values.iter().zip(&values[lag..]).map(|(a, b)| (a - mean) * (b - mean));
        products.sum::<f64>() / count
    };
    let quiet = (count.log10().sqrt().ceil() as usize).max(5);
    let lags = (count.sqrt().ceil() as usize + quiet).min(values.len() - 1);
    let all: Vec<f64> = (0..=lags).map(covariance).collect();
    if all[0] <= 0.0 {
        return 1;
    }
    let threshold = 2.0 * (count.log10() / count).sqrt() * all[0];
    // The last lag before a run of insignificant lags.
    let is_quiet = |from: usize| all[from + 1..].iter().take(quiet).all(|value| value.abs() < threshold);
    let last = (0..lags).find(|from| is_quiet(*from)).unwrap_or(lags);
    let width = (2 * last).clamp(1, lags);
    let (mut spread, mut variance) = (0.0, all[0]);
    for (lag, value) in all.iter().enumerate().take(width + 1).skip(1) {
        let weight = (2.0 * (1.0 - lag as f64 / width as f64)).min(1.0);
        spread += 2.0 * weight * lag as f64 * value;
        variance += 2.0 * weight * value;
    }
    let ratio = spread / variance.max(all[0] * 1e-6);
    let most = (3.0 * count.sqrt()).min(count / 3.0).ceil();
    ((1.5 * ratio * ratio).cbrt() * count.cbrt()).ceil().clamp(1.0, most) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Autoregressive: each value keeps a share of the previous one.
    fn chain(count: usize, keeps: f64, rng: &mut Rng) -> Vec<f64> {
        let mut last = 0.0;
        let mut next = || {
            // Approximately normal.
            last = keeps * last + (0..12).map(|_| rng.unit_f64()).sum::<f64>() - 6.0;
            last
        };
        (0..100).for_each(|_| _ = next());
        (0..count).map(|_| next()).collect()
    }

    /// For an autoregressive series with coefficient a, the best length is (6 a^2 / (1 - a^2)^2)^(1/3) n^(1/3).
    #[test]
    fn the_block_length_matches_theory() {
        for (keeps, expected) in [(0.0, 1.0), (0.5, 13.9), (0.8, 31.0)] {
            let mut rng = Rng::new(5);
            let lengths: Vec<usize> = (0..40).map(|_| block_length(&chain(1000, keeps, &mut rng))).collect();
            let mean = lengths.iter().sum::<usize>() as f64 / 40.0;
            assert!((mean / expected - 1.0).abs() < 0.35 || mean < 3.0 && expected == 1.0, "{keeps}: {mean}");
        }
        assert_eq!(block_length(&[1.0; 50]), 1);
    }

    /// The interval contains the true mean, 0, about as often as the confidence level says.
    #[test]
    fn coverage_of_the_true_mean_is_nominal() {
        for (keeps, least) in [(0.0, 0.92), (0.5, 0.90), (0.8, 0.87)] {
            let mut rng = Rng::new(11);
            let inside = (0..500)
                .filter(|seed| {
                    let values = chain(250, keeps, &mut rng);
                    let mean = values.iter().sum::<f64>() / 250.0;
                    let (low, high) = mean_range(&values, *seed).unwrap();
                    mean + low <= 0.0 && 0.0 <= mean + high
                })
                .count();
            let share = inside as f64 / 500.0;
            assert!((least..0.99).contains(&share), "keeps {keeps}: {share}");
        }
    }

    #[test]
    fn a_seed_fixes_the_result_and_few_values_give_none() {
        let values = chain(200, 0.5, &mut Rng::new(1));
        assert_eq!(mean_range(&values, 7), mean_range(&values, 7));
        assert_ne!(mean_range(&values, 7), mean_range(&values, 8));
        assert_eq!(mean_range(&values[..CELLS_MIN - 1], 7), None);
    }
}
