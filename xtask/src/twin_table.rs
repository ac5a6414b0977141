//! Fits of the nine published cards, and what they predict of cells that they have not seen.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, bail, ensure};
use emmc_card::profile::Profile;
use emmc_regs::CardKind;
use emmc_twin::{CellError, Column, ErrorSummary, HoldOut, Known, Measured, Plan, simulate};
use emmc_workload::reference::reference;

/// The published cards. One is an eMMC.
const CARDS: [&str; 9] = [
    "friendlyelec-emmc-8gb",
    "sandisk-extreme-pro-a2-64gb",
    "sandisk-extreme-plus-a2-64gb",
    "sandisk-extreme-a1-32gb",
    "sandisk-ultra-a1-32gb",
    "sandisk-extreme-plus-16gb",
    "sandisk-industrial-8gb",
    "sandisk-ultra-8gb",
    "intenso-class-4-4gb",
];
/// Cells shown as far.
const FAR_PERCENT: f64 = 20.0;

/// Fits the cards, or reads their profiles from the folder, and prints the table; with a split also the predictions.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<()> {
    let mut options = BTreeMap::new();
    for pair in args.chunks(2) {
        let [name @ ("--folder" | "--hold-out"), value] = *pair else {
            bail!("twin-table: unknown or unfinished option {}", pair[0]);
        };
        ensure!(options.insert(name, value).is_none(), "{name} is given twice");
    }
    let folder = PathBuf::from(options.get("--folder").copied().unwrap_or("target/twin"));
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let split = match options.get("--hold-out").copied() {
        None | Some("none") => None,
        Some("every-second") => Some(HoldOut::EverySecond),
        Some("columns") => Some(HoldOut::Columns),
        Some(other) => bail!("--hold-out {other}: expected every-second, columns or none"),
    };
    let fitted = each_card(|card| in_sample(card, &folder))?;
    println!("in-sample");
    let errors: Vec<Vec<CellError>> = fitted.iter().map(|(_, cells)| cells.clone()).collect();
    table(&errors, 2.0, 10.0);
    let Some(split) = split else { return Ok(()) };
    let predicted = each_card(|card| {
        let others =
            fitted.iter().zip(CARDS).filter(|(_, name)| *name != card).map(|((profile, _), _)| profile.clone());
        let others: Vec<Profile> = others.collect();
        let held = emmc_twin::hold_out(kind(card), &measured(card)?, (split, &others), &serial)?;
        let held = held.context("nothing is left out")?;
        eprintln!("{card}: {:.1} {:.1}", held.median, held.p90);
        Ok(held)
    })?;
    let (title, median, p90) = match split {
        HoldOut::EverySecond => ("every second record size left out", 3.2, 18.0),
        HoldOut::Columns => ("rewrite, reread and random write left out", 3.4, 25.0),
    };
    println!("\n{title}");
    let errors: Vec<Vec<CellError>> = predicted.iter().map(|held| held.cells.clone()).collect();
    table(&errors, median, p90);
    Ok(())
}

fn kind(card: &str) -> CardKind {
    if card.contains("emmc") { CardKind::Emmc } else { CardKind::Sd }
}

fn measured(card: &str) -> anyhow::Result<Measured> {
    let reference = reference(&format!("nine-cards-{card}")).with_context(|| format!("{card}: not published"))?;
    Ok(Measured::of(&reference.result())?)
}

/// One profile after the other: the cards are fitted side by side.
pub(crate) fn serial(profiles: &[Profile], plan: &Plan) -> Vec<Result<Vec<emmc_twin::Cell>, emmc_twin::SimulateError>> {
    profiles.iter().map(|profile| simulate(profile, plan)).collect()
}

fn in_sample(card: &str, folder: &Path) -> anyhow::Result<(Profile, Vec<CellError>)> {
    let (path, measured) = (folder.join(format!("{card}.toml")), measured(card)?);
    let profile = match path.is_file() {
        true => Profile::from_toml(&std::fs::read_to_string(&path)?).with_context(|| path.display().to_string())?,
        false => {
            let (mut profile, _) = emmc_twin::fit(kind(card), &measured, (None, &[], &Known::default()), &serial)?;
            card.clone_into(&mut profile.name);
            std::fs::write(&path, emmc_twin::to_toml(&profile)?).with_context(|| path.display().to_string())?;
            profile
        }
    };
    let cells = emmc_twin::check(&profile, &measured, &serial)?.cells;
    eprintln!("{card}: fitted");
    Ok((profile, cells))
}

/// Two cards at a time; the results in the order of the cards.
fn each_card<T: Send>(work: impl Fn(&'static str) -> anyhow::Result<T> + Sync) -> anyhow::Result<Vec<T>> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let run = || -> anyhow::Result<()> {
        while let Some(card) = CARDS.get(next.fetch_add(1, Ordering::Relaxed)) {
            let found = work(card).with_context(|| (*card).to_owned())?;
            done.lock().map_err(|_| anyhow::anyhow!("a card failed"))?.push((*card, found));
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(run)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow::anyhow!("a card failed"))?)
    })?;
    let mut found = done.into_inner().map_err(|_| anyhow::anyhow!("a card failed"))?;
    found.sort_by_key(|(name, _)| CARDS.iter().position(|card| card == name));
    Ok(found.into_iter().map(|(_, found)| found).collect())
}

fn table(errors: &[Vec<CellError>], median_goal: f64, p90_goal: f64) {
    println!("| card | median % | 90th percentile % | cells beyond {FAR_PERCENT} % |");
    println!("|---|---|---|---|");
    let summary = |cells: &[CellError]| ErrorSummary::of(cells.iter().map(|cell| cell.error_percent));
    for (card, cells) in CARDS.iter().zip(errors) {
        let far = cells.iter().filter(|cell| cell.error_percent.abs() > FAR_PERCENT);
        let far: Vec<String> =
            far.map(|cell| format!("{} {} KiB {:+.0}", cell.column, cell.record_kib, cell.error_percent)).collect();
        if let Some(found) = summary(cells) {
            println!("| {card} | {:.1} | {:.1} | {} |", found.median, found.p90, far.join(", "));
        }
    }
    let all: Vec<CellError> = errors.concat();
    if let Some(found) = summary(&all) {
        println!("| all {} cells | {:.1} | {:.1} | |", found.cells, found.median, found.p90);
        println!("| goal | {median_goal:.1} | {p90_goal:.1} | |");
    }
    println!("\n| column | median % | 90th percentile % |");
    println!("|---|---|---|");
    for column in Column::IOZONE {
        let of_column = all.iter().filter(|cell| cell.column == column).map(|cell| cell.error_percent);
        if let Some(found) = ErrorSummary::of(of_column) {
            println!("| {column} | {:.1} | {:.1} |", found.median, found.p90);
        }
    }
}
