//! Latencies in arrival order: a bounded number of equal batches over a run of any length, each a histogram.
//!
//! Consecutive requests are correlated, so they carry less information than their number suggests. Batches keep enough
//! of the order to measure that, in bounded memory.

/// At this number of batches, neighbours are merged in pairs.
const CELLS_MAX: usize = 256;

/// Batches of consecutive requests, each with the count of every latency.
#[derive(Clone, Debug)]
pub(crate) struct Batches {
    /// Requests per batch.
    each: usize,
    /// The incomplete batch.
    open: Vec<u32>,
    /// Latency codes with their counts, ascending.
    cells: Vec<Vec<(u32, u32)>>,
}

/// A latency rounded to eleven bits, as in the histogram; codes are monotonic.
#[inline]
pub(crate) fn code(nanos: u64) -> u32 {
    let shift = (64 - nanos.leading_zeros()).saturating_sub(11);
    (shift << 11) + (nanos >> shift) as u32
}

impl Default for Batches {
    fn default() -> Self {
        Self { each: 1, open: Vec::new(), cells: Vec::new() }
    }
}

impl Batches {
    /// Counts a request.
    #[inline]
    pub(crate) fn record(&mut self, nanos: u64) {
        self.open.push(code(nanos));
        if self.open.len() == self.each {
            self.close();
        }
    }

    fn close(&mut self) {
        self.open.sort_unstable();
        let cell = self.open.chunk_by(|left, right| left == right).map(|run| (run[0], run.len() as u32)).collect();
        self.open.clear();
        self.cells.push(cell);
        if self.cells.len() == CELLS_MAX {
            self.join_pairs();
        }
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
        self.open.clear();
        self.cells.append(&mut other.cells);
        while self.cells.len() >= CELLS_MAX {
            self.join_pairs();
        }
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
    }

    #[test]
    fn cells_are_limited_and_stay_sorted() {
        let mut cells = Batches::default();
        (0..100_000u64).for_each(|number| cells.record(number));
        let (count, each) = cells.size();
        assert!((128..256).contains(&count) && count * each <= 100_000 && (count + 1) * each > 100_000);
        let shares = cells.shares_up_to(49_999);
        assert!(shares[..count / 3].iter().all(|share| *share == 1.0));
        assert!(shares[count * 2 / 3..].iter().all(|share| *share == 0.0));
        let mut more = Batches::default();
        (0..300u64).for_each(|number| more.record(number));
        cells.append(more);
        assert!(cells.size().0 < 256 && cells.size().1 == each);
    }
}
