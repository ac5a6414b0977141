//! `twin`: a virtual card that behaves like a measured part.

mod present;

use std::path::Path;

use anyhow::{Context, ensure};
use emmc_card::profile::Profile;
use emmc_regs::CardKind;
use emmc_twin::{Baseline, Cell, Checked, HoldOut, MeasuredTable, SimulateError, Twin, cells, simulate};
use emmc_workload::import::SavedResult;

use super::compare::open;
use crate::CommandResult;
use crate::cli::{HoldOutArg, TwinBaselineArgs, TwinCheckArgs, TwinCommand, TwinFitArgs, TwinKindArg};
use crate::exit::Exit;
use crate::output::Output;
use crate::progress::Bar;
use crate::save::{deliver, refuse_inputs};
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

/// Errors: standard input for more than one of them.
fn one_input(names: &[String]) -> anyhow::Result<()> {
    let is_input = |name: &&String| *name == "-";
    ensure!(names.iter().filter(is_input).count() < 2, "standard input can be only one of the results");
    Ok(())
}

fn measured(names: &[String]) -> anyhow::Result<Measured> {
    one_input(names)?;
    let mut all = SavedResult { name: names.join(", "), ..SavedResult::default() };
    for name in names {
        let result = open(name)?;
        if let (Some(first), Some(other)) = (&all.target, &result.target) {
            ensure!(first == other, "results of {first} and {other}; expected those of one card");
        }
        all.target = all.target.or(result.target);
        all.outcomes.extend(result.outcomes);
    }
    let table = cells(&all)?;
    Ok(Measured { name: all.name, target: all.target, table })
}

type Simulated = Result<Vec<Cell>, SimulateError>;

/// Simulates profiles side by side, one thread a processor.
fn simulated(profiles: &[Profile], records: &[u64], file_bytes: u64) -> Vec<Simulated> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let each = profiles.len().div_ceil(threads).max(1);
    let work = |part: &[Profile]| -> Vec<Simulated> {
        part.iter().map(|profile| simulate(profile, records, file_bytes)).collect()
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = profiles.chunks(each).map(|part| scope.spawn(move || work(part))).collect();
        let joined =
            running.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect()
    })
}

fn fit(args: &TwinFitArgs, output: &mut Output) -> CommandResult {
    let inputs: Vec<&Path> = args.measurements.iter().map(Path::new).collect();
    if let Some(path) = args.output.as_deref().filter(|path| *path != Path::new("-")) {
        writable(path, args.force, &inputs)?;
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
    let like = args.like.iter().map(|name| other_part(name)).collect::<anyhow::Result<Vec<Profile>>>()?;
    let bar = std::cell::RefCell::new(Bar::new());
    let done = std::cell::Cell::new(0);
    let watched = |profiles: &[Profile], records: &[u64], file_bytes: u64| {
        done.set(done.get() + profiles.len());
        bar.borrow_mut().show(None, &format!("fitting {name}: simulation {}", done.get()));
        simulated(profiles, records, file_bytes)
    };
    let fitted = emmc_twin::fit(kind, &table, (split, &like), &watched);
    bar.into_inner().finish();
    let (mut profile, twin) = fitted.with_context(|| name.clone())?;
    let twin = Twin { measurements: name.clone(), target: target.clone(), ..twin };
    if let Some(path) = &args.output {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        name_profile(&mut profile, stem, args, &twin);
        let text = text(&profile).with_context(|| path.display().to_string())?;
        if !deliver(output, path, &text, args.force, &inputs)? {
            return Ok(Exit::Good);
        }
    }
    output.print(FIT_SCHEMA, &twin, present::fitted)?;
    Ok(Exit::Good)
}

/// A profile for `--like`.
///
/// Errors: one that cannot be read, or that no fit has made.
fn other_part(name: &str) -> anyhow::Result<Profile> {
    let named = NamedProfile::open(name)?;
    ensure!(emmc_twin::is_fitted(&named.profile), "{name}: expected a profile that `emmclab twin fit` made");
    Ok(named.profile)
}

/// Refuses before the fit what `deliver` would refuse after it.
fn writable(path: &Path, replace: bool, inputs: &[&Path]) -> anyhow::Result<()> {
    let name = path.display();
    refuse_inputs(path, inputs)?;
    ensure!(!path.is_dir(), "{name}: is a folder; expected a file");
    ensure!(!path.is_file() || replace, "{name}: exists already; --force replaces it");
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    ensure!(folder.is_dir(), "{name}: there is no folder {}", folder.display());
    Ok(())
}

/// Its name from the file's, and what made it.
fn name_profile(profile: &mut Profile, stem: &str, args: &TwinFitArgs, twin: &Twin) {
    if Profile::is_name(stem) {
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
    ensure!(Profile::from_toml(&text)? == *profile, "the profile's file would differ from it");
    Ok(text)
}

fn check(args: &TwinCheckArgs, output: &mut Output) -> CommandResult {
    let Measured { name, target, table } = measured(&args.measurements)?;
    let profile = NamedProfile::open(args.profile.strip_prefix("sim:").unwrap_or(&args.profile))?;
    ensure!(profile.age == 0.0, "{}: a new card is measured; leave out @PERCENT", args.profile);
    let profile = profile.profile;
    let checked = emmc_twin::check(&profile, &table, &simulated);
    let checked = checked.with_context(|| format!("{name} on {}", profile.name))?;
    output.print(CHECK_SCHEMA, &Checked { measurements: name, target, ..checked }, present::checked)?;
    Ok(Exit::Good)
}

fn baseline(args: &TwinBaselineArgs, output: &mut Output) -> CommandResult {
    one_input(&args.measurements)?;
    let tables = args.measurements.iter().map(|name| {
        let measured = measured(std::slice::from_ref(name))?;
        anyhow::Ok((measured.name, measured.table))
    });
    let baseline: Baseline = emmc_twin::baseline(&tables.collect::<anyhow::Result<Vec<_>>>()?)?;
    output.print(BASELINE_SCHEMA, &baseline, present::baseline)?;
    Ok(Exit::Good)
}
