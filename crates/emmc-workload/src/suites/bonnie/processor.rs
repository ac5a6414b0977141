//! bonnie++'s %CPU: processor time of the program and of its calls of the kernel, as a share of the time that passed.
//!
//! More than 100 means more than one core. What the kernel does on its own, as writing back, is in no figure: neither
//! is it in bonnie++'s.

use emmc_port::{BlockTarget, FileTree};
use emmc_units::{Instant, Nanos};

/// A stretch of work that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    at: Instant,
    spent: Option<Nanos>,
}

/// What has a time, and perhaps a processor.
pub(super) trait Timed {
    /// Both.
    fn times(&mut self) -> (Instant, Option<Nanos>);
}

impl Timed for dyn BlockTarget + '_ {
    fn times(&mut self) -> (Instant, Option<Nanos>) {
        (self.now(), self.processor())
    }
}

impl Timed for dyn FileTree + '_ {
    fn times(&mut self) -> (Instant, Option<Nanos>) {
        (self.now(), self.processor())
    }
}

impl Share {
    pub(super) fn begin<T: Timed + ?Sized>(timed: &mut T) -> Self {
        let (at, spent) = timed.times();
        Self { at, spent }
    }

    /// How long it has taken so far.
    pub(super) fn seconds<T: Timed + ?Sized>(self, timed: &mut T) -> f64 {
        timed.times().0.since(self.at).as_secs_f64()
    }

    /// Unit: percent of a core; absent without a processor.
    pub(super) fn end<T: Timed + ?Sized>(self, timed: &mut T) -> Option<f64> {
        let (at, spent) = timed.times();
        let spent = spent?.0.saturating_sub(self.spent?.0);
        Some(100.0 * spent as f64 / (at.since(self.at).0.max(1)) as f64)
    }
}

/// The columns and their values, each with its share behind it if there are shares.
pub(super) fn columns_of<'a>(
    columns: &[(&'a str, &'a str)],
    values: &[Option<f64>],
    shares: &[Option<f64>],
) -> (Vec<(&'a str, &'a str)>, Vec<Option<f64>>) {
    if shares.contains(&None) {
        return (columns.to_vec(), values.to_vec());
    }
    let columns = columns.iter().flat_map(|column| [*column, ("CPU", "%")]).collect();
    let values = values.iter().zip(shares).flat_map(|(value, share)| [*value, *share]).collect();
    (columns, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_their_columns() {
        let columns = [("out", "KiB/s"), ("in", "KiB/s")];
        let (named, values) = columns_of(&columns, &[Some(1.0), None], &[Some(50.0), Some(60.0)]);
        assert_eq!(named, [("out", "KiB/s"), ("CPU", "%"), ("in", "KiB/s"), ("CPU", "%")]);
        assert_eq!(values, [Some(1.0), Some(50.0), None, Some(60.0)]);
        let (named, values) = columns_of(&columns, &[Some(1.0), None], &[Some(50.0), None]);
        assert_eq!((named.as_slice(), values.as_slice()), (&columns[..], &[Some(1.0), None][..]));
    }
}
