//! A distribution of times, which costs a counter for each.

use emmc_units::Nanos;
use hdrhistogram::Histogram;

use super::result::Times;

/// Bits of a time that a distribution keeps: three decimal digits.
const BITS: u32 = 10;

/// A distribution of times. The mean and the longest are exact, percentiles within 0.1 %.
#[derive(Default)]
pub(super) struct Track {
    /// How often each time was, by [`place`].
    times: Vec<u32>,
    pub(super) count: u64,
    pub(super) sum_ns: u128,
    max_ns: u64,
}

impl Track {
    pub(super) fn new() -> Self {
        Self::default()
    }

    #[inline]
    pub(super) fn add(&mut self, ns: u64) {
        let place = place(ns);
        if place >= self.times.len() {
            self.times.resize((place | ((1 << BITS) - 1)) + 1, 0);
        }
        self.times[place] = self.times[place].saturating_add(1);
        self.count += 1;
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    #[inline]
    pub(super) fn add_some(&mut self, span: Option<Nanos>) {
        if let Some(span) = span {
            self.add(span.0);
        }
    }

    pub(super) fn absorb(&mut self, other: &Self) {
        if self.times.len() < other.times.len() {
            self.times.resize(other.times.len(), 0);
        }
        for (own, other) in self.times.iter_mut().zip(&other.times) {
            *own = own.saturating_add(*other);
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    pub(super) fn times(&self) -> Option<Times> {
        let mut histogram = Histogram::<u32>::new(3).expect("three digits are valid");
        for (place, count) in self.times.iter().enumerate().filter(|(_, count)| **count > 0) {
            let added = histogram.record_n(shortest(place), *count);
            debug_assert!(added.is_ok(), "{added:?}");
        }
        let percentile = |of: f64| histogram.value_at_quantile(of).min(self.max_ns) as f64 / 1e3;
        (self.count > 0).then(|| Times {
            mean: self.sum_ns as f64 / self.count as f64 / 1e3,
            p50: percentile(0.5),
            p99: percentile(0.99),
            max: self.max_ns as f64 / 1e3,
        })
    }
}

/// The place of a time: one for each below 2048 ns, then 1024 for each power of two, as in a histogram of three digits.
#[inline]
fn place(ns: u64) -> usize {
    let shift = (u64::BITS - BITS - 1).saturating_sub(ns.leading_zeros());
    ((shift as usize) << BITS) + (ns >> shift) as usize
}

/// The shortest time of a place.
fn shortest(place: usize) -> u64 {
    let shift = (place >> BITS).saturating_sub(1);
    ((place - (shift << BITS)) as u64) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places are those of the histogram that gives the percentiles: none of its values falls between two.
    #[test]
    fn places_are_those_of_a_histogram_of_three_digits() {
        let histogram = Histogram::<u32>::new(3).unwrap();
        let mut times: Vec<u64> = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1]).collect();
        let mut random = 1u64;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            times.push(random >> (random & 63));
        }
        for ns in times.into_iter().chain([u64::MAX]) {
            let shortest = shortest(place(ns));
            assert_eq!(shortest, histogram.lowest_equivalent(ns), "{ns}");
            assert!(place(shortest) == place(ns) && shortest <= ns, "{ns}");
        }
    }
}
