//! `sim power-cut`: cuts a virtual card's power repeatedly and checks its guarantees.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::ensure;
#[cfg(feature = "bench")]
use emmc_linux::hold::{self, Point};
use emmc_report::{Document, Finding, KeyValue, Severity, Tone};
use emmc_torture::torture_profile;
use serde::Serialize;

use crate::CommandResult;
use crate::cli::SimPowerCutArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::progress::Bar;
use crate::virtual_card::NamedProfile;

pub(crate) const SCHEMA: &str = "emmclab.sim-power-cut/1";

/// What `sim power-cut --json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PowerCuts {
    /// The profile's name.
    profile: String,
    /// Cuts at random steps, those during recovery not counted.
    cuts: u64,
    /// Cards that were created, filled, used and cut.
    lives: u64,
    /// The seed of the first life; each further life has the next seed.
    seed: u64,
    /// Guarantees that were broken.
    violations: Vec<Broken>,
    /// Whether a signal ended it before all cuts were made.
    stopped: bool,
}

/// A broken guarantee.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Broken {
    /// The seed that reproduces it.
    seed: u64,
    /// What went wrong.
    what: String,
}

pub(crate) fn run(args: &SimPowerCutArgs, output: &mut Output) -> CommandResult {
    let named = NamedProfile::open(args.part.name())?;
    ensure!(named.age == 0.0, "sim:{}: power cuts are simulated only on new cards", args.part.name());
    let mut result = PowerCuts {
        profile: named.profile.name.clone(),
        cuts: 0,
        lives: 0,
        seed: args.seed,
        violations: Vec::new(),
        stopped: false,
    };
    let stop = Arc::new(AtomicBool::new(false));
    crate::signals::stop_by_signal(&stop)?;
    let (mut bar, wanted) = (Bar::new(), u64::from(args.cuts));
    while result.cuts < wanted {
        if stop.load(Ordering::Relaxed) {
            result.stopped = true;
            break;
        }
        bar.show(Some(result.cuts as f64 / wanted as f64), &format!("{} of {wanted} cuts", result.cuts));
        let seed = args.seed.wrapping_add(result.lives);
        result.lives += 1;
        match torture_profile(named.profile.clone(), seed) {
            // A card may wear out before its first cut.
            Ok(outcome) => result.cuts += u64::from(outcome.cuts.max(1)),
            Err(what) => {
                result.violations.push(Broken { seed, what });
                break;
            }
        }
        #[cfg(feature = "bench")]
        hold::reached(Point::Life, &stop);
    }
    bar.finish();
    output.print(SCHEMA, &result, present)?;
    Ok(if result.violations.is_empty() && !result.stopped { Exit::Good } else { Exit::Findings })
}

fn present(result: &PowerCuts) -> Document {
    let mut document = Document::new(format!("Power cuts on virtual card {}", result.profile));
    let section = document.section("power-cuts", "Power cuts");
    section.push(vec![
        KeyValue::new("cuts at random", result.cuts.to_string()),
        KeyValue::new("lives", result.lives.to_string()).note("cards filled, worked on and cut, a few MiB each"),
        KeyValue::new("first seed", result.seed.to_string()),
    ]);
    if result.stopped {
        section.note(Tone::Warn, "Stopped before all cuts were made.");
    }
    let findings: Vec<Finding> = if result.violations.is_empty() && result.cuts == 0 {
        vec![Finding::new(Severity::Unknown, "promises", "no cut was made")]
    } else if result.violations.is_empty() {
        let kept = "all guarantees held: flushed and reliable sectors survived; unacknowledged ones were old or new, never torn";
        vec![Finding::new(Severity::Good, "promises", kept)]
    } else {
        let broken = |one: &Broken| {
            Finding::new(Severity::Critical, "promises", one.what.as_str())
                .evidence(format!("again: --seed {} --cuts 1", one.seed))
        };
        result.violations.iter().map(broken).collect()
    };
    section.push(findings);
    document
}
