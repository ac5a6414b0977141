//! The file of a key. Nothing of its content is in any message.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use emmc_port::rpmb::RpmbKey;

/// Reads a key, and warns if other users can read its file too.
///
/// Errors: no such file; not a key.
pub(super) fn read(path: &Path, warnings: &mut Vec<String>) -> anyhow::Result<RpmbKey> {
    let name = path.display();
    let content = if path == Path::new("-") {
        crate::input::limited("-", std::io::stdin().lock(), RpmbKey::READ_BYTES_MAX)
    } else {
        let found = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file);
        let mode = found.map_or(0, |found| found.permissions().mode() & 0o777);
        if mode & 0o044 != 0 {
            warnings.push(format!("{name}: other users can read this key (mode {mode:04o}): use chmod 600"));
        }
        crate::input::read(path, RpmbKey::READ_BYTES_MAX)
    };
    RpmbKey::from_file(&content?).map_err(|error| anyhow::anyhow!("{name}: not a key: {error}"))
}
