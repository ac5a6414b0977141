//! A saved result of `trust` in `study`.

use std::path::Path;

use anyhow::Context;
use emmc_analysis::trust::SavedTrust;
use emmc_port::CardData;

/// A result with every line of a log is far smaller. Unit: bytes.
const RESULT_BYTES_MAX: u64 = 16 << 20;

/// What `trust` had found of this card.
///
/// Errors: a file that cannot be read or is no output of `trust --json`; a result of a card with another CID.
pub(super) fn saved(path: &Path, card: &CardData) -> anyhow::Result<SavedTrust> {
    let name = path.display();
    let bytes = crate::input::read(path, RESULT_BYTES_MAX)?;
    let mut found = SavedTrust::from_json(&bytes).with_context(|| name.to_string())?;
    match (&found.cid, card.cid) {
        (Some(of_result), Some(studied)) => {
            super::speed::ensure_same(&format!("{name}: cid"), &format!("{name}: it is of"), of_result, studied)?;
        }
        (of_result, _) => {
            let without = if of_result.is_none() { name.to_string() } else { "the source".into() };
            for finding in &mut found.findings {
                finding.evidence.0.push(format!("{without} has no CID: it may be of a different card").into());
            }
        }
    }
    Ok(found)
}
