//! Durable writes of growing size: the sizes at which their time changes, and the size below which their rate drops.

use emmc_workload::BenchError;

use crate::requests::Requests;
use crate::robust::{median, middle_mean, spread};

const KIB: u64 = 1024;
/// Each write begins at a multiple of this, and the rest is written after it, so that the stream stays sequential.
const BLOCK: u64 = 128 * KIB;
const STEP: u64 = 4 * KIB;
const ROUNDS: u64 = 8;
/// Runs of sequential writes of each power of two, and writes of a run.
const RUNS: u64 = 3;
const WRITES: u64 = 16;
/// A change of time counts if it is this share of the largest one.
const CHANGE: f64 = 0.35;
/// A write of twice the size whose rate is more than this many times higher is not only longer.
const LONGER: f64 = 2.4;
/// Halving a write that takes more than this share of the rate is a drop.
const DROP: f64 = 2.0 / 3.0;

/// Times of durable writes by size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steps {
    /// The sizes after which the time changes. Unit: bytes.
    pub(crate) changes: Vec<u64>,
    /// The largest size of which all of them are multiples. Unit: bytes.
    pub(crate) unit: Option<u64>,
    /// Rates of sequential writes by size, smallest first. Unit: bytes, MB/s.
    pub(crate) rates: Vec<(u64, f64)>,
}

/// What [`steps`] writes. Unit: bytes.
pub(crate) const STEPS_BYTES: u64 = BLOCK / STEP * BLOCK * ROUNDS + RUNS * WRITES * 2 * BLOCK;

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// Measures in a range of [`STEPS_BYTES`] that holds data.
pub(crate) fn steps(requests: &mut Requests<'_>, from: u64) -> Result<Steps, BenchError> {
    requests.step("durable writes of growing size");
    let sizes = BLOCK / STEP;
    let mut times = vec![Vec::new(); sizes as usize];
    let mut at = from;
    for round in 0..ROUNDS {
        for step in 0..sizes {
            // Another order each round: 13 and the number of sizes have no common divisor.
            let size = ((step * 13 + round * 5) % sizes + 1) * STEP;
            times[(size / STEP - 1) as usize].push(requests.write(at, size)?);
            if size < BLOCK {
                requests.write(at + size, BLOCK - size)?;
            }
            at += BLOCK;
        }
    }
    let rates = rates(requests, at)?;
    let middles: Vec<f64> = times.iter().map(|times| middle_mean(times)).collect();
    let noise = median(&times.iter().map(|times| spread(times)).collect::<Vec<_>>()) / (ROUNDS as f64).sqrt();
    let (changes, unit) = changes(&middles, noise);
    Ok(Steps { changes, unit, rates })
}

/// Where times of growing sizes change, and of what all those places are multiples.
fn changes(times_us: &[f64], noise: f64) -> (Vec<u64>, Option<u64>) {
    let differences: Vec<f64> = times_us.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let slope = median(&differences);
    let apart: Vec<f64> = differences.iter().map(|difference| (difference - slope).abs()).collect();
    let largest = apart.iter().copied().fold(0.0, f64::max);
    // A real one stands out of the noise and of the time itself.
    if largest < (10.0 * noise).max(0.05 * median(times_us)) {
        return (Vec::new(), None);
    }
    let is_change = |apart: &f64| *apart > CHANGE * largest;
    let changes: Vec<u64> =
        (1u64..).zip(&apart).filter(|(_, apart)| is_change(apart)).map(|(size, _)| size * STEP).collect();
    let unit = changes.iter().copied().reduce(divisor);
    // How often all of them are multiples at random.
    let chance = |unit: u64| (STEP as f64 / unit as f64).powi(changes.len() as i32);
    let unit = unit.filter(|unit| *unit > STEP && chance(*unit) < 0.005);
    (changes, unit)
}

