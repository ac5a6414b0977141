//! `twin`: a virtual card that behaves like a measured part.

mod present;

use std::path::Path;

use anyhow::{Context, ensure};
use emmc_card::profile::{MeasuringHost, Profile};
use emmc_host::{HostDescription, RequestCost};
use emmc_regs::CardKind;
use emmc_twin::{
    Baseline, Cell, Checked, HoldOut, Known, Measured, ParameterFound, Plan, SimulateError, Twin, simulate,
};
use emmc_workload::import::{SavedResult, THROUGH_CACHE};

use super::compare::open;
use crate::CommandResult;
use crate::cli::{HoldOutArg, TwinBaselineArgs, TwinCheckArgs, TwinCommand, TwinFitArgs, TwinKindArg};
use crate::exit::Exit;
use crate::output::Output;
use crate::progress::Bar;
use crate::save::{self, deliver};
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

/// How the lines begin that a fit adds to a profile's sources.
const COMMAND: &str = "emmclab twin fit";
const ERRORS: &str = "its speeds differ by ";
const REGISTERS: &str = "from the registers: ";
const UNMEASURED: &str = "not measured: ";
const ASSUMED: &str = "Assumed: ";
const OF_A_FIT: [&str; 5] = [COMMAND, ERRORS, REGISTERS, UNMEASURED, ASSUMED];

/// Measurements of one part.
struct Input {
    name: String,
    target: Option<String>,
    measured: Measured,
    /// What to know of the inputs.
    notes: Vec<String>,
}

/// Errors: standard input for more than one of them.
fn one_input(names: &[String]) -> anyhow::Result<()> {
    let is_input = |name: &&String| *name == "-";
    ensure!(names.iter().filter(is_input).count() < 2, "standard input can be only one of the results");
    Ok(())
}

fn input(names: &[String]) -> anyhow::Result<Input> {
    one_input(names)?;
    let mut all = SavedResult { name: names.join(", "), ..SavedResult::default() };
    let mut nameless = Vec::new();
    for name in names {
        let result = open(name)?;
        if result.target.is_none() {
            nameless.push(name.as_str());
        }
        if let (Some(first), Some(other)) = (&all.target, &result.target) {
            ensure!(first == other, "results of {first} and {other}; expected those of one card");
        }
        all.target = all.target.or(result.target);
        all.outcomes.extend(result.outcomes);
    }
    let measured = Measured::of(&all)?;
    let mut notes = Vec::new();
    if names.len() > 1 && !nameless.is_empty() {
        let which = nameless.join(", ");
        notes.push(format!("{which}: the text does not say which card it is from: it must be the card of the others"));
    }
    notes.extend(all.outcomes.iter().flat_map(|outcome| &outcome.remarks).filter(|one| *one == THROUGH_CACHE).cloned());
    Ok(Input { name: all.name, target: all.target, measured, notes })
}

type Simulated = Result<Vec<Cell>, SimulateError>;

/// Simulates profiles side by side, one thread a processor.
fn simulated(profiles: &[Profile], plan: &Plan) -> Vec<Simulated> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let each = profiles.len().div_ceil(threads).max(1);
    let work = |part: &[Profile]| -> Vec<Simulated> { part.iter().map(|profile| simulate(profile, plan)).collect() };
    std::thread::scope(|scope| {
        let running: Vec<_> = profiles.chunks(each).map(|part| scope.spawn(move || work(part))).collect();
        let joined =
            running.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect()
    })
}

