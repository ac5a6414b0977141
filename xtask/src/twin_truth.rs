//! Random virtual cards, measured with noise and fitted: how many of their parameters a fit recovers, and how well its
//! twin predicts what was not measured.

use std::collections::BTreeMap;

use emmc_regs::CardKind;
use emmc_twin::truth::{CHANGES, DEPTHS, HiddenCard, Verdict};

use crate::seeds;
use crate::twin_table::serial;

pub(crate) fn run(args: &[&str]) -> anyhow::Result<()> {
    let options = seeds::options("twin-truth", args, &["--cards", "--seed"])?;
    let (cards, first) = (options.get("--cards").copied().unwrap_or(50), options.get("--seed").copied().unwrap_or(0));
    let verdicts = seeds::each(first..first + cards, |seed| {
        let verdict = judged(seed)?;
        eprintln!("{}", described(seed, &verdict));
        Ok(verdict)
    })?;
    table(&verdicts);
    Ok(())
}

/// Each parameter of a card: its own value, the twin's, the interval, and the distance in standard deviations.
fn described(seed: u64, verdict: &Verdict) -> String {
    let [own, twin] = verdict.firmwares;
    let mut text = format!("card {seed}: misfit {:.2?}\n  firmware {own:?}\n  twin's   {twin:?}\n", verdict.misfit);
    for found in &verdict.recovered {
        let mark = if !found.is_determined {
            "-"
        } else if found.deviations().abs() > 1.96 {
            "OUT"
        } else {
            ""
        };
        text += &format!(
            "  {:22} {:9.2} {:9.2} {:9.2?} {:+6.1} {mark}\n",
            found.name,
            found.own,
            found.value,
            found.interval,
            found.deviations()
        );
    }
    text + &format!(
        "  depth {:.0?}\n  percentiles {:.0?}\n  lives {:.0?}\n",
        verdict.depths, verdict.percentiles, verdict.lives
    ) + &format!("  amplifications {:.0?}\n", verdict.amplifications)
}

fn judged(seed: u64) -> anyhow::Result<Verdict> {
    let card = HiddenCard::random(seed);
    let measured = card.measured()?;
    let (profile, twin) = emmc_twin::fit(CardKind::Emmc, &measured, (None, &[], &card.known()), &serial)?;
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
    row("the same with a change over that without", 10.0, &|verdict| verdict.gains.clone());
    row("write amplification of the same", 10.0, &|verdict| verdict.amplifications.clone());
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for name in verdicts.iter().flat_map(|verdict| &verdict.outside) {
        *names.entry(name).or_default() += 1;
    }
    println!("\noutside their intervals: {names:?}");
}
