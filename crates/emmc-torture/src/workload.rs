//! The host's requests: drawn from a seed, with a different mixture for every seed.

use emmc_card::ftl::{Durability, TrimKind};
use emmc_units::Rng;

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Write { first: u32, count: u32, durability: Durability },
    Read { first: u32, count: u32 },
    Trim { first: u32, count: u32, kind: TrimKind },
    Flush,
    Idle { steps: u32 },
    Purge,
}

/// An endless stream of requests.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    rng: Rng,
    units: u32,
    /// The longest ordinary request, and how requests share out among a hundred.
    longest: u32,
    trims: u64,
    flushes: u64,
    idles: u64,
    reads: u64,
    durabilities: &'static [Durability],
    /// Most requests go to the first of this number of equal parts.
    hot_part: u32,
    next_sequential: u32,
    /// Half of the requests are short trims, and most writes rewrite in memory what was trimmed.
    trims_often: bool,
    last_trim: u32,
}

impl Workload {
    pub(crate) fn new(units: u32, mut rng: Rng) -> Self {
        use Durability::{Buffered, Flash, Reliable};
        const DURABILITIES: [&[Durability]; 6] = [
            &[Reliable],
            &[Buffered, Reliable],
            &[Buffered],
            &[Flash],
            &[Buffered, Flash],
            &[Buffered, Flash, Reliable],
        ];
        let longest = [1, 3, 8, 24][rng.below(4) as usize];
        Self {
            units,
            longest,
            trims: [0, 5, 25][rng.below(3) as usize],
            flushes: [0, 3, 15][rng.below(3) as usize],
            idles: [0, 3, 15][rng.below(3) as usize],
            reads: 5,
            durabilities: DURABILITIES[rng.below(6) as usize],
            hot_part: [1, 4, 10][rng.below(3) as usize],
            next_sequential: 0,
            trims_often: false,
            last_trim: 0,
            rng,
        }
    }

    /// The same card under trims, as [`Case::Trims`](crate::Case::Trims) describes.
    pub(crate) fn with_many_trims(self) -> Self {
        Self { trims_often: true, ..self }
    }

    /// The requests that fill the card before anything is cut, or a part of it.
    pub(crate) fn fill(&mut self) -> Vec<Op> {
        let end = self.units * [2, 3, 4, 4][self.rng.below(4) as usize] / 4;
        let durability = self.durabilities[0];
        let write = |first: u32| Op::Write { first, count: 16.min(end - first), durability };
        (0..end).step_by(16).map(write).chain([Op::Flush]).collect()
    }

    /// The next request.
    pub(crate) fn next(&mut self) -> Op {
        if self.trims_often && self.rng.below(8) > 0 {
            return self.next_trim_or_rewrite();
        }
        let (first, count) = self.range();
        let draw = self.rng.below(100);
        let trims = self.trims;
        let flushes = trims + self.flushes;
        let idles = flushes + self.idles;
        match draw {
            _ if draw < trims => {
                let kind = if self.rng.below(2) == 0 { TrimKind::Trim } else { TrimKind::Discard };
                // A trim now and then is long, as a file system's are.
                let long = self.rng.below(8) == 0;
                let count = if long { self.units - first } else { count };
                Op::Trim { first, count, kind }
            }
            _ if draw < flushes => Op::Flush,
            _ if draw < idles => Op::Idle { steps: 1 + self.rng.below(4) as u32 },
            _ if draw < idles + self.reads => Op::Read { first, count },
            _ if self.rng.below(400) == 0 => Op::Purge,
            _ => {
                let which = self.rng.below(self.durabilities.len() as u64) as usize;
                Op::Write { first, count, durability: self.durabilities[which] }
            }
        }
    }

    fn next_trim_or_rewrite(&mut self) -> Op {
        let rewrites = self.rng.below(3) == 0;
        if rewrites {
            let durability = if self.rng.below(4) == 0 { self.durabilities[0] } else { Durability::Buffered };
            return Op::Write { first: self.last_trim, count: 1, durability };
        }
        let first = self.rng.below(u64::from(self.units)) as u32;
        let count = (1 + self.rng.below(3) as u32).min(self.units - first);
        self.last_trim = first + self.rng.below(u64::from(count)) as u32;
        let kind = if self.rng.below(6) == 0 { TrimKind::Discard } else { TrimKind::Trim };
        Op::Trim { first, count, kind }
    }

    fn range(&mut self) -> (u32, u32) {
        let count = 1 + self.rng.below(u64::from(self.longest)) as u32;
        let hot = self.rng.below(10) < 7;
        let within = if hot { self.units.div_ceil(self.hot_part) } else { self.units };
        let first = match self.rng.below(4) {
            0 => self.next_sequential % self.units,
            _ => self.rng.below(u64::from(within)) as u32,
        };
        let count = count.min(self.units - first);
        self.next_sequential = first + count;
        (first, count)
    }
}
