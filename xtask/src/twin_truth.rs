//! Random virtual cards, measured with noise and fitted: how many of their parameters a fit recovers, and how well its
//! twin predicts what was not measured.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, bail, ensure};
use emmc_regs::CardKind;
use emmc_twin::truth::{CHANGES, DEPTHS, HiddenCard, Verdict};

use crate::twin_table::serial;

pub(crate) fn run(args: &[&str]) -> anyhow::Result<()> {
    let mut options = BTreeMap::new();
    for pair in args.chunks(2) {
        let [name @ ("--cards" | "--seed"), value] = *pair else {
            bail!("twin-truth: unknown or unfinished option {}", pair[0]);
        };
        let value: u64 = value.parse().with_context(|| format!("{name} {value}: not a number"))?;
        ensure!(options.insert(name, value).is_none(), "{name} is given twice");
    }
    let (cards, first) = (options.get("--cards").copied().unwrap_or(50), options.get("--seed").copied().unwrap_or(0));
    let (next, done) = (AtomicU64::new(first), Mutex::new(Vec::new()));
    let work = || -> anyhow::Result<()> {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + cards {
                return Ok(());
            }
            let verdict = judged(seed).with_context(|| format!("card {seed}"))?;
            eprintln!("card {seed}: {verdict:.1?}");
            done.lock().map_err(|_| anyhow::anyhow!("a card failed"))?.push(verdict);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow::anyhow!("a card failed"))?)
    })?;
    table(&done.into_inner().map_err(|_| anyhow::anyhow!("a card failed"))?);
    Ok(())
}

fn judged(seed: u64) -> anyhow::Result<Verdict> {
    let card = HiddenCard::random(seed);
    let measured = card.measured()?;
    let (profile, twin) = emmc_twin::fit(CardKind::Emmc, &measured, (None, &[], &HiddenCard::known()), &serial)?;
    card.verdict(&profile, &twin).map_err(anyhow::Error::msg)
}

fn table(verdicts: &[Verdict]) {
    let determined: usize = verdicts.iter().map(|verdict| verdict.determined).sum();
    let outside: usize = verdicts.iter().map(|verdict| verdict.outside.len()).sum();
    println!("| of {} cards | figures | goal | within the goal | median | 90th percentile |", verdicts.len());
    println!("|---|---|---|---|---|---|");
    let share = 100.0 * (determined - outside) as f64 / determined.max(1) as f64;
    println!("| determined parameters | {determined} | inside their intervals | {share:.1} % | | |");
    let row = |name: &str, goal: f64, of: &dyn Fn(&Verdict) -> Vec<f64>| {
        let mut sizes: Vec<f64> = verdicts.iter().flat_map(of).map(f64::abs).collect();
        sizes.sort_by(f64::total_cmp);
        let at = |share: f64| sizes.get((share * sizes.len() as f64) as usize).or(sizes.last()).copied();
        let within = 100.0 * sizes.iter().filter(|size| **size <= goal).count() as f64 / sizes.len().max(1) as f64;
        println!(
            "| {name} | {} | {goal:.0} % | {within:.1} % | {:.1} % | {:.1} % |",
            sizes.len(),
            at(0.5).unwrap_or_default(),
            at(0.9).unwrap_or_default()
        );
    };
    let half = |verdict: &Verdict, index: usize| -> Vec<f64> {
        let each = verdict.depths.len() / DEPTHS.len();
        verdict.depths.chunks(each.max(1)).nth(index).unwrap_or_default().to_vec()
    };
    row("speeds at depth 8", 8.0, &|verdict| half(verdict, 0));
    row("speeds at depth 32", 8.0, &|verdict| half(verdict, 1));
    row("p50, p90, p99 of random writes to a full card", 20.0, &|verdict| verdict.percentiles.clone());
    row(&format!("years of life, as it is and with {}", CHANGES.join(", ")), 10.0, &|verdict| verdict.lives.clone());
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for name in verdicts.iter().flat_map(|verdict| &verdict.outside) {
        *names.entry(name).or_default() += 1;
    }
    println!("\noutside their intervals: {names:?}");
}
