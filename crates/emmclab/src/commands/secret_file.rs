//! The file of a key or a password. Nothing of its content is in any message.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Reads it; `-` is standard input. Warns if other users can read the file too; `what` names it then.
///
/// Errors: no such file; longer than `most_bytes`.
pub(in crate::commands) fn read(
    path: &Path,
    what: &str,
    most_bytes: u64,
    warnings: &mut Vec<String>,
) -> anyhow::Result<Vec<u8>> {
    if path == Path::new("-") {
        return crate::input::limited("-", std::io::stdin().lock(), most_bytes);
    }
    let found = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file);
    let mode = found.map_or(0, |found| found.permissions().mode() & 0o777);
    if mode & 0o044 != 0 {
        warnings.push(format!("{}: other users can read this {what} (mode {mode:04o}): use chmod 600", path.display()));
    }
    crate::input::read(path, most_bytes)
}
