//! Ascending ranges of bytes that do not touch each other.

/// Ranges `[from, to)`, ascending, merged where they touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(Vec<[u64; 2]>);

impl Ranges {
    /// One range, or none if it is empty.
    pub fn one(from: u64, to: u64) -> Self {
        Self(if from < to { vec![[from, to]] } else { Vec::new() })
    }

    /// From ranges in any order, which may overlap.
    pub fn of(mut ranges: Vec<[u64; 2]>) -> Self {
        ranges.sort_unstable();
        let mut merged = Self::default();
        for [from, to] in ranges {
            merged.push(from, to);
        }
        merged
    }

    /// Appends a range that begins at or behind the start of the last one.
    pub fn push(&mut self, from: u64, to: u64) {
        if from >= to {
            return;
        }
        match self.0.last_mut().filter(|last| last[1] >= from) {
            Some(last) => last[1] = last[1].max(to),
            None => self.0.push([from, to]),
        }
    }

    /// The ranges.
    pub fn as_slice(&self) -> &[[u64; 2]] {
        &self.0
    }

    /// Their total length. Unit: bytes.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|[from, to]| to - from).sum()
    }

    /// All of both.
    pub fn union(self, other: Self) -> Self {
        let mut all = self.0;
        all.extend(other.0);
        Self::of(all)
    }

    /// What both have.
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut found, mut a, mut b) = (Self::default(), 0, 0);
        while let (Some(one), Some(two)) = (self.0.get(a), other.0.get(b)) {
            found.push(one[0].max(two[0]), one[1].min(two[1]));
            if one[1] < two[1] { a += 1 } else { b += 1 }
        }
        found
    }

    /// The gaps between them in a range.
    pub fn gaps(&self, from: u64, to: u64) -> Self {
        let (mut found, mut at) = (Self::default(), from);
        for [begin, end] in &self.0 {
            found.push(at, (*begin).min(to));
            at = at.max(*end);
        }
        found.push(at, to);
        found
    }

    /// Moved towards higher addresses.
    pub fn shifted(self, by: u64) -> Self {
        Self(self.0.into_iter().map(|[from, to]| [from.saturating_add(by), to.saturating_add(by)]).collect())
    }

    /// Extended to multiples of `unit` bytes, at most up to `end`.
    pub fn rounded(self, unit: u64, end: u64) -> Self {
        let round = |[from, to]: [u64; 2]| [from / unit * unit, to.div_ceil(unit).saturating_mul(unit).min(end)];
        Self::of(self.0.into_iter().map(round).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_merged_cut_and_completed() {
        let ranges = Ranges::of(vec![[8, 12], [0, 4], [4, 6], [10, 20]]);
        assert_eq!(ranges.as_slice(), [[0, 6], [8, 20]]);
        assert_eq!((ranges.bytes(), Ranges::one(3, 3)), (18, Ranges::default()));
        assert_eq!(ranges.gaps(0, 30).as_slice(), [[6, 8], [20, 30]]);
        assert_eq!(ranges.gaps(7, 9).as_slice(), [[7, 8]]);
        assert_eq!(ranges.intersection(&Ranges::of(vec![[2, 9], [19, 40]])).as_slice(), [[2, 6], [8, 9], [19, 20]]);
        assert_eq!(ranges.clone().shifted(100).as_slice(), [[100, 106], [108, 120]]);
        assert_eq!(ranges.clone().rounded(5, 19).as_slice(), [[0, 19]]);
        assert_eq!(ranges.union(Ranges::one(6, 8)).as_slice(), [[0, 20]]);
    }
}
