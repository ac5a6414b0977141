//! The figures of the speed class.

use emmc_port::BlockOp;
use emmc_units::Rng;

use super::super::Bench;
use super::{AUS, Found, KIB, Plan, RU};
use crate::drive::order::Order;
use crate::drive::stream::{BenchError, FlushAt, Stream};
use crate::result::Figure;
use crate::result::grid::Grid;
use crate::result::state::StateKind;

/// AUs for each share of used RUs.
const CURVE_AUS: u64 = 8;
/// Number of FAT updates, each after an AU.
const UPDATES: u64 = 32;
const FAT: u64 = 16 * KIB;
const READS: u64 = 256;
/// A longer FAT update counts as slow; the standard limits how many of eight may be.
const UPDATE_SLOW_MS: f64 = 250.0;

/// Written and read. Unit: bytes.
pub(super) fn cost(plan: &Plan) -> (u64, u64) {
    let curve: u64 = (1..8).map(|used| free_rus(plan, used).len() as u64 * RU * CURVE_AUS).sum();
    let updates = UPDATES * (plan.au + 2 * FAT + plan.sector);
    (AUS * plan.au + curve + updates, READS * (RU + 4 * KIB))
}

/// The free RUs of an AU when `used` eighths hold data: chosen at random.
fn free_rus(plan: &Plan, used: u64) -> Vec<u64> {
    let rus = plan.rus();
    let keep = (rus * used / 8).clamp(1, rus - 1);
    let mut all: Vec<u64> = (0..rus).collect();
    let mut rng = Rng::new(plan.seed ^ used);
    for last in (1..all.len()).rev() {
        all.swap(last, rng.below(last as u64 + 1) as usize);
    }
    let mut free = all.split_off(keep as usize);
    free.sort_unstable();
    free
}

pub(super) fn measure(bench: &mut Bench<'_>, plan: &Plan, found: &mut Found) -> Result<(), BenchError> {
    let fill = Stream::pass(BlockOp::Write, Order::Sequential, plan.from, plan.to, RU);
    bench.prepare("fill", &Stream { flush: FlushAt::End, ..fill })?;
    bench.brought_into(StateKind::Filled, plan.from, plan.to);
    write_aus(bench, plan, found)?;
    curve(bench, plan, found)?;
    fat_updates(bench, plan, found)?;
    let reads = Stream::pass(BlockOp::Read, Order::Random, plan.from, plan.to, RU);
    let limit = crate::drive::stream::Limit { bytes: READS * RU, time: None };
    let reads = Stream { limit, seed: plan.seed, ..reads };
    found.pr = bench.measure("speed class", "Pr", "RUs read at random", &reads)?.bytes_per_s() / 1e6;
    Ok(())
}

fn seconds(times: &[emmc_units::Nanos]) -> f64 {
    times.iter().map(|time| time.as_secs_f64()).sum()
}

fn longest_ms(times: &[emmc_units::Nanos]) -> f64 {
    times.iter().map(|time| time.0 as f64 / 1e6).fold(0.0, f64::max)
}

fn write_aus(bench: &mut Bench<'_>, plan: &Plan, found: &mut Found) -> Result<(), BenchError> {
    let rus = Stream::pass(BlockOp::Write, Order::Sequential, plan.from, plan.to, RU);
    let offsets: Vec<u64> = (plan.from..plan.to).step_by(RU as usize).collect();
    let (_, times) = bench.measure_at(["speed class", "Pw", "RUs written sequentially"], &rus, &offsets)?;
    let slowest = times.chunks(plan.rus() as usize).map(seconds).fold(0.0, f64::max);
    found.pw = if slowest > 0.0 { plan.au as f64 / slowest / 1e6 } else { 0.0 };
    found.busy_ms = longest_ms(&times);
    Ok(())
}

/// P(u), and Pm from all of them.
fn curve(bench: &mut Bench<'_>, plan: &Plan, found: &mut Found) -> Result<(), BenchError> {
    let mut points = vec![(0.0, plan.au as f64, plan.au as f64 / found.pw.max(1e-9) / 1e6)];
    let ended = curve_points(bench, plan, found, &mut points);
    if points.len() > 1 {
        found.pm = moved_at(&points, found.pw * 1e6).map(|bytes_per_s| bytes_per_s / 1e6);
        bench.grid(curve_grid(plan, found, &points));
    }
    ended
}

/// Used and free bytes of an AU, and the seconds that its free ones took.
type Point = (f64, f64, f64);

