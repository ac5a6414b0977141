//! Skewed writes: hot and cold, Zipf, and a share of trims.

use emmc_card::profile::GcPolicy;
use emmc_units::Rng;

use crate::models;
use crate::write_amplification::bare::{self, Tie};
use crate::write_amplification::drive::{Drive, Setup, close};

/// rho, r, and published figures of FIFO, greedy, greedy with a separate frontier for collected units, and cost-benefit
/// with one; 0: not published. 128 units a block, 1024 blocks.
const HOT_COLD: [(f64, f64, [f64; 4]); 10] = [
    (0.8, 0.6, [2.7228, 2.6744, 2.6717, 0.0]),
    (0.8, 0.7, [2.8216, 2.7731, 2.7500, 0.0]),
    (0.8, 0.8, [3.0345, 2.9924, 2.8962, 2.467]),
    (0.8, 0.9, [3.5332, 3.5125, 3.1381, 1.939]),
    (0.8, 0.95, [4.0788, 4.0347, 3.3005, 1.469]),
    (0.9, 0.6, [5.2057, 5.0216, 5.0185, 0.0]),
    (0.9, 0.7, [5.3079, 5.1193, 5.1013, 0.0]),
    (0.9, 0.8, [5.5416, 5.3557, 5.2969, 4.518]),
    (0.9, 0.9, [6.1646, 6.0333, 5.7071, 3.293]),
    (0.9, 0.95, [7.0756, 7.0335, 5.9971, 2.283]),
];

fn hot_cold(gc: GcPolicy, separate_gc: bool, rho: f64, r: f64) -> f64 {
    let mut drive = Drive::new(Setup { separate_gc, ..Setup::new(gc, rho, 128, 1024) });
    let hot = (f64::from(drive.units()) * (1.0 - r)) as u64;
    let mut run = |drive: &mut Drive, writes: u64| {
        let cold = u64::from(drive.units()) - hot;
        for _ in 0..writes {
            let unit = if drive.rng.unit_f64() < r { drive.rng.below(hot) } else { hot + drive.rng.below(cold) };
            drive.write(unit as u32);
        }
    };
    // Cold units are seldom written, so that the steady state takes its time.
    drive.measure(25, 10, &mut run)
}

fn check_hot_cold(rho: f64, r: f64, published: [f64; 4]) {
    let model = models::fifo_hot_cold(rho, r, 1.0 - r);
    let found = hot_cold(GcPolicy::Fifo, false, rho, r);
    close(&format!("FIFO {r} rho {rho}"), found, model, 0.01);
    close(&format!("FIFO {r} rho {rho}, published"), found, published[0], 0.02);
    for (index, name, gc, separate_gc) in [
        (1, "greedy", GcPolicy::Greedy, false),
        (2, "greedy, GC frontier", GcPolicy::Greedy, true),
        (3, "cost-benefit, GC frontier", GcPolicy::CostBenefit, true),
    ] {
        if published[index] > 0.0 {
            let found = hot_cold(gc, separate_gc, rho, r);
            // The most skewed published figures with a GC frontier are for 8192 blocks and depend on the rule for ties
            // (below): here they are printed, and the minimal simulation with as many blocks decides.
            let share = if index == 2 && r > 0.85 { 0.08 } else { 0.02 };
            close(&format!("{name} {r} rho {rho}"), found, published[index], share);
            if index == 2 {
                close(
                    &format!("{name} {r} rho {rho}, bare"),
                    found,
                    bare::hot_cold(Tie::First, rho, r, 128, 1024),
                    0.01,
                );
            }
        }
    }
}

#[test]
fn hot_and_cold_writes_match_the_model() {
    check_hot_cold(HOT_COLD[3].0, HOT_COLD[3].1, HOT_COLD[3].2);
    check_hot_cold(HOT_COLD[7].0, HOT_COLD[7].1, HOT_COLD[7].2);
}

#[test]
#[ignore = "minutes; run in release"]
fn all_hot_and_cold_writes_match_the_model() {
    for (rho, r, published) in HOT_COLD {
        check_hot_cold(rho, r, published);
    }
}

/// With a separate frontier the figure grows with the number of blocks and depends on the rule for ties: the published
/// ones are for 8192 blocks, and for the victim closed last of those that are equal.
#[test]
#[ignore = "minutes; run in release"]
fn most_skewed_writes_match_at_8192_blocks_with_the_victim_closed_last() {
    for (rho, r, published) in HOT_COLD.into_iter().filter(|(_, r, _)| *r > 0.85) {
        let found = bare::hot_cold(Tie::ClosedLast, rho, r, 128, 8192);
        close(&format!("greedy, GC frontier {r} rho {rho}, 8192 blocks, closed last"), found, published[2], 0.015);
    }
}

