//! Whether a card obeys: from a saved probe, or from a test with a file of ours.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, ensure};
use emmc_analysis::trim::Obedience;
use emmc_linux::trimming;
use serde::Deserialize;

use crate::signals::stop_by_signal;

/// What is read of `probe --json`.
#[derive(Deserialize)]
struct Probed {
    schema: String,
    parameters: BTreeMap<String, emmc_probe::Parameter>,
}

/// The finding of a saved probe.
///
/// Errors: a file that cannot be read or is no result of `probe --write --json`.
pub(super) fn probed(path: &Path) -> anyhow::Result<Obedience> {
    let name = path.display();
    let parameters = saved_probe(path)?;
    let found = parameters.get("discard");
    let found = found.with_context(|| format!("{name}: has no finding about discards: it needs `probe --write`"))?;
    let obeys = match &found.value {
        Some(emmc_probe::Value::Kind(kind)) if kind == "effective" => Some(true),
        Some(emmc_probe::Value::Kind(kind)) if kind == "ignored" => Some(false),
        _ => None,
    };
    let seen: Vec<String> = found.evidence.iter().map(|evidence| evidence.seen.clone()).collect();
    let seen = if seen.is_empty() { found.cannot_tell.clone().unwrap_or_default() } else { seen.join("; ") };
    Ok(Obedience { obeys, tested: format!("probe ({name})"), seen })
}

/// The parameters of a saved probe, by name.
///
/// Errors: a file that cannot be read or is no result of `probe --json`.
pub(crate) fn saved_probe(path: &Path) -> anyhow::Result<BTreeMap<String, emmc_probe::Parameter>> {
    let name = path.display();
    let bytes = crate::source::read_limited(&path.to_string_lossy())?;
    let probed: Probed =
        serde_json::from_slice(&bytes).with_context(|| format!("{name}: expected the output of `probe --json`"))?;
    ensure!(
        probed.schema == crate::commands::probe::SCHEMA,
        "{name}: expected the schema {}, found {:?}",
        crate::commands::probe::SCHEMA,
        probed.schema
    );
    Ok(probed.parameters)
}

/// Tests it in a folder.
///
/// Errors: those of the test; a signal, which ends it before it begins.
pub(super) fn tested(folder: &Path, bytes: u64) -> anyhow::Result<Obedience> {
    ensure!((1 << 20..=1 << 30).contains(&bytes), "--test-size: expected 1 MiB to 1 GiB, found {bytes} bytes");
    let name = folder.display();
    let room = emmc_linux::bench_context::available_bytes(folder).with_context(|| name.to_string())?;
    ensure!(room / 2 > bytes, "{name}: {room} bytes are free; the test needs twice its file of {bytes} bytes");
    // The file has a name only while the test runs; a signal must not leave it.
    let stop = Arc::new(AtomicBool::new(false));
    stop_by_signal(&stop)?;
    let seed = std::process::id().into();
    let found = match trimming::test(folder, bytes, seed) {
        Ok(found) => found,
        Err(trimming::TestError::Failed { what, error }) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            let seen = format!("{what}: not supported: a layer above the card does not discard");
            return Ok(Obedience { obeys: None, tested: format!("a file in {name}"), seen });
        }
        Err(error) => return Err(error.into()),
    };
    let us = |time: std::time::Duration| time.as_secs_f64() * 1e6;
    let seen = format!(
        "of {} blocks that were freed and trimmed {} still have their content, {} read as zeros; {} discarded; a read of \
         4 KiB took {:.0} us before and {:.0} us after",
        found.blocks,
        found.same,
        found.zero,
        emmc_units::Bytes(found.trimmed_bytes).rounded(),
        us(found.read[0]),
        us(found.read[1])
    );
    Ok(Obedience { obeys: found.obeys, tested: format!("a file of {bytes} bytes in {name}"), seen })
}
