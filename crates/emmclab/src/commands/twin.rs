//! `twin`: a virtual card that behaves like a measured part.

mod present;

use std::path::Path;

use anyhow::{Context, bail};
use emmc_card::profile::Profile;
use emmc_regs::CardKind;
use emmc_twin::{Baseline, Cell, Checked, HoldOut, MeasuredTable, Twin, cells, simulate};
use emmc_workload::import::SavedResult;

use super::compare::open;
use crate::CommandResult;
use crate::cli::{HoldOutArg, TwinBaselineArgs, TwinCheckArgs, TwinCommand, TwinFitArgs, TwinKindArg};
use crate::exit::Exit;
use crate::output::Output;
use crate::progress::Bar;
use crate::save::deliver;
use crate::virtual_card::NamedProfile;

pub(crate) const FIT_SCHEMA: &str = "emmclab.twin-fit/1";
pub(crate) const CHECK_SCHEMA: &str = "emmclab.twin-check/1";
pub(crate) const BASELINE_SCHEMA: &str = "emmclab.twin-baseline/1";

pub(crate) fn run(command: &TwinCommand, output: &mut Output) -> CommandResult {
    match command {
        TwinCommand::Fit(args) => fit(args, output),
        TwinCommand::Check(args) => check(args, output),
        TwinCommand::Baseline(args) => baseline(args, output),
    }
}

/// Measurements of one part.
struct Measured {
    name: String,
    target: Option<String>,
    table: MeasuredTable,
}

fn measured(names: &[String]) -> anyhow::Result<Measured> {
    anyhow::ensure!(
        names.iter().filter(|name| *name == "-").count() < 2,
        "standard input can be only one of the results"
    );
    let mut all = SavedResult { name: names.join(", "), ..SavedResult::default() };
    for name in names {
        let result = open(name)?;
        all.target = all.target.or(result.target);
        all.outcomes.extend(result.outcomes);
    }
    let table = cells(&all)?;
    Ok(Measured { name: all.name, target: all.target, table })
}

/// Simulates profiles side by side, one thread a processor.
fn simulated(profiles: &[Profile], records: &[u64], file_bytes: u64) -> Vec<Option<Vec<Cell>>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let each = profiles.len().div_ceil(threads).max(1);
    let work = |part: &[Profile]| -> Vec<Option<Vec<Cell>>> {
        part.iter().map(|profile| simulate(profile, records, file_bytes).ok()).collect()
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = profiles.chunks(each).map(|part| scope.spawn(move || work(part))).collect();
        let joined =
            running.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect()
    })
}

fn fit(args: &TwinFitArgs, output: &mut Output) -> CommandResult {
    if let Some(path) = args.output.as_deref().filter(|path| path.is_file() && !args.force) {
        bail!("{}: exists already; --force replaces it", path.display());
    }
    let Measured { name, target, table } = measured(&args.measurements)?;
    let kind = match args.kind {
        TwinKindArg::Emmc => CardKind::Emmc,
        TwinKindArg::Sd => CardKind::Sd,
    };
    let split = match args.hold_out {
        HoldOutArg::EverySecond => Some(HoldOut::EverySecond),
        HoldOutArg::Columns => Some(HoldOut::Columns),
        HoldOutArg::None => None,
    };
    let bar = std::cell::RefCell::new(Bar::new());
    let done = std::cell::Cell::new(0);
    let watched = |profiles: &[Profile], records: &[u64], file_bytes: u64| {
        done.set(done.get() + profiles.len());
        bar.borrow_mut().show(None, &format!("fitting {name}: simulation {}", done.get()));
        simulated(profiles, records, file_bytes)
    };
    let (mut profile, twin) = emmc_twin::fit(kind, &table, split, &watched)?;
    bar.into_inner().finish();
    let twin = Twin { measurements: name.clone(), target: target.clone(), ..twin };
    if let Some(path) = &args.output {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        name_profile(&mut profile, stem, args, &twin);
        let text = text(&profile).with_context(|| path.display().to_string())?;
        let inputs: Vec<&Path> = args.measurements.iter().map(Path::new).collect();
        if !deliver(output, path, &text, args.force, &inputs)? {
            return Ok(Exit::Good);
        }
    }
    output.print(FIT_SCHEMA, &twin, present::fitted)?;
    Ok(Exit::Good)
}

/// Its name from the file's, and what made it.
fn name_profile(profile: &mut Profile, stem: &str, args: &TwinFitArgs, twin: &Twin) {
    let is_name = |name: &str| {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !name.is_empty()
            && name.len() <= 40
            && name.chars().all(inner)
            && !name.starts_with('-')
            && !name.ends_with('-')
    };
    if is_name(stem) {
        profile.name = stem.to_owned();
    }
    let of = twin.target.as_deref().unwrap_or(&twin.measurements);
    profile.description = format!("the twin of {of}").replace(char::is_control, " ");
    let kind = match args.kind {
        TwinKindArg::Emmc => "emmc",
        TwinKindArg::Sd => "sd",
    };
    profile.sources = vec![
        format!("emmclab twin fit {} --kind {kind}", args.measurements.join(" ")),
        format!(
            "its speeds differ by {:.1} % (median) and {:.1} % (90th percentile)",
            twin.error.median, twin.error.p90
        ),
        "Assumed: geometry, endurance, over-provisioning, sizes, identity".into(),
    ];
}

/// A profile as its file.
///
/// Errors: a profile that would not be read again as it is.
fn text(profile: &Profile) -> anyhow::Result<String> {
    let text = emmc_twin::to_toml(profile)?;
    anyhow::ensure!(Profile::from_toml(&text)? == *profile, "the profile's file would differ from it");
    Ok(text)
}

fn check(args: &TwinCheckArgs, output: &mut Output) -> CommandResult {
    let Measured { name, target, table } = measured(&args.measurements)?;
    let profile = NamedProfile::open(args.profile.strip_prefix("sim:").unwrap_or(&args.profile))?;
    anyhow::ensure!(profile.age == 0.0, "{}: a new card is measured; leave out @PERCENT", args.profile);
    let profile = profile.profile;
    // One that cannot be measured says why.
    let mut records: Vec<u64> = table.cells.iter().map(|cell| cell.kib).collect();
    records.truncate(1);
    simulate(&profile, &records, 1 << 20).with_context(|| profile.name.clone())?;
    let checked = emmc_twin::check(&profile, &table, &simulated)?;
    output.print(CHECK_SCHEMA, &Checked { measurements: name, target, ..checked }, present::checked)?;
    Ok(Exit::Good)
}

fn baseline(args: &TwinBaselineArgs, output: &mut Output) -> CommandResult {
    let tables = args.measurements.iter().map(|name| {
        let measured = measured(std::slice::from_ref(name))?;
        anyhow::Ok((measured.name, measured.table))
    });
    let baseline: Baseline = emmc_twin::baseline(&tables.collect::<anyhow::Result<Vec<_>>>()?)?;
    output.print(BASELINE_SCHEMA, &baseline, present::baseline)?;
    Ok(Exit::Good)
}
