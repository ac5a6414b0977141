//! The benches with a limit or a peer in one run, as one table: the card's own speed, NBD beside nbdkit, `bench` beside
//! fio, `clone` beside `dd | zstd` and nbdcopy.
//!
//! A figure is one of this machine at this time: a row that misses its limit is reported, not an error.

use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};

use crate::metadata;

/// A bench, and how its lines are read.
struct Bench {
    name: &'static str,
    /// Arguments of `cargo bench`, and what a quick run has more.
    args: &'static [&'static str],
    quick: &'static [&'static str],
    row: fn(&str) -> Option<Row>,
}

const BENCHES: [Bench; 4] = [
    Bench {
        name: "device",
        args: &["-p", "emmc-workload", "--bench", "device", "--", "random-8g", "random-64g"],
        quick: &[],
        row: of_device,
    },
    Bench { name: "nbd", args: &["-p", "emmc-serve", "--bench", "nbd", "--", "1", "2"], quick: &[], row: of_nbd },
    Bench {
        name: "fio",
        args: &["-p", "emmc-linux", "--features", "bench", "--bench", "fio", "--", "--awake"],
        quick: &["--rounds", "4", "--ms", "200"],
        row: of_fio,
    },
    Bench { name: "clone", args: &["-p", "emmclab", "--bench", "clone", "--"], quick: &["2"], row: of_clone },
];

/// Host writes per second of one core, and what is asked of them. Unit: millions.
const DEVICE_ASKED: [(&str, f64); 2] = [("random-8g", 10.0), ("random-64g", 5.0)];
/// The part of the peer's rate that is asked.
const NBD_ASKED: f64 = 0.9;
const FIO_ASKED: f64 = 0.98;
/// The peer's time over ours that is asked.
const CLONE_ASKED: f64 = 1.0;

/// A row of the table, each cell as it is printed.
#[derive(Debug, PartialEq)]
struct Row {
    name: String,
    ours: String,
    peer: String,
    ratio: String,
    /// Processor time, ours and the peer's. Unit: microseconds per request.
    cpu_us: [String; 2],
    asked: String,
    verdict: String,
}

/// Runs all benches, or those named, and prints the table.
///
/// Errors: no such bench; one that does not end well.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<()> {
    let is_quick = args.contains(&"--quick");
    let wanted: Vec<&str> = args.iter().copied().filter(|arg| *arg != "--quick").collect();
    for name in &wanted {
        let names = BENCHES.each_ref().map(|bench| bench.name).join(", ");
        ensure!(BENCHES.iter().any(|bench| bench.name == *name), "no bench is named {name}; there are {names}");
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut tables = Vec::new();
    for bench in BENCHES.iter().filter(|bench| wanted.is_empty() || wanted.contains(&bench.name)) {
        tables.push((bench.name, lines(bench, is_quick)?));
    }
    println!("Load average at the start: {}.", load.trim());
    println!("| bench | row | ours | peer | ratio | us CPU ours | peer | asked | |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for (name, rows) in &tables {
        for row in rows {
            let Row { name: what, ours, peer, ratio, cpu_us: [own, theirs], asked, verdict } = row;
            println!("| {name} | {what} | {ours} | {peer} | {ratio} | {own} | {theirs} | {asked} | {verdict} |");
        }
    }
    for (name, rows) in &tables {
        let met = rows.iter().filter(|row| row.verdict == "yes").count();
        println!("{name}: {met} of {} rows as asked.", rows.len());
    }
    Ok(())
}

/// The rows of one bench; none if it was skipped, with its reason on standard error.
fn lines(bench: &Bench, is_quick: bool) -> anyhow::Result<Vec<Row>> {
    eprintln!("== {}", bench.name);
    let mut command = Command::new("cargo");
    command.arg("bench").args(bench.args).args(if is_quick { bench.quick } else { &[] });
    command.current_dir(metadata::workspace()?.root).stdout(Stdio::piped());
    let output = command.spawn().and_then(std::process::Child::wait_with_output).context("cargo bench")?;
    ensure!(output.status.success(), "cargo bench {} failed", bench.args.join(" "));
    let text = String::from_utf8(output.stdout).with_context(|| format!("the output of bench {}", bench.name))?;
    let rows: Vec<Row> = text.lines().filter_map(bench.row).collect();
    if rows.is_empty() && !text.trim().is_empty() {
        bail!("bench {}: expected rows, found {:?}", bench.name, text.lines().last().unwrap_or_default());
    }
    Ok(rows)
}

fn verdict(is_met: bool) -> String {
    if is_met { "yes" } else { "no" }.into()
}

/// `NAME  6.80 M requests/s ...`
fn of_device(line: &str) -> Option<Row> {
    let mut words = line.split_whitespace();
    let (name, rate) = (words.next()?, words.next()?.parse::<f64>().ok()?);
    let (_, asked) = DEVICE_ASKED.iter().find(|(known, _)| *known == name)?;
    Some(Row {
        name: format!("{name}, M writes/s of one core"),
        ours: format!("{rate:.2}"),
        peer: "none".into(),
        ratio: format!("{:.2} of asked", rate / asked),
        cpu_us: [format!("{:.3}", 1.0 / rate), String::new()],
        asked: format!("{asked}"),
        verdict: verdict(rate >= *asked),
    })
}

