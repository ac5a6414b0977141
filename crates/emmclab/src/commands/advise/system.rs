//! `advise system`: what writes to a card without need, what makes it slow, and what that costs.
//!
//! Reads only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use emmc_analysis::Severity;
use emmc_analysis::advise::{AdviseFacts, SystemAdvice, system_advice};
use emmc_analysis::health::{ForecastOptions, WrittenForecast, forecast, parse_history};
use emmc_linux::WriterCounts;
use emmc_port::WatchedWrites;

use crate::CommandResult;
use crate::cli::AdviseSystemArgs;
use crate::commands::trim::Place;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) const SCHEMA: &str = "emmclab.advise-system/1";

/// Between two looks at a signal.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) fn run(args: &AdviseSystemArgs, output: &mut Output) -> CommandResult {
    let sysroot = args.place.tree.sysroot.as_deref();
    let place = Place::of(args.place.place.as_deref(), sysroot)?;
    let disk = &place.disk;
    let card = place.card(args.registers.as_deref(), output)?;
    let left = args.history.as_deref().map(left).transpose()?.flatten();
    let mut system = emmc_linux::system_use(disk, sysroot)?;
    system.watched = args.watch.map(|time| watched(disk, time)).transpose()?;
    let found = system_advice(&AdviseFacts {
        disk,
        stack: &place.stack()?,
        system: &system,
        activity: &emmc_linux::activity(disk, sysroot)?,
        card: card.as_ref(),
        left: left.as_ref(),
        now: sysroot.is_none().then(jiff::Timestamp::now),
    });
    output.print(SCHEMA, &found, |found: &SystemAdvice| emmc_report::present::system_advice(found))?;
    Ok(match found.severity {
        Severity::Critical | Severity::Warning => Exit::Findings,
        _ => Exit::Good,
    })
}

/// What the host may still write, from a monitor's samples; nothing while they do not bound it.
fn left(path: &std::path::Path) -> anyhow::Result<Option<WrittenForecast>> {
    let name = path.display().to_string();
    let points = parse_history(&name, &super::worth::text(path)?)?;
    let forecast = forecast(&points, &ForecastOptions::default()).context(name)?;
    let both = [forecast.life_a, forecast.life_b].into_iter().filter_map(|area| area.by_written);
    Ok(both.min_by_key(|left| left.remaining_lower_bytes))
}

fn watched(disk: &str, time: Duration) -> anyhow::Result<WatchedWrites> {
    let stop = Arc::new(AtomicBool::new(false));
    crate::signals::stop_by_signal(&stop)?;
    let written = || emmc_linux::activity(disk, None).ok()?.totals.map(|totals| totals.written_bytes);
    let (began, before, disk_before) = (Instant::now(), WriterCounts::read(), written());
    if before.is_empty() {
        bail!("--for: /proc/PID/io cannot be read: root reads that of all processes");
    }
    while began.elapsed() < time && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK.min(time.saturating_sub(began.elapsed())));
    }
    let disk_bytes = disk_before.zip(written()).map(|(before, after)| after.saturating_sub(before));
    let seconds = began.elapsed().as_secs_f64();
    Ok(WatchedWrites { seconds, disk_bytes, writers: WriterCounts::read().since(&before) })
}
