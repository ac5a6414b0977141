//! Where tracefs is, and what recorders that were killed left there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::{INSTANCE, TracefsError};

const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Where tracefs is mounted for a recording, in the folder of temporary files: followed by the number of the process.
const MOUNTED: &str = "emmclab-tracefs-";

/// Where tracefs is; it is mounted if it is not.
pub(super) fn root() -> Result<(PathBuf, Option<PathBuf>), TracefsError> {
    for place in PLACES.map(Path::new) {
        if place.join("instances").is_dir() {
            return Ok((place.into(), None));
        }
    }
    let folder = std::env::temp_dir();
    unmount_abandoned(&folder);
    let place = folder.join(format!("{MOUNTED}{}", std::process::id()));
    let made = fs::create_dir(&place);
    let failed = |error: io::Error| TracefsError::NoTracefs { place: place.clone(), error };
    made.map_err(failed)?;
    if let Err(error) = mount("tracefs", &place, "tracefs", MountFlags::empty(), None) {
        drop(fs::remove_dir(&place));
        return Err(failed(error.into()));
    }
    Ok((place.clone(), Some(place)))
}

/// Removes instances of processes that do not exist any more.
pub(super) fn remove_abandoned(root: &Path) {
    for instance in abandoned(&root.join("instances"), INSTANCE) {
        drop(fs::remove_dir(instance));
    }
    super::probes::remove_abandoned(root);
}

/// Unmounts what recorders that were killed had mounted.
fn unmount_abandoned(folder: &Path) {
    for place in abandoned(folder, MOUNTED) {
        // Nobody but root can have mounted anything there, and a link is not followed.
        let _ = unmount(&place, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
        drop(fs::remove_dir(&place));
    }
}

/// What is named so in a folder, with the number of a process that does not exist any more.
fn abandoned(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let is_abandoned = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(prefix)).and_then(|id| id.parse::<u32>().ok());
        process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists())
    };
    fs::read_dir(folder).into_iter().flatten().flatten().filter(is_abandoned).map(|entry| entry.path()).collect()
}
