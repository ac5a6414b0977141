//! Whether a block device or file is in use, and what is on it: checked before anything is overwritten.
//!
//! A partition's use is also its disk's, and a disk's is also every partition's. Names prove nothing: what is behind a
//! loop device is identified by the kernel's numbers (`loops`), an overlay has two names for one file (`overlay`).
//! Mounts in other namespaces, members of btrfs and swap are claims of the kernel (`claims`), which also end the check
//! where /proc and /sys are absent. Absent on purpose: the decision.

mod claims;
mod contents;
mod locks;
mod loops;
mod node;
mod overlay;
#[cfg(test)]
mod tests;

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use contents::{contents_of_device, contents_of_file};
use loops::Loop;
use node::Node;

use crate::mounts::{self, Mount};
use crate::tree::Tree;

/// A target to be overwritten, and the reasons against it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occupied {
    /// The kernel's name of a device, e.g. `mmcblk0p2`; the name of a file.
    pub name: String,
    /// Its model.
    pub model: Option<String>,
    /// Unit: bytes.
    pub size_bytes: u64,
    /// Reasons why it must not be written: a sentence each.
    pub uses: Vec<String>,
    /// Its content, as far as its first bytes show: a line each.
    pub contents: Vec<String>,
}

/// Who may have claimed the device from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Nobody.
    Nobody,
    /// This process, which has opened it exclusively.
    Us,
}

/// Inspects a block device or a file.
///
/// Without /proc and /sys, nobody can find out whether it is in use, which is a reason against it.
///
/// Errors: it does not exist.
pub fn occupied(path: &Path, holder: Holder) -> std::io::Result<Occupied> {
    inspect(&Tree::live(), path, holder)
}

/// The reason against a device that the kernel holds read-only.
pub(crate) fn read_only(name: &str) -> String {
    format!("{name} is read-only")
}

fn inspect(tree: &Tree, path: &Path, holder: Holder) -> std::io::Result<Occupied> {
    let found = std::fs::metadata(path)?;
    // Without /proc the path may be all there is.
    let path = path.canonicalize()?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let blind = claims::blind(tree);
    if !blind.is_empty() {
        return Ok(Occupied { name, size_bytes: found.len(), uses: blind, ..Occupied::default() });
    }
    let look = Look::new(tree)?;
    if found.file_type().is_block_device() {
        let number = Node::number(found.rdev());
        let place = tree.sys("dev/block").join(format!("{}:{}", number.0, number.1)).canonicalize()?;
        return Ok(look.device(&place, &path, holder));
    }
    let uses = look.file(&path);
    Ok(Occupied { name, model: None, size_bytes: found.len(), uses, contents: contents_of_file(&path, found.len()) })
}

/// A device or a partition with its folder in /sys.
struct Member {
    name: String,
    folder: PathBuf,
    number: Option<String>,
}

impl Member {
    fn new(tree: &Tree, folder: &Path) -> Self {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { name, folder: folder.to_owned(), number: tree.attribute(folder, "dev") }
    }

    fn node(&self) -> Option<Node> {
        let (major, minor) = self.number.as_deref()?.split_once(':')?;
        Some(Node::Device((major.parse().ok()?, minor.parse().ok()?)))
    }
}

/// What the kernel reports at one moment.
struct Look<'a> {
    tree: &'a Tree,
    mounted: Vec<Mount>,
    loops: Vec<Loop>,
    swaps: Vec<PathBuf>,
}

impl<'a> Look<'a> {
    fn new(tree: &'a Tree) -> std::io::Result<Self> {
        let swaps = tree.read_bytes(&tree.proc("swaps")).unwrap_or_default();
        let swaps = swaps.split(|byte| *byte == b'\n').skip(1);
        let swaps = swaps.filter_map(|line| mounts::path_of_word(line, 0)).filter(|path| path.is_absolute()).collect();
        Ok(Self { tree, mounted: mounts::read(tree), loops: loops::attached(tree)?, swaps })
    }

