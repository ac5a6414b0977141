//! `trim run`: fstrim with progress, and what it brings.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use emmc_analysis::trim::{Defect, known_bad};
use emmc_linux::trimming;
use emmc_units::{Bytes, Size};
use serde::Serialize;

use super::place::Place;
use crate::CommandResult;
use crate::cli::{BenchArgs, TrimRunArgs};
use crate::commands::bench;
use crate::exit::Exit;
use crate::output::Output;
use crate::progress::Bar;
use crate::save::Refused;

pub(crate) const RUN_SCHEMA: &str = "emmclab.trim-run/1";

/// What `trim run --json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TrimRun {
    /// The disk.
    disk: String,
    /// Each filesystem.
    filesystems: Vec<TrimmedAt>,
    /// It was stopped before its end.
    is_stopped: bool,
}

/// One filesystem.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TrimmedAt {
    /// Where it is mounted.
    mounted_at: String,
    /// What the filesystem discarded. Unit: bytes.
    trimmed_bytes: u64,
    /// Parts of the filesystem that were trimmed one after the other.
    ranges: u64,
    /// Unit: seconds.
    time_s: f64,
    /// What the disk counts as discarded in that time. Unit: bytes.
    discarded_on_disk_bytes: Option<u64>,
    /// Speeds before and after, if they were measured.
    effect: Vec<Effect>,
}

/// A speed before and after.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Effect {
    /// Which requests.
    requests: String,
    /// Before. Unit: MB/s.
    before_mb_per_s: f64,
    /// After. Unit: MB/s.
    after_mb_per_s: f64,
}

pub(super) fn run(args: &TrimRunArgs, output: &mut Output) -> CommandResult {
    let place = Place::of(Some(&args.place), None)?;
    if let Some(bad) = place.card(None, output)?.iter().flat_map(known_bad).find(|bad| bad.defect == Defect::Trim) {
        if !args.known_bad {
            let part = bad.product.unwrap_or("this part");
            let why = format!("{part}: {} ({}): --known-bad trims anyway", bad.what, bad.source);
            return Err(Refused(why).into());
        }
    }
    let points = points(&place, &args.place)?;
    let stop = Arc::new(AtomicBool::new(false));
    crate::signals::stop_by_signal(&stop)?;
    let mut document = TrimRun { disk: place.disk.clone(), filesystems: Vec::new(), is_stopped: false };
    for point in points {
        let before = if args.measure { measured(&point, args.measure_size)? } else { Vec::new() };
        let counted = discarded(&place)?;
        let mut bar = Bar::new();
        let trimmed = trimming::trim(Path::new(&point), args.step.0, |share, bytes| {
            bar.show(Some(share), &format!("{point}: {} discarded", Bytes(bytes).rounded()));
            !stop.load(Ordering::Relaxed)
        });
        bar.finish();
        let trimmed = match trimmed {
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                bail!("{point}: its discards do not reach the card: `emmclab trim status {point}` names the layer")
            }
            trimmed => trimmed.with_context(|| format!("{point}: trim"))?,
        };
        let on_disk = discarded(&place)?.zip(counted).map(|(now, then)| now.saturating_sub(then));
        let after = if args.measure && !trimmed.is_stopped { measured(&point, args.measure_size)? } else { Vec::new() };
        let effect = before.into_iter().zip(after).map(|((requests, before_mb_per_s), (_, after_mb_per_s))| Effect {
            requests,
            before_mb_per_s,
            after_mb_per_s,
        });
        document.filesystems.push(TrimmedAt {
            mounted_at: point,
            trimmed_bytes: trimmed.bytes,
            ranges: trimmed.ranges,
            time_s: trimmed.time.as_secs_f64(),
            discarded_on_disk_bytes: on_disk,
            effect: effect.collect(),
        });
        document.is_stopped |= trimmed.is_stopped;
        if document.is_stopped {
            break;
        }
    }
    output.print(RUN_SCHEMA, &document, present)?;
    Ok(if document.is_stopped { Exit::Findings } else { Exit::Good })
}

/// The mount point itself, or every writable one above the disk.
fn points(place: &Place, named: &str) -> anyhow::Result<Vec<String>> {
    let stack = place.stack()?;
    let mounted = stack.layers.iter().filter_map(|layer| layer.mounted.as_ref());
    if mounted.clone().any(|mounted| mounted.point == named) {
        return Ok(vec![named.to_owned()]);
    }
    let is_rw = |options: &[String]| options.iter().any(|option| option == "rw");
    let all: Vec<String> =
        mounted.filter(|mounted| is_rw(&mounted.options)).map(|mounted| mounted.point.clone()).collect();
    anyhow::ensure!(!all.is_empty(), "{named}: nothing of {} is mounted for writing", place.disk);
    Ok(all)
}

fn discarded(place: &Place) -> anyhow::Result<Option<u64>> {
    Ok(place.stack()?.layers.first().and_then(|disk| disk.discarded_bytes))
}

/// The speeds of writes to a file in a folder, by suite `speed`.
fn measured(point: &str, size: Bytes) -> anyhow::Result<Vec<(String, f64)>> {
    let suite = emmc_workload::named("speed").context("there is no suite speed")?;
    let args = BenchArgs {
        target: Some(OsString::from(point)),
        suite: "speed".into(),
        size: Some(Size::Exact(size)),
        seed: 1,
        destroy: true,
        ..BenchArgs::default()
    };
    let measured = bench::measure(suite, &args, true)?;
    let writes = measured.result.outcome.measurements.iter().filter(|measurement| measurement.op == "write");
    Ok(writes.map(|measurement| (format!("{} write", measurement.row), measurement.mb_per_s)).collect())
}

fn present(document: &TrimRun) -> emmc_report::Document {
    use emmc_report::{Align, Table};
    let mut report = emmc_report::Document::new(format!("Trim of {}", document.disk));
    let section = report.section("trimmed", "What was discarded");
    let size = |bytes: u64| Bytes(bytes).rounded();
    let mut table = Table::new([
        ("mounted at", Align::Left),
        ("discarded", Align::Right),
        ("on the disk", Align::Right),
        ("time", Align::Right),
        ("parts", Align::Right),
    ]);
    for one in &document.filesystems {
        table.row([
            one.mounted_at.clone(),
            size(one.trimmed_bytes),
            one.discarded_on_disk_bytes.map_or_else(|| "unknown".into(), size),
            format!("{:.2} s", one.time_s),
            one.ranges.to_string(),
        ]);
    }
    section.push(table);
    if document.is_stopped {
        section.note(emmc_report::Tone::Warn, "Stopped before its end: run it again for the rest.");
    }
    let mut table = Table::new([
        ("mounted at", Align::Left),
        ("requests", Align::Left),
        ("before", Align::Right),
        ("after", Align::Right),
        ("times", Align::Right),
    ]);
    for one in &document.filesystems {
        for effect in &one.effect {
            table.row([
                one.mounted_at.clone(),
                effect.requests.clone(),
                format!("{:.2} MB/s", effect.before_mb_per_s),
                format!("{:.2} MB/s", effect.after_mb_per_s),
                format!("{:.2}", effect.after_mb_per_s / effect.before_mb_per_s),
            ]);
        }
    }
    if !table.rows.is_empty() {
        report.section("effect", "What it brought").push(table);
    }
    report
}
