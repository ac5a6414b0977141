//! `trust`: what says that a card must go.
//!
//! Reads registers, sysfs, the kernel's log and saved results. Writes only a file of its own, and only if asked.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, ensure};
use emmc_analysis::Severity;
use emmc_analysis::trust::{FileTest, ProbedFacts, StressedBus, Trust, Witnesses, trust};
use emmc_linux::stored_file;
use serde_json::Value;

use super::trim::{Place, saved_probe};
use crate::CommandResult;
use crate::cli::TrustArgs;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) use emmc_analysis::trust::SCHEMA;

/// A log is read up to this size. Unit: bytes.
const LOG_BYTES_MAX: u64 = 64 << 20;
const BLOCK_BYTES: u64 = 4096;

pub(crate) fn run(args: &TrustArgs, output: &mut Output) -> CommandResult {
    let sysroot = args.place.tree.sysroot.as_deref();
    // A saved file of registers needs no card.
    let place = match (&args.place.place, &args.registers) {
        (None, Some(_)) => None,
        (named, _) => Some(Place::of(named.as_deref(), sysroot)?),
    };
    let card = match (&place, &args.registers) {
        (Some(place), registers) => place.card(registers.as_deref(), output)?,
        (None, Some(file)) => Some(crate::source::open_one(file, None)?),
        (None, None) => None,
    };
    let activity = place.as_ref().map(|place| emmc_linux::activity(&place.disk, sysroot)).transpose()?;
    let names = place.as_ref().map(|place| names(place, sysroot)).unwrap_or_default();
    let log = log(args, sysroot, output)?;
    let probed = args.probe.as_deref().map(probed).transpose()?;
    let bus = args.bus.as_deref().map(stressed).transpose()?;
    let samples = args.history.as_deref().map(samples).transpose()?.unwrap_or_default();
    let test = tested(args)?;
    let found = trust(&Witnesses {
        card: card.as_ref(),
        activity: activity.as_ref(),
        log: log.as_deref(),
        names: &names,
        probed: probed.as_ref(),
        bus: bus.as_ref(),
        samples: &samples,
        test: test.as_ref(),
    });
    let of = place.map_or_else(|| args.registers.clone().unwrap_or_default(), |place| place.disk);
    output.print(SCHEMA, &found, |found: &Trust| emmc_report::present::trust(&of, found))?;
    Ok(match found.severity {
        Severity::Critical | Severity::Warning => Exit::Findings,
        _ => Exit::Good,
    })
}

/// `mmcblk0`, and its host `mmc0`.
fn names(place: &Place, sysroot: Option<&Path>) -> Vec<String> {
    let host = emmc_linux::host_of(&place.disk, sysroot);
    std::iter::once(place.disk.clone()).chain(host).collect()
}

