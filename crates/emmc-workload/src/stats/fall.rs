//! Where the rate of a sustained write falls.

/// The fall is this many times its standard error.
const CLEAR: f64 = 5.0;
/// Bins before a fall, and after it, at least: one has no spread.
const SPREAD: usize = 2;

/// Where and how far the rate falls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fall {
    /// Unit: bytes.
    pub after: u64,
    /// The rate before it. Unit: MB/s.
    pub fast: f64,
    /// The rate after it. Unit: MB/s.
    pub slow: f64,
}

impl Fall {
    /// The split of bins of `bin_bytes` into fast ones and slow ones with the least squares, if it is clear and
    /// writes before it are at least `times` faster; `bins`: the time of each (us).
    pub fn of((bins, bin_bytes): (&[f64], u64), times: f64) -> Option<Self> {
        let splits = SPREAD..bins.len().checked_sub(SPREAD)?;
        let squares = |part: &[f64]| error(part) * (part.len() * (part.len() - 1)) as f64;
        let split = splits.min_by(|a, b| {
            (squares(&bins[..*a]) + squares(&bins[*a..])).total_cmp(&(squares(&bins[..*b]) + squares(&bins[*b..])))
        })?;
        let (before, after) = bins.split_at(split);
        let (fast, slow) = (mean(before), mean(after));
        // A share of the time itself, where a card without noise has no spread.
        let error = (error(before) + error(after)).sqrt().max(0.01 * fast);
        let is_clear = slow > times * fast && slow - fast > CLEAR * error;
        let rate = |time: f64| bin_bytes as f64 / time;
        // The bin of the fall is slower than those before, by its part after the fall.
        let within = bins.get(split).map_or(0.0, |bin| ((slow - bin) / (slow - fast)).clamp(0.0, 1.0));
        let bytes = (split as f64 + within) * bin_bytes as f64;
        is_clear.then(|| Self { after: bytes as u64, fast: rate(fast), slow: rate(slow) })
    }

    /// Whether the rate was low for long enough, as a slow bin or two are no fall: for half of the volume before the
    /// fall, and for `least_bytes` of the `written_bytes`.
    pub fn has_lasted(&self, written_bytes: u64, least_bytes: u64) -> bool {
        written_bytes.saturating_sub(self.after) >= (self.after / 2).max(least_bytes)
    }

    /// What a byte takes longer after it. Unit: microseconds.
    pub fn cost(&self) -> f64 {
        1.0 / self.slow - 1.0 / self.fast
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Variance of the mean.
fn error(values: &[f64]) -> f64 {
    let middle = mean(values);
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    squares / (values.len() * (values.len() - 1).max(1)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const BIN: u64 = 4 << 20;

    #[test]
    fn a_fall_is_a_step_and_no_spike() {
        // 20 bins at 0.1 s; then each takes three times longer.
        let step: Vec<f64> =
            (0..36).map(|bin| if bin < 20 { 1e5 } else { 3e5 } + f64::from(bin * 7 % 5) * 1e3).collect();
        let found = Fall::of((&step, BIN), 1.3).expect("a fall");
        assert!(found.after.abs_diff(20 * BIN) < BIN && found.fast > 2.5 * found.slow, "{found:?}");
        assert!(found.has_lasted(36 * BIN, BIN) && !found.has_lasted(25 * BIN, BIN), "half of 20 bins");
        assert!(!found.has_lasted(36 * BIN, 20 * BIN) && !found.has_lasted(0, BIN));
        // Whole blocks are folded at once, every fourth bin.
        let folds: Vec<f64> = (0..100).map(|bin| if bin >= 12 && bin % 4 == 0 { 6e5 } else { 1e5 }).collect();
        assert!(Fall::of((&folds, BIN), 1.3).expect("a fall").after.abs_diff(12 * BIN) < 2 * BIN);
        // A fifth less, as where the firmware takes most of the time.
        let little: Vec<f64> =
            (0..36).map(|bin| if bin < 20 { 1e5 } else { 1.2e5 } + f64::from(bin * 7 % 5) * 1e3).collect();
        let found = Fall::of((&little, BIN), 1.1).expect("a fall");
        assert!(found.after.abs_diff(20 * BIN) < BIN, "{found:?}");
        assert_eq!(Fall::of((&little, BIN), 1.3), None);
        let spikes: Vec<f64> =
            (0..60).map(|bin| if bin % 17 == 5 { 4e5 } else { 1e5 + f64::from(bin * 7 % 5) * 5e3 }).collect();
        assert_eq!(Fall::of((&spikes, BIN), 1.3), None);
        let drift: Vec<f64> = (0..60).map(|bin| 1e5 * (1.0 + f64::from(bin) * 0.003)).collect();
        assert_eq!(Fall::of((&drift, BIN), 1.1), None);
        assert_eq!(Fall::of((&[1.0, 1.0, 9.0], BIN), 1.3), None);
    }
}
