//! The card as block devices: disks, partitions, mounted filesystems.
//!
//! Absent on purpose: layers between a partition and a filesystem (device mapper, overlay, swap).

use std::path::Path;

use emmc_port::{BlockLayer, Disk, Filesystem, Partition, TrimSetup};
use emmc_units::{Bytes, Sectors};

use crate::card_name::is_area;
use crate::mounts::{self, Mount};
use crate::tree::Tree;
use crate::{ioctl, sysfs};

/// Runs `fstrim` once a week. Source: util-linux, `sys-utils/fstrim.timer.in`.
const FSTRIM_TIMER: &str = "fstrim.timer";

/// RPMB is counted in 128 KiB.
const RPMB_UNIT: Bytes = Bytes(128 << 10);

/// The block devices of one card with what is mounted from them.
pub(crate) fn read(tree: &Tree, disk: &str) -> BlockLayer {
    let mounts = mounts::read(tree);
    let names = tree.names(&tree.sys("block")).unwrap_or_default();
    let mut blocks = BlockLayer::default();
    for name in names.iter().filter(|name| is_area(name, disk)) {
        let folder = tree.block(name);
        let number = own_number(tree, &folder);
        blocks.filesystems.extend(filesystem(tree, name, number.as_deref(), &mounts));
        let partitions = partitions(tree, name, &mounts, &mut blocks.filesystems);
        blocks.disks.push(Disk {
            name: name.clone(),
            bytes: size(tree, &folder),
            read_only: tree.attribute(&folder, "ro").and_then(|text| flag(&text)),
            partitions,
        });
    }
    blocks.disks.extend(rpmb(tree, disk, &blocks));
    blocks.trim = trim(tree, disk, &mounts);
    blocks
}

/// The size of a disk.
pub(crate) fn size(tree: &Tree, folder: &Path) -> Option<Bytes> {
    sectors(tree, folder, "size")?.bytes()
}

/// Mount points of a card's disks and partitions, in order of their names.
pub(crate) fn mount_points(blocks: &BlockLayer) -> Vec<String> {
    let mut points: Vec<String> = blocks.filesystems.iter().map(|filesystem| filesystem.mount.clone()).collect();
    let partitions = blocks.disks.iter().flat_map(|disk| &disk.partitions);
    for mount in partitions.filter_map(|partition| partition.mount.clone()) {
        if !points.contains(&mount) {
            points.push(mount);
        }
    }
    points
}

/// Whether a card has the root filesystem.
pub fn holds_root(card: &emmc_port::CardData) -> bool {
    mount_points(&card.blocks).iter().any(|point| point == "/")
}

fn partitions(tree: &Tree, disk: &str, mounts: &[Mount], filesystems: &mut Vec<Filesystem>) -> Vec<Partition> {
    let folder = tree.block(disk);
    let names = tree.names(&folder).unwrap_or_default();
    let mut partitions = Vec::new();
    for name in names.into_iter().filter(|name| name.starts_with(disk)) {
        let inner = folder.join(&name);
        if tree.attribute(&inner, "partition").is_none() {
            continue;
        }
        let number = own_number(tree, &inner);
        let mount = mounts::of(mounts, &name, number.as_deref());
        filesystems.extend(filesystem(tree, &name, number.as_deref(), mounts));
        partitions.push(Partition {
            start: sectors(tree, &inner, "start"),
            bytes: size(tree, &inner),
            kind: None,
            mount: mount.map(|mount| mount.point.clone()),
            name,
        });
    }
    partitions
}

/// The mechanisms that inform the card about deleted data. Nothing where neither a writable filesystem nor the queue is
/// known.
fn trim(tree: &Tree, disk: &str, mounts: &[Mount]) -> Option<TrimSetup> {
    let folder = tree.block(disk);
    let names = tree.names(&folder).unwrap_or_default().into_iter().filter(|name| name.starts_with(disk));
    let members = std::iter::once((disk.to_owned(), folder.clone())).chain(names.map(|name| {
        let inner = folder.join(&name);
        (name, inner)
    }));
    let mut setup = TrimSetup {
        discard_max_bytes: tree.attribute(&folder, "queue/discard_max_bytes").and_then(|text| text.trim().parse().ok()),
        fstrim_timer: tree.unit_is_enabled(FSTRIM_TIMER),
        ..TrimSetup::default()
    };
    for (name, folder) in members {
        let number = own_number(tree, &folder);
        let Some(mount) = mounts::of(mounts, &name, number.as_deref()) else { continue };
        let has = |option: &str| mount.options.split(',').any(|known| known == option);
        if has("rw") {
            let mounts =
                if has("discard") { &mut setup.mounts_with_discard } else { &mut setup.mounts_without_discard };
            mounts.push(mount.point.clone());
        }
    }
    let is_known = setup.discard_max_bytes.is_some()
        || !(setup.mounts_with_discard.is_empty() && setup.mounts_without_discard.is_empty());
    is_known.then_some(setup)
}

