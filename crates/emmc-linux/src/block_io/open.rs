//! Opens a block device or a file as a target.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use emmc_port::{TargetError, TargetKind, TargetShape};
use rustix::fs::{AtFlags, FallocateFlags, StatxFlags};

use super::calls::{Calls, Files};
use super::clock::Clock;
use super::uring::Uring;
use super::{BlockIo, DEPTH_MAX, Engine, data};

/// Initial memory of the plain calls. Unit: bytes.
const CALL_BYTES: usize = 2 << 20;

/// How requests are submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// io_uring if the kernel has it, else plain calls.
    #[default]
    Auto,
    /// io_uring or an error.
    Uring,
    /// `pread` and `pwrite`, with one thread per outstanding request.
    Pread,
}

/// Options of opening a target.
#[derive(Clone, Debug)]
pub struct Opening {
    /// How requests are submitted.
    pub engine: EngineChoice,
    /// Open for writing too; else only for reading.
    pub write: bool,
    /// A flush of a file also writes its times, as `fsync` does.
    pub flush_all: bool,
    /// Seed of written data.
    pub seed: u64,
    /// Setting it ends the work soon.
    pub stop: Arc<AtomicBool>,
}

impl Opening {
    /// Plain calls, for what is no measurement.
    pub fn plain(write: bool, stop: &Arc<AtomicBool>) -> Self {
        Self { engine: EngineChoice::Pread, write, flush_all: false, seed: 0, stop: Arc::clone(stop) }
    }
}

/// Why a target cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// In use by another program.
    #[error("{name}: in use: the kernel refuses exclusive access (mounted, held or opened exclusively elsewhere)")]
    InUse {
        /// The target.
        name: String,
    },
    /// What was identified is not there any more.
    #[error("{name}: it is not the same device or file any more; nothing is written to it")]
    Changed {
        /// The target.
        name: String,
    },
    /// Not a suitable target, or not accessible.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// Opens a block device or an existing regular file.
///
/// A block device is opened for writing so that nobody else can mount it meanwhile (`O_EXCL`).
///
/// Errors: another kind of file, an empty one, one that does not consist of whole sectors; the kernel's.
pub fn open(path: &Path, name: &str, opening: &Opening) -> Result<BlockIo, OpenError> {
    let failed = |reason: String| TargetError::Failed { name: name.into(), reason };
    let said = |error: io::Error| failed(error.to_string());
    let found = std::fs::metadata(path).map_err(said)?;
    let is_device = found.file_type().is_block_device();
    if !is_device && !found.is_file() {
        let what = kind_of(&found.file_type());
        return Err(failed(format!("{what}; expected a block device, a regular file or a folder")).into());
    }
    let exclusive = if is_device && opening.write { libc::O_EXCL } else { 0 };
    let (mut file, is_direct) = match open_as(path, opening.write, exclusive) {
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => return Err(OpenError::InUse { name: name.into() }),
        opened => opened.map_err(said)?,
    };
    let now = file.metadata().map_err(said)?;
    if (now.dev(), now.ino(), now.rdev()) != (found.dev(), found.ino(), found.rdev()) {
        return Err(OpenError::Changed { name: name.into() });
    }
    let size_bytes = if is_device { file.seek(SeekFrom::End(0)).map_err(said)? } else { now.len() };
    let sector_bytes = sector_bytes(&file, is_device, is_direct).map_err(said)?;
    if size_bytes == 0 {
        return Err(failed("0 bytes: expected something to measure".into()).into());
    }
    if size_bytes % u64::from(sector_bytes) != 0 {
        let what = format!("{size_bytes} bytes: expected a multiple of its sectors of {sector_bytes} bytes");
        return Err(failed(what).into());
    }
    let through = if opening.write { open_through(path, is_direct, &now).map_err(said)? } else { None };
    let file = Arc::new(file);
    let through = through.map_or_else(|| Arc::clone(&file), Arc::new);
    // A file without write permission cannot be tested.
    let can_trim = (is_device || opening.write) && can_trim(&file, is_device, now.rdev(), size_bytes);
    let files = Files { file, through, is_device, flush_all: opening.flush_all && !is_device };
    let (engine, engine_name) = engine(&files.file, opening).map_err(|error| failed(format!("io_uring: {error}")))?;
    let calls = Calls::new(files.clone(), CALL_BYTES, opening.seed).map_err(said)?;
    let kind = if is_device { TargetKind::Device } else { TargetKind::File };
    let shape = TargetShape {
        name: name.into(),
        kind,
        size_bytes,
        sector_bytes,
        depth_max: DEPTH_MAX,
        can_trim,
        engine: engine_name,
    };
    let stop = Arc::clone(&opening.stop);
    let (clock, done, content) = (Clock::default(), Default::default(), None);
    Ok(BlockIo { shape, files, clock, engine, calls, done, stop, is_direct, content })
}

