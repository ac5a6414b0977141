//! The mounted folder with a file for each area: the kernel's requests.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek,
    ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use super::reply_timer::ReplyTimer;
use super::volume::{Done, Volume};
use crate::block::Block;

/// Nothing here changes except contents, which the kernel does not cache.
const UNCHANGED_FOR: Duration = Duration::from_secs(3600);
/// The longest request. Unit: bytes.
const REQUEST_BYTES_MAX: u32 = 1 << 20;
/// Requests that the kernel may have outstanding: at least as many as the deepest card queue.
const DEPTH: u16 = 128;
/// The first file's inode number; the folder's is 1.
const FIRST: u64 = 2;

pub(super) struct Files {
    pub(super) block: Arc<dyn Block>,
    pub(super) volumes: Vec<Volume>,
    pub(super) timer: Arc<ReplyTimer>,
    pub(super) mounted: SystemTime,
    pub(super) owner: (u32, u32),
}

impl Files {
    fn volume(&self, inode: INodeNo) -> Result<&Volume, Errno> {
        let index = inode.0.checked_sub(FIRST).ok_or(Errno::EISDIR)?;
        self.volumes.get(index as usize).ok_or(Errno::ENOENT)
    }

    fn attr(&self, inode: INodeNo) -> Result<FileAttr, Errno> {
        let (kind, perm, nlink, size, blksize) = if inode == INodeNo::ROOT {
            (FileType::Directory, 0o700, 2, 0, 4096)
        } else {
            let export = &self.volume(inode)?.export;
            let perm = if export.read_only { 0o400 } else { 0o600 };
            (FileType::RegularFile, perm, 1, export.size_bytes, export.preferred_bytes.max(4096))
        };
        let (uid, gid) = self.owner;
        let times = (self.mounted, self.mounted, self.mounted, self.mounted);
        let (atime, mtime, ctime, crtime) = times;
        let blocks = size / 512;
        let (ino, rdev, flags) = (inode, 0, 0);
        Ok(FileAttr {
            ino,
            size,
            blocks,
            atime,
            mtime,
            ctime,
            crtime,
            kind,
            perm,
            nlink,
            uid,
            gid,
            rdev,
            blksize,
            flags,
        })
    }

    /// Performs it, and replies when that is due.
    fn when_due<T: Send + 'static>(&self, done: Done<T>, reply: impl FnOnce(Result<T, Errno>) + Send + 'static) {
        match done {
            Ok((value, None)) => reply(Ok(value)),
            Ok((value, Some(due))) => {
                let block = Arc::clone(&self.block);
                self.timer.at(due.wall, move || {
                    reply(Ok(value));
                    block.answered(due.at);
                });
            }
            Err(error) => reply(Err(error)),
        }
    }

    fn when_done(&self, done: Done<()>, reply: ReplyEmpty) {
        self.when_due(done, |result| match result {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        });
    }
}

impl Filesystem for Files {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // A missing kernel feature costs speed only; but queue depth needs both.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_background(DEPTH);
        let _ = config.set_congestion_threshold(DEPTH);
        let _ = config.set_max_write(REQUEST_BYTES_MAX);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.volumes.iter().zip(FIRST..).find(|(volume, _)| name == volume.export.name.as_str());
        match found.filter(|_| parent == INodeNo::ROOT).map(|(_, inode)| self.attr(INodeNo(inode))) {
            Some(Ok(attr)) => reply.entry(&UNCHANGED_FOR, &attr, Generation(0)),
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _request: &Request, inode: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        match self.attr(inode) {
            Ok(attr) => reply.attr(&UNCHANGED_FOR, &attr),
            Err(error) => reply.error(error),
        }
    }

