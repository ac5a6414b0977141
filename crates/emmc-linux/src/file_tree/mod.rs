//! Files of this machine as a tree for a bench, in real time.
//!
//! A [`Folder`] is a place in an existing filesystem; a [`Scratch`] is a block device on which filesystems are created.
//! Both are cleaned up in every case: files are removed, filesystems unmounted, the latter even if this process is
//! killed. Absent on purpose: whether a device may be overwritten (`usage`).

mod folder;
mod make;
mod mount;
mod scratch;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use emmc_port::{FileNumber, FileOp, FileTree, TargetError};
use emmc_units::{Instant, Nanos};
use memmap2::MmapMut;
use rustix::fs::{Advice, AtFlags, Dir, FileType, Mode, OFlags, fadvise, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use crate::block_io::clock::Clock;
use crate::block_io::data::{self, Stamp};
use crate::{hold, ioctl};

pub use folder::Folder;
pub use scratch::Scratch;

/// Largest single read or write. Unit: bytes.
const MEMORY_BYTES: usize = 1 << 20;
/// What the GNU C library takes for a file: its `st_blksize`. Unit: bytes.
const CHARACTER_BUFFER: usize = 4096;
/// Source: Linux `Documentation/admin-guide/sysctl/vm.rst`: page cache, directory entries and inodes.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";
const DROP_ALL: &str = "3\n";

/// Whether this process may mount filesystems on block devices: tried, without a device.
pub fn may_mount() -> bool {
    let denied = [libc::EPERM, libc::EACCES, libc::ENOSYS];
    !mount::probe("ext4").is_err_and(|error| denied.contains(&error.raw_os_error().unwrap_or(0)))
}

/// A folder and the files created in it.
pub(crate) struct Tree {
    name: String,
    root: OwnedFd,
    folders: HashMap<u32, OwnedFd>,
    files: HashMap<FileNumber, Entry>,
    /// Taken out during reads and writes.
    memory: Option<MmapMut>,
    stamp: Stamp,
    clock: Clock,
    stop: Arc<AtomicBool>,
    /// Direct I/O worked whenever it was requested.
    is_direct: bool,
}

/// A file, open or not.
struct Entry {
    folder: u32,
    name: String,
    file: Option<File>,
    direct: Option<File>,
}

impl Tree {
    /// Errors: no memory.
    pub(crate) fn new(root: OwnedFd, name: &str, seed: u64, clock: Clock, stop: Arc<AtomicBool>) -> io::Result<Self> {
        Ok(Self {
            name: name.into(),
            root,
            folders: HashMap::new(),
            files: HashMap::new(),
            memory: Some(data::random(MEMORY_BYTES, seed)?),
            stamp: Stamp::new(seed),
            clock,
            stop,
            is_direct: true,
        })
    }

    pub(crate) fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// The folder with a number; 0 is the tree's own.
    fn folder(&mut self, number: u32) -> io::Result<&OwnedFd> {
        if number == 0 {
            return Ok(&self.root);
        }
        if !self.folders.contains_key(&number) {
            let name = format!("d{number}");
            match mkdirat(&self.root, &name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let folder = openat(&self.root, &name, flags, Mode::empty())?;
            self.folders.insert(number, folder);
        }
        self.folders.get(&number).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn create(&mut self, number: FileNumber, folder: u32, name: &str) -> io::Result<()> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = openat(self.folder(folder)?, name, flags, Mode::RUSR | Mode::WUSR)?;
        let entry = Entry { folder, name: name.into(), file: Some(file.into()), direct: None };
        self.files.insert(number, entry);
        Ok(())
    }

    fn entry(&self, number: FileNumber) -> io::Result<&Entry> {
        self.files.get(&number).ok_or_else(|| io::Error::other("was never created"))
    }

    /// Folder and name of a file.
    fn place(&self, number: FileNumber) -> io::Result<(&OwnedFd, &str)> {
        let entry = self.entry(number)?;
        let folder = if entry.folder == 0 { Some(&self.root) } else { self.folders.get(&entry.folder) };
        Ok((folder.ok_or_else(|| io::Error::other("its folder was never made"))?, &entry.name))
    }

    /// Opens the file; with direct I/O if requested and supported.
    fn opened(&mut self, number: FileNumber, direct: bool) -> io::Result<&File> {
        let entry = self.entry(number)?;
        let is_open = if direct { entry.direct.is_some() } else { entry.file.is_some() };
        if !is_open {
            let (folder, name) = self.place(number)?;
            let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let opened =
                if direct { openat(folder, name, flags | OFlags::DIRECT, Mode::empty()) } else { Err(Errno::INVAL) };
            let has_no_way = direct && matches!(opened, Err(Errno::INVAL));
            let file: File = match opened {
                Err(Errno::INVAL) => openat(folder, name, flags, Mode::empty())?,
                opened => opened?,
            }
            .into();
            self.is_direct &= !has_no_way;
            if let Some(entry) = self.files.get_mut(&number) {
                *(if direct { &mut entry.direct } else { &mut entry.file }) = Some(file);
            }
        }
        let entry = self.entry(number)?;
        let file = if direct { &entry.direct } else { &entry.file };
        file.as_ref().ok_or_else(|| io::Error::other("is not open"))
    }

    /// Reads or writes in pieces; returns the bytes.
    fn transfer(&mut self, number: FileNumber, range: [u64; 2], direct: bool, is_write: bool) -> io::Result<u64> {
        let [from, bytes] = range;
        let mut memory = self.memory.take().ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let (mut stamp, stop) = (self.stamp.clone(), Arc::clone(&self.stop));
        let moved = self.opened(number, direct).and_then(|file| {
            let mut at = 0;
            while at < bytes {
                if stop.load(Ordering::Relaxed) {
                    return Err(io::Error::other("stopped"));
                }
                let length = ((bytes - at) as usize).min(memory.len());
                let part = &mut memory[..length];
                if is_write {
                    stamp.mark(part);
                    file.write_all_at(part, from + at)?;
                } else {
                    file.read_exact_at(part, from + at)?;
                }
                at += length as u64;
            }
            Ok(at)
        });
        (self.memory, self.stamp) = (Some(memory), stamp);
        moved
    }

    /// Writes or reads byte by byte, through a buffer as large as the C library's; returns the bytes.
    fn characters(&mut self, number: FileNumber, bytes: u64, is_write: bool) -> io::Result<u64> {
        let mut memory = self.memory.take().ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let (mut stamp, stop) = (self.stamp.clone(), Arc::clone(&self.stop));
        let moved = self.opened(number, false).and_then(|mut file| {
            file.seek(SeekFrom::Start(0))?;
            let mut out = BufWriter::with_capacity(CHARACTER_BUFFER, file);
            let mut from = BufReader::with_capacity(CHARACTER_BUFFER, file);
            let mut left = bytes;
            while left > 0 {
                if stop.load(Ordering::Relaxed) {
                    return Err(io::Error::other("stopped"));
                }
                let length = (left as usize).min(memory.len());
                let part = &mut memory[..length];
                if is_write {
                    stamp.mark(part);
                    part.iter().try_for_each(|byte| out.write_all(std::slice::from_ref(byte)))?;
                } else {
                    part.iter_mut().try_for_each(|byte| from.read_exact(std::slice::from_mut(byte)))?;
                }
                left -= length as u64;
            }
            out.flush().map(|()| bytes)
        });
        (self.memory, self.stamp) = (Some(memory), stamp);
        moved
    }

    /// The names in a folder, in listing order, without folders.
    fn listed(
        &mut self,
        folder: u32,
        mut each: impl FnMut(&OwnedFd, &std::ffi::CStr) -> io::Result<()>,
    ) -> io::Result<u64> {
        let folder = self.folder(folder)?;
        let mut count = 0;
        for found in Dir::read_from(folder)? {
            let found = found?;
            let is_dots = matches!(found.file_name().to_bytes(), b"." | b"..");
            if !is_dots && found.file_type() != FileType::Directory {
                each(folder, found.file_name())?;
                count += 1;
            }
        }
        Ok(count)
    }

    fn rename(&mut self, number: FileNumber, name: &str) -> io::Result<()> {
        let (folder, old) = self.place(number)?;
        renameat(folder, old, folder, name)?;
        if let Some(entry) = self.files.get_mut(&number) {
            entry.name = name.into();
        }
        Ok(())
    }

    fn unlink(&mut self, number: FileNumber) -> io::Result<()> {
        let (folder, name) = self.place(number)?;
        unlinkat(folder, name, AtFlags::empty())?;
        self.files.remove(&number);
        Ok(())
    }

    /// Writes everything back and drops the caches, as far as this process may.
    fn settle(&mut self) -> io::Result<u64> {
        rustix::fs::syncfs(&self.root)?;
        if std::fs::write(DROP_CACHES, DROP_ALL).is_ok() {
            return Ok(1);
        }
        for number in self.files.keys().copied().collect::<Vec<_>>() {
            let was_open = self.entry(number)?.file.is_some();
            fadvise(self.opened(number, false)?, 0, None, Advice::DontNeed)?;
            if let Some(entry) = self.files.get_mut(&number).filter(|_| !was_open) {
                entry.file = None;
            }
        }
        Ok(0)
    }

    fn done(&mut self, op: FileOp<'_>) -> io::Result<u64> {
        match op {
            FileOp::Create { file, folder, name } => self.create(file, folder, name)?,
            FileOp::Write { file, offset_bytes, bytes, direct } => {
                return self.transfer(file, [offset_bytes, bytes], direct, true);
            }
            FileOp::Read { file, offset_bytes, bytes, direct } => {
                return self.transfer(file, [offset_bytes, bytes], direct, false);
            }
            FileOp::WriteCharacters { file, bytes } => return self.characters(file, bytes, true),
            FileOp::ReadCharacters { file, bytes } => return self.characters(file, bytes, false),
            FileOp::WriteBack(file) => ioctl::start_write_back(self.opened(file, false)?)?,
            FileOp::Sync(file) => self.opened(file, false)?.sync_all()?,
            FileOp::Close(file) => {
                if let Some(entry) = self.files.get_mut(&file) {
                    (entry.file, entry.direct) = (None, None);
                }
            }
            FileOp::Rename { file, name } => {
                hold::reached(hold::Point::Rename, &self.stop);
                self.rename(file, name)?;
            }
            FileOp::Stat(file) => {
                let (folder, name) = self.place(file)?;
                statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            }
            FileOp::Unlink(file) => self.unlink(file)?,
            FileOp::StatFolder(folder) => {
                return self.listed(folder, |folder, name| {
                    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    Ok(())
                });
            }
            FileOp::UnlinkFolder(folder) => {
                let count = self.listed(folder, |folder, name| Ok(unlinkat(folder, name, AtFlags::empty())?))?;
                self.files.retain(|_, entry| entry.folder != folder);
                return Ok(count);
            }
            FileOp::SyncAll => rustix::fs::syncfs(&self.root)?,
            FileOp::Settle => return self.settle(),
        }
        Ok(0)
    }

    fn failed(&self, reason: String) -> TargetError {
        TargetError::Failed { name: self.name.clone(), reason }
    }
}

impl FileTree for Tree {
    fn now(&mut self) -> Instant {
        self.clock.now()
    }

    fn processor(&mut self) -> Option<Nanos> {
        Some(Clock::processor())
    }

    fn idle(&mut self, time: Nanos) -> Result<(), TargetError> {
        self.clock.idle(time, &self.stop);
        Ok(())
    }

    fn call(&mut self, op: FileOp<'_>) -> Result<u64, TargetError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(self.failed("stopped".into()));
        }
        self.done(op).map_err(|error| self.failed(told(&op, &error)))
    }
}

/// What failed, and why.
fn told(op: &FileOp<'_>, error: &io::Error) -> String {
    let what = match op {
        FileOp::Create { name, .. } => format!("create {name}"),
        FileOp::Write { file, offset_bytes, bytes, .. } => {
            format!("write {bytes} bytes at byte {offset_bytes} of file {}", file.0)
        }
        FileOp::Read { file, offset_bytes, bytes, .. } => {
            format!("read {bytes} bytes at byte {offset_bytes} of file {}", file.0)
        }
        FileOp::WriteCharacters { file, bytes } => format!("write {bytes} characters to file {}", file.0),
        FileOp::ReadCharacters { file, bytes } => format!("read {bytes} characters of file {}", file.0),
        FileOp::Rename { file, name } => format!("rename file {} to {name}", file.0),
        FileOp::WriteBack(file) => format!("write file {} back", file.0),
        FileOp::Sync(file) => format!("sync file {}", file.0),
        FileOp::Close(file) => format!("close file {}", file.0),
        FileOp::Stat(file) => format!("stat file {}", file.0),
        FileOp::Unlink(file) => format!("delete file {}", file.0),
        FileOp::StatFolder(_) => "list and stat a folder".into(),
        FileOp::UnlinkFolder(_) => "empty a folder".into(),
        FileOp::SyncAll | FileOp::Settle => "sync".into(),
    };
    format!("{what}: {error}")
}