fn fit(args: &TwinFitArgs, output: &mut Output) -> CommandResult {
    let others = [&args.registers, &args.host, &args.base].into_iter().flatten().chain(&args.like);
    let inputs: Vec<&Path> =
        args.measurements.iter().chain(others).map(|name| Path::new(name.trim_start_matches("sim:"))).collect();
    if let Some(path) = &args.output {
        // What exists without the ending may be a device or a pipe; a file is replaced with --force only.
        let is_found = path.as_os_str() == "-" || path.extension().is_some_and(|ending| ending == "toml");
        ensure!(
            is_found || path.exists(),
            "-o {}: expected NAME.toml, because a profile in a file is found by that ending",
            path.display()
        );
        save::check(path, args.force, &inputs)?;
    }
    let Input { name, target, measured, notes } = input(&args.measurements)?;
    measured.can_start(&name)?;
    let kind = match args.kind {
        TwinKindArg::Emmc => CardKind::Emmc,
        TwinKindArg::Sd => CardKind::Sd,
    };
    let known = Known { base: args.base.as_deref().map(|name| base(name, kind)).transpose()?, ..known(args, kind)? };
    let split = match args.hold_out {
        HoldOutArg::EverySecond => Some(HoldOut::EverySecond),
        HoldOutArg::Columns => Some(HoldOut::Columns),
        HoldOutArg::None => None,
    };
    let has_table = measured.cells.iter().any(|cell| cell.column.is_iozone());
    ensure!(split.is_none() || has_table, "{name}: --hold-out needs a table of iozone");
    for (place, name) in args.like.iter().enumerate() {
        ensure!(
            !args.like[..place].contains(name),
            "--like {name}: it is given twice; expected profiles of other parts"
        );
    }
    let like = args.like.iter().map(|name| other_part(name)).collect::<anyhow::Result<Vec<Profile>>>()?;
    let count = like.len();
    ensure!(
        count == 0 || count >= emmc_twin::LIKE_MIN,
        "--like: {count} profiles; expected at least {}, because fewer do not show how parts differ",
        emmc_twin::LIKE_MIN
    );
    let bar = std::cell::RefCell::new(Bar::new());
    let done = std::cell::Cell::new(0);
    let watched = |profiles: &[Profile], plan: &Plan| {
        done.set(done.get() + profiles.len());
        bar.borrow_mut().show(None, &format!("fitting {name}: simulation {}", done.get()));
        simulated(profiles, plan)
    };
    let fitted = emmc_twin::fit(kind, &measured, (split, &like, &known), &watched);
    bar.into_inner().finish();
    let (mut profile, twin) = fitted.with_context(|| name.clone())?;
    let notes = notes.into_iter().chain(unseen_log(&twin.parameters)).collect();
    let twin = Twin { measurements: name.clone(), target: target.clone(), notes, ..twin };
    let mut written = Ok(true);
    if let Some(path) = &args.output {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        name_profile(&mut profile, stem, args, (&twin, &known));
        let text = text(&profile).with_context(|| path.display().to_string())?;
        written = deliver(output, path, &text, args.force, &inputs);
        if matches!(written, Ok(false)) {
            return Ok(Exit::Good);
        }
    }
    // The parameters are minutes of work: they are printed also where the profile could not be written.
    output.print(FIT_SCHEMA, &twin, present::fitted)?;
    written?;
    Ok(Exit::Good)
}

/// What the registers and the host say.
///
/// Errors: a source that cannot be read; registers of the other kind; a host without a file.
fn known(args: &TwinFitArgs, kind: CardKind) -> anyhow::Result<Known> {
    let mut known = Known::default();
    if let Some(source) = &args.registers {
        let card = crate::source::open_one(source, None)?;
        let found = card.kind.or(card.ext_csd.is_some().then_some(CardKind::Emmc)).unwrap_or(kind);
        ensure!(
            found == kind,
            "--registers {source}: those of an {}; the fit is of an {}",
            kind_name(found),
            kind_name(kind)
        );
        known = Known::of(&card);
    }
    if let Some(name) = &args.host {
        let host = described_host(name)?;
        let lone = |cost: &RequestCost| cost.call_us + cost.before_us + cost.after_us;
        let per_kib = |cost: &RequestCost| cost.before_us_per_kib + cost.after_us_per_kib;
        let costs = host.of(known.queue_depth.is_some_and(|depth| depth > 0));
        known.host = Some(MeasuringHost {
            read_us: lone(&costs.read),
            write_us: lone(&costs.write),
            us_per_kib: (per_kib(&costs.read) + per_kib(&costs.write)) / 2.0,
            ..MeasuringHost::default()
        });
    }
    Ok(known)
}

/// Errors: a profile that cannot be read; an aged one; one of the other kind.
fn base(name: &str, kind: CardKind) -> anyhow::Result<Box<Profile>> {
    let NamedProfile { profile, age, .. } = NamedProfile::open(name.strip_prefix("sim:").unwrap_or(name))?;
    ensure!(age == 0.0, "--base {name}: only what a new part is counts; leave out @PERCENT");
    ensure!(
        profile.kind == kind,
        "--base {name}: an {}; the fit is of an {}",
        kind_name(profile.kind),
        kind_name(kind)
    );
    Ok(Box::new(profile))
}

fn kind_name(kind: CardKind) -> &'static str {
    if kind == CardKind::Sd { "SD card" } else { "eMMC" }
}

/// Errors: no shipped host, and no file of one.
fn described_host(name: &str) -> anyhow::Result<HostDescription> {
    if let Some(host) = emmc_host::host(name) {
        return Ok(host);
    }
    let shipped = || {
        let names = emmc_host::HOSTS.map(|(name, _)| name).join(", ");
        format!("--host {name}: expected {names}, or a file of lab calibrate")
    };
    let bytes = crate::input::read(Path::new(name), crate::input::HOST_BYTES_MAX).with_context(shipped)?;
    HostDescription::from_toml(&String::from_utf8_lossy(&bytes))
        .with_context(|| format!("{name}: not the file of a host"))
}

