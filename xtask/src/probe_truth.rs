//! Random virtual cards with known parameters: how many of those `probe` finds, and how often it is wrong.

use std::collections::BTreeMap;

use emmc_probe::truth::{LEVELS, SCORED, TrueCapacity, TrueCard, Verdict, Verdicts};
use emmc_probe::{Confidence, Part};

use crate::seeds;

/// Prints the table; with `--card N` one card and what was found, with `--fakes N` what is found of fakes and honest
/// cards, with `--fake N` one of the fakes.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<()> {
    let options = seeds::options("probe-truth", args, &["--cards", "--seed", "--card", "--fakes", "--fake"])?;
    if let Some(number) = options.get("--card") {
        let card = TrueCard::random(*number);
        let findings = card.probe(&[], None).map_err(anyhow::Error::msg)?;
        println!("{}\nnoise {}\n", card.profile, LEVELS[card.level].0);
        println!("{}", serde_json::to_string_pretty(&findings)?);
        println!("{:?}", card.verdicts(&findings));
        for (card, part) in [(card.clone().uneven(), Part::Regions), (card.idling(), Part::Idle)] {
            let findings = card.probe(&[part], None).map_err(anyhow::Error::msg)?;
            println!("\n{:?}", card.part);
            println!("{}\n{:?}", serde_json::to_string_pretty(&findings.parameters)?, card.verdicts(&findings));
        }
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
    table(&seeds::each(first..first + cards, measured)?);
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
    /// Of the card, of the one with a part that differs, and of the one that merges while it rests.
    verdicts: [Verdicts; 3],
}

/// A card; and the same card with a part that differs, and one that merges while it rests, of which only that is asked.
fn measured(seed: u64) -> anyhow::Result<Probed> {
    let card = TrueCard::random(seed);
    let findings = card.probe(&[], None).map_err(anyhow::Error::msg)?;
    let uneven = card.clone().uneven();
    let idling = card.clone().idling();
    let rested = idling.probe(&[Part::Idle], None).map_err(anyhow::Error::msg)?;
    let parted = uneven.probe(&[Part::Regions], None).map_err(anyhow::Error::msg)?;
    let (time_s, written_bytes) = (findings.spent.time_s, findings.spent.written_bytes);
    let verdicts = [card.verdicts(&findings), uneven.verdicts(&parted), idling.verdicts(&rested)];
    Ok(Probed { seed, level: card.level, time_s, written_bytes, verdicts })
}

/// What the three cards of a seed are.
const VARIANTS: [&str; 3] = ["", ", a part differs", ", merges in pauses"];

/// The figures of some cards.
fn row(verdicts: &[&(Verdict, Option<Confidence>)]) -> String {
    let count = |wanted| verdicts.iter().filter(|(verdict, _)| *verdict == wanted).count();
    let high = |wanted| verdicts.iter().filter(|verdict| ***verdict == (wanted, Some(Confidence::High))).count();
    let (right, wrong, silent) = (count(Verdict::Right), count(Verdict::Wrong), count(Verdict::Silent));
    let given =
        if right + wrong == 0 { "-".into() } else { format!("{:.1} %", 100.0 * right as f64 / (right + wrong) as f64) };
    format!(
        "| {} | {right} | {wrong} | {silent} | {given} | {}, {} |",
        verdicts.len(),
        high(Verdict::Right),
        high(Verdict::Wrong)
    )
}

fn table(probed: &[Probed]) {
    println!(
        "| parameter | noise | cards | right | wrong | cannot tell | right where a value is given | high confidence: right, wrong |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for name in SCORED {
        for (variant, of_variant) in VARIANTS.iter().enumerate() {
            for (level, (level_name, _)) in LEVELS.iter().enumerate() {
                let of_level = probed.iter().filter(|probed| probed.level == level);
                let verdicts: Vec<_> = of_level.filter_map(|probed| probed.verdicts[variant].get(name)).collect();
                if !verdicts.is_empty() {
                    println!("| {name}{of_variant} | {level_name} {}", row(&verdicts));
                }
            }
        }
    }
    let wrong = |name| {
        let is_wrong = |probed: &&Probed| {
            probed.verdicts.iter().any(|of| of.get(name).is_some_and(|(verdict, _)| *verdict == Verdict::Wrong))
        };
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
