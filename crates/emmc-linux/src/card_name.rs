//! Names of a card: `/dev/mmcblk0`, `mmcblk0`, one of its partitions, a udev link.

use std::path::{Path, PathBuf};

use emmc_regs::Area;

/// A card, found by the name of its block device or of a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CardName {
    /// The block device of the whole user area: `mmcblk0`.
    pub(crate) disk: String,
    /// The part that was named instead: `mmcblk0p1`, `mmcblk0boot0`.
    pub(crate) part: Option<String>,
    /// The node of the whole user area: `/dev/mmcblk0`.
    pub(crate) node: PathBuf,
}

impl CardName {
    /// The card that `source` names, or `None` if it is not a card's name.
    ///
    /// A path counts if it leads into `/dev`, through links or not; a name without a slash is looked up there.
    pub(crate) fn parse(source: &str) -> Option<Self> {
        let path = if source.contains('/') {
            let path = Path::new(source);
            path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
        } else {
            Path::new("/dev").join(source)
        };
        if !path.starts_with("/dev") {
            return None;
        }
        let name = path.file_name()?.to_str()?;
        let disk = disk_of(name)?;
        let part = (disk != name).then(|| name.to_string());
        Some(Self { disk: disk.to_string(), part, node: path.with_file_name(disk) })
    }
}

/// Whether `source` names a card of this machine rather than a file.
pub fn is_card_name(source: &str) -> bool {
    CardName::parse(source).is_some()
}

/// The block device of a card's whole user area, if `source` names a card of this machine: `/dev/mmcblk0` of
/// `mmcblk0p1`.
pub fn card_node(source: &str) -> Option<PathBuf> {
    CardName::parse(source).map(|name| name.node)
}

/// The part of a card that `source` names, if it is not the whole card: `mmcblk0p1`, `mmcblk0boot0`.
pub fn card_part(source: &str) -> Option<String> {
    CardName::parse(source)?.part
}

/// The card that `source` names, on this machine or in a copied tree: `mmcblk0` of `/dev/mmcblk0p1`.
pub fn disk_name(source: &str) -> Option<String> {
    let of_name = || disk_of(source.rsplit('/').next()?).map(str::to_owned);
    CardName::parse(source).map(|name| name.disk).or_else(of_name)
}

/// `mmcblk0` of `mmcblk0`, `mmcblk0p1`, `mmcblk0boot0`, `mmcblk0gp1p2`, `mmcblk0rpmb`.
///
/// Source: Linux `drivers/mmc/core/block.c`, `mmc_blk_alloc_req`; partitions by `bdevname`.
pub(crate) fn disk_of(name: &str) -> Option<&str> {
    let number = name.strip_prefix("mmcblk")?;
    let rest = number.trim_start_matches(|c: char| c.is_ascii_digit());
    let disk = name.strip_suffix(rest)?;
    if disk.len() == "mmcblk".len() {
        return None;
    }
    let partition = area_of(rest).map_or(rest, |(_, behind)| behind);
    let is_partition = partition.strip_prefix('p').is_some_and(is_number);
    (partition.is_empty() || is_partition).then_some(disk)
}

/// Whether `name` is a hardware area of `disk`: itself, a boot area, RPMB, a GP partition.
pub(crate) fn is_area(name: &str, disk: &str) -> bool {
    name.strip_prefix(disk)
        .is_some_and(|rest| rest.is_empty() || area_of(rest).is_some_and(|(_, behind)| behind.is_empty()))
}

/// Splits `boot0p1` into `boot0` and `p1`.
fn area_of(rest: &str) -> Option<(&str, &str)> {
    Area::ALL.into_iter().filter(|area| *area != Area::User).find_map(|area| {
        let suffix = area.kernel_suffix();
        Some((suffix, rest.strip_prefix(suffix)?))
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_found_by_any_of_its_names() {
        for (source, disk, part) in [
            ("mmcblk0", "mmcblk0", None),
            ("/dev/mmcblk12", "mmcblk12", None),
            ("/dev/mmcblk0p1", "mmcblk0", Some("mmcblk0p1")),
            ("mmcblk1boot0", "mmcblk1", Some("mmcblk1boot0")),
            ("mmcblk0rpmb", "mmcblk0", Some("mmcblk0rpmb")),
            ("mmcblk0gp3p12", "mmcblk0", Some("mmcblk0gp3p12")),
        ] {
            let name = CardName::parse(source).unwrap();
            assert_eq!((name.disk.as_str(), name.part.as_deref()), (disk, part), "{source}");
            assert_eq!(name.node, Path::new("/dev").join(disk));
        }
        assert_eq!(CardName::parse("/dev/block/mmcblk0p2").unwrap().node, Path::new("/dev/block/mmcblk0"));
    }

    #[test]
    fn other_names_are_files() {
        for source in [
            "",
            "mmcblk",
            "mmcblkp1",
            "mmcblk0x",
            "mmcblk0p",
            "mmcblk0boot2",
            "mmcblk0p1p2",
            "mmcblk0gp",
            "sda",
            "/dev/sda",
            "/dev",
            "./mmcblk0",
            "/tmp/mmcblk0",
            "dump.bin",
            "-",
            "mmcblk0\u{e9}",
            "mmcblk\u{663}",
        ] {
            assert!(!is_card_name(source), "{source:?}");
        }
    }

    #[test]
    fn an_area_belongs_to_its_disk() {
        for name in ["mmcblk1", "mmcblk1boot0", "mmcblk1boot1", "mmcblk1gp3", "mmcblk1rpmb"] {
            assert!(is_area(name, "mmcblk1"), "{name}");
        }
        for name in ["mmcblk10", "mmcblk1p1", "mmcblk1boot0p1", "mmcblk", "mmcblk2"] {
            assert!(!is_area(name, "mmcblk1"), "{name}");
        }
    }
}
