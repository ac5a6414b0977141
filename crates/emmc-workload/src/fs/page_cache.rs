//! Dirty data of a file in the page cache.

use std::collections::BTreeMap;

use emmc_units::{Instant, Nanos};

use super::ranges::Ranges;
use super::{BLOCK_BYTES, FileId};

/// Dirty data and metadata are written back after this long (`dirty_expire_centisecs`).
pub(super) const EXPIRE: Nanos = Nanos::from_secs(30);

/// A file's dirty blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Dirty {
    blocks: Ranges,
    since: Instant,
}

impl Dirty {
    /// Something was written at `now`.
    pub(super) fn write(&mut self, now: Instant, offset_bytes: u64, bytes: u64) {
        if self.blocks.is_empty() {
            self.since = now;
        }
        let (first, last) = (offset_bytes / BLOCK_BYTES, (offset_bytes + bytes).div_ceil(BLOCK_BYTES));
        self.blocks.insert(first, last - first);
    }

    /// The dirty ranges of blocks, as start and count; clears them.
    pub(super) fn drain(&mut self) -> Vec<(u64, u64)> {
        self.blocks.drain()
    }
}

/// The files with dirty data; with `expired_at` only those that have expired at that time.
pub(super) fn dirty_files<F>(
    files: &BTreeMap<FileId, F>,
    expired_at: Option<Instant>,
    dirty: impl Fn(&F) -> &Dirty,
) -> Vec<FileId> {
    let is_due =
        |dirty: &Dirty| !dirty.blocks.is_empty() && expired_at.is_none_or(|now| now.since(dirty.since) >= EXPIRE);
    files.iter().filter(|(_, file)| is_due(dirty(file))).map(|(id, _)| *id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rewritten_page_keeps_its_age() {
        let after = |seconds| Instant::START + Nanos::from_secs(seconds);
        let mut files = BTreeMap::from([(FileId(1), Dirty::default()), (FileId(2), Dirty::default())]);
        let due = |files: &BTreeMap<FileId, Dirty>, at| dirty_files(files, at, |dirty| dirty);
        assert_eq!(due(&files, None), []);
        let file = files.get_mut(&FileId(2)).unwrap();
        file.write(after(1), 4095, 2);
        file.write(after(29), 8192, 4096);
        assert_eq!((due(&files, None), due(&files, Some(after(30)))), (vec![FileId(2)], vec![]));
        assert_eq!(due(&files, Some(after(31))), [FileId(2)]);
        assert_eq!(files.get_mut(&FileId(2)).unwrap().drain(), [(0, 3)]);
        assert_eq!(due(&files, Some(after(90))), []);
    }
}
