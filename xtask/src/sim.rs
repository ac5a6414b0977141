//! Power-cut tests of the virtual card: cuts at every step of seeded workloads, and at random, in every area.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use emmc_torture::{Case, Outcome, torture};

/// The extent of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    /// Workloads that are cut at each of their steps.
    workloads: u32,
    /// Random cuts, in lives of about fifty each.
    cuts: u64,
    /// The first workload, and the first life.
    seed: u32,
}

/// `--seed N` alone repeats one case; otherwise a run of the given extent.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<()> {
    let options = options(args)?;
    let get = |name: &str| options.get(name).copied();
    if let (Some(number), None, None) = (get("--seed"), get("--workloads"), get("--cuts")) {
        let case = Case::from_number(number);
        let outcome = attempt(case).map_err(anyhow::Error::msg)?;
        println!("{case:?}, {}: {} cuts, no violation", outcome.subject, outcome.cuts);
        return Ok(());
    }
    let number =
        |name, default| u32::try_from(get(name).unwrap_or(default)).with_context(|| format!("{name}: too large"));
    let extent = Extent {
        workloads: number("--workloads", 50)?,
        cuts: get("--cuts").unwrap_or(100_000),
        seed: number("--seed", 0)?,
    };
    explore(extent)
}

fn options<'a>(args: &[&'a str]) -> anyhow::Result<BTreeMap<&'a str, u64>> {
    let mut options = BTreeMap::new();
    for pair in args.chunks(2) {
        let [name @ ("--cuts" | "--workloads" | "--seed"), value] = *pair else {
            bail!("sim: unknown or unfinished option {}", pair[0]);
        };
        let value = value.parse().with_context(|| format!("{name} {value}: not a number"))?;
        ensure!(options.insert(name, value).is_none(), "{name} is given twice");
    }
    Ok(options)
}

/// Runs a case; a panic counts as a violation.
fn attempt(case: Case) -> Result<Outcome, String> {
    let result = catch_unwind(AssertUnwindSafe(|| torture(case)));
    let number = case.number();
    let again = format!("again: cargo xtask sim --seed {number}");
    match result {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(violation)) => Err(format!("{violation}\n{again}")),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            Err(format!("case {number} ({case:?}): {text}\n{again}"))
        }
    }
}

/// Results so far, summed over threads.
#[derive(Default)]
struct Found {
    workload: AtomicU32,
    steps: AtomicU64,
    life: AtomicU32,
    lives: AtomicU64,
    cuts: AtomicU64,
    violations: Mutex<Vec<String>>,
}

fn explore(extent: Extent) -> anyhow::Result<()> {
    let (found, begun) = (Found::default(), Instant::now());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                every_step(&extent, &found);
                at_random(&extent, &found);
            });
        }
    });
    let mut violations = found.violations.into_inner().unwrap_or_default();
    violations.sort();
    for violation in &violations {
        eprintln!("{violation}");
    }
    println!(
        "{} workloads with a cut at each of their {} steps, {} random cuts in {} lives, seed {}: {} violations in {:.0} s",
        extent.workloads,
        found.steps.into_inner(),
        found.cuts.into_inner(),
        found.lives.into_inner(),
        extent.seed,
        violations.len(),
        begun.elapsed().as_secs_f64()
    );
    ensure!(violations.is_empty(), "{} promises broken", violations.len());
    Ok(())
}

/// Takes every workload that no other thread has; a workload that violates a guarantee ends there.
fn every_step(extent: &Extent, found: &Found) {
    loop {
        let workload = found.workload.fetch_add(1, Ordering::Relaxed);
        if workload >= extent.workloads {
            return;
        }
        for step in 1.. {
            match attempt(Case::Step { workload: extent.seed.wrapping_add(workload), step }) {
                Ok(outcome) if outcome.reached => found.steps.fetch_add(1, Ordering::Relaxed),
                Ok(_) => break,
                Err(violation) => {
                    note(found, violation);
                    break;
                }
            };
        }
    }
}

fn at_random(extent: &Extent, found: &Found) {
    while found.cuts.load(Ordering::Relaxed) < extent.cuts {
        let life = found.life.fetch_add(1, Ordering::Relaxed);
        let seed = extent.seed.wrapping_add(life);
        // One life in four is that of another area than the user's, and one in four is full of trims.
        let case = match life % 4 {
            3 => Case::Area { seed },
            1 => Case::Trims { seed },
            _ => Case::Random { seed },
        };
        match attempt(case) {
            Ok(outcome) => {
                found.cuts.fetch_add(u64::from(outcome.cuts), Ordering::Relaxed);
                found.lives.fetch_add(1, Ordering::Relaxed);
            }
            Err(violation) => note(found, violation),
        }
        // Lives that end before their first cut must not continue forever.
        if u64::from(life) > 1000 + extent.cuts {
            return;
        }
    }
}

fn note(found: &Found, violation: String) {
    if let Ok(mut violations) = found.violations.lock() {
        violations.push(violation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_pairs_of_known_names_and_numbers() {
        assert_eq!(options(&["--cuts", "5", "--seed", "7"]).unwrap(), [("--cuts", 5), ("--seed", 7)].into());
        for bad in [&["--cuts"][..], &["--cuts", "x"], &["--steps", "1"], &["--seed", "1", "--seed", "2"]] {
            assert!(options(bad).is_err(), "{bad:?}");
        }
    }
}
