//! Where saved content is: in memory, or in a file that has its name only when it is whole and on its disk.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use memmap2::MmapMut;
use rustix::fs::{RenameFlags, renameat_with};

use super::chunk::{Chunk, checksum};
use super::format::{HEADER_BYTES, Header};
use crate::block_io::data;
use crate::hold::{self, Point};

pub(super) enum Copy {
    /// The chunks, concatenated.
    Memory(MmapMut),
    File(NewFile),
    /// One that was there, for a restore later: it stays.
    Opened(File, PathBuf),
}

/// A file that is written under a temporary name.
pub(super) struct NewFile {
    file: File,
    path: PathBuf,
    /// Its present name, until it is whole.
    temporary: Option<PathBuf>,
}

impl NewFile {
    /// Errors: the path is taken; the kernel's.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        // Also a dangling link is something of the user.
        if path.symlink_metadata().is_ok() {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        let Some(name) = path.file_name() else { return Err(io::Error::from_raw_os_error(libc::EINVAL)) };
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.partial", unique()));
        let temporary = path.with_file_name(hidden);
        // Mode 0600: it holds content of other users.
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&temporary)?;
        Ok(Self { file, path: path.to_owned(), temporary: Some(temporary) })
    }

    /// Writes table and header, syncs, gives it its name and syncs the folder.
    ///
    /// Errors: the kernel's; the name was taken meanwhile.
    pub(super) fn complete(&mut self, mut header: Header, chunks: &[Chunk]) -> io::Result<()> {
        let table: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.to_bytes()).collect();
        (header.chunks, header.table_checksum) = (chunks.len() as u64, checksum(&table));
        self.file.write_all_at(&table, header.table_at())?;
        // The header is the last: it says that everything before is on the disk.
        self.file.sync_all()?;
        self.file.write_all_at(&header.to_bytes(), 0)?;
        self.file.sync_all()?;
        if let Some(temporary) = &self.temporary {
            // No signal interrupts this.
            hold::reached(Point::Rename, &AtomicBool::new(false));
            rename_to_new(temporary, &self.path)?;
        }
        self.temporary = None;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Errors: the kernel's.
    pub(super) fn remove(&self) -> io::Result<()> {
        std::fs::remove_file(self.temporary.as_ref().unwrap_or(&self.path))
    }
}

/// A rename that replaces nothing.
fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    let (cwd, none) = (rustix::fs::CWD, RenameFlags::NOREPLACE);
    match renameat_with(cwd, from, cwd, to, none) {
        Ok(()) => Ok(()),
        // A filesystem or a kernel without it: a second name fails in the same way if the first one is taken.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            std::fs::hard_link(from, to)?;
            std::fs::remove_file(from)
        }
        Err(error) => Err(error.into()),
    }
}

/// No other process and no earlier call has it.
pub(super) fn unique() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

impl Copy {
    /// Opens a whole one.
    ///
    /// Errors: what is wrong with it, a sentence after its name.
    pub(super) fn open(path: &Path) -> Result<(Self, Header, Vec<Chunk>), String> {
        let said = |error: io::Error| error.to_string();
        // A pipe would wait for somebody.
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(said)?;
        let found = file.metadata().map_err(said)?;
        if found.file_type().is_block_device() || !found.is_file() {
            return Err("is no file; expected one of --save-to".into());
        }
        let mut bytes = vec![0; found.len().min(HEADER_BYTES) as usize];
        file.read_exact_at(&mut bytes, 0).map_err(said)?;
        let header = Header::from_bytes(&bytes).map_err(|error| error.to_string())?;
        let needed = header.table_at() + header.table_bytes();
        if found.len() < needed {
            return Err(format!("is partial: it has {} bytes; expected {needed}", found.len()));
        }
        let mut table = vec![0; header.table_bytes() as usize];
        file.read_exact_at(&mut table, header.table_at()).map_err(said)?;
        let chunks = header.table(&table).map_err(|error| error.to_string())?;
        Ok((Self::Opened(file, path.to_owned()), header, chunks))
    }

    /// `packed`: the position among all chunks; `at`: the position in the range.
    ///
    /// Errors: the kernel's.
    pub(super) fn put(&mut self, at: u64, packed: usize, part: &[u8]) -> io::Result<()> {
        match self {
            Self::Memory(memory) => {
                memory[packed..][..part.len()].copy_from_slice(part);
                Ok(())
            }
            Self::File(NewFile { file, .. }) | Self::Opened(file, _) => file.write_all_at(part, HEADER_BYTES + at),
        }
    }

    /// Errors: the kernel's; content that has changed.
    pub(super) fn get(&self, at: u64, packed: usize, chunk: &Chunk, part: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Memory(memory) => part.copy_from_slice(&memory[packed..][..part.len()]),
            Self::File(NewFile { file, .. }) | Self::Opened(file, _) => file.read_exact_at(part, HEADER_BYTES + at)?,
        }
        match checksum(part) == chunk.checksum {
            true => Ok(()),
            false => Err(io::Error::other("its saved copy is damaged (checksum)")),
        }
    }

    /// Its name, before an error.
    pub(super) fn told(&self) -> String {
        self.path().map_or(String::new(), |path| format!("{}: ", path.display()))
    }

    /// Nothing if it is in memory.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Memory(_) => None,
            Self::File(file) => Some(file.path()),
            Self::Opened(_, path) => Some(path),
        }
    }

    /// Memory for this many bytes.
    ///
    /// Errors: not enough.
    pub(super) fn memory(bytes: u64) -> io::Result<Self> {
        let bytes = usize::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        data::zeros(bytes).map(Self::Memory)
    }
}
