//! Which filesystems are mounted from which block device.

use crate::tree::Tree;

/// One mounted filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// `179:1`; absent where only names are known.
    pub(crate) number: Option<String>,
    /// The device as the mount named it: `/dev/mmcblk0p1`, `/dev/root`.
    pub(crate) source: String,
    /// Where.
    pub(crate) point: String,
    /// Type.
    pub(crate) fstype: String,
    /// How, comma by comma: the mount's own options and its filesystem's.
    pub(crate) options: String,
}

/// All mounts that the tree tells of: `/proc/self/mountinfo`, or `/proc/mounts` where a copy has only that.
pub(crate) fn read(tree: &Tree) -> Vec<Mount> {
    if let Ok(text) = tree.read(&tree.proc("self/mountinfo")) {
        return text.lines().filter_map(mountinfo).collect();
    }
    let text = tree.read(&tree.proc("mounts")).unwrap_or_default();
    text.lines().filter_map(mounts).collect()
}

/// The first mount of a block device; the others are views of the same filesystem.
///
/// The number counts before the name: the root filesystem is often mounted from `/dev/root`. Some filesystems (btrfs)
/// have a number of their own, and are found by name.
pub(crate) fn of<'a>(mounts: &'a [Mount], name: &str, number: Option<&str>) -> Option<&'a Mount> {
    let by_number = |mount: &&Mount| number.is_some() && mount.number.as_deref() == number;
    let by_name = |mount: &&Mount| mount.source.strip_prefix("/dev/").is_some_and(|source| source == name);
    mounts.iter().find(by_number).or_else(|| mounts.iter().find(by_name))
}

/// The mount that a file lies on: of those whose place begins its path, the longest and latest.
#[cfg(feature = "bench")]
pub(crate) fn around<'a>(mounts: &'a [Mount], path: &std::path::Path) -> Option<&'a Mount> {
    mounts.iter().filter(|mount| path.starts_with(&mount.point)).max_by_key(|mount| mount.point.len())
}

/// `36 35 179:2 / / rw,noatime shared:1 - ext4 /dev/root rw`.
///
/// Source: proc(5); a lone hyphen ends the optional fields.
fn mountinfo(line: &str) -> Option<Mount> {
    let mut words = line.split(' ');
    let number = words.nth(2)?.to_string();
    let point = unescape(words.nth(1)?);
    let own = words.next()?;
    let mut behind = words.skip_while(|&word| word != "-").skip(1);
    let fstype = behind.next()?.to_string();
    let source = unescape(behind.next()?);
    let more =
        behind.next().unwrap_or_default().split(',').filter(|option| !own.split(',').any(|known| known == *option));
    let options = std::iter::once(own).chain(more).filter(|option| !option.is_empty()).collect::<Vec<_>>().join(",");
    Some(Mount { number: Some(number), source, point, fstype, options })
}

/// `/dev/mmcblk0p1 /boot vfat rw 0 0`.
fn mounts(line: &str) -> Option<Mount> {
    let mut words = line.split(' ');
    let source = unescape(words.next()?);
    let point = unescape(words.next()?);
    let fstype = words.next()?.to_string();
    Some(Mount { number: None, source, point, fstype, options: words.next().unwrap_or_default().to_string() })
}

/// Blanks and backslashes are printed as three octal digits: `\040`.
pub(crate) fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        match behind {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', behind @ ..] if *first == b'\\' => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = behind;
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
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
        let mounts: Vec<Mount> = lines.iter().filter_map(|line| mountinfo(line)).collect();
        let point = |name, number| of(&mounts, name, number).map(|mount| mount.point.as_str());
        assert_eq!(point("mmcblk0p2", Some("179:2")), Some("/"));
        assert_eq!(point("mmcblk0p3", Some("179:3")), Some("/data"));
        assert_eq!(point("mmcblk0p1", None), Some("/my card\\"));
        assert_eq!(point("mmcblk0p4", None), None);
        let options: Vec<&str> = mounts.iter().map(|mount| mount.options.as_str()).collect();
        assert_eq!(options, ["rw,noatime", "rw", "rw", "rw"]);
    }

    #[test]
    fn lines_that_are_no_mounts_are_left_out() {
        for line in ["", "22 1 179:2 / /", "22 1 179:2 / / rw - ext4", "- - - - - - -"] {
            assert_eq!(mountinfo(line), None, "{line:?}");
        }
        let mount = mounts("/dev/mmcblk0p1 /boot vfat rw 0 0").unwrap();
        assert_eq!((mount.number, mount.point.as_str(), mount.fstype.as_str()), (None, "/boot", "vfat"));
        assert_eq!(mounts("proc"), None);
    }

    #[test]
    fn escapes_are_octal() {
        for (text, expected) in
            [("a\\040b", "a b"), ("\\134", "\\"), ("\\", "\\"), ("\\04", "\\04"), ("\\777", "\\777")]
        {
            assert_eq!(unescape(text), expected);
        }
    }
}