    /// As for a block device: truncation to 0 changes nothing (`cat image > user` does it), other sizes and modes are
    /// refused.
    fn setattr(
        &self,
        _request: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _accessed: Option<TimeOrNow>,
        _modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _created: Option<SystemTime>,
        _flags_changed: Option<SystemTime>,
        _backed_up: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.attr(inode) {
            Err(error) => reply.error(error),
            Ok(_) if mode.is_some() || uid.is_some() || gid.is_some() => reply.error(Errno::EPERM),
            Ok(attr) if size.is_some_and(|size| size != 0 && size != attr.size) => reply.error(Errno::EINVAL),
            Ok(attr) => reply.attr(&UNCHANGED_FOR, &attr),
        }
    }

    fn open(&self, _request: &Request, inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.volume(inode) {
            // Direct I/O: writes reach the card immediately, and several may be outstanding.
            Ok(_) => {
                let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
                reply.opened(FileHandle(0), flags);
            }
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let done = self.volume(inode).and_then(|volume| volume.read(offset, size.into()));
        self.when_due(done, |result| match result {
            Ok(data) => reply.data(&data),
            Err(error) => reply.error(error),
        });
    }

    fn write(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let done = self.volume(inode).and_then(|volume| volume.write(offset, data));
        self.when_due(done, |result| match result {
            Ok(written) => reply.written(written),
            Err(error) => reply.error(error),
        });
    }

    /// On every `close`: no data is buffered here.
    fn flush(&self, _request: &Request, _inode: INodeNo, _handle: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _request: &Request, inode: INodeNo, _handle: FileHandle, _data_only: bool, reply: ReplyEmpty) {
        let done = self.volume(inode).and_then(Volume::flush);
        self.when_done(done, reply);
    }

    fn fallocate(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let done = self.volume(inode).and_then(|volume| {
            let is_inside = offset.saturating_add(length) <= volume.export.size_bytes;
            match mode & !libc::FALLOC_FL_KEEP_SIZE {
                libc::FALLOC_FL_PUNCH_HOLE => volume.punch(offset, length),
                libc::FALLOC_FL_ZERO_RANGE if is_inside => volume.zero(offset, length),
                // All of an area is allocated from the start.
                0 if is_inside => Ok(((), None)),
                0 | libc::FALLOC_FL_ZERO_RANGE => Err(Errno::ENOSPC),
                _ => Err(Errno::EOPNOTSUPP),
            }
        });
        self.when_done(done, reply);
    }

    fn lseek(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let sought = self.volume(inode).and_then(|volume| match (whence, u64::try_from(offset)) {
            (libc::SEEK_DATA, Ok(offset)) => volume.seek(offset, true)?.ok_or(Errno::ENXIO),
            (libc::SEEK_HOLE, Ok(offset)) => volume.seek(offset, false)?.ok_or(Errno::ENXIO),
            _ => Err(Errno::EINVAL),
        });
        match sought {
            Ok(offset) => reply.offset(offset as i64),
            Err(error) => reply.error(error),
        }
    }

    fn readdir(&self, _request: &Request, inode: INodeNo, _handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if inode != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let folder = [(1, FileType::Directory, "."), (1, FileType::Directory, "..")];
        let file = |(volume, inode)| {
            let volume: &Volume = volume;
            (inode, FileType::RegularFile, volume.export.name.as_str())
        };
        let entries = folder.into_iter().chain(self.volumes.iter().zip(FIRST..).map(file));
        for ((inode, kind, name), next) in entries.zip(1..).skip(offset as usize) {
            if reply.add(INodeNo(inode), next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    /// The block size becomes the discard granularity of a loop device.
    fn statfs(&self, _request: &Request, _inode: INodeNo, reply: ReplyStatfs) {
        let unit = self.volumes.iter().map(|volume| volume.export.preferred_bytes).max().unwrap_or(0).max(4096);
        let bytes: u64 = self.volumes.iter().map(|volume| volume.export.size_bytes).sum();
        reply.statfs(bytes / u64::from(unit), 0, 0, self.volumes.len() as u64, 0, unit, 255, unit);
    }
}
