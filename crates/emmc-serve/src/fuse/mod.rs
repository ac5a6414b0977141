//! FUSE: a folder with a file for each of a card's areas, and loop devices on top.
//!
//! `files` handles the kernel's requests, `volume` is an area with any offset and length, `reply_timer` replies when
//! the card would have finished. A loop device makes a real block device of a file: `crate::loop_device`. User page:
//! docs/serve-fuse.md. Absent on purpose: the kernel's page cache (every request reaches the card), RPMB, areas that
//! appear and disappear while mounted.

mod files;
mod reply_timer;
mod volume;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use emmc_units::mount_name;
use fuser::{BackgroundSession, Config, MountOption};
use rustix::mount::UnmountFlags;

use self::files::Files;
use self::reply_timer::ReplyTimer;
use self::volume::Volume;
use crate::block::{Block, Export};
use crate::child;
use crate::loop_device::{self, LoopDevice};

/// The card's lock admits one request at a time; the second thread reads the next request meanwhile.
const THREADS: usize = 2;

/// A server that takes longer to reply is not waited for.
const REPLY_LIMIT: Duration = Duration::from_secs(5);

/// Why the areas cannot be mounted or attached, or the mount cannot end.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "`folder` is where it is mounted, `source` why not")]
pub enum FuseError {
    /// No such folder, no FUSE, or no permission.
    #[error("cannot mount at {}: {source}", folder.display())]
    Mount { folder: PathBuf, source: io::Error },
    /// There is no such area.
    #[error("there is no area {0:?}")]
    NoArea(String),
    /// No loop devices, or no permission.
    #[error("cannot attach a loop device to {}: {source}", file.display())]
    Attach {
        /// The area's file.
        file: PathBuf,
        source: io::Error,
    },
    /// Open or mounted.
    #[error("{} is still in use", .0.display())]
    InUse(PathBuf),
    /// A file is open, or a process has its working directory in the folder.
    #[error("cannot unmount {}: {source}", folder.display())]
    Unmount { folder: PathBuf, source: io::Error },
}

/// A mounted folder with its loop devices. Dropping it detaches, unmounts, and prints failures on standard error.
#[derive(Debug)]
pub struct Mounted {
    folder: PathBuf,
    exports: Vec<Export>,
    loops: Vec<LoopDevice>,
    session: Option<BackgroundSession>,
    /// The device number of our mount: only this one is ours to unmount.
    device: Option<Device>,
    /// Lives longer than the session, which replies through it.
    _timer: Arc<ReplyTimer>,
}

/// Mounts a card's areas as files in a folder. Removes the leftovers of a killed server.
///
/// Errors: no such folder, no FUSE, no permission.
pub fn mount(block: Arc<dyn Block>, folder: &Path) -> Result<Mounted, FuseError> {
    let failed = |source| FuseError::Mount { folder: folder.to_owned(), source };
    clear_left_over(folder).map_err(failed)?;
    let folder = folder.canonicalize().map_err(failed)?;
    let failed = |source| FuseError::Mount { folder: folder.clone(), source };
    let timer = Arc::new(ReplyTimer::start().map_err(failed)?);
    let exports = block.exports();
    let volumes = exports.iter().map(|export| Volume::new(Arc::clone(&block), export.clone())).collect();
    let owner = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let files = Files { block, volumes, timer: Arc::clone(&timer), mounted: SystemTime::now(), owner };
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("emmclab".into()),
        MountOption::Subtype("emmclab".into()),
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::NoExec,
        MountOption::NoAtime,
    ];
    config.n_threads = Some(THREADS);
    let session = fuser::spawn_mount(files, &folder, &config).map_err(failed)?;
    // Not `stat`: it would wait for this process (`crate::child`).
    let device = mount_at(&folder).map_err(failed)?.map(|mount| mount.device);
    Ok(Mounted { folder, exports, loops: Vec::new(), session: Some(session), device, _timer: timer })
}

impl Mounted {
    /// An area's file.
    pub fn file(&self, area: &str) -> PathBuf {
        self.folder.join(area)
    }

    /// Attaches a loop device to an area, with direct I/O, read-only if the area is; returns its path.
    ///
    /// Errors: no such area, no loop devices, no permission.
    pub fn attach(&mut self, area: &str) -> Result<PathBuf, FuseError> {
        let export = self.exports.iter().find(|export| export.name == area);
        let export = export.ok_or_else(|| FuseError::NoArea(area.into()))?;
        let file = self.file(area);
        let device =
            LoopDevice::attach(&file, export.read_only).map_err(|source| FuseError::Attach { file, source })?;
        let path = device.path().to_owned();
        self.loops.push(device);
        Ok(path)
    }

    /// Attaches loop devices to all areas; returns names and paths.
    ///
    /// Errors: no loop devices, no permission. Devices attached before the error stay.
    pub fn attach_all(&mut self) -> Result<Vec<(String, PathBuf)>, FuseError> {
        let names: Vec<String> = self.exports.iter().map(|export| export.name.clone()).collect();
        names.into_iter().map(|name| self.attach(&name).map(|path| (name, path))).collect()
    }