/// Only the kernel that mounted a filesystem knows its free space.
fn filesystem(tree: &Tree, name: &str, number: Option<&str>, mounts: &[Mount]) -> Option<Filesystem> {
    let mount = mounts::of(mounts, name, number).filter(|_| tree.is_live())?;
    let space = ioctl::space(&mount.path).ok()?;
    Some(Filesystem {
        device: mount.source.clone(),
        fstype: Some(mount.fstype.clone()),
        bytes: space.total,
        used: Bytes(space.total.0.saturating_sub(space.free.0)),
        available: space.available,
        mount: mount.point.clone(),
    })
}

/// RPMB has not been a block device since Linux 4.15; its size is only in a register.
fn rpmb(tree: &Tree, disk: &str, blocks: &BlockLayer) -> Option<Disk> {
    let name = format!("{disk}rpmb");
    if blocks.disks.iter().any(|known| known.name == name) {
        return None;
    }
    let mult = tree.attribute(&tree.block(disk).join("device"), "raw_rpmb_size_mult");
    let mult = mult.as_deref().and_then(sysfs::hex).filter(|&mult| mult > 0)?;
    Some(Disk { name, bytes: RPMB_UNIT.0.checked_mul(mult).map(Bytes), read_only: None, partitions: Vec::new() })
}

fn own_number(tree: &Tree, folder: &Path) -> Option<String> {
    tree.attribute(folder, "dev")
}

/// sysfs counts 512 bytes at every block size.
fn sectors(tree: &Tree, folder: &Path, name: &str) -> Option<Sectors> {
    tree.attribute(folder, name)?.trim().parse().ok().map(Sectors)
}

fn flag(text: &str) -> Option<bool> {
    match text.trim() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board() -> Tree {
        Tree::copied(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/sysfs/board")).unwrap()
    }

    #[test]
    fn areas_and_partitions_have_their_sizes() {
        let blocks = read(&board(), "mmcblk0");
        let disks: Vec<_> = blocks.disks.iter().map(|d| (d.name.as_str(), d.bytes.unwrap().0, d.read_only)).collect();
        assert_eq!(
            disks,
            [
                ("mmcblk0", 61_071_360 * 512, Some(false)),
                ("mmcblk0boot0", 4 << 20, Some(true)),
                ("mmcblk0boot1", 4 << 20, Some(true)),
                ("mmcblk0rpmb", 4 << 20, None),
            ]
        );
        let partitions: Vec<_> = blocks.disks[0]
            .partitions
            .iter()
            .map(|p| (p.name.as_str(), p.start.unwrap().0, p.bytes.unwrap().0, p.mount.as_deref()))
            .collect();
        assert_eq!(
            partitions,
            [("mmcblk0p1", 8192, 64 << 20, Some("/boot")), ("mmcblk0p2", 139_264, 60_932_063 * 512, Some("/")),]
        );
        assert!(blocks.filesystems.is_empty(), "a copy cannot be asked how full it is");
        assert_eq!(mount_points(&blocks), ["/boot", "/"]);
    }

    #[test]
    fn trim_follows_mounts_and_timer() {
        let trim = read(&board(), "mmcblk0").trim.unwrap();
        let expected = TrimSetup {
            discard_max_bytes: None,
            mounts_with_discard: vec![],
            mounts_without_discard: vec!["/boot".into(), "/".into()],
            fstrim_timer: Some(true),
        };
        assert_eq!(trim, expected);
        assert_eq!(read(&board(), "mmcblk1").trim.unwrap().mounts_without_discard, ["/media/my card"]);
    }

    #[test]
    fn a_card_without_anything_is_empty() {
        let blocks = read(&board(), "mmcblk7");
        assert!(blocks.is_empty());
    }
}
