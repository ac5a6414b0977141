//! Requests over time: columns of equal width, whose number is bounded, each with a histogram of the requests' times.

use serde::Serialize;

use crate::event::Op;
use crate::request::Request;

/// Columns at most: with one more, neighbours are added up and the width doubles.
const COLUMNS_MAX: usize = 32;
/// The first width.
const WIDTH_NS: u64 = 1_000_000;
/// Classes of times: below 1 us, then a power of two each; the last has all that is longer.
const CLASSES: usize = 25;

/// Requests over time, by when they were completed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverTime {
    /// The first column's begin, on the recording's clock. Unit: seconds.
    pub from_s: f64,
    /// The width of a column. Unit: seconds.
    pub column_s: f64,
    /// The shortest time of each class in `counts`; a class ends where the next begins. Unit: microseconds.
    pub classes_us: Vec<f64>,
    /// One after the other, those without requests too.
    pub columns: Vec<ColumnRow>,
}

/// Requests that were completed within a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ColumnRow {
    /// Requests.
    pub requests: u64,
    /// Unit: bytes.
    pub read_bytes: u64,
    /// Unit: bytes.
    pub written_bytes: u64,
    /// From begin to end, the mean; `null` without requests. Unit: microseconds.
    pub mean_us: Option<f64>,
    /// The longest. Unit: microseconds.
    pub max_us: Option<f64>,
    /// Requests by their time.
    pub counts: Vec<u64>,
}

#[derive(Clone, Copy, Default)]
struct Column {
    requests: u64,
    read: u64,
    written: u64,
    sum_ns: u128,
    max_ns: u64,
    counts: [u64; CLASSES],
}

impl Column {
    fn absorb(&mut self, other: &Self) {
        self.requests += other.requests;
        self.read += other.read;
        self.written += other.written;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.counts.iter_mut().zip(&other.counts).for_each(|(own, other)| *own += other);
    }

    fn row(&self, (first, last): (usize, usize)) -> ColumnRow {
        let has_any = self.requests > 0;
        ColumnRow {
            requests: self.requests,
            read_bytes: self.read,
            written_bytes: self.written,
            mean_us: has_any.then(|| self.sum_ns as f64 / self.requests as f64 / 1e3),
            max_us: has_any.then_some(self.max_ns as f64 / 1e3),
            counts: self.counts[first..=last].to_vec(),
        }
    }
}

/// The sums.
#[derive(Default)]
pub(super) struct Columns {
    /// The begin of the first column. Unit: nanoseconds.
    from: Option<u64>,
    /// The end of the last that was added to, and its place.
    last: (u64, usize),
    width_ns: u64,
    all: Vec<Column>,
}

impl Columns {
    #[inline]
    pub(super) fn add(&mut self, request: &Request) {
        let at = request.completed.0;
        if at >= self.last.0 || at < self.last.0 - self.width_ns {
            self.seek(at);
        }
        let column = &mut self.all[self.last.1];
        let took = request.total().0;
        let bytes = u64::from(request.sectors) * 512;
        column.requests += 1;
        column.read += if request.op == Op::Read { bytes } else { 0 };
        column.written += if request.op == Op::Write { bytes } else { 0 };
        column.sum_ns += u128::from(took);
        column.max_ns = column.max_ns.max(took);
        column.counts[class(took)] += 1;
    }

    /// Finds the column of a time, or makes it. What was completed before the first column is in it.
    #[cold]
    fn seek(&mut self, at: u64) {
        if self.from.is_none() {
            self.width_ns = WIDTH_NS;
        }
        let from = *self.from.get_or_insert(at - at % WIDTH_NS);
        while at.saturating_sub(from) / self.width_ns >= COLUMNS_MAX as u64 {
            self.width_ns = self.width_ns.saturating_mul(2);
            let halved = self.all.chunks(2).map(|pair| {
                let mut sum = pair[0];
                pair[1..].iter().for_each(|other| sum.absorb(other));
                sum
            });
            self.all = halved.collect();
        }
        let place = (at.saturating_sub(from) / self.width_ns) as usize;
        if place >= self.all.len() {
            self.all.resize(place + 1, Column::default());
        }
        self.last = (from.saturating_add((place as u64 + 1).saturating_mul(self.width_ns)), place);
    }

    pub(super) fn result(&self) -> Option<OverTime> {
        let from = self.from?;
        let used = |class: &usize| self.all.iter().any(|column| column.counts[*class] > 0);
        let (first, last) = ((0..CLASSES).find(used)?, (0..CLASSES).rev().find(used)?);
        Some(OverTime {
            from_s: from as f64 / 1e9,
            column_s: self.width_ns as f64 / 1e9,
            classes_us: (first..=last)
                .map(|class| if class == 0 { 0.0 } else { (1u64 << (class - 1)) as f64 })
                .collect(),
            columns: self.all.iter().map(|column| column.row((first, last))).collect(),
        })
    }
}

/// 0 below 1 us, 1 from 1 us, 2 from 2 us, 3 from 4 us and so on.
fn class(ns: u64) -> usize {
    ((u64::BITS - (ns / 1000).leading_zeros()) as usize).min(CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_powers_of_two() {
        let found = [0, 999, 1000, 1999, 2000, 3999, 4000, 1_000_000, u64::MAX].map(class);
        assert_eq!(found, [0, 0, 1, 1, 2, 2, 3, 10, CLASSES - 1]);
    }

    #[test]
    fn any_length_has_at_most_32_columns_and_every_request() {
        let mut columns = Columns::default();
        // Out of order too, before the first column, and at the end of time.
        for at in [5_000_000u64, 5_900_000, 40_000_000, 36_000_000, 4_000_000, 9_000_000_000, 70_000_000, u64::MAX] {
            let before = columns.all.iter().map(|column| column.requests).sum::<u64>();
            columns.seek(at);
            columns.all[columns.last.1].requests += 1;
            columns.all[columns.last.1].counts[1] += 1;
            assert_eq!(columns.all.iter().map(|column| column.requests).sum::<u64>(), before + 1);
            assert!(columns.all.len() <= COLUMNS_MAX, "{at}: {}", columns.all.len());
        }
        let found = columns.result().unwrap();
        assert_eq!((found.from_s, found.classes_us.as_slice()), (0.005, &[1.0][..]));
        assert_eq!(found.columns.iter().map(|column| column.requests).sum::<u64>(), 8);
    }
}