fn log(args: &TrustArgs, sysroot: Option<&Path>, output: &Output) -> anyhow::Result<Option<String>> {
    let mut bytes = Vec::new();
    match &args.log {
        Some(path) if path == Path::new("-") => {
            std::io::stdin().lock().take(LOG_BYTES_MAX).read_to_end(&mut bytes).context("standard input")?;
        }
        Some(path) => bytes = crate::input::read(path, LOG_BYTES_MAX)?,
        // Saved registers may be of another machine.
        None if sysroot.is_none() && args.registers.is_none() => {
            match emmc_linux::KernelLog::from_begin().and_then(|mut log| log.read_new()) {
                Ok(found) => bytes = found,
                Err(error) => {
                    output.error(&format!("/dev/kmsg: {error}; the kernel's log is not judged (--log FILE gives it)"));
                    return Ok(None);
                }
            }
        }
        None => return Ok(None),
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn probed(path: &Path) -> anyhow::Result<ProbedFacts> {
    let parameters = saved_probe(path)?;
    let seen = |found: &emmc_probe::Parameter| {
        let texts: Vec<String> = found.evidence.iter().map(|evidence| evidence.seen.clone()).collect();
        texts.join("; ")
    };
    let capacity = parameters.get("capacity").and_then(|found| {
        let agrees: Vec<bool> = found.declared.iter().filter_map(|declared| declared.agrees).collect();
        (!agrees.is_empty()).then(|| (agrees.iter().all(|agrees| *agrees), seen(found)))
    });
    let discards = parameters.get("discard").and_then(|found| match &found.value {
        Some(emmc_probe::Value::Kind(kind)) => Some((kind != "ignored", seen(found))),
        _ => None,
    });
    let name = path.display();
    ensure!(capacity.is_some() || discards.is_some(), "{name}: has no finding about capacity or discards");
    Ok(ProbedFacts { capacity_is_there: capacity, discards })
}

fn stressed(path: &Path) -> anyhow::Result<StressedBus> {
    let name = path.display();
    let bytes = crate::input::read(path, LOG_BYTES_MAX)?;
    let document: Value = serde_json::from_slice(&bytes).with_context(|| format!("{name}: expected `bus --json`"))?;
    let (found, expected) = (&document["schema"], super::bus::SCHEMA);
    ensure!(found == expected, "{name}: expected the schema {expected}, found {found}");
    serde_json::from_value(document).with_context(|| format!("{name}: expected `bus --json`"))
}

/// The lines of `emmclab.sample/1`.
fn samples(path: &Path) -> anyhow::Result<Vec<Value>> {
    let bytes = crate::input::read(path, LOG_BYTES_MAX)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let samples: Vec<Value> = lines.filter(|line| line["schema"] == "emmclab.sample/1").collect();
    ensure!(!samples.is_empty(), "{}: no line of emmclab.sample/1 (`monitor --append`)", path.display());
    let cards: std::collections::BTreeSet<String> =
        samples.iter().map(|sample| sample["card"]["cid_hash"].to_string()).collect();
    ensure!(cards.len() == 1, "{}: samples of {} cards; expected those of one", path.display(), cards.len());
    Ok(samples)
}

fn tested(args: &TrustArgs) -> anyhow::Result<Option<FileTest>> {
    let blocks = args.test_size.0 / BLOCK_BYTES;
    ensure!((1..=1 << 20).contains(&blocks), "--test-size: expected 4 KiB to 4 GiB");
    let stop = std::sync::Arc::new(AtomicBool::new(false));
    crate::signals::stop_by_signal(&stop)?;
    if let Some(path) = &args.verify {
        return compared(path, path, None, &stop).map(Some);
    }
    // Another one each time: what an earlier test left on the card must not pass for this one's.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seed = now.map_or(1, |now| now.as_nanos() as u64);
    let written = |mut file: File, name: &Path| -> anyhow::Result<File> {
        let written = stored_file::store(&mut file, blocks, seed, &stop);
        written.with_context(|| format!("{}: writing", name.display()))?;
        Ok(file)
    };
    if let Some(path) = &args.keep {
        let file = File::create_new(path).with_context(|| path.display().to_string())?;
        written(file, path)?;
        return compared(path, path, Some(seed), &stop).map(Some);
    }
    let Some(folder) = &args.test else { return Ok(None) };
    let name = folder.display();
    let room = emmc_linux::bench_context::available_bytes(folder).with_context(|| name.to_string())?;
    ensure!(room / 2 > args.test_size.0, "{name}: {room} bytes are free; the test needs twice its file");
    let file = stored_file::unnamed(folder).with_context(|| name.to_string())?;
    let file = written(file, folder)?;
    compared(&stored_file::path_of(&file), folder, Some(seed), &stop).map(Some)
}

/// Without a seed the file is of an earlier run.
fn compared(path: &Path, called: &Path, seed: Option<u64>, stop: &AtomicBool) -> anyhow::Result<FileTest> {
    let name = called.display();
    let found = stored_file::compare(path, seed, stop).with_context(|| format!("{name}: reading it back"))?;
    let stored_file::StoredBlocks { blocks, wrong, unreadable, elsewhere } = found;
    let is_later = seed.is_none();
    Ok(FileTest { file: name.to_string(), blocks, wrong, unreadable, elsewhere, is_later })
}
