//! Where a run has settled: MSER-5 (White 1997; White, Cobb and Spratt 2000).
//!
//! The series is averaged in groups of five; the first d means are cut so that the standard error of the rest is
//! smallest. A cut beyond the middle means that the run had not settled, or was too short.

/// Values per mean.
const FIVE: usize = 5;
/// Fewest means.
const MEANS_MIN: usize = 10;

/// Result of MSER-5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Values that belong to the warm-up; a multiple of five.
    pub(crate) values: usize,
    /// Whether the rest is longer than the removed part.
    pub(crate) is_settled: bool,
}

/// The start of the settled part of a series; none if it has fewer than fifty values.
pub(crate) fn mser5(values: &[f64]) -> Option<Cut> {
    let means: Vec<f64> = values.chunks_exact(FIVE).map(|five| five.iter().sum::<f64>() / FIVE as f64).collect();
    let count = means.len();
    if count < MEANS_MIN {
        return None;
    }
    // From the end, so that each cut adds one mean to the rest (Welford): the last five do not count as a rest.
    let (mut mean, mut squares, mut kept) = (0.0, 0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for (cut, value) in means.iter().enumerate().rev() {
        kept += 1.0;
        let delta = value - mean;
        mean += delta / kept;
        squares += delta * (value - mean);
        let error = squares / (kept * kept);
        // The earliest of the best cuts; means that are equal up to rounding are equal.
        if count - cut >= FIVE && error <= best.0 * (1.0 + 1e-9) + mean * mean * 1e-24 {
            best = (error.min(best.0), cut);
        }
    }
    Some(Cut { values: best.1 * FIVE, is_settled: best.1 * 2 <= count })
}

#[cfg(test)]
mod tests {
    use emmc_units::Rng;

    use super::*;

    fn noise(count: usize, seed: u64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        (0..count).map(|_| rng.unit_f64() - 0.5).collect()
    }

    #[test]
    fn a_constant_series_is_not_cut() {
        assert_eq!(mser5(&[3.7; 500]), Some(Cut { values: 0, is_settled: true }));
        assert_eq!(mser5(&[1.0; 49]), None);
    }

    /// The definition, computed cut by cut.
    #[test]
    fn the_cut_minimises_the_standard_error() {
        for seed in 0..20 {
            let mut values = noise(400, seed);
            (0..60).for_each(|at| values[at] += 5.0 * (-(at as f64) / 15.0).exp());
            let means: Vec<f64> = values.chunks_exact(5).map(|five| five.iter().sum::<f64>() / 5.0).collect();
            let error = |cut: usize| {
                let rest = &means[cut..];
                let mean = rest.iter().sum::<f64>() / rest.len() as f64;
                rest.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
            };
            let best = (0..=means.len() - 5).min_by(|a, b| error(*a).total_cmp(&error(*b))).unwrap();
            assert_eq!(mser5(&values).unwrap().values, best * 5, "seed {seed}");
        }
    }

    /// A step is cut where it ends, with at most a little of the even part after it.
    #[test]
    fn a_known_transient_is_removed() {
        for seed in 0..50 {
            let mut values = noise(2000, seed);
            values[..200].iter_mut().for_each(|value| *value += 10.0);
            let cut = mser5(&values).unwrap();
            assert!(cut.is_settled && (200..=300).contains(&cut.values), "seed {seed}: {cut:?}");
        }
    }

    #[test]
    fn a_late_change_is_not_settled() {
        let mut values = noise(1000, 1);
        values[..700].iter_mut().for_each(|value| *value += 10.0);
        let cut = mser5(&values).unwrap();
        assert!(!cut.is_settled && cut.values >= 700, "{cut:?}");
    }
}
