//! `--both`: a script on two kernels on one clock with the card, QEMU's guest and User-Mode Linux, and what must agree.
//!
//! The kernels share only their drivers' source. They make the same accesses for the same work, the card's account of
//! reads one at a time is the same, and a request takes longer in QEMU by at most what its processor costs: in
//! User-Mode Linux that is free. Writes wait for the flash, which works on while the processor is busy: there the
//! card's part is shorter in QEMU, and the time from request to request is what agrees.

use anyhow::{Context, bail, ensure};

use crate::guest::machine::Outcome;
use crate::guest::programs;
use crate::guest::rig::Rig;
use crate::guest::server::Emmclab;
use crate::guest::test::Test;
use crate::guest::trial::{self, ClockKind, Options};

/// How far the accesses of a workload, the card's account of its requests, and speeds may be apart.
const PERCENT_MAX: f64 = 1.0;
/// What a line of a workload begins with.
const WORKLOAD: &str = "workload ";

/// What `ask counts` says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    reads: f64,
    writes: f64,
    interrupts: f64,
    requests: f64,
    /// The card's account of them together. Unit: us.
    total_us: f64,
}

/// A workload on one kernel.
#[derive(Clone, Debug, PartialEq)]
struct Workload {
    name: String,
    /// 0: through the page cache.
    depth: u32,
    counts: Counts,
    /// As the program has it. Unit: us.
    latency_us: f64,
}

impl Workload {
    /// Of a line of the script.
    fn parse(line: &str) -> anyhow::Result<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, depth, rest @ ..] = words.as_slice() else { bail!("a workload: {line:?}") };
        let numbers = rest.iter().map(|word| word.parse::<f64>()).collect::<Result<Vec<_>, _>>();
        let numbers = numbers.with_context(|| format!("a workload: {line:?}"))?;
        let [before @ .., read_us, write_us] = numbers.as_slice() else { bail!("a workload: {line:?}") };
        let (Some(before), Some(after)) = (before.first_chunk::<5>(), before.get(5..10)) else {
            bail!("a workload: {line:?}")
        };
        let since = |index: usize| after[index] - before[index];
        let counts =
            Counts { reads: since(0), writes: since(1), interrupts: since(2), requests: since(3), total_us: since(4) };
        ensure!(counts.requests > 0.0, "a workload without a request: {line:?}");
        let depth = depth.parse().with_context(|| format!("a workload: {line:?}"))?;
        Ok(Self { name: (*name).into(), depth, counts, latency_us: read_us + write_us })
    }

    /// The mean request in the card. Unit: us.
    fn card_us(&self) -> f64 {
        self.counts.total_us / self.counts.requests
    }

    /// The time between the ends of two requests. Unit: us.
    fn period_us(&self) -> f64 {
        self.latency_us / f64::from(self.depth.max(1))
    }
}

/// Runs it on both.
pub(super) fn judge(rig: &Rig, emmclab: &Emmclab, test: &Test) -> anyhow::Result<()> {
    let run = |options: &Options| -> anyhow::Result<Vec<Workload>> {
        let programs = programs::needed(&test.script)?;
        let Outcome { status, output, .. } =
            trial::run(rig, Some(emmclab), options, &test.script, &programs, &mut trial::Nobody)?;
        ensure!(status == Some(0), "{output}(exit status {status:?})");
        output.lines().filter_map(|line| line.strip_prefix(WORKLOAD)).map(Workload::parse).collect()
    };
    let qemu = run(&Options { clock: ClockKind::Virtual { shift: 0 }, ..test.options.clone() })?;
    let uml = run(&Options { uml: true, ..test.options.clone() })?;
    let wrong = compare(&qemu, &uml)?;
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Prints both; what differs by more than it may.
fn compare(qemu: &[Workload], uml: &[Workload]) -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    ensure!(!qemu.is_empty() && qemu.len() == uml.len(), "{} and {} workloads", qemu.len(), uml.len());
    println!(
        "workload, depth   reads: QEMU     UML   writes: QEMU     UML   interrupts: QEMU   UML   card us: QEMU     UML   request us: QEMU     UML"
    );
    let mut cost_us = 0.0;
    for (a, b) in qemu.iter().zip(uml) {
        let name = format!("{} {}", a.name, a.depth);
        ensure!(name == format!("{} {}", b.name, b.depth), "{name} and {} {}", b.name, b.depth);
        let (x, y) = (a.counts, b.counts);
        println!(
            "{name:15} {:13.0} {:7.0} {:14.0} {:7.0} {:18.0} {:5.0} {:15.2} {:7.2} {:18.2} {:7.2}",
            x.reads,
            y.reads,
            x.writes,
            y.writes,
            x.interrupts,
            y.interrupts,
            a.card_us(),
            b.card_us(),
            a.period_us(),
            b.period_us()
        );
        let mut same = |what: &str, a: f64, b: f64| {
            let percent = (a / b - 1.0) * 100.0;
            // Two zeros have no ratio.
            if a != b && percent.abs() > PERCENT_MAX {
                wrong.push(format!("{name}: {what}: {a:.2} in QEMU, {b:.2} in User-Mode Linux: {percent:+.2} %"));
            }
        };
        same("register reads", x.reads, y.reads);
        same("register writes", x.writes, y.writes);
        same("interrupts", x.interrupts, y.interrupts);
        same("requests", x.requests, y.requests);
        if a.depth == 1 {
            // One at a time the rest of the latency is what kernel and program cost.
            cost_us = a.latency_us - a.card_us();
            if a.name.contains("read") {
                same("us in the card", a.card_us(), b.card_us());
            }
        }
        let (slow, fast) = (a.period_us(), b.period_us());
        let tolerated = fast * PERCENT_MAX / 100.0;
        if a.depth > 0 && !(fast - tolerated..=fast + cost_us + tolerated).contains(&slow) {
            wrong.push(format!(
                "{name}: a request takes {slow:.2} us in QEMU, {fast:.2} us in User-Mode Linux, and the processor's \
                 cost is {cost_us:.2} us"
            ));
        }
    }
    Ok(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 requests with 500 reads, 400 writes and 100 interrupts.
    fn line(reads: u32, card_us: u32, latency_us: f64) -> Workload {
        let text = format!("read-4k 1 10 20 30 40 50 {} 420 130 140 {} {latency_us} 0", 10 + reads, 50 + 100 * card_us);
        Workload::parse(&text).unwrap()
    }

    #[test]
    fn kernels_that_differ_are_wrong() {
        let uml = [line(500, 90, 91.0)];
        assert!(compare(&[line(500, 90, 103.0)], &uml).unwrap().is_empty());
        for (other, why) in [
            (line(506, 90, 103.0), "register reads"),
            (line(500, 91, 103.0), "us in the card"),
            (line(500, 90, 89.0), "takes 89.00 us in QEMU"),
        ] {
            let wrong = compare(&[other], &uml).unwrap();
            assert!(wrong.len() == 1 && wrong[0].contains(why), "{wrong:?}");
        }
        assert!(compare(&[], &[]).is_err());
        for bad in ["", "a 1", "a 1 1 2 3", "a 1 1 2 3 4 5 1 2 3 4 5 x 0", "a 1 1 2 3 4 5 1 2 3 4 5 9 0"] {
            assert!(Workload::parse(bad).is_err(), "{bad:?}");
        }
    }
}
