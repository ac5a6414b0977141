//! `cargo xtask guest cost`: the processor time of 20 000 direct reads in each kind of guest, and of its boot.

use std::fs;

use anyhow::{Context, ensure};

use crate::guest::rig;
use crate::guest::server::{Controller, Emmclab, Pace, build_plugin};
use crate::guest::trial::{self, ClockKind, Options};
use crate::metadata;

/// Waits for the card.
const BOOT: &str = ". /guest/library.sh\nwait_card\n";
/// The same, and reads.
const READS: &str = "docs/examples/reads.sh";
/// The kernel's unit of processor time for programs. Source: Linux, USER_HZ of every architecture that runs QEMU here.
const TICKS_PER_S: f64 = 100.0;

/// A kind of guest, and what it may cost: boot and reads. Unit: seconds of processor time.
struct Way {
    name: &'static str,
    options: Options,
    limits: [Option<f64>; 2],
}

/// Runs both scripts in each, and prints what they cost.
///
/// Errors: one cannot run. The exit status is 1 if one costs more than it may.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<u8> {
    ensure!(args.is_empty(), "guest cost: unknown argument {args:?}");
    let common = || Options {
        controller: Some(Controller::Cqe),
        show: crate::guest::machine::Show::Nothing,
        ..Options::default()
    };
    let ways = [
        Way {
            name: "--clock virtual (QEMU)",
            options: Options { clock: ClockKind::Virtual { shift: 0 }, ..common() },
            limits: [Some(15.0), Some(6.0)],
        },
        Way { name: "--uml (User-Mode Linux)", options: Options { uml: true, ..common() }, limits: [None, Some(10.0)] },
        Way {
            name: "--clock wall --no-delay (QEMU)",
            options: Options { pace: Pace::NoDelay, ..common() },
            limits: [None, None],
        },
    ];
    let reads = metadata::workspace()?.root.join(READS);
    let reads = fs::read_to_string(&reads).with_context(|| reads.display().to_string())?;
    let rig = rig::ready()?;
    rig::uml_ready()?;
    // Nothing is to be built while the time is taken.
    let emmclab = Emmclab::build()?;
    build_plugin()?;
    let mut is_over = false;
    println!("guest run {READS}               boot, s (at most)   20 000 reads, s (at most)");
    for Way { name, options, limits } in &ways {
        let take = |script: &str| -> anyhow::Result<f64> {
            let before = processor_s()?;
            let outcome = trial::run(&rig, Some(&emmclab), options, script, &[], &mut trial::Nobody)?;
            ensure!(outcome.status == Some(0), "{}", outcome.output);
            Ok(processor_s()? - before)
        };
        let costs = take(BOOT).and_then(|boot| Ok([boot, take(&reads)?]));
        let costs = match costs {
            Ok(costs) => costs,
            // For instance a guest's clock that runs away in wall mode: the others still count.
            Err(error) => {
                println!("{name:43} no result: {error:#}");
                is_over = true;
                continue;
            }
        };
        let costs = [costs[0], costs[1] - costs[0]];
        let limit = |limit: Option<f64>| limit.map_or_else(|| "-".into(), |limit| format!("{limit:.0}"));
        println!("{name:43} {:11.1} ({:>2}) {:20.1} ({:>2})", costs[0], limit(limits[0]), costs[1], limit(limits[1]));
        is_over |= costs.iter().zip(limits).any(|(cost, limit)| limit.is_some_and(|limit| *cost > limit));
    }
    Ok(u8::from(is_over))
}

/// What processes that this one has waited for have taken, in user and system mode. Unit: seconds.
fn processor_s() -> anyhow::Result<f64> {
    let text = fs::read_to_string("/proc/self/stat").context("/proc/self/stat")?;
    children_ticks(&text).map(|ticks| ticks as f64 / TICKS_PER_S).context("/proc/self/stat: no time of children")
}

/// Fields 16 and 17. Source: proc_pid_stat(5): cutime and cstime.
fn children_ticks(stat: &str) -> Option<u64> {
    // The name in field 2 may have spaces and brackets.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(fields.get(13)?.parse::<u64>().ok()? + fields.get(14)?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_children_is_found() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 50 60 700 80 20 0 1 0 99";
        assert_eq!(children_ticks(stat), Some(780));
        assert_eq!(children_ticks("7 (a) S 1"), None);
        assert!(processor_s().is_ok());
    }
}