    fn device(&self, folder: &Path, node: &Path, holder: Holder) -> Occupied {
        let tree = self.tree;
        let own = Member::new(tree, folder);
        let is_partition = tree.attribute(folder, "partition").is_some();
        let disk = if is_partition { folder.parent().unwrap_or(folder) } else { folder };
        let parts = if is_partition { Vec::new() } else { partitions(tree, folder) };
        let mut uses = Vec::new();
        if tree.attribute(folder, "ro").as_deref() == Some("1") {
            uses.push(read_only(&own.name));
        }
        let above = is_partition.then(|| Member::new(tree, disk));
        for member in std::iter::once(&own).chain(&parts).chain(&above) {
            uses.extend(self.member(member));
        }
        if let Some(root) = root_path(tree, &self.mounted) {
            if root.iter().any(|name| *name == own.name || parts.iter().any(|part| part.name == *name)) {
                uses.insert(0, format!("the root filesystem is on {}", own.name));
            }
        }
        uses.extend(self.below(disk, 0));
        // A claim that has a name above needs no second line.
        if uses.is_empty() && holder == Holder::Nobody && claims::is_claimed(node) {
            uses.push(claims::claimed(&own.name));
        }
        let size = |folder: &Path| crate::blocks::size(tree, folder).map_or(0, |bytes| bytes.0);
        let contents = contents_of_device(&own.name, node, &parts, size);
        Occupied { model: model(tree, disk), size_bytes: size(folder), name: own.name, uses, contents }
    }

    fn member(&self, member: &Member) -> Vec<String> {
        let (tree, name) = (self.tree, &member.name);
        let mut uses = Vec::new();
        if let Some(mount) = mounts::of(&self.mounted, name, member.number.as_deref()) {
            uses.push(format!("{name} is mounted at {} ({})", mount.point, mount.fstype));
        }
        for holder in tree.names(&member.folder.join("holders")).unwrap_or_default() {
            let folder = member.folder.join("holders").join(&holder);
            let called = ["dm/name", "md/array_state"].iter().find_map(|path| tree.attribute(&folder, path));
            let called = called.map_or(String::new(), |name| format!(" ({name})"));
            uses.push(format!("{name} is held by {holder}{called}"));
        }
        if uses.is_empty() {
            uses.extend(claims::pool(tree, name));
        }
        let node = Path::new("/dev").join(name);
        uses.extend(self.named(&node.display().to_string(), member.node(), &node, None));
        uses.extend(locks::lock_of(&node, &node.display().to_string()).filter(|_| member.node() == Node::of(&node)));
        uses
    }

    /// Other uses of the file or device below a loop device, and of the devices below a mapped one: writing to one
    /// writes under the other.
    fn below(&self, disk: &Path, depth: u32) -> Vec<String> {
        /// A loop on a loop on a loop: no real stack of devices is deeper.
        const DEPTH_MAX: u32 = 16;
        let (tree, own) = (self.tree, disk.file_name().unwrap_or_default().to_string_lossy().into_owned());
        if depth == DEPTH_MAX {
            return vec![format!("{own} is on more than {DEPTH_MAX} other devices")];
        }
        let mut uses = Vec::new();
        let is_own = |text: &String| text.ends_with(&format!("is the file behind {own}"));
        if let Some(backing) = self.loops.iter().find(|attached| attached.name == own) {
            let node = backing.node();
            let path = &backing.path;
            if let Some(Node::Device((major, minor))) = node {
                if let Ok(folder) = tree.sys("dev/block").join(format!("{major}:{minor}")).canonicalize() {
                    let others = self.device(&folder, path, Holder::Nobody).uses.into_iter();
                    uses.extend(others.filter(|text| !is_own(text)));
                }
            } else {
                uses.extend(self.named(&path.display().to_string(), node, path, Some(&own)));
                if Node::of(path) == node {
                    uses.extend(self.layers(path, Some(&own)));
                    uses.extend(locks::lock_of(path, &path.display().to_string()));
                }
            }
        }
        let slaves = disk.join("slaves");
        for slave in tree.names(&slaves).unwrap_or_default() {
            let Ok(folder) = slaves.join(&slave).canonicalize() else { continue };
            let member = Member::new(tree, &folder);
            let node = Path::new("/dev").join(&slave);
            uses.extend(self.named(&node.display().to_string(), member.node(), &node, None));
            let is_partition = tree.attribute(&folder, "partition").is_some();
            let whole = if is_partition { folder.parent().unwrap_or(&folder) } else { &folder };
            uses.extend(self.below(whole, depth + 1));
        }
        uses.dedup();
        uses
    }