    /// Detaches the loop devices and unmounts.
    ///
    /// Errors: a device is mounted or open, or a file is open. What could not end stays usable, and this may be called
    /// again.
    pub fn stop(&mut self) -> Result<(), FuseError> {
        while let Some(device) = self.loops.last() {
            match device.detach() {
                Ok(true) => {}
                // The last user detaches it; until then it holds the file.
                Ok(false) => return Err(FuseError::InUse(device.path().to_owned())),
                Err(source) => return Err(FuseError::Attach { file: device.path().to_owned(), source }),
            }
            self.loops.pop();
        }
        let failed = |source| FuseError::Unmount { folder: self.folder.clone(), source };
        // Somebody else may have unmounted it, and mounted something else there.
        let uppermost = mount_at(&self.folder).ok().flatten().map(|mount| mount.device);
        if uppermost.is_some() && uppermost == self.device {
            unmount(&self.folder, UnmountFlags::empty()).map_err(failed)?;
        }
        if let Some(session) = self.session.take() {
            session.join().map_err(failed)?;
        }
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.session.is_none() {
            return;
        }
        if let Err(error) = self.stop() {
            eprintln!("fuse: {error}; whatever uses it will see I/O errors");
            // At least hidden; the kernel removes it when its last user ends.
            let _ = unmount(&self.folder, UnmountFlags::DETACH);
        }
    }
}

fn unmount(folder: &Path, flags: UnmountFlags) -> io::Result<()> {
    match rustix::mount::unmount(folder, flags) {
        // Not root: the user who mounted it may unmount it, with FUSE's setuid program.
        Err(rustix::io::Errno::PERM) => fusermount(folder),
        other => Ok(other?),
    }
}

fn fusermount(folder: &Path) -> io::Result<()> {
    let mut last = None;
    for program in ["fusermount3", "fusermount"] {
        match std::process::Command::new(program).arg("-u").arg(folder).output() {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => last = Some(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
            Err(error) => last = last.or(Some(error)),
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
}

/// A killed server leaves a mount without replies, and loop devices on files that no longer exist.
fn clear_left_over(folder: &Path) -> io::Result<()> {
    let Some((folder, mount)) = left_over(folder)? else { return Ok(()) };
    if !mount.is_fuse || !is_dead(&folder)? {
        return Ok(());
    }
    if !mount.is_ours {
        return Err(io::Error::other("a dead mount of another program is there; unmount it first"));
    }
    loop_device::detach_all_below(&folder)?;
    unmount(&folder, UnmountFlags::DETACH)
}

/// The mount at a folder, by the path that the kernel has for it.
fn left_over(folder: &Path) -> io::Result<Option<(PathBuf, MountAt)>> {
    // A dead folder itself may not be resolved.
    let folder = std::path::absolute(folder)?;
    let beside = match (folder.parent(), folder.file_name()) {
        (Some(parent), Some(name)) => parent.canonicalize()?.join(name),
        _ => folder,
    };
    if let Some(mount) = mount_at(&beside)? {
        return Ok(Some((beside, mount)));
    }
    // Nothing is mounted there, but it may be a link to where something is.
    let Ok(linked) = beside.canonicalize() else { return Ok(None) };
    Ok(mount_at(&linked)?.map(|mount| (linked, mount)))
}

/// Whether the server of the FUSE mount at a folder has ended.
///
/// Errors: the server is there and does not reply.
fn is_dead(folder: &Path) -> io::Result<bool> {
    match child::statvfs(folder, REPLY_LIMIT) {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(io::Error::other(format!(
            "the server that is mounted there does not reply; end it, or `umount --force {}`",
            folder.display()
        ))),
        result => Ok(result.is_err_and(|error| error.kind() == io::ErrorKind::NotConnected)),
    }
}

/// A device number as the kernel prints it: `MAJOR:MINOR`.
type Device = Vec<u8>;

/// The uppermost mount at a folder.
#[derive(Debug)]
struct MountAt {
    device: Device,
    is_fuse: bool,
    /// Of this program, dead or alive.
    is_ours: bool,
}

fn mount_at(folder: &Path) -> io::Result<Option<MountAt>> {
    Ok(mount_at_in(&std::fs::read("/proc/self/mountinfo")?, folder))
}

fn mount_at_in(mounts: &[u8], folder: &Path) -> Option<MountAt> {
    let of_line = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ');
        let device = fields.nth(2)?.to_vec();
        let at = mount_name(fields.nth(1)?);
        let mut source = fields.skip_while(|field| *field != b"-").skip(1);
        let is_fuse = source.next()?.starts_with(b"fuse");
        let is_ours = is_fuse && source.next()? == b"emmclab";
        (at == folder.as_os_str().as_encoded_bytes()).then_some(MountAt { device, is_fuse, is_ours })
    };
    // The last one covers those before.
    mounts.rsplit(|byte| *byte == b'\n').find_map(of_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_mount_at_a_folder_decides() {
        let mounts = b"36 1 0:30 / /mnt/a\\040b rw,nosuid shared:7 - fuse.emmclab emmclab rw\n\
                       37 1 0:31 / /mnt/c rw - fuse emmclab rw\n\
                       38 1 0:32 / /mnt/c rw - fuse.sshfs x: rw\n\
                       39 1 0:33 / /mnt/d rw - tmpfs emmclab rw\n";
        let at = |folder: &str| mount_at_in(mounts, Path::new(folder));
        let ours = at("/mnt/a b").unwrap();
        assert!(ours.is_ours && ours.is_fuse && ours.device == b"0:30");
        let covered = at("/mnt/c").unwrap();
        assert!(!covered.is_ours && covered.is_fuse && covered.device == b"0:32");
        assert!(!at("/mnt/d").unwrap().is_fuse);
        assert!(at("/mnt").is_none() && at("/mnt/a").is_none());
    }
}
