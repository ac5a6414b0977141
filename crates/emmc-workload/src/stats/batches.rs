//! Latencies in arrival order: a bounded number of equal batches over a run of any length, each a histogram.
//!
//! Consecutive requests are correlated, so they carry less information than their number suggests. Batches keep enough
//! of the order to measure that, in bounded memory.

use hdrhistogram::Histogram;

/// At this number of batches, neighbours are merged in pairs.
const CELLS_MAX: usize = 256;

/// Batches of consecutive requests, each with the count of every latency.
#[derive(Clone, Debug)]
pub(crate) struct Batches {
    /// Requests per batch.
    each: usize,
    /// Requests in the incomplete batch.
    filled: usize,
    /// The incomplete batch: the count of each latency code, and the codes that occur in it.
    open: Vec<u32>,
    seen: Vec<u32>,
    /// Latency codes with their counts, ascending.
    cells: Vec<Vec<(u32, u32)>>,
}

/// A latency rounded to eleven bits, as in the histogram; codes are monotonic.
#[inline]
fn code(nanos: u64) -> u32 {
    let shift = (64 - nanos.leading_zeros()).saturating_sub(11);
    (shift << 11) + (nanos >> shift) as u32
}

/// The smallest latency of a code: in the same bucket of a histogram of three significant digits as all of them.
fn value(code: u32) -> u64 {
    u64::from(code & 0x7ff) << (code >> 11)
}

impl Default for Batches {
    fn default() -> Self {
        Self { each: 1, filled: 0, open: Vec::new(), seen: Vec::new(), cells: Vec::new() }
    }
}

impl Batches {
    /// Counts a request. A complete batch is added to the histogram of the whole run, so that a request costs one
    /// count.
    #[inline]
    pub(crate) fn record(&mut self, nanos: u64, total: &mut Histogram<u64>) {
        let code = code(nanos);
        if code as usize >= self.open.len() {
            self.open.resize(code as usize + 1, 0);
        }
        let count = &mut self.open[code as usize];
        if *count == 0 {
            self.seen.push(code);
        }
        *count += 1;
        self.filled += 1;
        if self.filled == self.each {
            self.close(total);
        }
    }

    #[cold]
    fn close(&mut self, total: &mut Histogram<u64>) {
        self.add_incomplete(total);
        self.seen.sort_unstable();
        let (seen, open) = (&mut self.seen, &mut self.open);
        let cell = seen.drain(..).map(|code| (code, std::mem::take(&mut open[code as usize]))).collect();
        self.filled = 0;
        self.cells.push(cell);
        if self.cells.len() == CELLS_MAX {
            self.join_pairs();
        }
    }

    /// Adds the incomplete batch to a histogram.
    pub(crate) fn add_incomplete(&self, total: &mut Histogram<u64>) {
        for code in &self.seen {
            total.saturating_record_n(value(*code), u64::from(self.open[*code as usize]));
        }
    }

    /// Whether the incomplete batch has no requests.
    pub(crate) fn is_complete(&self) -> bool {
        self.filled == 0
    }

    fn join_pairs(&mut self) {
        // An odd batch at the end is dropped: it has no partner.
        self.cells = self.cells.chunks_exact(2).map(|pair| joined(&pair[0], &pair[1])).collect();
        self.each *= 2;
    }

    /// Appends the batches of a later recorder; incomplete batches are dropped.
    pub(crate) fn append(&mut self, mut other: Self) {
        while self.each < other.each {
            self.join_pairs();
        }
        while other.each < self.each {
            other.join_pairs();
        }
        self.clear_incomplete();
        self.cells.append(&mut other.cells);
        while self.cells.len() >= CELLS_MAX {
            self.join_pairs();
        }
    }

    fn clear_incomplete(&mut self) {
        self.filled = 0;
        self.seen.drain(..).for_each(|code| self.open[code as usize] = 0);
    }

    /// For each batch, the share of requests that took at most `nanos`.
    pub(crate) fn shares_up_to(&self, nanos: u64) -> Vec<f64> {
        let most = code(nanos);
        let share = |cell: &Vec<(u32, u32)>| {
            let within = cell.iter().take_while(|(code, _)| *code <= most).map(|(_, count)| count).sum::<u32>();
            f64::from(within) / self.each as f64
        };
        self.cells.iter().map(share).collect()
    }

    /// Number of complete batches, and requests per batch.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.cells.len(), self.each)
    }
}

/// Merges two histograms.
fn joined(left: &[(u32, u32)], right: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut all = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.iter().copied().peekable(), right.iter().copied().peekable());
    loop {
        let next = match (left.peek(), right.peek()) {
            (Some(a), Some(b)) if a.0 == b.0 => (a.0, a.1 + b.1),
            (Some(a), Some(b)) if a.0 < b.0 => *a,
            (Some(a), None) => *a,
            (_, Some(b)) => *b,
            (None, None) => return all,
        };
        left.next_if(|found| found.0 == next.0);
        right.next_if(|found| found.0 == next.0);
        all.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_rise_with_latencies_and_keep_three_digits() {
        let values: Vec<u64> = (0..4000).chain((12..40).map(|bit| 1u64 << bit)).collect();
        assert!(values.windows(2).all(|two| code(two[0]) <= code(two[1])));
        for value in values.into_iter().filter(|value| *value > 2048) {
            assert!(code(value) < code(value + value / 1000 + 2), "{value}");
        }
        for value in (0..70_000).chain((17..40).flat_map(|bit| [1u64 << bit, (1 << bit) - 1])) {
            let code = code(value);
            let least = super::value(code);
            assert!(least <= value && super::code(least) == code, "{value}: {least}");
        }
    }

    #[test]
    fn cells_are_limited_and_stay_sorted() {
        let mut cells = Batches::default();
        let mut total = Histogram::new_with_bounds(1, 1 << 40, 3).unwrap();
        (0..100_000u64).for_each(|number| cells.record(number, &mut total));
        cells.add_incomplete(&mut total);
        assert_eq!((total.len(), total.max()), (100_000, 99_999 | 63));
        let (count, each) = cells.size();
        assert!((128..256).contains(&count) && count * each <= 100_000 && (count + 1) * each > 100_000);
        let shares = cells.shares_up_to(49_999);
        assert!(shares[..count / 3].iter().all(|share| *share == 1.0));
        assert!(shares[count * 2 / 3..].iter().all(|share| *share == 0.0));
        let mut more = Batches::default();
        (0..300u64).for_each(|number| more.record(number, &mut total));
        cells.append(more);
        assert!(cells.size().0 < 256 && cells.size().1 == each);
    }
}
