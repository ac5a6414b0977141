//! A clone's file, read back and compared with its hashes while it is written, and brought to its disk on the way: at
//! the end little is left to do.

use std::fs::File;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use anyhow::Context;

use super::file::{CloneFile, content};
use super::{crew, unable};

/// What is written is brought to the disk each time that it has grown by this much. Unit: bytes.
const SYNC_BYTES: u64 = 32 << 20;

/// Threads that follow a file which grows.
pub(super) struct ReadBack {
    name: String,
    lengths: [Sender<u64>; 2],
    comparing: JoinHandle<anyhow::Result<bool>>,
    syncing: JoinHandle<std::io::Result<()>>,
}

impl ReadBack {
    /// Follows a file from the place of its reader on. `file` is the same file.
    pub(super) fn start(reader: CloneFile, file: File) -> Self {
        let name = reader.name().to_owned();
        let ((to_compare, compared), (to_sync, synced)) = (channel(), channel());
        let comparing = std::thread::spawn(move || compare(reader, &compared));
        let syncing = std::thread::spawn(move || sync(&file, &synced));
        Self { name, lengths: [to_compare, to_sync], comparing, syncing }
    }

    /// The file consists of whole records up to this length. Unit: bytes.
    pub(super) fn written(&self, length: u64) {
        // A thread that ended has an error, which `end` returns.
        let _ = self.lengths.each_ref().map(|lengths| lengths.send(length));
    }

    /// Waits until all of it is compared.
    ///
    /// Errors: it does not read as it was written, or has no end; a part of it did not reach its disk.
    pub(super) fn end(self) -> anyhow::Result<()> {
        let Self { name, lengths, comparing, syncing } = self;
        drop(lengths);
        let synced = syncing.join().ok().context("a thread ended")?;
        let what =
            |error: std::io::Error| format!("cannot write: {error}; a part of it is lost: begin again with --force");
        synced.map_err(|error| unable(&name, what(error)))?;
        let has_end = comparing.join().ok().context("a thread ended")??;
        anyhow::ensure!(has_end, "the file that was written has no end");
        Ok(())
    }
}

/// Returns whether the record of the end was there.
fn compare(mut reader: CloneFile, lengths: &Receiver<u64>) -> anyhow::Result<bool> {
    let (mut length, mut has_end) = (0, false);
    let name = reader.name().to_owned();
    crew::ordered(
        crew::computing(),
        || {
            while reader.at() >= length {
                let Ok(longer) = lengths.recv() else { return Ok(None) };
                length = longer;
            }
            let found = reader.next()?;
            has_end |= found.is_none();
            Ok(found)
        },
        |(), stored| content(stored).map(drop),
        |compared| compared.with_context(|| name.clone()),
    )?;
    Ok(has_end)
}

/// Errors: of the first sync that fails. The kernel reports it once: a later sync of the same open file succeeds.
fn sync(file: &File, lengths: &Receiver<u64>) -> std::io::Result<()> {
    let mut synced = None;
    while let Ok(length) = lengths.recv() {
        let last = lengths.try_iter().last().unwrap_or(length);
        if last - *synced.get_or_insert(last) >= SYNC_BYTES {
            file.sync_data()?;
            synced = Some(last);
        }
    }
    Ok(())
}
