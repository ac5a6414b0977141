//! Against fio on the same loop device over memory: `cargo bench -p emmc-linux --features bench --bench fio`.
//!
//! Short rounds in turn (fio, ours, ours, fio), so that what else the machine does falls on both; each pair of rounds gives a
//! ratio, and the median of the ratios is what is told. Needs root, loop devices and fio; says so where they are missing.
//! `-- --rounds N --ms N --engine NAME` choose how much is measured; the time of a round is fio's and ours alike.
//!
//! `--memory` measures on the file itself, without the loop device's threads: what the two programs cost, and little else.
//!
//! fio's `psync` has no depth: it gets as many threads as requests are outstanding with ours.

mod fio;
mod ours;
mod place;

use std::path::Path;
use std::time::Duration;

use place::Device;

/// Rounds of each; an even number, so that both come first equally often.
const ROUNDS: usize = 10;
/// Unit: milliseconds.
const ROUND_MS: u64 = 400;

/// One way to do I/O.
#[derive(Clone, Copy)]
struct Case {
    engine: &'static str,
    depth: u32,
    block_bytes: u64,
    write: bool,
}

/// What came of a round.
#[derive(Clone, Copy, Debug)]
struct Round {
    iops: f64,
    /// Processor time of the process for a request. Unit: microseconds.
    cpu_us: f64,
    p50_us: f64,
    p99_us: f64,
}

fn main() {
    let number = |name: &str, default: u64| {
        let mut args = std::env::args().skip_while(|arg| arg != name).skip(1);
        args.next().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (rounds, time) = (number("--rounds", ROUNDS as u64), Duration::from_millis(number("--ms", ROUND_MS)));
    let device = match Device::new() {
        Ok(device) => device,
        Err(why) => {
            eprintln!("SKIPPED: {why}");
            return;
        }
    };
    let memory = std::env::args().any(|arg| arg == "--memory");
    let path = if memory { device.file() } else { device.path() };
    println!("load {}", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    println!(
        "{}, {rounds} rounds of {} ms each, in turn; medians of paired ratios, ours to fio's",
        fio::version(),
        time.as_millis()
    );
    println!(
        "engine    depth  KiB op    |   fio IOPS  ours IOPS  ratio (middle half) |  fio us/io  ours  ratio | p50 fio  ours | p99 fio  ours"
    );
    let only = std::env::args().skip_while(|arg| arg != "--engine").nth(1);
    for engine in ["pread", "io_uring"].into_iter().filter(|engine| only.as_ref().is_none_or(|only| only == engine)) {
        for depth in [1, 4, 32] {
            for block_bytes in [4096, 131_072] {
                for write in [false, true] {
                    run(path, Case { engine, depth, block_bytes, write }, rounds, time);
                }
            }
        }
    }
}

fn run(path: &Path, case: Case, rounds: u64, time: Duration) {
    let (mut fios, mut ours) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let mut fio = || fios.push(fio::round(path, case, time));
        let mut own = || ours.push(ours::round(path, case, time, round + 1));
        if round % 2 == 0 {
            fio();
            own();
        } else {
            own();
            fio();
        }
    }
    let ratios = |of: fn(&Round) -> f64| -> Vec<f64> { fios.iter().zip(&ours).map(|(a, b)| of(b) / of(a)).collect() };
    let middle = |rounds: &[Round], of: fn(&Round) -> f64| quantile(rounds.iter().map(of).collect(), 0.5);
    let iops = ratios(|round| round.iops);
    println!(
        "{:<9} {:>5} {:>4} {:<5} | {:>10.0} {:>10.0}  {:.3} ({:.3} to {:.3}) | {:>9.2} {:>6.2}  {:.3} | {:>7.1} {:>6.1} | {:>7.1} {:>6.1}",
        case.engine,
        case.depth,
        case.block_bytes >> 10,
        if case.write { "write" } else { "read" },
        middle(&fios, |round| round.iops),
        middle(&ours, |round| round.iops),
        quantile(iops.clone(), 0.5),
        quantile(iops.clone(), 0.25),
        quantile(iops, 0.75),
        middle(&fios, |round| round.cpu_us),
        middle(&ours, |round| round.cpu_us),
        quantile(ratios(|round| round.cpu_us), 0.5),
        middle(&fios, |round| round.p50_us),
        middle(&ours, |round| round.p50_us),
        middle(&fios, |round| round.p99_us),
        middle(&ours, |round| round.p99_us),
    );
}

/// NaN of nothing.
fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    if values.is_empty() {
        return f64::NAN;
    }
    let at = share * (values.len() as f64 - 1.0);
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    values[low] + (values[high] - values[low]) * at.fract()
}
