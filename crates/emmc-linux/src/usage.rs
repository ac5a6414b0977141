//! Whether a block device or file is in use, and what is on it: checked before anything is overwritten.
//!
//! A partition's use is also its disk's, and a disk's is also every partition's. Mounts in other namespaces are not
//! visible here; the kernel refuses those when the device is opened exclusively. Absent on purpose: the decision.

use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::mounts::{self, Mount};
use crate::signature::{SIGNATURE_BYTES, signature};
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

/// Inspects a block device or a file.
///
/// Errors: it does not exist.
pub fn occupied(path: &Path) -> std::io::Result<Occupied> {
    let found = std::fs::metadata(path)?;
    let path = path.canonicalize()?;
    if found.file_type().is_block_device() {
        let tree = Tree::live();
        let number = format!("{}:{}", rustix::fs::major(found.rdev()), rustix::fs::minor(found.rdev()));
        let place = tree.sys("dev/block").join(number).canonicalize()?;
        return Ok(device(&tree, &place, &path));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let uses = file_uses(&Tree::live(), &path, None);
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
}

fn device(tree: &Tree, folder: &Path, node: &Path) -> Occupied {
    let own = Member::new(tree, folder);
    let is_partition = tree.attribute(folder, "partition").is_some();
    let disk = if is_partition { folder.parent().unwrap_or(folder) } else { folder };
    let parts = if is_partition { Vec::new() } else { partitions(tree, folder) };
    let mut uses = Vec::new();
    if tree.attribute(folder, "ro").as_deref() == Some("1") {
        uses.push(format!("{} is read-only", own.name));
    }
    let above = is_partition.then(|| Member::new(tree, disk));
    let mounted = mounts::read(tree);
    for member in std::iter::once(&own).chain(&parts).chain(&above) {
        uses.extend(member_uses(tree, member, &mounted));
    }
    if let Some(root) = root_path(tree, &mounted) {
        if root.iter().any(|name| *name == own.name || parts.iter().any(|part| part.name == *name)) {
            uses.insert(0, format!("the root filesystem is on {}", own.name));
        }
    }
    uses.extend(below(tree, disk));
    let size = |folder: &Path| crate::blocks::size(tree, folder).map_or(0, |bytes| bytes.0);
    let contents = contents_of_device(&own.name, node, &parts, size);
    Occupied { model: model(tree, disk), size_bytes: size(folder), name: own.name, uses, contents }
}

fn partitions(tree: &Tree, disk: &Path) -> Vec<Member> {
    let names = tree.names(disk).unwrap_or_default();
    let folders = names.iter().map(|name| disk.join(name));
    folders
        .filter(|folder| tree.attribute(folder, "partition").is_some())
        .map(|folder| Member::new(tree, &folder))
        .collect()
}

fn member_uses(tree: &Tree, member: &Member, mounted: &[Mount]) -> Vec<String> {
    let name = &member.name;
    let mut uses = Vec::new();
    if let Some(mount) = mounts::of(mounted, name, member.number.as_deref()) {
        uses.push(format!("{name} is mounted at {} ({})", mount.point, mount.fstype));
    }
    for holder in tree.names(&member.folder.join("holders")).unwrap_or_default() {
        let folder = member.folder.join("holders").join(&holder);
        let called = ["dm/name", "md/array_state"].iter().find_map(|path| tree.attribute(&folder, path));
        uses.push(format!("{name} is held by {holder}{}", called.map_or(String::new(), |name| format!(" ({name})"))));
    }
    let node = Path::new("/dev").join(name);
    uses.extend(file_uses(tree, &node, None));
    uses
}

/// Other uses of the file or device below a loop device: writing to one writes under the other.
fn below(tree: &Tree, disk: &Path) -> Vec<String> {
    let Some(backing) = backing_file(tree, disk) else { return Vec::new() };
    let (path, own) = (backing.as_path(), disk.file_name().and_then(|name| name.to_str()));
    let mut uses = file_uses(tree, path, own);
    let Ok(found) = std::fs::metadata(path) else { return uses };
    if found.file_type().is_block_device() {
        let number = format!("{}:{}", rustix::fs::major(found.rdev()), rustix::fs::minor(found.rdev()));
        if let Ok(folder) = tree.sys("dev/block").join(number).canonicalize() {
            let own_use = own.map(|own| format!("is the file behind {own}"));
            let others = device(tree, &folder, path).uses.into_iter();
            uses.extend(others.filter(|text| !own_use.as_ref().is_some_and(|own| text.ends_with(own))));
        }
    }
    uses.dedup();
    uses
}

/// The backing file of a loop device: the raw name.
fn backing_file(tree: &Tree, disk: &Path) -> Option<PathBuf> {
    let mut name = tree.read_bytes(&disk.join("loop/backing_file")).ok()?;
    name.truncate(name.strip_suffix(b"\n").unwrap_or(&name).len());
    Some(std::ffi::OsString::from_vec(name).into())
}

/// Swap and loop devices except `except`, which name their backing file by its path.
fn file_uses(tree: &Tree, path: &Path, except: Option<&str>) -> Vec<String> {
    let name = path.display();
    let mut uses = Vec::new();
    let swaps = tree.read_bytes(&tree.proc("swaps")).unwrap_or_default();
    let swaps = swaps.split(|byte| *byte == b'\n').skip(1).filter_map(|line| mounts::path_of_word(line, 0));
    if swaps.into_iter().any(|swap| is_same(&swap, path)) {
        uses.push(format!("{name} is in use as swap"));
    }
    for disk in tree.names(&tree.sys("block")).unwrap_or_default() {
        if except == Some(disk.as_str()) {
            continue;
        }
        if backing_file(tree, &tree.block(&disk)).is_some_and(|backing| is_same(&backing, path)) {
            uses.push(format!("{name} is the file behind {disk}"));
        }
    }
    uses
}

fn is_same(one: &Path, other: &Path) -> bool {
    if one == other {
        return true;
    }
    let [Ok(one), Ok(other)] = [one.metadata(), other.metadata()] else { return false };
    if one.file_type().is_block_device() && other.file_type().is_block_device() {
        return one.rdev() == other.rdev();
    }
    (one.dev(), one.ino()) == (other.dev(), other.ino())
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

fn contents_of_device(name: &str, node: &Path, parts: &[Member], size: impl Fn(&Path) -> u64) -> Vec<String> {
    let Ok(file) = File::open(node) else { return Vec::new() };
    let whole = read_signature(&file, 0).map(|what| format!("{name}: {what}"));
    let of_part = |part: &Member| {
        let start = std::fs::read_to_string(part.folder.join("start")).ok()?.trim().parse::<u64>().ok()?;
        let what = read_signature(&file, start.checked_mul(512)?).unwrap_or_else(|| "no known content".into());
        let bytes = emmc_units::Bytes(size(&part.folder)).rounded();
        Some(format!("{}: {bytes}, {what}", part.name))
    };
    whole.into_iter().chain(parts.iter().filter_map(of_part)).collect()
}

fn contents_of_file(path: &Path, bytes: u64) -> Vec<String> {
    let Ok(file) = File::open(path) else { return Vec::new() };
    let what = read_signature(&file, 0).map(|what| format!(" that begins as {what}"));
    vec![format!("{} of a file{}", emmc_units::Bytes(bytes).rounded(), what.unwrap_or_default())]
}

fn read_signature(file: &File, at: u64) -> Option<String> {
    let mut bytes = vec![0; SIGNATURE_BYTES];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], at + filled as u64) {
            Ok(0) | Err(_) => break,
            Ok(count) => filled += count,
        }
    }
    signature(&bytes[..filled])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_filesystems_disk_is_in_use() {
        let tree = Tree::live();
        let Some(names) = root_path(&tree, &mounts::read(&tree)) else {
            eprintln!("SKIPPED: the root filesystem is on no block device");
            return;
        };
        let disk = names.last().unwrap();
        let folder = tree.sys("class/block").join(disk).canonicalize().unwrap();
        let found = device(&tree, &folder, &Path::new("/dev").join(disk));
        assert!(found.uses.iter().any(|text| text.starts_with("the root filesystem is on")), "{found:?}");
        assert!(found.uses.iter().any(|text| text.contains("is mounted at /")), "{found:?}");
    }

    /// A copied /sys and /proc of a disk with two partitions, the first mounted, the second swap below a device mapper.
    fn disk_with_partitions() -> PathBuf {
        let root = std::env::temp_dir().join(format!("emmclab-in-use-{}", std::process::id()));
        let disk = root.join("sys/block/mmcblk7");
        for (file, text) in [
            ("size", "1000000"),
            ("dev", "179:56"),
            ("ro", "0"),
            ("device/name", "TESTED"),
            ("mmcblk7p1/partition", "1"),
            ("mmcblk7p1/dev", "179:57"),
            ("mmcblk7p1/size", "2048"),
            ("mmcblk7p1/start", "2048"),
            ("mmcblk7p2/partition", "2"),
            ("mmcblk7p2/dev", "179:58"),
            ("mmcblk7p2/holders/dm-3/dm/name", "vg-root"),
            ("../../../proc/swaps", "Filename Type Size Used Priority\n/dev/mmcblk7p2 partition 1 0 -2"),
            ("../../../proc/self/mountinfo", "22 1 179:57 / /boot rw - vfat /dev/mmcblk7p1 rw"),
        ] {
            let path = disk.join(file);
            let folder = path.parent().unwrap();
            // The kernel's own `..` needs what is before it.
            std::fs::create_dir_all(&disk).unwrap();
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(&path, text).unwrap();
        }
        root
    }

    #[test]
    fn a_partition_in_use_makes_its_disk_in_use() {
        let root = disk_with_partitions();
        let tree = Tree::copied(&root).unwrap();
        let disk = tree.block("mmcblk7");
        let uses = |folder: &Path| device(&tree, folder, Path::new("/no such node")).uses;
        let of_disk = uses(&disk);
        let expected = [
            "mmcblk7p1 is mounted at /boot (vfat)",
            "mmcblk7p2 is held by dm-3 (vg-root)",
            "/dev/mmcblk7p2 is in use as swap",
        ];
        assert_eq!(of_disk, expected);
        assert_eq!(uses(&disk.join("mmcblk7p1")), expected[..1]);
        assert_eq!(uses(&disk.join("mmcblk7p2")), expected[1..]);
        std::fs::write(disk.join("mmcblk7p1/ro"), "1").unwrap();
        assert_eq!(uses(&disk.join("mmcblk7p1"))[0], "mmcblk7p1 is read-only");
        assert_eq!(device(&tree, &disk, Path::new("/no such node")).model.as_deref(), Some("TESTED"));
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn an_ordinary_file_is_free() {
        let found = occupied(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml").as_path()).unwrap();
        assert_eq!((found.name.as_str(), found.uses), ("Cargo.toml", Vec::new()));
        assert!(found.contents[0].contains("of a file"));
        assert!(occupied(Path::new("/no such device")).is_err());
    }
}