/// s, and published figures of FIFO, greedy, and greedy with a separate frontier for collected units, at rho 0.85 with
/// 128 units a block and 4096 blocks.
const ZIPF: [(f64, [f64; 3]); 4] = [
    (0.6, [3.870, 3.774, 3.594]),
    (0.9, [4.885, 4.734, 3.808]),
    (0.99, [5.306, 5.130, 3.859]),
    (1.2, [6.106, 5.876, 3.417]),
];

/// Draws ranks by their shares, in constant time (Walker's alias method).
struct Alias {
    keep: Vec<f64>,
    other: Vec<u32>,
}

impl Alias {
    fn new(shares: &[f64]) -> Self {
        let count = shares.len();
        let mut keep: Vec<f64> = shares.iter().map(|share| share * count as f64).collect();
        let mut other: Vec<u32> = (0..count as u32).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..count).partition(|&rank| keep[rank] < 1.0);
        while let (Some(&low), Some(&high)) = (small.last(), large.last()) {
            small.pop();
            other[low] = high as u32;
            keep[high] -= 1.0 - keep[low];
            if keep[high] < 1.0 {
                large.pop();
                small.push(high);
            }
        }
        Self { keep, other }
    }

    fn draw(&self, rng: &mut Rng) -> u32 {
        let rank = rng.below(self.keep.len() as u64) as usize;
        if rng.unit_f64() < self.keep[rank] { rank as u32 } else { self.other[rank] }
    }
}

fn zipf(gc: GcPolicy, separate_gc: bool, blocks: u32, s: f64) -> f64 {
    let mut drive = Drive::new(Setup { separate_gc, ..Setup::new(gc, 0.85, 128, blocks) });
    let alias = Alias::new(&models::zipf(drive.units(), s));
    let mut run = |drive: &mut Drive, writes: u64| {
        for _ in 0..writes {
            let unit = alias.draw(&mut drive.rng);
            drive.write(unit);
        }
    };
    drive.measure(15, 5, &mut run)
}

fn check_zipf(blocks: u32, s: f64, published: [f64; 3]) {
    let units = (f64::from(blocks) * 128.0 * 0.85) as u32;
    close(&format!("FIFO, Zipf {s}"), zipf(GcPolicy::Fifo, false, blocks, s), models::fifo_zipf(0.85, units, s), 0.01);
    for (index, separate_gc) in [(1, false), (2, true)] {
        let found = zipf(GcPolicy::Greedy, separate_gc, blocks, s);
        close(&format!("greedy, GC frontier {separate_gc}, Zipf {s}"), found, published[index], 0.02);
    }
}

#[test]
fn zipf_writes_match_the_model() {
    // A quarter of the published size changes a skewed load; this exponent hardly.
    check_zipf(1024, ZIPF[0].0, ZIPF[0].1);
}

#[test]
#[ignore = "minutes; run in release"]
fn all_zipf_writes_match_the_model() {
    for (s, published) in ZIPF {
        check_zipf(4096, s, published);
    }
}

/// Requests of which a share `q` discards a random unit in use; all others write a random unit.
fn trimming(gc: GcPolicy, blocks: u32, q: f64) -> f64 {
    let mut drive = Drive::new(Setup { trims: true, ..Setup::new(gc, 0.9, 128, blocks) });
    let mut in_use: Vec<u32> = (0..drive.units()).collect();
    let mut place: Vec<u32> = in_use.clone();
    let mut run = |drive: &mut Drive, requests: u64| {
        for _ in 0..requests {
            if drive.rng.unit_f64() < q {
                if in_use.is_empty() {
                    continue;
                }
                let index = drive.rng.below(in_use.len() as u64) as usize;
                let unit = in_use.swap_remove(index);
                place[unit as usize] = u32::MAX;
                if let Some(&moved) = in_use.get(index) {
                    place[moved as usize] = index as u32;
                }
                drive.discard(unit);
            } else {
                let unit = drive.rng.below(u64::from(drive.units())) as u32;
                if place[unit as usize] == u32::MAX {
                    place[unit as usize] = in_use.len() as u32;
                    in_use.push(unit);
                }
                drive.write(unit);
            }
        }
    };
    drive.measure(8, 4, &mut run)
}

fn check_trims(blocks: u32, q: f64) {
    let rho = models::trimmed(0.9, q);
    close(&format!("greedy, q {q}"), trimming(GcPolicy::Greedy, blocks, q), models::greedy(rho, 128.0), 0.01);
    close(&format!("FIFO, q {q}"), trimming(GcPolicy::Fifo, blocks, q), models::fifo(rho), 0.01);
}

#[test]
fn trims_match_the_model() {
    check_trims(1024, 0.2);
    close("greedy, q 0.2, published", trimming(GcPolicy::Greedy, 1024, 0.2), 1.734, 0.01);
}

#[test]
#[ignore = "minutes; run in release"]
fn all_trims_match_the_model() {
    for q in [0.1, 0.2, 0.3, 0.4] {
        check_trims(4096, q);
    }
}
