//! The highest generation of a folder's state, in its lock file: an older state is not taken for the card.

use std::path::Path;

use super::LOCK_FILE;

/// Notes that the state of this generation has its name. Without the note an older state is not detected.
pub(super) fn note(folder: &Path, generation: u64) {
    let line = format!("{generation:020}\n");
    let file = std::fs::File::options().write(true).open(folder.join(LOCK_FILE));
    // Of one length, so that no instant leaves a shorter number; a full disk or a read-only folder leaves the old note.
    let _ = file.and_then(|file| std::os::unix::fs::FileExt::write_all_at(&file, line.as_bytes(), 0));
}

/// What was noted; 0: nothing.
pub(super) fn noted(folder: &Path) -> u64 {
    let text = std::fs::read_to_string(folder.join(LOCK_FILE)).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}
