//! Random virtual cards with known parameters: how many of those `probe` finds, and how often it is wrong.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, bail, ensure};
use emmc_probe::Confidence;
use emmc_probe::truth::{LEVELS, SCORED, TrueCapacity, TrueCard, Verdict, Verdicts};

/// Prints the table; with `--card N` one card and what was found, with `--fakes N` what is found of fakes and honest
/// cards, with `--fake N` one of the fakes.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<()> {
    let mut options = BTreeMap::new();
    for pair in args.chunks(2) {
        let [name @ ("--cards" | "--seed" | "--card" | "--fakes" | "--fake"), value] = *pair else {
            bail!("probe-truth: unknown or unfinished option {}", pair[0]);
        };
        let value: u64 = value.parse().with_context(|| format!("{name} {value}: not a number"))?;
        ensure!(options.insert(name, value).is_none(), "{name} is given twice");
    }
    if let Some(number) = options.get("--card") {
        let card = TrueCard::random(*number);
        let findings = card.probe(&[], None).map_err(anyhow::Error::msg)?;
        println!("{}\nnoise {}\n", card.profile, LEVELS[card.level].0);
        println!("{}", serde_json::to_string_pretty(&findings)?);
        println!("{:?}", card.verdicts(&findings));
        return Ok(());
    }
    if let Some(number) = options.get("--fake") {
        let card = TrueCapacity::fake(*number);
        println!("{}\n{card:?}\n", card.card.profile);
        println!("{}", serde_json::to_string_pretty(&card.probe().map_err(anyhow::Error::msg)?)?);
        return Ok(());
    }
    if let Some(cards) = options.get("--fakes") {
        return fakes(options.get("--seed").copied().unwrap_or(0), *cards);
    }
    let (cards, first) = (options.get("--cards").copied().unwrap_or(500), options.get("--seed").copied().unwrap_or(0));
    table(&measured(first, cards)?);
    Ok(())
}

/// This many fakes, and as many honest cards.
fn fakes(first: u64, cards: u64) -> anyhow::Result<()> {
    println!("| card | cards | called fake | its capacity exact | cannot tell |");
    println!("|---|---|---|---|---|");
    let mut kinds: BTreeMap<String, [u64; 4]> = BTreeMap::new();
    let (mut times, mut written) = (Vec::new(), 0);
    for seed in first..first + cards {
        for card in [TrueCapacity::fake(seed), TrueCapacity::honest(seed)] {
            let findings = card.probe().map_err(|error| anyhow::anyhow!("card {seed}: {error}"))?;
            let (value, is_exact) = card.verdict(&findings);
            let is_called_fake = findings.remarks.iter().any(|remark| remark.starts_with("FAKE"));
            if is_called_fake != card.real_bytes.is_some() || !is_exact {
                eprintln!("card {seed}, {}: capacity {value:?} of {:?}", card.kind(), card.real_bytes);
            }
            let counts = kinds.entry(card.kind()).or_default();
            let seen = [true, is_called_fake, is_exact, value.is_none()];
            counts.iter_mut().zip(seen).for_each(|(count, seen)| *count += u64::from(seen));
            times.push(findings.spent.time_s);
            written += findings.spent.written_bytes;
        }
    }
    for (kind, counts) in kinds {
        println!("| {kind} | {} |", counts.map(|count| count.to_string()).join(" | "));
    }
    times.sort_by(f64::total_cmp);
    let (median, most) = (times.get(times.len() / 2), times.last());
    println!(
        "\ncard time: median {:.0} s, largest {:.0} s; written: mean {} MiB",
        median.copied().unwrap_or_default(),
        most.copied().unwrap_or_default(),
        (written >> 20) / times.len().max(1) as u64
    );
    Ok(())
}

/// What a card costs, and how the probe did.
struct Probed {
    seed: u64,
    level: usize,
    time_s: f64,
    written_bytes: u64,
    verdicts: Verdicts,
}

fn measured(first: u64, cards: u64) -> anyhow::Result<Vec<Probed>> {
    let (next, done) = (AtomicU64::new(first), Mutex::new(Vec::new()));
    let work = || -> anyhow::Result<()> {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + cards {
                return Ok(());
            }
            let card = TrueCard::random(seed);
            let findings = card.probe(&[], None).map_err(|error| anyhow::anyhow!("card {seed}: {error}"))?;
            let (time_s, written_bytes) = (findings.spent.time_s, findings.spent.written_bytes);
            let probed = Probed { seed, level: card.level, time_s, written_bytes, verdicts: card.verdicts(&findings) };
            done.lock().map_err(|_| anyhow::anyhow!("a card failed"))?.push(probed);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow::anyhow!("a card failed"))?)
    })?;
    let mut probed = done.into_inner().map_err(|_| anyhow::anyhow!("a card failed"))?;
    probed.sort_by_key(|probed| probed.seed);
    Ok(probed)
}

fn table(probed: &[Probed]) {
    println!(
        "| parameter | noise | cards | right | wrong | cannot tell | right where a value is given | high confidence: right, wrong |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for name in SCORED {
        for (level, (level_name, _)) in LEVELS.iter().enumerate() {
            let of_level = probed.iter().filter(|probed| probed.level == level);
            let verdicts: Vec<_> = of_level.filter_map(|probed| probed.verdicts.get(name)).collect();
            let count = |wanted| verdicts.iter().filter(|(verdict, _)| *verdict == wanted).count();
            let high =
                |wanted| verdicts.iter().filter(|verdict| **verdict == &(wanted, Some(Confidence::High))).count();
            let (right, wrong, silent) = (count(Verdict::Right), count(Verdict::Wrong), count(Verdict::Silent));
            let percent = |part: usize, of: usize| format!("{:.1} %", 100.0 * part as f64 / of.max(1) as f64);
            println!(
                "| {name} | {level_name} | {} | {right} | {wrong} | {silent} | {} | {}, {} |",
                verdicts.len(),
                percent(right, right + wrong),
                high(Verdict::Right),
                high(Verdict::Wrong)
            );
        }
    }
    let wrong = |name| {
        let is_wrong =
            |probed: &&Probed| probed.verdicts.get(name).is_some_and(|(verdict, _)| *verdict == Verdict::Wrong);
        probed.iter().filter(is_wrong).map(|probed| probed.seed.to_string()).take(12).collect::<Vec<_>>().join(" ")
    };
    println!();
    for name in SCORED {
        println!("wrong {name}: cards {}", wrong(name));
    }
    let mut times: Vec<f64> = probed.iter().map(|probed| probed.time_s).collect();
    times.sort_by(f64::total_cmp);
    let written = probed.iter().map(|probed| probed.written_bytes).sum::<u64>() / probed.len().max(1) as u64;
    let at = |share: f64| times.get((share * (times.len().max(1) - 1) as f64) as usize).copied().unwrap_or_default();
    println!("card time: median {:.0} s, largest {:.0} s; written: mean {} MiB", at(0.5), at(1.0), written >> 20);
}
