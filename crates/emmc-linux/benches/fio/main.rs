//! Comparison with fio on the same loop device over memory: `cargo bench -p emmc-linux --features bench --bench fio`.
//!
//! Short rounds alternate (fio, ours, ours, fio), so that other load on the machine affects both. Each pair of rounds
//! gives a ratio; the report shows the median of the ratios with its 95 % confidence interval. Requires root, loop
//! devices and fio; prints what is missing. `-- --rounds N --ms N --engine NAME --depth N` select the extent; the
//! duration of a round is the same for both.
//!
//! `--memory` measures on the file itself, without the loop device's threads: mainly the cost of the two programs.
//! `--awake` keeps the processors from sleeping, which reduces variation on an idle machine; `taskset` before the
//! command binds both programs to a processor. A row in which fio's own p50 differs by more than half between its
//! rounds is decided by the machine: who wakes whom, and from what sleep. Context switches per request show it:
//! voluntary ones are waits, involuntary ones other programs. fio's include its start.
//!
//! fio's `psync` has no queue depth: it gets as many threads as we have requests outstanding; with many threads, rounds
//! are longer, because fio reports a thread's time in milliseconds. The two histograms are compared on the same
//! requests: fio logs every request of a round, and the log is counted in our histogram.

mod awake;
mod fio;
mod ours;
mod place;
mod switches;
mod verdict;

use std::path::Path;
use std::time::Duration;

use place::Device;
use verdict::{Ratio, Row, Verdict};

/// Rounds of each; an even number, so that both come first equally often.
const ROUNDS: usize = 10;
/// Unit: milliseconds.
const ROUND_MS: u64 = 400;
/// With more threads than this, rounds are four times as long.
const THREADS: u32 = 8;
const ASKED: [&str; 6] = [
    "requests a second at least 98 % of fio's",
    "processor time a request no more",
    "the same percentiles of the same requests",
    "p50 no longer",
    "p99 no longer",
    "p99.9 no longer",
];

/// One way to do I/O.
#[derive(Clone, Copy)]
struct Case {
    engine: &'static str,
    depth: u32,
    block_bytes: u64,
    write: bool,
}

/// The result of a round.
#[derive(Clone, Copy, Debug)]
struct Round {
    iops: f64,
    /// Processor time per request. Unit: microseconds.
    cpu_us: f64,
    /// Voluntary and involuntary context switches per request.
    switches: [f64; 2],
    /// p50, p99, p99.9.
    percentiles_us: [f64; 3],
}

fn argument(name: &str) -> Option<String> {
    std::env::args().skip_while(|arg| arg != name).nth(1)
}

fn main() {
    let number = |name: &str, default: u64| argument(name).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (rounds, time) = (number("--rounds", ROUNDS as u64).max(2), Duration::from_millis(number("--ms", ROUND_MS)));
    let device = match Device::new() {
        Ok(device) => device,
        Err(why) => {
            eprintln!("SKIPPED: {why}");
            return;
        }
    };
    let memory = std::env::args().any(|arg| arg == "--memory");
    let path = if memory { device.file() } else { device.path() };
    let awake = std::env::args().any(|arg| arg == "--awake").then(awake::Awake::new).transpose();
    let _awake = awake.unwrap_or_else(|why| panic!("--awake: {why}"));
    println!("Load {}.", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    println!(
        "{}, {rounds} rounds of {} ms each (four times as long with 32 threads), in turn: medians; of ratios, ours to fio's, with their 95 % interval.",
        fio::version(),
        time.as_millis()
    );
    println!("Resolution of both histograms together: {:.2} %.\n", verdict::resolution() * 100.0);
    println!(
        "| engine | depth | KiB | op | IOPS fio | ours | ratio | us CPU/io fio | ours | ratio | switches/io fio \
         | ours | involuntary fio | ours | fio p50 q3/q1 | us p50 fio | ours | ratio | p99 fio | ours \
         | ratio | p99.9 fio | ours | ratio | same requests | iops, cpu, same, p50, p99, p99.9 |"
    );
    println!("|{}", "---|".repeat(26));
    let (engine, depth) = (argument("--engine"), argument("--depth"));
    let wanted = |case: &Case| {
        engine.as_ref().is_none_or(|only| only == case.engine)
            && depth.as_ref().is_none_or(|only| *only == case.depth.to_string())
    };
    let rows: Vec<Row> = cases().filter(wanted).map(|case| run(path, device.folder(), case, rounds, time)).collect();
    println!();
    for (index, asked) in ASKED.iter().enumerate() {
        let count = |verdict| rows.iter().filter(|row| row.verdicts()[index] == verdict).count();
        let [yes, unclear, machine, no] = [Verdict::Yes, Verdict::Unclear, Verdict::Machine, Verdict::No].map(count);
        println!(
            "{asked}: {yes} of {} rows, {unclear} within the noise, {machine} decided by the machine, {no} not.",
            rows.len()
        );
    }
}

fn cases() -> impl Iterator<Item = Case> {
    let depths = ["pread", "io_uring"].into_iter().flat_map(|engine| [1, 4, 32].map(|depth| (engine, depth)));
    let sizes = depths.flat_map(|(engine, depth)| [4096, 131_072].map(|block_bytes| (engine, depth, block_bytes)));
    sizes.flat_map(|(engine, depth, block_bytes)| [false, true].map(|write| Case { engine, depth, block_bytes, write }))
}

fn run(path: &Path, folder: &Path, case: Case, rounds: u64, time: Duration) -> Row {
    let time = if case.engine == "pread" { time * (case.depth / THREADS).max(1) } else { time };
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
    let (logged, counted) = fio::logged(path, case, time, folder);
    let ratio = |value: &dyn Fn(&Round) -> f64| Ratio::of(&fios, &ours, value);
    let row = Row {
        iops: ratio(&|round| round.iops),
        cpu: ratio(&|round| round.cpu_us),
        percentiles: [0, 1, 2].map(|index| ratio(&|round| round.percentiles_us[index])),
        same_requests: verdict::difference(&logged, &counted),
        fio_spread: verdict::spread(&fios, |round| round.percentiles_us[0]),
    };
    let pair = |value: &dyn Fn(&Round) -> f64, digits: usize| {
        let [fio, own] = [&fios, &ours].map(|rounds| {
            let mut values: Vec<f64> = rounds.iter().map(value).collect();
            values.sort_by(f64::total_cmp);
            quantile(&values, 0.5)
        });
        format!("{fio:.digits$} | {own:.digits$}")
    };
    let percentile =
        |index: usize| format!("{} | {}", pair(&|round| round.percentiles_us[index], 1), row.percentiles[index]);
    println!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.2} | {} | {} | {} | {:.2} % | {} |",
        case.engine,
        case.depth,
        case.block_bytes >> 10,
        if case.write { "write" } else { "read" },
        pair(&|round| round.iops, 0),
        row.iops,
        pair(&|round| round.cpu_us, 2),
        row.cpu,
        pair(&|round| round.switches[0], 3),
        pair(&|round| round.switches[1], 3),
        row.fio_spread,
        percentile(0),
        percentile(1),
        percentile(2),
        row.same_requests * 100.0,
        row.verdicts().map(|verdict| verdict.to_string()).join(", ")
    );
    row
}

/// NaN of nothing; `values` ascend.
fn quantile(values: &[f64], share: f64) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let at = share * (values.len() as f64 - 1.0);
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    values[low] + (values[high] - values[low]) * at.fract()
}
