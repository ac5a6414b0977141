//! `advise part`: shipped parts ranked for a load.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use anyhow::{anyhow, bail, ensure};
use emmc_card::profile::{Profile, shipped};
use emmc_twin::what_if::{Needs, Question, Ranking, Rated, WhatIfError, Written, ranking, rate};
use emmc_units::{Bytes, Size};
use emmc_workload::{Progress, Watch};
use serde::Serialize;

use crate::CommandResult;
use crate::cli::AdvisePartArgs;
use crate::commands::workload;
use crate::exit::Exit;
use crate::output::Output;
use crate::progress::Bar;
use crate::virtual_card::NamedProfile;

pub(crate) const SCHEMA: &str = "emmclab.advise-part/1";

/// Data that is overwritten unless it is given: parts differ in size, so a share means nothing.
const DATA: Size = Size::Exact(Bytes(1 << 30));

/// What `advise part --json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct AdvisedPart {
    /// Real time that the simulations took. Unit: seconds.
    wall_s: f64,
    /// The parts.
    #[serde(flatten)]
    result: Ranking,
}

pub(super) fn run(args: &AdvisePartArgs, output: &mut Output) -> CommandResult {
    let mut question = workload::question_on(&args.workload, DATA)?;
    if let Written::Rate { data: Size::Percent(_) | Size::Max, .. } = question.written {
        bail!("--data: a share of what? Parts differ in size; expected a size, e.g. 2GiB");
    }
    if let Some(change) = &args.change {
        change.apply(&mut question.today);
    }
    ensure!((0.0..=1000.0).contains(&args.years), "--years {}: expected 0 to 1000", args.years);
    if let Some(limit) = args.stall_ms {
        ensure!(limit > 0.0 && limit <= 1e6, "--stall-ms {limit}: expected more than 0, at most 1000000");
    }
    let profiles = profiles(&args.among)?;
    let start = std::time::Instant::now();
    let stop = Arc::new(AtomicBool::new(false));
    crate::signals::stop_by_signal(&stop)?;
    let rated = match rated(&profiles, &question, &stop) {
        Err(error) if matches!(error.downcast_ref(), Some(WhatIfError::Stopped)) => {
            output.error("stopped: no part is ranked");
            return Ok(Exit::Findings);
        }
        rated => rated?,
    };
    let facts = rated.iter().find_map(|part| part.as_ref().ok().map(|(facts, _)| facts.clone()));
    let Some(facts) = facts else {
        let reasons = rated.iter().filter_map(|part| part.as_ref().err());
        let reasons: Vec<String> = reasons.map(|part| format!("{}: {}", part.profile, part.why)).collect();
        bail!("no part can be simulated under this load: {}", reasons.join("; "));
    };
    let needs = Needs { years: args.years, stall_ms: args.stall_ms };
    let document = AdvisedPart { result: ranking(facts, rated, &needs), wall_s: start.elapsed().as_secs_f64() };
    output.print(SCHEMA, &document, |document| emmc_report::present::ranking(&document.result))?;
    Ok(if document.result.fitting.is_empty() { Exit::Findings } else { Exit::Good })
}

/// The named parts, else all shipped ones.
fn profiles(named: &[String]) -> anyhow::Result<Vec<Profile>> {
    if named.is_empty() {
        return shipped::names().map(|name| Ok(shipped::named(name)?)).collect();
    }
    let mut profiles: Vec<Profile> = Vec::new();
    for (place, name) in named.iter().enumerate() {
        ensure!(!named[..place].contains(name), "--among {name}: named twice");
        let base = name.strip_prefix("sim:").unwrap_or(name);
        let NamedProfile { mut profile, age, .. } = NamedProfile::open(base)?;
        ensure!(age == 0.0, "--among {name}: parts are compared as new; expected no @PERCENT");
        let is_taken = |wanted: &str| profiles.iter().any(|known| known.name == wanted);
        if is_taken(&profile.name) {
            // A changed copy of a profile often keeps its name: the file's name tells them apart.
            let stem = Path::new(base).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let own = &profile.name;
            ensure!(
                Profile::is_name(stem) && !is_taken(stem),
                "--among {name}: another part has the name {own:?} too; expected another name in the file, or of it"
            );
            stem.clone_into(&mut profile.name);
        }
        profiles.push(profile);
    }
    Ok(profiles)
}

/// Simulates the parts side by side, one thread a processor.
fn rated(profiles: &[Profile], question: &Question, stop: &Arc<AtomicBool>) -> anyhow::Result<Vec<Rated>> {
    let (next, done, count) = (AtomicU32::new(0), AtomicU32::new(0), profiles.len() as u32);
    let bar = std::sync::Mutex::new(Bar::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(profiles.len());
    let work = || {
        let mut found = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(profile) = profiles.get(number as usize) else { return found };
            let mut watch = Each { stop, bar: &bar, done: &done, count };
            found.push((number, rate(profile, question, (1, 1), &mut watch)));
            done.fetch_add(1, Ordering::Relaxed);
        }
    };
    let mut found: Vec<(u32, Result<Rated, WhatIfError>)> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let joined =
            running.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect()
    });
    if let Ok(bar) = bar.lock() {
        bar.finish();
    }
    found.sort_by_key(|(number, _)| *number);
    found.into_iter().map(|(_, rated)| rated.map_err(|error| anyhow!(error))).collect()
}

/// Watches one of the simulations.
struct Each<'a> {
    stop: &'a AtomicBool,
    bar: &'a std::sync::Mutex<Bar>,
    done: &'a AtomicU32,
    count: u32,
}

impl Watch for Each<'_> {
    fn progress(&mut self, progress: Progress<'_>) -> bool {
        if let Ok(mut bar) = self.bar.lock() {
            let done = self.done.load(Ordering::Relaxed);
            let share = f64::from(done) / f64::from(self.count.max(1));
            bar.show(Some(share), &format!("part {} of {}: {}", done + 1, self.count, progress.step));
        }
        !self.stop.load(Ordering::Relaxed)
    }
}