fn curve_points(
    bench: &mut Bench<'_>,
    plan: &Plan,
    found: &mut Found,
    points: &mut Vec<Point>,
) -> Result<(), BenchError> {
    for used in 1..8 {
        let free = free_rus(plan, used);
        let first = plan.from + used * CURVE_AUS * plan.au;
        let of_au = |au: u64| free.iter().map(move |ru| first + au * plan.au + ru * RU);
        let offsets: Vec<u64> = (0..CURVE_AUS).flat_map(of_au).collect();
        let rus = Stream::pass(BlockOp::Write, Order::Sequential, plan.from, plan.to, RU);
        let (_, times) = bench.visit(&format!("P({used}/8 used)"), &rus, &offsets)?;
        found.busy_ms = longest_ms(&times).max(found.busy_ms);
        let free_bytes = free.len() as f64 * RU as f64;
        points.push((plan.au as f64 - free_bytes, free_bytes, seconds(&times) / CURVE_AUS as f64));
    }
    Ok(())
}

fn curve_grid(plan: &Plan, found: &Found, points: &[Point]) -> Grid {
    let caption = "AUs in which a share holds data that stays; model: free / (free / Pw + used / Pm)";
    let columns = [("measured", "MB/s"), ("model", "MB/s")];
    let mut grid = Grid::new("performance curve", "used, %", &columns, caption);
    for &(used, free, time) in points {
        let moving = found.pm.map_or(0.0, |pm| used / pm);
        let said = free / (free / found.pw + moving);
        grid.line(format!("{:.0}", used / plan.au as f64 * 100.0), &[free / time / 1e6, said]);
    }
    grid
}

/// The speed at which used bytes are moved, in bytes a second, from (used, free, seconds) and the write speed; nothing
/// if that takes no time.
fn moved_at(points: &[Point], written_at: f64) -> Option<f64> {
    let (mut squares, mut products) = (0.0, 0.0);
    for (used, free, time) in points {
        squares += used * used;
        products += used * (time - free / written_at);
    }
    (products > 0.0).then(|| squares / products)
}

fn fat_updates(bench: &mut Bench<'_>, plan: &Plan, found: &mut Found) -> Result<(), BenchError> {
    let whole = |block| Stream::pass(BlockOp::Write, Order::Sequential, plan.from, plan.to, block);
    // The first AU holds the directory and the FATs; the stream uses the others.
    let mut updates = Vec::new();
    for number in 0..UPDATES {
        let au = plan.from + (1 + number) * plan.au;
        let rus: Vec<u64> = (au..au + plan.au).step_by(RU as usize).collect();
        let (_, times) = bench.visit("FAT updates", &whole(RU), &rus)?;
        found.busy_ms = longest_ms(&times).max(found.busy_ms);
        let (_, directory) = bench.visit("FAT updates", &whole(plan.sector), &[plan.from])?;
        let (_, fats) = bench.visit("FAT updates", &whole(FAT), &[plan.from + RU, plan.from + RU + FAT])?;
        updates.push((seconds(&directory) + seconds(&fats)) * 1e3);
    }
    let slow = |eight: &[f64]| eight.iter().filter(|time| **time > UPDATE_SLOW_MS).count();
    found.fat_mean_ms = updates.windows(8).map(|eight| eight.iter().sum::<f64>() / 8.0).fold(0.0, f64::max);
    found.fat_longest_ms = updates.iter().copied().fold(0.0, f64::max);
    found.fat_slow_of_eight = updates.windows(8).map(slow).max().unwrap_or(0);
    let reads = Stream { mix: crate::drive::stream::Mix::Only(BlockOp::Read), ..whole(4 * KIB) };
    let offsets: Vec<u64> = (0..READS).map(|number| plan.from + RU + number % 4 * 4 * KIB).collect();
    let (_, times) = bench.visit("FAT reads", &reads, &offsets)?;
    found.fat_read_ms = longest_ms(&times);
    let note = "a directory sector and two FATs of 16 KiB after each AU; from memory";
    bench.figure(Figure::new("T_FW, largest mean of eight", found.fat_mean_ms, "ms", note));
    bench.figure(Figure::new("T_FW, longest", found.fat_longest_ms, "ms", note));
    bench.figure(Figure::new("T_FR, longest", found.fat_read_ms, "ms", "4 KiB of the FAT"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_of_moving_is_recovered() {
        let (pw, pm) = (10e6, 5e6);
        let au = 4e6;
        let points: Vec<_> = (0..8)
            .map(|eighth| {
                let used = au * f64::from(eighth) / 8.0;
                (used, au - used, (au - used) / pw + used / pm)
            })
            .collect();
        assert!((moved_at(&points, pw).unwrap() / pm - 1.0).abs() < 1e-9);
        assert_eq!(moved_at(&[(1e6, 3e6, 0.3)], pw), None);
    }

    #[test]
    fn the_number_of_free_units_follows_the_share() {
        let plan = Plan { from: 0, to: 64 << 22, au: 4 << 20, sector: 512, depth: 1, seed: 1 };
        for used in 1..8 {
            let free = free_rus(&plan, used);
            assert_eq!(free.len() as u64, 8 - used);
            assert!(free.windows(2).all(|two| two[0] < two[1]) && free.iter().all(|ru| *ru < 8));
        }
    }
}