/// Locks a file against other benches (`flock`), while the returned file is open: two that save and restore the same
/// file would each restore what the other one wrote.
///
/// Errors: already locked; the kernel's.
pub fn reserve(path: &Path, name: &str) -> Result<File, OpenError> {
    let failed = |reason: String| TargetError::Failed { name: name.into(), reason };
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(OpenError::InUse { name: name.into() }),
        // On a filesystem without locks nobody else can hold one.
        Err(rustix::io::Errno::NOLCK | rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(file),
        Err(error) => Err(failed(error.to_string()).into()),
    }
}

/// The file size limit of this process (`ulimit -f`), if any. Unit: bytes.
pub fn writable_bytes() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Fsize).current
}

fn engine(file: &File, opening: &Opening) -> io::Result<(Engine, &'static str)> {
    let plain = || (Engine::Pread { waiting: Vec::new(), crew: None }, "pread");
    if opening.engine == EngineChoice::Pread {
        return Ok(plain());
    }
    match Uring::new(file, DEPTH_MAX, opening.seed) {
        Ok(uring) => Ok((Engine::Uring(Box::new(uring)), "io_uring")),
        Err(_) if opening.engine == EngineChoice::Auto => Ok(plain()),
        Err(error) => Err(error),
    }
}

/// Opens with direct I/O, or through the page cache if the filesystem has no direct I/O.
fn open_as(path: &Path, write: bool, flags: i32) -> io::Result<(File, bool)> {
    let open = |flags| OpenOptions::new().read(true).write(write).custom_flags(flags).open(path);
    match open(flags | libc::O_DIRECT) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok((open(flags)?, false)),
        opened => Ok((opened?, true)),
    }
}

/// Opens the same file again for FUA writes; not exclusively, as it is ours already.
fn open_through(path: &Path, is_direct: bool, same: &std::fs::Metadata) -> io::Result<Option<File>> {
    let direct = if is_direct { libc::O_DIRECT } else { 0 };
    let file = OpenOptions::new().read(true).write(true).custom_flags(direct | libc::O_DSYNC).open(path)?;
    let found = file.metadata()?;
    let is_same = (found.dev(), found.ino(), found.rdev()) == (same.dev(), same.ino(), same.rdev());
    Ok(is_same.then_some(file))
}

/// The alignment of offsets and lengths.
fn sector_bytes(file: &File, is_device: bool, is_direct: bool) -> io::Result<u32> {
    if is_device {
        return Ok(rustix::fs::ioctl_blksszget(file)?);
    }
    if !is_direct {
        return Ok(512);
    }
    let told = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
    let told = told.ok().filter(|told| told.stx_mask & StatxFlags::DIOALIGN.bits() != 0);
    match told.map(|told| told.stx_dio_offset_align) {
        Some(bytes) if bytes > 0 => Ok(bytes.max(512)),
        // Kernels before 6.1 do not report it: it is found by trying.
        _ => Ok(if is_readable(file, 512)? { 512 } else { data::PAGE_BYTES as u32 }),
    }
}

fn is_readable(file: &File, bytes: usize) -> io::Result<bool> {
    let mut memory = data::zeros(bytes)?;
    match file.read_at(&mut memory[..bytes], bytes as u64) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(false),
        result => result.map(|_| true),
    }
}

/// Whether discards work; a hole beyond the end of a file changes nothing.
fn can_trim(file: &File, is_device: bool, rdev: u64, size_bytes: u64) -> bool {
    if is_device {
        let (major, minor) = (rustix::fs::major(rdev), rustix::fs::minor(rdev));
        let folder = format!("/sys/dev/block/{major}:{minor}");
        // A partition has no queue of its own.
        let most = ["queue", "../queue"].iter().find_map(|queue| {
            let text = std::fs::read_to_string(format!("{folder}/{queue}/discard_max_bytes")).ok()?;
            text.trim().parse::<u64>().ok()
        });
        return most.is_some_and(|bytes| bytes > 0);
    }
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(file, flags, size_bytes, data::PAGE_BYTES as u64).is_ok()
}

fn kind_of(kind: &std::fs::FileType) -> &'static str {
    match () {
        () if kind.is_char_device() => "a character device",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () if kind.is_dir() => "a folder",
        () => "no file",
    }
}
