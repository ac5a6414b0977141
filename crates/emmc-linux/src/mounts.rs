//! Which filesystems are mounted from which block device.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use emmc_units::mount_name;

use crate::tree::Tree;

/// One mounted filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// `179:1`; absent where only names are known.
    pub(crate) number: Option<String>,
    /// The device as the mount named it: `/dev/mmcblk0p1`, `/dev/root`.
    pub(crate) source: String,
    /// The folder of the filesystem that is mounted; absent where only names are known.
    pub(crate) root: Option<PathBuf>,
    /// The mount point, as printed.
    pub(crate) point: String,
    /// The mount point as a path, which need not be UTF-8.
    pub(crate) path: PathBuf,
    /// Type.
    pub(crate) fstype: String,
    /// Options of the mount and of its filesystem, comma-separated.
    pub(crate) options: String,
}

/// All mounts of the tree: `/proc/self/mountinfo`, or `/proc/mounts` if a copy has only that.
pub(crate) fn read(tree: &Tree) -> Vec<Mount> {
    of_task(tree, "self").unwrap_or_else(|| {
        let text = tree.read_bytes(&tree.proc("mounts")).unwrap_or_default();
        lines(&text).filter_map(mounts).collect()
    })
}

/// The mounts of the calling thread, which may have private ones.
#[cfg(feature = "bench")]
pub(crate) fn of_this_thread(tree: &Tree) -> Vec<Mount> {
    of_task(tree, "thread-self").unwrap_or_default()
}

fn of_task(tree: &Tree, task: &str) -> Option<Vec<Mount>> {
    let text = tree.read_bytes(&tree.proc(task).join("mountinfo")).ok()?;
    Some(lines(&text).filter_map(mountinfo).collect())
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
}

/// The first mount of a block device; the others are views of the same filesystem.
///
/// The number takes precedence over the name: the root filesystem is often mounted from `/dev/root`. Some filesystems
/// (btrfs) have a number of their own, and are found by name.
pub(crate) fn of<'a>(mounts: &'a [Mount], name: &str, number: Option<&str>) -> Option<&'a Mount> {
    let by_number = |mount: &&Mount| number.is_some() && mount.number.as_deref() == number;
    let by_name = |mount: &&Mount| mount.source.strip_prefix("/dev/").is_some_and(|source| source == name);
    mounts.iter().find(by_number).or_else(|| mounts.iter().find(by_name))
}

/// The mount of a file: the longest and latest mount point that is a prefix of its path.
#[cfg(feature = "bench")]
pub(crate) fn around<'a>(mounts: &'a [Mount], path: &std::path::Path) -> Option<&'a Mount> {
    mounts.iter().filter(|mount| path.starts_with(&mount.path)).max_by_key(|mount| mount.path.as_os_str().len())
}

/// `36 35 179:2 / / rw,noatime shared:1 - ext4 /dev/root rw`.
///
/// Source: proc(5); a lone hyphen ends the optional fields.
fn mountinfo(line: &[u8]) -> Option<Mount> {
    let text = String::from_utf8_lossy(line);
    let mut words = text.split(' ');
    let number = words.nth(2)?.to_string();
    let (root, path) = (path_of_word(line, 3), path_of_word(line, 4)?);
    let point = unescape(words.nth(1)?);
    let own = words.next()?;
    let mut behind = words.skip_while(|&word| word != "-").skip(1);
    let fstype = behind.next()?.to_string();
    let source = unescape(behind.next()?);
    let more =
        behind.next().unwrap_or_default().split(',').filter(|option| !own.split(',').any(|known| known == *option));
    let options = std::iter::once(own).chain(more).filter(|option| !option.is_empty()).collect::<Vec<_>>().join(",");
    Some(Mount { number: Some(number), source, root, point, path, fstype, options })
}

/// `/dev/mmcblk0p1 /boot vfat rw 0 0`.
fn mounts(line: &[u8]) -> Option<Mount> {
    let text = String::from_utf8_lossy(line);
    let mut words = text.split(' ');
    let source = unescape(words.next()?);
    let point = unescape(words.next()?);
    let fstype = words.next()?.to_string();
    let (path, options) = (path_of_word(line, 1)?, words.next().unwrap_or_default().to_string());
    Some(Mount { number: None, source, root: None, point, path, fstype, options })
}

/// The path that a word of a line is.
pub(crate) fn path_of_word(line: &[u8], index: usize) -> Option<PathBuf> {
    let word = line.split(|byte| *byte == b' ').nth(index)?;
    Some(OsString::from_vec(mount_name(word)).into())
}

fn unescape(text: &str) -> String {
    String::from_utf8_lossy(&mount_name(text.as_bytes())).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_found_by_number_then_by_name() {
        let lines = [
            "22 1 179:2 / / rw,noatime shared:1 master:2 - ext4 /dev/root rw",
            "23 22 179:2 /srv /mnt rw - ext4 /dev/root rw",
            "30 22 0:40 /@ /data rw - btrfs /dev/mmcblk0p3 rw",
            "31 22 179:1 / /my\\040card\\134 rw - vfat /dev/mmcblk0p1 rw",
        ];
        let mounts: Vec<Mount> = lines.iter().filter_map(|line| mountinfo(line.as_bytes())).collect();
        let point = |name, number| of(&mounts, name, number).map(|mount| mount.point.as_str());
        assert_eq!(point("mmcblk0p2", Some("179:2")), Some("/"));
        assert_eq!(point("mmcblk0p3", Some("179:3")), Some("/data"));
        assert_eq!(point("mmcblk0p1", None), Some("/my card\\"));
        assert_eq!(point("mmcblk0p4", None), None);
        let options: Vec<&str> = mounts.iter().map(|mount| mount.options.as_str()).collect();
        assert_eq!(options, ["rw,noatime", "rw", "rw", "rw"]);
    }

    #[test]
    fn other_lines_are_left_out() {
        for line in ["", "22 1 179:2 / /", "22 1 179:2 / / rw - ext4", "- - - - - - -"] {
            assert_eq!(mountinfo(line.as_bytes()), None, "{line:?}");
        }
        let mount = mounts(b"/dev/mmcblk0p1 /boot vfat rw 0 0").unwrap();
        assert_eq!((mount.number, mount.point.as_str(), mount.fstype.as_str()), (None, "/boot", "vfat"));
        assert_eq!(mounts(b"proc"), None);
    }

    #[test]
    #[cfg(feature = "bench")]
    fn a_mount_point_can_be_other_than_utf8() {
        use std::os::unix::ffi::OsStrExt;
        let mount = mountinfo(b"22 1 8:1 / /mnt/\xff\\040x rw - ext4 /dev/sda1 rw").unwrap();
        assert_eq!(mount.path.as_os_str().as_bytes(), b"/mnt/\xff x");
        let name = std::ffi::OsStr::from_bytes(b"/mnt/\xff x/file");
        assert!(around(std::slice::from_ref(&mount), name.as_ref()).is_some());
        assert_eq!(mount.point, "/mnt/\u{fffd} x");
    }
}
