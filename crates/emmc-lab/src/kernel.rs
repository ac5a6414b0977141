//! The kernel of the lab and its first file system: a folder with the files `linux` and `initramfs`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::LabError;

/// The kernel's file in its folder.
pub const LINUX: &str = "linux";
/// The first file system beside it.
pub const INITRAMFS: &str = "initramfs";
/// What a User-Mode Linux that can run in simulated time has in its program.
const MARKS: [&str; 2] = ["time-travel=", "virtio_uml.device="];

/// What a machine is started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// A User-Mode Linux with time travel.
    pub linux: PathBuf,
    /// Its first file system.
    pub initramfs: PathBuf,
}

impl Kernel {
    /// The one that is named: a folder with both, or a kernel whose first file system is beside it or in one of the
    /// usual places. Without a name: the first of those.
    ///
    /// Errors: there is none; it is no kernel of this kind.
    pub fn find(named: Option<&Path>) -> Result<Self, LabError> {
        let places = places();
        let usual = places.iter().find(|place| place.join(LINUX).is_file() && place.join(INITRAMFS).is_file());
        let found = match named {
            None => usual.map(|place| Self::in_folder(place)).ok_or_else(|| no_kernel(&places))?,
            Some(folder) if folder.is_dir() => Self::in_folder(folder),
            Some(linux) => {
                let beside = linux.with_file_name(INITRAMFS);
                let initramfs = if beside.is_file() { Some(beside) } else { usual.map(|place| place.join(INITRAMFS)) };
                let missing = || no_kernel(&places);
                Self { linux: linux.into(), initramfs: initramfs.ok_or_else(missing)? }
            }
        };
        found.check()
    }

    /// The one in a folder.
    pub fn in_folder(folder: &Path) -> Self {
        Self { linux: folder.join(LINUX), initramfs: folder.join(INITRAMFS) }
    }

    fn check(self) -> Result<Self, LabError> {
        let wrong = |path: &Path, what: &str| LabError::Kernel { path: path.into(), what: what.into() };
        let program = fs::read(&self.linux).map_err(LabError::file(&self.linux))?;
        let text = String::from_utf8_lossy(&program);
        if !program.starts_with(b"\x7fELF") || !MARKS.iter().all(|mark| text.contains(mark)) {
            return Err(wrong(&self.linux, "no User-Mode Linux with time travel and virtio (docs/serve-uml.md)"));
        }
        if !self.initramfs.is_file() {
            return Err(wrong(&self.initramfs, "the first file system of the lab is missing"));
        }
        let absolute = |path: PathBuf| path.canonicalize().map_err(LabError::file(&path));
        Ok(Self { linux: absolute(self.linux)?, initramfs: absolute(self.initramfs)? })
    }

    /// Its version, in its own words.
    pub fn version(&self) -> Option<String> {
        let program = fs::read(&self.linux).ok()?;
        let text = String::from_utf8_lossy(&program);
        let line = text.split("Linux version ").nth(1)?;
        line.split([' ', '\n', '\0']).next().map(str::to_owned).filter(|version| version.len() < 100)
    }
}

/// Where kernels are looked for, in this sequence.
fn places() -> Vec<PathBuf> {
    let mut places = vec![user_folder()];
    places.push(PathBuf::from("target/guest/lab"));
    // The program of a checkout is in target/debug or target/release.
    let program = std::env::current_exe().ok();
    let target = program.as_deref().and_then(Path::parent).and_then(Path::parent);
    places.extend(target.map(|target| target.join("guest/lab")));
    places
}

/// The user's own: `$XDG_DATA_HOME/emmclab/lab`.
fn user_folder() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")));
    data.unwrap_or_default().join("emmclab/lab")
}

fn no_kernel(places: &[PathBuf]) -> LabError {
    let looked: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    LabError::NoKernel { looked: looked.join(", "), default: user_folder() }
}