/// A load's name up to its depth; then rate and processor time of nbdkit, of plain memory with its ratio, of the card
/// with its ratio.
fn of_nbd(line: &str) -> Option<Row> {
    let depth = line.find(", depth ")? + ", depth ".len();
    let end = depth + line[depth..].find(' ')?;
    let numbers: Vec<f64> = line[end..].split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let [peer, peer_us, _, _, _, ours, ours_us, _] = numbers[..] else { return None };
    Some(Row {
        name: line[..end].into(),
        ours: format!("{ours:.0}"),
        peer: format!("{peer:.0}"),
        ratio: format!("{:.2}", ours / peer),
        cpu_us: [ours_us, peer_us].map(|us| format!("{us:.1}")),
        asked: format!("{NBD_ASKED}"),
        verdict: verdict(ours / peer >= NBD_ASKED),
    })
}

/// A row of its table: the last cell has the verdicts, the rate's and the processor time's first.
fn of_fio(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
    let [engine, depth, kib, op, peer, ours, ratio, peer_us, ours_us, _, .., verdicts] = cells[..] else { return None };
    peer.parse::<f64>().ok()?;
    let mut verdicts = verdicts.split(", ");
    let (rate, cpu) = (verdicts.next()?, verdicts.next()?);
    Some(Row {
        name: format!("{engine}, depth {depth}, {kib} KiB, {op}"),
        ours: ours.into(),
        peer: peer.into(),
        ratio: ratio.into(),
        cpu_us: [ours_us.into(), peer_us.into()],
        asked: format!("{FIO_ASKED}, no more CPU"),
        verdict: if rate == cpu { rate.into() } else { format!("{rate}, CPU {cpu}") },
    })
}

/// `OURS beside PEER: SECONDS s, SECONDS s, CPU SECONDS s, SECONDS s`: time, then processor time, ours first.
fn of_clone(line: &str) -> Option<Row> {
    let (name, times) = line.split_once(": ").filter(|(name, _)| name.contains(" beside "))?;
    let seconds = |text: &str| text.trim_start_matches("CPU ").strip_suffix(" s")?.parse::<f64>().ok();
    let times: Vec<f64> = times.split(", ").map(seconds).collect::<Option<_>>()?;
    let [ours, peer, own, theirs] = times[..] else { return None };
    Some(Row {
        name: format!("{name}, s"),
        ours: format!("{ours:.2}"),
        peer: format!("{peer:.2}"),
        ratio: format!("{:.2} times as fast", peer / ours),
        cpu_us: [own, theirs].map(|s| format!("{:.0}", s * 1e6)),
        asked: format!("{CLONE_ASKED}"),
        verdict: verdict(peer / ours >= CLONE_ASKED),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_benches_are_read() {
        let row =
            of_device("random-8g                           6.80 M requests/s     6.80 M units/s     6.0 M programs/s")
                .unwrap();
        assert_eq!((row.ours.as_str(), row.verdict.as_str()), ("6.80", "no"));
        assert_eq!(of_device("zipf-8g   6.80 M requests/s"), None);
        let row =
            of_nbd("1 MiB sequential write, depth 8      6282  166.0     5447  175.8  0.87     5600  156.2  0.89")
                .unwrap();
        assert_eq!((row.name.as_str(), row.ratio.as_str()), ("1 MiB sequential write, depth 8", "0.89"));
        assert_eq!((row.verdict.as_str(), row.cpu_us), ("no", ["156.2", "166.0"].map(String::from)));
        assert_eq!(of_nbd("IOPS, best of rounds               nbdkit CPU us   memory CPU us ratio"), None);
        let row = of_fio("| io_uring | 4 | 128 | write | 9000 | 9100 | 1.01 [0.98, 1.02] | 50.00 | 45.00 | 0.90 | 1.0 | 1.0 | 0.0 | 0.0 | 1.02 | 0.1 % | yes, yes, yes, no, no, no |").unwrap();
        assert_eq!((row.name.as_str(), row.verdict.as_str()), ("io_uring, depth 4, 128 KiB, write", "yes"));
        assert_eq!(row.cpu_us, ["45.00", "50.00"].map(String::from));
        assert_eq!(of_fio("|---|---|---|---|---|---|---|---|---|---|---|"), None);
        let row = of_clone("emmclab clone beside dd, zstd -1 -T0: 2.50 s, 5.00 s, CPU 2.00 s, 8.00 s").unwrap();
        assert_eq!((row.name.as_str(), row.verdict.as_str()), ("emmclab clone beside dd, zstd -1 -T0, s", "yes"));
        assert_eq!((row.ratio.as_str(), row.cpu_us), ("2.00 times as fast", ["2000000", "8000000"].map(String::from)));
        assert_eq!(of_clone("| emmclab clone | 2.50 |"), None);
    }
}
