//! Benchmark results as findings and as one line of a verdict: the speed, its limit, and what would help.
//!
//! Absent on purpose: figures of its own. Each is measured by a suite, or is the ratio of two.

use emmc_workload::{BenchResult, Measurement};

use crate::finding::{Finding, Severity};
use crate::study::{Answer, Measured};

/// A slowdown by this factor is a notice, by the next one a warning.
const SLOWER_NOTICE: f64 = 1.25;
const SLOWER_WARNING: f64 = 3.0;
/// A trim that restores this share of the fresh speed is a cure. Unit: percent.
const CURED_PERCENT: f64 = 80.0;
/// From this share of the bus speed on, the bus is the limit.
const BUS_BOUND: f64 = 0.85;
/// Small writes below this share of the speed of large ones get a finding.
const SMALL_WRITES: f64 = 0.1;

/// Summary of a card's results: the suite `speed` gives the line, all suites give findings.
pub fn measured<'a>(results: impl IntoIterator<Item = &'a BenchResult>) -> Measured {
    let mut measured = Measured::default();
    for result in results {
        measured.speed = measured.speed.take().or_else(|| speed(result));
        for finding in findings(result) {
            if measured.findings.iter().all(|known| known.id != finding.id) {
                measured.findings.push(finding);
            }
        }
    }
    measured
}

/// Findings from one result, worst first.
pub fn findings(result: &BenchResult) -> Vec<Finding> {
    let mut findings: Vec<Finding> = [trim(result), stalls(result), steady(result), bus(result), small_writes(result)]
        .into_iter()
        .flatten()
        .collect();
    crate::finding::sort(&mut findings);
    findings
}

/// A number with three significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn figure(result: &BenchResult, name: &str) -> Option<f64> {
    result.outcome.figures.iter().find(|figure| figure.name == name)?.value
}

/// The suite `trim`: the slowdown of writes on a full, aged card, and whether one trim cures it.
fn trim(result: &BenchResult) -> Option<Finding> {
    if result.outcome.suite != "trim" {
        return None;
    }
    let slower = ["4 KiB writes", "sequential writes"].into_iter().filter_map(|what| {
        Some((what, figure(result, &format!("{what}, aged"))?, figure(result, &format!("{what}, trimmed"))))
    });
    let (what, factor, back) = slower.max_by(|left, right| left.1.total_cmp(&right.1))?;
    if factor < SLOWER_NOTICE {
        return None;
    }
    let severity = if factor >= SLOWER_WARNING { Severity::Warning } else { Severity::Notice };
    let is_cured = back.is_some_and(|percent| percent >= CURED_PERCENT);
    let times = if factor >= 10.0 { format!("{factor:.0}") } else { format!("{factor:.1}") };
    let cure = if is_cured { "one trim cures it" } else { "one trim does not cure it" };
    let finding =
        Finding::new(severity, "slow-when-full", format!("Full and aged, {what} are {times} times slower; {cure}"))
            .evidence(format!("{what}, aged: {} times slower than fresh", number(factor)));
    let finding = match back {
        Some(percent) => finding.evidence(format!("{what} after one trim: {percent:.0} % of fresh")),
        None => finding,
    };
    Some(match is_cured {
        true => finding
            .summary(format!("Writes are {times} times slower on a full card; a trim cures that."))
            .advice("let the system trim: `systemctl enable --now fstrim.timer`, or mount with `discard`")
            .command("fstrim -av", "restores the write speed"),
        false => finding
            .summary(format!("Writes are {times} times slower on a full card, and a trim does not help."))
            .advice("erase some space and leave it unpartitioned: the card uses it as spare space"),
    })
}

/// The fresh speed against the steady one.
fn steady(result: &BenchResult) -> Option<Finding> {
    let rounds = result.outcome.grids.iter().find(|grid| grid.name == "rounds")?;
    let speed = |line: &emmc_workload::GridLine| line.values.first().copied().flatten();
    let (first, last) = (speed(rounds.lines.first()?)?, speed(rounds.lines.last()?)?);
    let factor = first / last.max(1e-9);
    if factor < SLOWER_NOTICE {
        return None;
    }
    let severity = if factor >= SLOWER_WARNING { Severity::Warning } else { Severity::Notice };
    let what =
        format!("Under sustained load, 4 KiB writes become {} times slower than on a fresh card", number(factor));
    Some(
        Finding::new(severity, "slow-when-steady", what)
            .evidence(format!("round 1: {} IOPS; round {}: {} IOPS", number(first), rounds.lines.len(), number(last)))
            .summary(format!(
                "Under sustained load this card writes {} times slower than when it is new.",
                number(factor)
            ))
            .advice("plan with the steady-state figure, not with the fresh one"),
    )
}

