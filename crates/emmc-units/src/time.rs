//! Simulated time: durations and instants in whole nanoseconds.
//!
//! Absent on purpose: any clock. Only the engine that owns the virtual card's time makes instants.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

use serde::{Deserialize, Serialize};

/// A duration.
///
/// Unit: nanoseconds. Arithmetic saturates: 584 years are enough for any card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// Whole microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// Whole milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Whole seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// Microseconds with a fraction, rounded to the nanosecond; negative and undefined values give zero.
    pub fn from_micros_f64(micros: f64) -> Self {
        Self((micros * 1e3).round().max(0.0) as u64)
    }

    /// In microseconds.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<u64> for Nanos {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..1_000 => write!(f, "{} ns", self.0),
            1_000..1_000_000 => write!(f, "{:.1} us", self.0 as f64 / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.2} ms", self.0 as f64 / 1e6),
            _ => write!(f, "{:.2} s", self.0 as f64 / 1e9),
        }
    }
}

/// A point of simulated time.
///
/// Unit: nanoseconds since the card was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Instant(pub u64);

impl Instant {
    /// When the card was made.
    pub const START: Self = Self(0);

    /// The time since `earlier`, or zero if that is later.
    pub fn since(self, earlier: Self) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Nanos> for Instant {
    type Output = Self;
    fn add(self, duration: Nanos) -> Self {
        Self(self.0.saturating_add(duration.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Instant(5) + Nanos(7), Instant(12));
        assert_eq!(Instant(5).since(Instant(9)), Nanos::ZERO);
        assert_eq!(Nanos(u64::MAX) + Nanos(1), Nanos(u64::MAX));
        assert_eq!(Nanos(3) - Nanos(4), Nanos::ZERO);
        assert_eq!(Nanos::from_micros_f64(-1.0), Nanos::ZERO);
        assert_eq!(Nanos::from_micros_f64(0.0004), Nanos::ZERO);
        assert_eq!(Nanos::from_micros_f64(1.5), Nanos(1500));
    }

    #[test]
    fn times_are_printed_with_a_readable_unit() {
        let shown = [999, 1_500, 2_250_000, 3_000_000_000].map(|ns| Nanos(ns).to_string());
        assert_eq!(shown, ["999 ns", "1.5 us", "2.25 ms", "3.00 s"]);
    }
}
