//! `flashbench --open-au`: N allocation units, filled alternately, with decreasing block sizes.

use emmc_card::profile::{Profile, Segment, SegmentOrder};
use emmc_units::Nanos;

use super::host::{Host, named};

const KIB: u64 = 1 << 10;
/// `--erasesize`, the default; AUs are twelve AUs apart, the first after 16 MiB.
const AU: u64 = 4 << 20;
const SPACING: u64 = 12 * AU;
const OFFSET: u64 = 16 << 20;

/// flashbench's order of `count` things: a shift register of eight bits, values too large left out.
fn scattered(count: u32) -> Vec<u32> {
    let mut register = 1u32;
    let mut order = vec![0];
    for _ in 0..255 {
        register = register >> 1 ^ if register & 1 == 1 { 0xb8 } else { 0 };
        if register < count {
            order.push(register);
        }
    }
    assert_eq!(order.len() as u32, count);
    order
}

/// MB/s for each block size from `AU` down to `smallest`.
fn open_au(host: &mut Host, aus: u32, smallest: u64, random: bool) -> Vec<(u64, f64)> {
    let mut rates = Vec::new();
    let mut block = AU;
    while block >= smallest {
        let start = host.now;
        let blocks = (AU / block) as u32;
        let positions = if random && blocks <= 255 { scattered(blocks) } else { (0..blocks).collect() };
        for position in positions {
            for au in scattered(aus) {
                host.write(OFFSET + u64::from(au) * SPACING + u64::from(position) * block, block);
            }
        }
        let bytes = AU * u64::from(aus);
        rates.push((block / KIB, bytes as f64 / host.now.since(start).as_secs_f64() / 1e6));
        block /= 2;
    }
    host.audit();
    rates
}

/// A published row: open AUs, KiB of a block, MB/s.
type Row = (u32, u64, f64);

#[rustfmt::skip]
const TOSHIBA: &[Row] = &[
    (6, 4096, 5.91), (6, 2048, 8.84), (6, 1024, 10.8), (6, 512, 13.0), (6, 256, 13.6),
    (7, 4096, 6.32), (7, 2048, 8.63), (7, 1024, 10.5), (7, 512, 13.2), (7, 256, 13.0), (7, 128, 12.3),
    (8, 4096, 6.65), (8, 2048, 7.02), (8, 1024, 6.36), (8, 512, 3.17), (8, 256, 1.53),
    (1, 4096, 6.81), (1, 2048, 7.73), (1, 1024, 9.21), (1, 512, 9.98), (1, 256, 10.3), (1, 128, 10.2), (1, 64, 9.76),
    (1, 32, 8.52), (1, 16, 3.68), (1, 8, 1.72), (1, 4, 0.837),
];

#[rustfmt::skip]
const SANDISK: &[Row] = &[
    (20, 4096, 11.3), (20, 2048, 12.8), (20, 1024, 9.87), (20, 512, 9.97), (20, 256, 9.13), (20, 128, 8.05),
    (21, 4096, 11.2), (21, 2048, 12.4), (21, 1024, 4.65), (21, 512, 1.95), (21, 256, 0.955),
    (22, 4096, 11.6), (22, 2048, 12.3), (22, 1024, 5.13), (22, 512, 2.57), (22, 256, 1.59), (22, 128, 1.16),
    (22, 64, 0.776),
];

/// Runs a part as in its rows, prints each cell, and returns (row, error).
///
/// Each run is the second of its kind: the published ones were not the first on those parts either, and the logs are
/// not empty at their start.
fn compare(profile: &str, rows: &[Row], many_requests: Nanos) -> Vec<(Row, f64)> {
    let mut errors = Vec::new();
    let mut counts: Vec<u32> = rows.iter().map(|row| row.0).collect();
    counts.dedup();
    for aus in counts {
        let mut host = Host::new(profile);
        host.many_requests = many_requests;
        let of_run = || rows.iter().filter(|row| row.0 == aus);
        let smallest = of_run().map(|row| row.1).min().unwrap() * KIB;
        open_au(&mut host, aus, smallest, false);
        let rates = open_au(&mut host, aus, smallest, false);
        for &row in of_run() {
            let (_, rate) = rates.iter().copied().find(|(kib, _)| *kib == row.1).unwrap();
            let error = rate / row.2 - 1.0;
            let percent = error * 100.0;
            println!(
                "{profile} {aus:2} AUs {:4} KiB: {rate:6.3} MB/s, published {:6.3}: {percent:+5.1} %",
                row.1, row.2
            );
            errors.push((row, error));
        }
    }
    errors
}

