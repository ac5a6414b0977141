//! The file of a key.

use std::path::Path;

use emmc_port::rpmb::RpmbKey;

use crate::commands::secret_file;

/// Reads a key, and warns if other users can read its file too.
///
/// Errors: no such file; not a key.
pub(super) fn read(path: &Path, warnings: &mut Vec<String>) -> anyhow::Result<RpmbKey> {
    let content = secret_file::read(path, "key", RpmbKey::READ_BYTES_MAX, warnings)?;
    RpmbKey::from_file(&content).map_err(|error| anyhow::anyhow!("{}: not a key: {error}", path.display()))
}