/// Sequential durable writes of each power of two: a run's mean has what the writes leave to be done later; of three
/// runs the middle one counts.
fn rates(requests: &mut Requests<'_>, from: u64) -> Result<Vec<(u64, f64)>, BenchError> {
    requests.step("sequential durable writes");
    let sizes: Vec<u64> = (0..).map(|power| STEP << power).take_while(|size| *size <= BLOCK).collect();
    let mut means = vec![Vec::new(); sizes.len()];
    let mut at = from;
    for run in 0..RUNS as usize {
        for step in 0..sizes.len() {
            let index = (step * 5 + run) % sizes.len();
            let size = sizes[index];
            let mut sum = 0.0;
            for _ in 0..WRITES {
                sum += requests.write(at, size)?;
                at += size;
            }
            means[index].push(sum / WRITES as f64);
        }
    }
    Ok(sizes.iter().zip(&means).map(|(size, means)| (*size, *size as f64 / median(means))).collect())
}

impl Steps {
    /// Whether writes pay at odd multiples of a size too, so that it is no half of a page.
    pub(crate) fn change_at_odd_multiples(&self, size: u64) -> bool {
        let odd = self.changes.iter().filter(|at| *at % size == 0 && at.div_ceil(size) % 2 == 1).count();
        let others = self.changes.iter().filter(|at| *at % size != 0).count();
        odd >= 2 && others < odd
    }

    /// Whether smaller writes are much faster than larger ones, or take longer: disturbed, not a property of the card.
    pub(crate) fn is_disturbed(&self) -> bool {
        let disturbed = |(index, (_, rate)): (usize, &(u64, f64))| {
            self.rates[index + 1..].iter().any(|(_, larger)| *rate > larger / DROP)
        };
        // Half of a write takes no longer than the whole, so its rate is half of it at least; less is a merge or a
        // delay. Between sizes there may be others that were not measured.
        let longer = |pair: &[(u64, f64)]| {
            let halvings = pair[1].0 as f64 / pair[0].0 as f64 / 2.0;
            pair[1].1 > pair[0].1 * LONGER * halvings
        };
        self.rates.iter().enumerate().any(disturbed) || self.rates.windows(2).any(longer)
    }

    /// The smallest power of two that has nearly the rate of the next one.
    pub(crate) fn useful_write(&self) -> Option<u64> {
        if self.is_disturbed() {
            return None;
        }
        let best = self.rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        let drop = |pair: &[(u64, f64)]| (pair[0].1 < pair[1].1 * DROP).then_some(pair[1].0);
        let last = self.rates.windows(2).filter_map(drop).next_back();
        // A drop whose upper side is itself far from the best rate is one of several.
        last.filter(|size| self.rates.iter().any(|(other, rate)| other == size && *rate > best / 2.0))
            .or_else(|| last.is_none().then_some(STEP))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_rates_have_no_drop() {
        let steps = |rates: &[f64]| {
            let rates = rates.iter().enumerate().map(|(power, rate)| (STEP << power, *rate)).collect();
            Steps { rates, ..Steps::default() }
        };
        assert_eq!(steps(&[1.52, 2.86, 5.03, 8.49, 10.18, 11.36]).useful_write(), Some(32 * KIB));
        // A card in real time on a busy machine.
        assert_eq!(steps(&[0.76, 0.32, 0.59, 1.23, 6.62, 8.07]).useful_write(), None);
        assert_eq!(steps(&[0.03, 0.09, 0.37, 1.58, 3.75, 5.59]).useful_write(), None);
    }

    #[test]
    fn changes_are_multiples_of_the_page() {
        // 12 KiB pages: up and down after some of them, and a slope.
        let time =
            |size: u64| 800.0 + size as f64 * 0.01 + [0.0, 900.0, 300.0, 1400.0][size.div_ceil(12 * KIB) as usize % 4];
        let times: Vec<f64> = (1..=32).map(|size| time(size * STEP)).collect();
        assert_eq!(changes(&times, 10.0).1, Some(12 * KIB));
        // Noise alone has no steps.
        let flat: Vec<f64> = (1..=32).map(|size| 800.0 + f64::from(size * 7 % 5)).collect();
        assert_eq!(changes(&flat, 2.0), (vec![], None));
    }
}
