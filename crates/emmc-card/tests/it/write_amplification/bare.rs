//! A minimal greedy simulation, independent of the layer: a map, counters, and a search through all blocks.
//!
//! It serves loads without a formula. Of blocks with equally few valid units it takes one by a rule for ties, while the
//! layer takes them in turn: under skewed writes the choice changes the figure by 3 %.

use std::cmp::Reverse;
use std::collections::VecDeque;

use emmc_units::Rng;

const NONE: usize = usize::MAX;

/// Which of several blocks with equally few valid units is collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tie {
    /// The one with the lowest number.
    First,
    /// The one closed last.
    ClosedLast,
}

struct Bare {
    np: usize,
    tie: Tie,
    place: Vec<usize>,
    unit: Vec<usize>,
    valid: Vec<usize>,
    /// When a block was closed, counted; 0: it is not.
    closed: Vec<u64>,
    closings: u64,
    free: VecDeque<usize>,
    /// The host's block and that of collected units, with how full each is.
    open: [(usize, usize); 2],
    copied: u64,
}

impl Bare {
    fn put(&mut self, unit: usize, frontier: usize) {
        if self.open[frontier].1 == self.np {
            self.start(frontier);
        }
        let (block, fill) = self.open[frontier];
        if self.place[unit] != NONE {
            self.valid[self.place[unit] / self.np] -= 1;
        }
        let place = block * self.np + fill;
        (self.place[unit], self.unit[place]) = (place, unit);
        self.valid[block] += 1;
        self.open[frontier].1 += 1;
    }

    fn start(&mut self, frontier: usize) {
        if self.open[frontier].0 != NONE {
            self.closings += 1;
            self.closed[self.open[frontier].0] = self.closings;
        }
        self.open[frontier] = (NONE, self.np);
        while frontier == 0 && self.free.len() <= 2 {
            self.collect();
        }
        self.open[frontier] = (self.free.pop_front().expect("a block is free"), 0);
    }

    fn collect(&mut self) {
        let closed = (0..self.closed.len()).filter(|&block| self.closed[block] > 0);
        let victim = match self.tie {
            Tie::First => closed.min_by_key(|&block| self.valid[block]),
            Tie::ClosedLast => closed.min_by_key(|&block| (self.valid[block], Reverse(self.closed[block]))),
        };
        let victim = victim.expect("a block is full");
        for place in victim * self.np..(victim + 1) * self.np {
            let unit = self.unit[place];
            if self.place[unit] == place {
                self.put(unit, 1);
                self.copied += 1;
            }
        }
        self.closed[victim] = 0;
        self.free.push_back(victim);
    }
}

/// The write amplification of greedy collection, with collected units in blocks of their own, under `r` of the writes
/// to `1 - r` of the units.
pub(crate) fn hot_cold(tie: Tie, rho: f64, r: f64, np: usize, blocks: usize) -> f64 {
    let units = (blocks as f64 * np as f64 * rho).round() as usize;
    let hot = (units as f64 * (1.0 - r)) as usize;
    let total = blocks + 4;
    let mut bare = Bare {
        np,
        tie,
        place: vec![NONE; units],
        unit: vec![NONE; total * np],
        valid: vec![0; total],
        closed: vec![0; total],
        closings: 0,
        free: (0..total).collect(),
        open: [(NONE, np); 2],
        copied: 0,
    };
    (0..units).for_each(|unit| bare.put(unit, 0));
    let mut rng = Rng::new(7);
    let mut run = |bare: &mut Bare, rounds: usize| {
        for _ in 0..rounds * units {
            let among = |rng: &mut Rng, count: usize| rng.below(count as u64) as usize;
            let is_hot = rng.unit_f64() < r;
            let unit = if is_hot { among(&mut rng, hot) } else { hot + among(&mut rng, units - hot) };
            bare.put(unit, 0);
        }
    };
    run(&mut bare, 25);
    let before = bare.copied;
    run(&mut bare, 10);
    1.0 + (bare.copied - before) as f64 / (10 * units) as f64
}
