//! The location of /sys and /proc: this machine's, or a copy's.
//!
//! A copy is untrusted data: only regular files in its folder are read, and no large ones.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use emmc_port::SourceError;

/// Larger than any attribute; the kernel gives most of them one page.
const ATTRIBUTE_BYTES_MAX: u64 = 1 << 20;

/// A /sys and a /proc.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    sys: PathBuf,
    proc: PathBuf,
    /// The folder that a copy must not lead out of.
    boundary: Option<PathBuf>,
}

impl Tree {
    /// This machine's.
    pub(crate) fn live() -> Self {
        Self { sys: "/sys".into(), proc: "/proc".into(), boundary: None }
    }

    /// A copy in `folder`, which holds `sys` and perhaps `proc`, or is the copied `/sys` itself.
    ///
    /// Errors: the folder cannot be read, or holds neither `sys/block` nor `block`.
    pub(crate) fn copied(folder: &Path) -> Result<Self, SourceError> {
        let name = folder.display().to_string();
        let failed = |error: io::Error| SourceError::Read { name: name.clone(), reason: error.to_string() };
        let boundary = folder.canonicalize().map_err(failed)?;
        let sys = [folder.join("sys"), folder.to_path_buf()].into_iter().find(|sys| sys.join("block").is_dir());
        let Some(sys) = sys else {
            let reason = "no copied /sys: expected a folder sys/block or block in it".into();
            return Err(SourceError::Unsupported { name, reason });
        };
        Ok(Self { sys, proc: folder.join("proc"), boundary: Some(boundary) })
    }

    /// Whether this is the running machine.
    pub(crate) fn is_live(&self) -> bool {
        self.boundary.is_none()
    }

    /// `block/NAME`.
    pub(crate) fn block(&self, name: &str) -> PathBuf {
        self.sys.join("block").join(name)
    }

    /// A path below /sys.
    pub(crate) fn sys(&self, path: &str) -> PathBuf {
        self.sys.join(path)
    }

    /// A path below /proc.
    pub(crate) fn proc(&self, path: &str) -> PathBuf {
        self.proc.join(path)
    }

    /// A path below /etc.
    pub(crate) fn etc(&self, path: &str) -> PathBuf {
        self.boundary.as_deref().unwrap_or(Path::new("/")).join("etc").join(path)
    }

    /// A path below the root folder; in a copy, below its folder.
    pub(crate) fn root(&self, path: &str) -> PathBuf {
        self.boundary.as_deref().unwrap_or(Path::new("/")).join(path)
    }

    /// The text of an attribute without its last line feed.
    ///
    /// Errors: the file cannot be read, or is none, or lies outside a copied tree.
    pub(crate) fn read(&self, path: &Path) -> io::Result<String> {
        let bytes = self.read_bytes(path)?;
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.strip_suffix('\n').unwrap_or(&text).to_string())
    }

    /// The bytes of an attribute, unchanged: names need not be UTF-8.
    ///
    /// Errors: as [`Tree::read`].
    pub(crate) fn read_bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.check(path)?;
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let mut bytes = Vec::new();
        File::open(path)?.take(ATTRIBUTE_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// As [`Tree::read`], if a missing attribute is normal.
    pub(crate) fn attribute(&self, folder: &Path, name: &str) -> Option<String> {
        self.read(&folder.join(name)).ok()
    }

    /// Whether systemd starts a timer at boot; nothing where there is no systemd, or a copy has no `etc`.
    ///
    /// Source: systemctl(1): `enable` makes a link in the `.wants` folder of the target; distributions ship some links.
    pub(crate) fn unit_is_enabled(&self, timer: &str) -> Option<bool> {
        let root = self.boundary.as_deref().unwrap_or(Path::new("/"));
        let wants =
            ["etc/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"].map(|folder| root.join(folder));
        if !wants.iter().any(|folder| folder.is_dir()) {
            return None;
        }
        let starts = |folder: &PathBuf| self.names(&folder.join("timers.target.wants")).unwrap_or_default();
        Some(wants.iter().any(|folder| starts(folder).iter().any(|name| name == timer)))
    }

    /// The names in a folder, in order.
    ///
    /// Errors: the folder cannot be read, or lies outside a copied tree.
    pub(crate) fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        self.check(folder)?;
        let mut names: Vec<String> =
            fs::read_dir(folder)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort_by(|a, b| natural(a).cmp(&natural(b)));
        Ok(names)
    }

    /// The name that a link leads to.
    pub(crate) fn link_name(&self, path: &Path) -> Option<String> {
        fs::read_link(path).ok()?.file_name()?.to_str().map(str::to_string)
    }

    /// A link in a copy may lead to this machine's /sys, which would mix two cards.
    fn check(&self, path: &Path) -> io::Result<()> {
        let Some(boundary) = &self.boundary else { return Ok(()) };
        if path.canonicalize()?.starts_with(boundary) {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "leads out of the copied tree"))
    }
}

/// Order in which `mmcblk0p10` comes after `mmcblk0p9`: names without their last number, then the number.
fn natural(name: &str) -> (&str, usize, &str) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem, name.len() - stem.len(), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_sort_numerically() {
        let mut names = ["mmcblk0p10", "mmcblk0p9", "mmcblk0", "mmcblk0p1", "mmcblk10", "mmcblk2"];
        names.sort_by(|a, b| natural(a).cmp(&natural(b)));
        assert_eq!(names, ["mmcblk0", "mmcblk2", "mmcblk10", "mmcblk0p1", "mmcblk0p9", "mmcblk0p10"]);
    }

    #[test]
    fn a_copy_is_recognised_by_its_block_folder() {
        let board = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/sysfs/board");
        for folder in [board.clone(), board.join("sys")] {
            let tree = Tree::copied(&folder).unwrap();
            assert!(!tree.is_live());
            assert_eq!(tree.attribute(&tree.block("mmcblk0"), "size").as_deref(), Some("61071360"));
        }
        assert!(matches!(Tree::copied(&board.join("proc")), Err(SourceError::Unsupported { .. })));
        assert!(matches!(Tree::copied(&board.join("nothing")), Err(SourceError::Read { .. })));
    }

    #[test]
    fn links_of_a_copy_stay_inside() {
        let board = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/sysfs/board");
        let tree = Tree::copied(&board).unwrap();
        for outside in ["../../README.md", "../../../Cargo.toml"] {
            assert!(tree.read(&board.join(outside)).unwrap_err().to_string().contains("copied tree"));
        }
        assert!(tree.read(&tree.sys("block")).unwrap_err().to_string().contains("regular file"));
        assert!(tree.names(Path::new("/sys")).is_err());
    }
}
