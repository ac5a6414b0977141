//! Exact sampling of Zipf's law.
//!
//! Source: Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions"
//! (1996): the inverse of the integral of x^-s is rounded, and the small excess is rejected.

use emmc_units::Rng;

/// Numbers from 0 to n - 1, the k-th with probability proportional to (k + 1)^-s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zipf {
    n: f64,
    s: f64,
    /// The integral at the lower end, minus the first probability, and at the upper end.
    low: f64,
    high: f64,
    /// Within this distance of the rounded number, no draw is rejected.
    sure: f64,
}

impl Zipf {
    /// The law with exponent `s` above 0 over `n` numbers.
    pub(crate) fn new(n: u64, s: f64) -> Self {
        let n = n.max(1) as f64;
        let made = Self { n, s, low: 0.0, high: 0.0, sure: 0.0 };
        let low = made.integral(1.5) - 1.0;
        let high = made.integral(n + 0.5);
        let sure = 2.0 - made.inverse(made.integral(2.5) - made.density(2.0));
        Self { low, high, sure, ..made }
    }

    /// The integral of x^-s from 1 to `x`.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        let t = (1.0 - self.s) * log;
        log * if t.abs() > 1e-8 { libm::expm1(t) / t } else { 1.0 + t * 0.5 }
    }

    /// Where the integral is `y`.
    #[inline]
    fn inverse(&self, y: f64) -> f64 {
        // Rounding must not lead out of the logarithm's domain.
        let t = (y * (1.0 - self.s)).max(-1.0);
        libm::exp(y * if t.abs() > 1e-8 { libm::log1p(t) / t } else { 1.0 - t * 0.5 })
    }

    fn density(&self, x: f64) -> f64 {
        libm::exp(-self.s * libm::log(x))
    }

    /// The next number.
    #[inline]
    pub(crate) fn next(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.high + rng.unit_f64() * (self.low - self.high);
            let x = self.inverse(u);
            let k = (x + 0.5).floor().clamp(1.0, self.n);
            if k - x <= self.sure || u >= self.integral(k + 0.5) - self.density(k) {
                return k as u64 - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_follow_the_zipf_law() {
        let (n, draws) = (50, 1_000_000);
        for s in [0.3, 0.6, 0.99, 1.0, 1.000_000_001, 1.2, 3.0] {
            let mut rng = Rng::new(3);
            let zipf = Zipf::new(n, s);
            let mut seen = vec![0u32; n as usize];
            for _ in 0..draws {
                seen[zipf.next(&mut rng) as usize] += 1;
            }
            let total: f64 = (1..=n).map(|k| libm::pow(k as f64, -s)).sum();
            // Pearson's test with 49 degrees of freedom: beyond 95 once in ten thousand.
            let chi_square: f64 = (1..=n)
                .map(|k| {
                    let expected = libm::pow(k as f64, -s) / total * f64::from(draws);
                    let off = f64::from(seen[k as usize - 1]) - expected;
                    off * off / expected
                })
                .sum();
            assert!(chi_square < 95.0, "s {s}: {chi_square}");
        }
    }

    #[test]
    fn both_ends_of_the_range_occur() {
        let mut rng = Rng::new(1);
        let one = Zipf::new(1, 1.0);
        assert!((0..100).all(|_| one.next(&mut rng) == 0));
        let steep = Zipf::new(1 << 21, 20.0);
        assert!((0..1000).all(|_| steep.next(&mut rng) < 3));
        let flat = Zipf::new(1 << 21, 0.001);
        let last = (0..10_000).map(|_| flat.next(&mut rng)).max().unwrap();
        assert!((1 << 21) - 2000 < last && last < 1 << 21, "{last}");
    }
}