/// Writes slow enough for a program to notice.
fn stalls(result: &BenchResult) -> Option<Finding> {
    let counted = |found: &&Measurement| found.stalls.as_ref().is_some_and(|stalls| stalls.over_100_ms > 0);
    let slow: Vec<&Measurement> = result.outcome.measurements.iter().filter(counted).collect();
    let all: u64 = slow.iter().filter_map(|found| found.stalls.as_ref()).map(|stalls| stalls.over_100_ms).sum();
    let longest = slow.iter().filter_map(|found| Some((found.stalls.as_ref()?.longest.first()?.ms, *found)));
    let (ms, found) = longest.max_by(|left, right| left.0.total_cmp(&right.0))?;
    let severity = if ms >= 1000.0 { Severity::Warning } else { Severity::Notice };
    let what = format!("{all} requests took more than 100 ms, the longest {ms:.0} ms");
    Some(
        Finding::new(severity, "stalls", what)
            .evidence(format!("{} {}: {ms:.0} ms", found.column, found.row).trim().to_owned())
            .summary(format!("The card stopped answering for up to {:.1} seconds at a time.", ms / 1000.0))
            .advice("a program with write deadlines needs a buffer for that time; trim makes stalls rarer"),
    )
}

/// A measurement of the suite `speed`.
fn of_speed<'a>(result: &'a BenchResult, op: &str, small: bool) -> Option<&'a Measurement> {
    let is_wanted = |found: &&Measurement| {
        found.table.starts_with("speed")
            && found.op == op
            && found.queue_depth <= 1
            && (found.block_bytes <= 4096) == small
    };
    result.outcome.measurements.iter().find(is_wanted)
}

/// Large requests close to the bus speed.
fn bus(result: &BenchResult) -> Option<Finding> {
    let bus = result.context.bus.as_ref()?;
    let bound = ["read", "write"].into_iter().filter_map(|op| {
        let found = of_speed(result, op, false)?;
        (found.mb_per_s >= BUS_BOUND * bus.mb_per_s_max).then_some((op, found.mb_per_s))
    });
    let bound: Vec<(&str, f64)> = bound.collect();
    let (first, _) = bound.first()?;
    let ops = if bound.len() > 1 {
        "reads and writes"
    } else if *first == "read" {
        "reads"
    } else {
        "writes"
    };
    let what = format!("The bus limits {ops}: {} carries {:.0} MB/s", bus.mode, bus.mb_per_s_max);
    let evidence: Vec<String> = bound.iter().map(|(op, speed)| format!("{op}: {} MB/s", number(*speed))).collect();
    Some(
        Finding::new(Severity::Notice, "bus-bound", what)
            .evidence(evidence.join(", "))
            .summary("The card could be faster than the board allows.")
            .advice("only a faster mode or more data lines help: compare the card's modes with the board's settings"),
    )
}

/// Small writes compared with large ones: they slow down installations, databases and logs.
fn small_writes(result: &BenchResult) -> Option<Finding> {
    let (large, small) = (of_speed(result, "write", false)?, of_speed(result, "write", true)?);
    let share = small.mb_per_s / large.mb_per_s.max(1e-9);
    if share >= SMALL_WRITES || share <= 0.0 {
        return None;
    }
    let what = format!("Small random writes are {:.0} times slower than large ones", 1.0 / share);
    let evidence = format!(
        "4 KiB: {} MB/s ({:.0} IOPS); large: {} MB/s",
        number(small.mb_per_s),
        small.iops,
        number(large.mb_per_s)
    );
    Some(
        Finding::new(Severity::Notice, "small-writes", what)
            .evidence(evidence)
            .summary("Installations and databases are slow on this card; copying large files is not.")
            .advice("batch small writes; measure whether trim helps with the suite `trim` of `emmclab bench`, on a spare card"),
    )
}

