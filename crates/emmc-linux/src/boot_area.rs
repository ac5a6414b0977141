//! The kernel's lock of a boot area: opened for one restore or erase, and closed again.
//!
//! The kernel creates `mmcblkNboot0` and `boot1` read-only, and `force_ro` is the one way to write to them. Absent on
//! purpose: write protection by the card (`BOOT_WP`), which this does not change.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// An area that may be written while this exists.
#[derive(Debug)]
pub struct UnlockedArea {
    /// Its attribute; none if it was not locked.
    force_ro: Option<PathBuf>,
}

impl UnlockedArea {
    /// Unlocks the area of this name, e.g. `mmcblk0boot0`, if the kernel holds it read-only.
    ///
    /// Errors: the kernel's.
    pub fn new(name: &str) -> io::Result<Self> {
        Self::below(Path::new("/sys"), name)
    }

    fn below(sys: &Path, name: &str) -> io::Result<Self> {
        let force_ro = sys.join("block").join(name).join("force_ro");
        match fs::read_to_string(&force_ro) {
            Ok(text) if text.trim() == "1" => {
                fs::write(&force_ro, "0\n")?;
                Ok(Self { force_ro: Some(force_ro) })
            }
            Ok(_) => Ok(Self { force_ro: None }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self { force_ro: None }),
            Err(error) => Err(error),
        }
    }
}

impl Drop for UnlockedArea {
    fn drop(&mut self) {
        if let Some(force_ro) = &self.force_ro {
            // The card may be gone; then its attribute is, too.
            let _ = fs::write(force_ro, "1\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_is_locked_again() {
        let sys = tempfile::tempdir().unwrap();
        let folder = sys.path().join("block/mmcblk0boot0");
        fs::create_dir_all(&folder).unwrap();
        let force_ro = folder.join("force_ro");
        fs::write(&force_ro, "1\n").unwrap();
        let unlocked = UnlockedArea::below(sys.path(), "mmcblk0boot0").unwrap();
        assert_eq!(fs::read_to_string(&force_ro).unwrap(), "0\n");
        drop(unlocked);
        assert_eq!(fs::read_to_string(&force_ro).unwrap(), "1\n");
        // One that was open stays open, and one without the attribute has no lock.
        fs::write(&force_ro, "0\n").unwrap();
        drop(UnlockedArea::below(sys.path(), "mmcblk0boot0").unwrap());
        assert_eq!(fs::read_to_string(&force_ro).unwrap(), "0\n");
        assert!(UnlockedArea::below(sys.path(), "mmcblk0gp0").unwrap().force_ro.is_none());
    }
}
