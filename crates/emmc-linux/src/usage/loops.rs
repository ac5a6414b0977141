//! Loop devices and what is behind them.
//!
//! `loop/backing_file` in /sys is a name of the past: the file may have other names (hard links), the name may lead to
//! another file now, or nowhere. The kernel identifies the file itself: `LOOP_GET_STATUS64`.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::node::Node;
use crate::ioctl::{self, LoopBacking};
use crate::tree::Tree;

/// An attached loop device.
#[derive(Debug)]
pub(super) struct Loop {
    /// `loop3`.
    pub(super) name: String,
    /// The name of the file when it was attached: raw, perhaps with ` (deleted)`.
    pub(super) path: PathBuf,
    /// From the kernel; absent without permission to open the device, or without its node.
    backing: Option<LoopBacking>,
    /// Unit: bytes.
    size_bytes: Option<u64>,
    /// The first byte of the file that is in the device. Unit: bytes.
    offset_bytes: u64,
}

/// Every attached loop device.
///
/// Errors: /sys/block cannot be read.
pub(super) fn attached(tree: &Tree) -> io::Result<Vec<Loop>> {
    let disks = tree.names(&tree.sys("block"))?;
    Ok(disks.into_iter().filter_map(|name| Loop::of(tree, name)).collect())
}

impl Loop {
    fn of(tree: &Tree, name: String) -> Option<Self> {
        let folder = tree.block(&name);
        let mut path = tree.read_bytes(&folder.join("loop/backing_file")).ok()?;
        path.truncate(path.strip_suffix(b"\n").unwrap_or(&path).len());
        let number = |file: &str| tree.attribute(&folder, file)?.trim().parse::<u64>().ok();
        let device = tree.is_live().then(|| open(&Path::new("/dev").join(&name), tree.attribute(&folder, "dev")));
        Some(Self {
            path: OsString::from_vec(path).into(),
            backing: device.flatten().and_then(|device| ioctl::loop_backing(&device).ok()),
            size_bytes: number("size").and_then(|sectors| sectors.checked_mul(512)),
            offset_bytes: number("loop/offset").unwrap_or(0),
            name,
        })
    }

    /// What is behind it; without the kernel's word the file that has its name now.
    pub(super) fn node(&self) -> Option<Node> {
        match self.backing {
            Some(LoopBacking { block_device, .. }) if block_device != (0, 0) => Some(Node::Device(block_device)),
            Some(LoopBacking { device, inode, .. }) => Some(Node::File(device, inode)),
            None => Node::of(&self.path),
        }
    }

    /// Whether it may be over this file although the numbers differ or are not known. `size_bytes`: the file's.
    ///
    /// Its name leads nowhere (deleted, in another mount namespace), or it is a file of a filesystem without a device,
    /// such as an overlay in another namespace, which has the inode of the file below it. Both only if the size fits.
    pub(super) fn may_be(&self, node: Node, size_bytes: u64) -> bool {
        let is_possible = match (self.node(), node) {
            (None, _) => true,
            (Some(Node::File((major, _), other)), Node::File(_, inode)) => {
                major == 0 && other == inode && Node::of(&self.path) != self.node()
            }
            _ => false,
        };
        let fits = |own: u64| size_bytes.saturating_sub(self.offset_bytes) / 512 * 512 == own;
        is_possible && self.size_bytes.is_none_or(fits)
    }
}

/// Opens the node if it is that device's.
fn open(node: &Path, number: Option<String>) -> Option<File> {
    let Node::Device((major, minor)) = Node::of(node)? else { return None };
    if number.is_some_and(|number| number != format!("{major}:{minor}")) {
        return None;
    }
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(node).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_identified_may_be_any_of_its_size() {
        let none = Loop {
            name: "loop1".into(),
            path: "/no such file (deleted)".into(),
            backing: None,
            size_bytes: Some(1 << 20),
            offset_bytes: 0,
        };
        let file = Node::File((8, 1), 12);
        assert!(none.may_be(file, 1 << 20) && none.may_be(file, (1 << 20) + 100) && !none.may_be(file, 2 << 20));
        let with = |device, inode| Loop {
            backing: Some(LoopBacking { device, inode, block_device: (0, 0) }),
            path: none.path.clone(),
            name: none.name.clone(),
            ..none
        };
        assert!(with((0, 40), 12).may_be(file, 1 << 20), "the inode of an overlay elsewhere");
        assert!(!with((8, 2), 12).may_be(file, 1 << 20), "another filesystem on a device");
        assert!(!with((0, 40), 13).may_be(file, 1 << 20), "another inode");
        let behind =
            Loop { backing: Some(LoopBacking { device: (0, 6), inode: 1, block_device: (259, 3) }), ..with((0, 6), 1) };
        assert_eq!(behind.node(), Some(Node::Device((259, 3))));
        assert!(!behind.may_be(file, 1 << 20));
    }
}