/// Each cell within 26 %, and at least `near` of them within 15 %.
fn assert_close(errors: &[(Row, f64)], near: usize) {
    for (row, error) in errors {
        assert!(error.abs() <= 0.26, "{row:?} is off by {:.1} %", error * 100.0);
    }
    let found = errors.iter().filter(|(_, error)| error.abs() <= 0.15).count();
    assert!(found >= near, "only {found} of {} cells are within 15 %", errors.len());
}

/// On this host a write of k requests took 5.2 ms x (k^2 - 1) more than k single ones, for every number of open AUs:
/// the rows of 1 to 4 MiB at 7 AUs give it as 5.3, 5.6 and 5.4. No mechanism of a card explains a square, so it is
/// assigned to the host here. It comes from the runs with 7 AUs only; those with 1, 6 and 8 are predictions.
#[test]
fn the_part_has_seven_open_units() {
    let errors = compare("toshiba-7au", TOSHIBA, Nanos::from_micros(5200));
    assert_close(&errors, 20);
}

/// The source contradicts itself in three cells: with 22 AUs a chunk of 256 KiB or less costs less the smaller it is,
/// 0.16 to 0.08 s, although with 21 it costs the same 0.27 s at every size. The model behaves like the run with 21.
#[test]
fn the_part_has_twenty_open_units() {
    let errors = compare("sandisk-20au", SANDISK, Nanos::ZERO);
    let (contradicted, rest): (Vec<_>, Vec<_>) = errors.into_iter().partition(|(row, _)| row.0 == 22 && row.1 <= 256);
    assert_close(&rest, 11);
    assert_eq!(contradicted.len(), 3);
    for (row, error) in contradicted {
        assert!((-0.7..-0.25).contains(&error), "{row:?} is off by {:.1} %", error * 100.0);
    }
}

/// Rates of a part at block sizes from 1 MiB to 64 KiB.
fn small_rates(profile: Profile, aus: u32, random: bool) -> Vec<f64> {
    let mut host = Host::with(profile);
    open_au(&mut host, aus, 64 * KIB, random);
    let rates = open_au(&mut host, aus, 64 * KIB, random);
    rates.into_iter().filter(|(kib, _)| *kib <= 1024).map(|(_, rate)| rate).collect()
}

fn with(name: &str, change: impl Fn(&mut Segment)) -> Profile {
    let mut profile = named(name);
    change(profile.ftl.segment.as_mut().unwrap());
    profile
}

#[test]
fn with_too_many_open_units_the_rate_is_proportional_to_the_block_size() {
    for (name, open) in [("toshiba-7au", 7), ("sandisk-20au", 20)] {
        let full = small_rates(named(name), open, false);
        let over = small_rates(named(name), open + 1, false);
        assert!(full.iter().all(|rate| *rate > 0.5 * full[0]), "{name}: {full:.2?}");
        for (larger, smaller) in over.iter().zip(&over[1..]) {
            assert!((1.5..2.1).contains(&(larger / smaller)), "{name}: {over:.2?}");
        }
        assert!(over[4] < full[4] / 15.0, "{name}: {full:.2?} and {over:.2?}");
    }
}

#[test]
fn only_some_parts_are_fast_with_random_writes_in_open_units() {
    let linear = |segment: &mut Segment| segment.random_logs = 0;
    let bears = |segment: &mut Segment| (segment.order, segment.random_logs) = (SegmentOrder::Random, 0);
    let in_order = small_rates(with("toshiba-7au", bears), 7, false);
    let random = small_rates(with("toshiba-7au", bears), 7, true);
    // With random writes a full log costs a full merge, with sequential ones none.
    for (ordered, random) in in_order.iter().zip(&random) {
        assert!((0.5..1.01).contains(&(random / ordered)), "{in_order:.2?} and {random:.2?}");
    }
    let too_many = small_rates(with("toshiba-7au", bears), 8, true);
    assert!(too_many[4] < random[4] / 15.0, "{random:.2?} and {too_many:.2?}");
    let refused = small_rates(with("toshiba-7au", linear), 1, true);
    assert!(refused[4] < random[4] / 5.0, "{random:.2?} and {refused:.2?}");
}