/// A profile for `--like`.
///
/// Errors: one that cannot be read, or that no fit has made.
fn other_part(name: &str) -> anyhow::Result<Profile> {
    let named = NamedProfile::open(name)?;
    ensure!(
        emmc_twin::is_fitted(&named.profile),
        "--like {name}: expected a profile that `emmclab twin fit` made of a table of iozone"
    );
    Ok(named.profile)
}

/// Its name from the file's, and what made it.
fn name_profile(profile: &mut Profile, stem: &str, args: &TwinFitArgs, (twin, known): (&Twin, &Known)) {
    if Profile::is_name(stem) {
        profile.name = stem.to_owned();
    }
    let of = twin.target.as_deref().unwrap_or(&twin.measurements);
    profile.description = format!("the twin of {of}").replace(char::is_control, " ");
    let kind = match args.kind {
        TwinKindArg::Emmc => "emmc",
        TwinKindArg::Sd => "sd",
    };
    let options = [("registers", &args.registers), ("host", &args.host), ("base", &args.base)];
    let given = options.into_iter().filter_map(|(name, value)| Some(format!(" --{name} {}", value.as_ref()?)));
    let like = if args.like.is_empty() { String::new() } else { format!(" --like {}", args.like.join(" ")) };
    let given: String = given.chain([like]).collect();
    profile.sources = vec![
        format!("{COMMAND} {} --kind {kind}{given}", args.measurements.join(" ")),
        format!("{ERRORS}{:.1} % (median) and {:.1} % (90th percentile)", twin.error.median, twin.error.p90),
    ];
    let facts = known.facts();
    if !facts.is_empty() {
        profile.sources.push(format!("{REGISTERS}{}", facts.join(", ")));
    }
    if let Some(base) = &known.base {
        profile.description.clone_from(&base.description);
        let is_kept = |line: &&String| !OF_A_FIT.iter().any(|start| line.starts_with(start));
        profile.sources.extend(base.sources.iter().filter(is_kept).cloned());
        let what = "identity, areas, registers, queue, cache, cells, endurance, erase times, spreads of the flash, spare blocks";
        profile.sources.push(format!("{UNMEASURED}{what}, as in {} before", base.name));
    }
    let has_fullness = twin.parameters.iter().any(|found| found.name == "over_provisioning" && found.is_determined);
    let assumed = [
        ("geometry, endurance, identity", true),
        ("over-provisioning", !has_fullness),
        ("size", known.user_bytes.is_none() && known.base.is_none()),
        ("cache", known.cache_bytes.is_none() && known.base.is_none()),
    ];
    let assumed: Vec<&str> = assumed.into_iter().filter(|(_, is)| *is).map(|(name, _)| name).collect();
    profile.sources.push(format!("{ASSUMED}{}", assumed.join(", ")));
}

/// What it means that the measurements do not show the size of the log.
fn unseen_log(parameters: &[ParameterFound]) -> Option<String> {
    let log = parameters.iter().find(|found| found.name == "log").filter(|found| !found.is_determined)?;
    Some(format!(
        "the size of the log is not determined ({:.0} to {:.0} MiB): years of life under small writes depend on it; \
         `emmclab bench DEVICE --suite burst` can show it",
        log.low, log.high
    ))
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
    let Input { name, target, measured, notes } = input(&args.measurements)?;
    let profile = NamedProfile::open(args.profile.strip_prefix("sim:").unwrap_or(&args.profile))?;
    ensure!(profile.age == 0.0, "{}: a new card is measured; leave out @PERCENT", args.profile);
    let profile = profile.profile;
    let checked = emmc_twin::check(&profile, &measured, &simulated);
    let checked = checked.with_context(|| format!("{name} on {}", profile.name))?;
    output.print(CHECK_SCHEMA, &Checked { measurements: name, target, notes, ..checked }, present::checked)?;
    Ok(Exit::Good)
}

fn baseline(args: &TwinBaselineArgs, output: &mut Output) -> CommandResult {
    one_input(&args.measurements)?;
    let tables = args.measurements.iter().map(|name| {
        let Input { name, measured, .. } = input(std::slice::from_ref(name))?;
        measured.can_start(&name)?;
        anyhow::Ok((name, measured))
    });
    let baseline: Baseline = emmc_twin::baseline(&tables.collect::<anyhow::Result<Vec<_>>>()?)?;
    output.print(BASELINE_SCHEMA, &baseline, present::baseline)?;
    Ok(Exit::Good)
}