/// Speed and its limit in one line; suite `speed` only.
fn speed(result: &BenchResult) -> Option<Answer> {
    let large = |op: &str| Some((op.to_owned(), number(of_speed(result, op, false)?.mb_per_s)));
    let small = |op: &str| of_speed(result, op, true).map(|found| format!("{:.0}/s {op}", found.iops));
    let large: Vec<(String, String)> = ["read", "write"].into_iter().filter_map(large).collect();
    let random: Vec<String> = ["read", "write"].into_iter().filter_map(small).collect();
    let (op, first) = large.first()?;
    let mut text = format!("{first} MB/s {op}");
    for (op, speed) in &large[1..] {
        text = format!("{text}, {speed} {op}");
    }
    if !random.is_empty() {
        text = format!("{text}; random 4 KiB {}", random.join(", "));
    }
    let severity = if findings(result).iter().any(|finding| finding.severity <= Severity::Warning) {
        Severity::Warning
    } else {
        Severity::Good
    };
    let limit = match (bus(result), of_speed(result, "read", false).and(result.context.bus.as_ref())) {
        (Some(_), _) => Some("the bus is the limit"),
        (None, Some(_)) => Some("the flash is the limit, not the bus"),
        (None, None) => None,
    };
    let answer = Answer::new(severity, text);
    Some(match limit {
        Some(limit) => answer.evidence(limit),
        None => answer,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use emmc_workload::{Figure, Outcome};

    use super::*;

    fn of(outcome: Outcome) -> BenchResult {
        BenchResult {
            target: "x".into(),
            target_kind: emmc_port::TargetKind::Simulated,
            size_bytes: 1 << 30,
            engine: "simulated".into(),
            seed: 1,
            outcome,
            context: emmc_workload::Context::default(),
            doubts: Vec::new(),
            causes: Vec::new(),
        }
    }

    fn aged(factor: f64, back: f64) -> BenchResult {
        let outcome = Outcome {
            suite: "trim".into(),
            figures: vec![
                Figure::new("4 KiB writes, aged", 1.1, "x slower", ""),
                Figure::new("sequential writes, aged", factor, "x slower", ""),
                Figure::new("sequential writes, trimmed", back, "%", ""),
            ],
            ..Outcome::default()
        };
        of(outcome)
    }

    #[test]
    fn slow_writes_that_a_trim_cures_are_a_warning_with_the_command() {
        let found = findings(&aged(23.4, 98.0));
        assert_eq!((found.len(), found[0].severity, found[0].id), (1, Severity::Warning, "slow-when-full"));
        assert_eq!(found[0].what, "Full and aged, sequential writes are 23 times slower; one trim cures it");
        assert_eq!(found[0].commands[0].command, "fstrim -av");
        let not_cured = &findings(&aged(2.0, 50.0))[0];
        assert_eq!((not_cured.severity, not_cured.commands.len()), (Severity::Notice, 0));
        assert_eq!(findings(&aged(1.1, 100.0)), []);
    }

    /// A result of `speed`, one request at a time.
    pub(crate) fn measurement(op: &str, block_bytes: u64, mb_per_s: f64) -> Measurement {
        let iops = mb_per_s * 1e6 / block_bytes as f64;
        Measurement {
            table: "speed, MB/s".into(),
            op: op.into(),
            block_bytes,
            queue_depth: 1,
            mb_per_s,
            iops,
            ..Measurement::default()
        }
    }

    #[test]
    fn the_speed_line_has_figures_and_slow_small_writes_are_a_finding() {
        let mut result = of(Outcome { suite: "speed".into(), ..Outcome::default() });
        for (op, block, speed) in
            [("read", 1 << 19, 133.0), ("write", 1 << 19, 40.0), ("read", 4096, 9.0), ("write", 4096, 1.024)]
        {
            result.outcome.measurements.push(measurement(op, block, speed));
        }
        let measured = measured([&result]);
        let speed = measured.speed.unwrap();
        assert_eq!(speed.text, "133 MB/s read, 40.0 write; random 4 KiB 2197/s read, 250/s write");
        assert_eq!(measured.findings[0].id, "small-writes");
        assert!(measured.findings[0].what.contains("39 times slower"), "{:?}", measured.findings);
        assert_eq!(super::measured([]).speed, None);
    }
}