    /// Uses of a regular file.
    fn file(&self, path: &Path) -> Vec<String> {
        let mut uses = self.named(&path.display().to_string(), Node::of(path), path, None);
        uses.extend(self.layers(path, None));
        uses.extend(locks::lock_of(path, &path.display().to_string()));
        uses
    }

    /// Uses of the same file by its other names on an overlay.
    fn layers(&self, path: &Path, except: Option<&str>) -> Vec<String> {
        let others = overlay::other_names(&self.mounted, path);
        let uses = others.iter().flat_map(|other| {
            let called = format!("{} (on an overlay the same file as {})", other.display(), path.display());
            let mut uses = self.named(&called, Node::of(other), other, except);
            uses.extend(locks::lock_of(other, &called));
            uses
        });
        uses.collect()
    }

    /// Swap on it, and loop devices over it except `except`; `node` is absent if only its path is known.
    fn named(&self, called: &str, node: Option<Node>, path: &Path, except: Option<&str>) -> Vec<String> {
        let mut uses = Vec::new();
        let is_same = |other: &Path| other == path || (node.is_some() && Node::of(other) == node);
        if self.swaps.iter().any(|swap| is_same(swap)) {
            uses.push(format!("{called} is in use as swap"));
        }
        let size_bytes = || match node {
            Some(Node::Device((major, minor))) => {
                let folder = self.tree.sys("dev/block").join(format!("{major}:{minor}"));
                crate::blocks::size(self.tree, &folder).map_or(0, |bytes| bytes.0)
            }
            _ => std::fs::metadata(path).map_or(0, |found| found.len()),
        };
        for attached in self.loops.iter().filter(|attached| except != Some(attached.name.as_str())) {
            if attached.path == path || (node.is_some() && attached.node() == node) {
                uses.push(format!("{called} is the file behind {}", attached.name));
            } else if node.is_some_and(|node| attached.may_be(node, size_bytes())) {
                uses.push(format!(
                    "{called} may be the file behind {}, which cannot be identified ({})",
                    attached.name,
                    attached.path.display()
                ));
            }
        }
        uses
    }
}

fn partitions(tree: &Tree, disk: &Path) -> Vec<Member> {
    let names = tree.names(disk).unwrap_or_default();
    let folders = names.iter().map(|name| disk.join(name));
    folders
        .filter(|folder| tree.attribute(folder, "partition").is_some())
        .map(|folder| Member::new(tree, &folder))
        .collect()
}

/// The block devices of the root filesystem: itself, its disk, and the devices below them.
fn root_path(tree: &Tree, mounted: &[Mount]) -> Option<Vec<String>> {
    let root = mounted.iter().find(|mount| mount.point == "/")?;
    let mut names = Vec::new();
    let number = root.number.as_deref().filter(|number| !number.starts_with("0:"));
    let by_number = number.map(|number| tree.sys("dev/block").join(number));
    let by_name = root.source.strip_prefix("/dev/").map(|name| tree.sys("class/block").join(name));
    let folder = [by_number, by_name].into_iter().flatten().find_map(|folder| folder.canonicalize().ok())?;
    let mut open = vec![folder];
    while let Some(folder) = open.pop() {
        names.push(folder.file_name()?.to_string_lossy().into_owned());
        if tree.attribute(&folder, "partition").is_some() {
            open.extend(folder.parent().map(Path::to_owned));
        }
        let below = folder.join("slaves");
        let slaves = tree.names(&below).unwrap_or_default();
        open.extend(slaves.iter().filter_map(|name| below.join(name).canonicalize().ok()));
    }
    Some(names)
}

fn model(tree: &Tree, disk: &Path) -> Option<String> {
    let device = disk.join("device");
    let own = ["model", "name"].iter().find_map(|name| tree.attribute(&device, name));
    let backing = || tree.attribute(&disk.join("loop"), "backing_file").map(|file| format!("loop device of {file}"));
    let mapped = || tree.attribute(&disk.join("dm"), "name").map(|name| format!("device mapper {name}"));
    own.map(|name| name.trim().to_owned()).or_else(backing).or_else(mapped).filter(|name| !name.is_empty())
}
