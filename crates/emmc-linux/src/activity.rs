//! What this machine, or the one of a copied tree, has done with a card.

use std::path::Path;

use emmc_port::{Activity, HostTotals, Machine, SourceError};

use crate::tree::Tree;
use crate::{card_name, mounts};

const SECTOR_BYTES: u64 = 512;

/// A machine's use of a card, from sysfs and /proc: nothing is sent to the card. What is unknown is absent.
///
/// Errors: the folder given holds no copied /sys.
pub fn activity(source: &str, sysroot: Option<&Path>) -> Result<Activity, SourceError> {
    let tree = sysroot.map_or_else(|| Ok(Tree::live()), Tree::copied)?;
    let name = source.rsplit('/').next().unwrap_or_default();
    let disk = card_name::disk_of(name).unwrap_or(name);
    let partitions = partitions(&tree, disk);
    let errors = partitions.iter().filter_map(|partition| errors_count(&tree, partition));
    let io_errors = errors.fold(None, |sum: Option<u64>, count| Some(sum.unwrap_or(0).saturating_add(count)));
    Ok(Activity {
        machine: machine(&tree),
        totals: tree.attribute(&tree.block(disk), "stat").and_then(|text| totals(&text)),
        read_only: read_only(&tree, disk, &partitions),
        io_errors,
    })
}

fn machine(tree: &Tree) -> Machine {
    let proc = |path: &str| tree.read(&tree.proc(path)).ok();
    let text = |text: String| Some(text.trim_matches(['\0', '\n', ' ']).to_owned()).filter(|text| !text.is_empty());
    let model = tree.read(&tree.sys("firmware/devicetree/base/model")).ok();
    let uptime = proc("uptime").and_then(|text| text.split(['.', ' ']).next()?.parse().ok());
    Machine {
        id: tree.read(&tree.etc("machine-id")).ok().and_then(text),
        boot_id: proc("sys/kernel/random/boot_id").and_then(text),
        uptime_s: uptime,
        board: model.or_else(|| tree.read(&tree.sys("class/dmi/id/product_name")).ok()).and_then(text),
        release: tree.read(&tree.etc("os-release")).ok().and_then(|text| release(&text)),
        kernel: proc("sys/kernel/osrelease").and_then(text),
    }
}

/// Source: os-release(5): IMAGE_VERSION is that of a system's image.
fn release(text: &str) -> Option<String> {
    let value = |key: &str| {
        // The last assignment counts.
        let lines = text.lines().rev().filter_map(|line| line.split_once('='));
        let mut found = lines.filter(|(name, _)| *name == key).map(|(_, value)| value.trim_matches(['"', '\'']));
        found.next().filter(|value| !value.is_empty()).map(str::to_owned)
    };
    value("IMAGE_VERSION").or_else(|| value("BUILD_ID")).or_else(|| value("VERSION_ID"))
}

/// Source: Linux Documentation/block/stat.rst.
fn totals(text: &str) -> Option<HostTotals> {
    let fields: Vec<u64> = text.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
    let bytes = |index: usize| fields.get(index).map(|sectors| sectors.saturating_mul(SECTOR_BYTES));
    Some(HostTotals {
        read_bytes: bytes(2)?,
        written_bytes: bytes(6)?,
        discarded_bytes: bytes(13),
        flushes: fields.get(15).copied(),
    })
}

/// The disk itself, and its partitions.
fn partitions(tree: &Tree, disk: &str) -> Vec<String> {
    let names = tree.names(&tree.block(disk)).unwrap_or_default();
    let partitions = names.into_iter().filter(|name| name.starts_with(disk));
    std::iter::once(disk.to_owned()).chain(partitions).collect()
}

/// Source: Linux Documentation/ABI/testing/sysfs-fs-ext4.
fn errors_count(tree: &Tree, partition: &str) -> Option<u64> {
    tree.read(&tree.sys("fs/ext4").join(partition).join("errors_count")).ok()?.trim().parse().ok()
}

/// The disk is read-only; or a filesystem is, which ext4 says by `emergency_ro`, or which has counted errors.
fn read_only(tree: &Tree, disk: &str, partitions: &[String]) -> Option<bool> {
    let flag = tree.attribute(&tree.block(disk), "ro")?;
    let mounts = mounts::read(tree);
    let after_an_error = partitions.iter().any(|partition| {
        let folder = if partition == disk { tree.block(disk) } else { tree.block(disk).join(partition) };
        let number = tree.attribute(&folder, "dev");
        let Some(mount) = mounts::of(&mounts, partition, number.as_deref().map(str::trim)) else { return false };
        let has = |option: &str| mount.options.split(',').any(|known| known == option);
        has("emergency_ro") || has("ro") && errors_count(tree, partition).is_some_and(|count| count > 0)
    });
    Some(flag.trim() == "1" || after_an_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of a board with a filesystem that an error made read-only.
    fn board(stat: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("sys/block/mmcblk0/stat", stat);
        write("sys/block/mmcblk0/ro", "0\n");
        write("sys/block/mmcblk0/dev", "179:0\n");
        write("sys/block/mmcblk0/mmcblk0p2/partition", "2\n");
        write("sys/block/mmcblk0/mmcblk0p2/dev", "179:2\n");
        write("sys/fs/ext4/mmcblk0p2/errors_count", "3\n");
        write("sys/firmware/devicetree/base/model", "Gateway 200\0");
        write("proc/self/mountinfo", "36 35 179:2 / / ro,noatime shared:1 - ext4 /dev/root ro,errors=remount-ro\n");
        write("proc/uptime", "86400.53 170000.00\n");
        write("proc/sys/kernel/osrelease", "6.12.9\n");
        write("proc/sys/kernel/random/boot_id", "0f0e\n");
        write("etc/machine-id", "b7c1\n");
        write("etc/os-release", "NAME=x\nVERSION_ID=\"12\"\nIMAGE_VERSION='2.1.0'\n");
        folder
    }

    #[test]
    fn a_machine_and_its_use_of_a_card() {
        let folder = board("  10 0 8 1 20 0 16 2 0 3 4 5 0 24 1 7 2\n");
        let found = activity("/dev/mmcblk0", Some(folder.path())).unwrap();
        let totals =
            HostTotals { read_bytes: 4096, written_bytes: 8192, discarded_bytes: Some(12288), flushes: Some(7) };
        assert_eq!((found.totals, found.read_only, found.io_errors), (Some(totals), Some(true), Some(3)));
        let Machine { id, boot_id, uptime_s, board, release, kernel } = found.machine;
        assert_eq!((id.as_deref(), boot_id.as_deref(), uptime_s), (Some("b7c1"), Some("0f0e"), Some(86_400)));
        let texts = [board.as_deref(), release.as_deref(), kernel.as_deref()];
        assert_eq!(texts, [Some("Gateway 200"), Some("2.1.0"), Some("6.12.9")]);
    }

    #[test]
    fn an_old_kernel_counts_less_and_nothing_is_made_up() {
        let folder = board("1 0 8 1 20 0 16 2 0 3 4\n");
        std::fs::write(folder.path().join("sys/fs/ext4/mmcblk0p2/errors_count"), "0\n").unwrap();
        let found = activity("mmcblk0p2", Some(folder.path())).unwrap();
        let totals = HostTotals { read_bytes: 4096, written_bytes: 8192, discarded_bytes: None, flushes: None };
        // A root filesystem that is read-only by design is no fault.
        assert_eq!((found.totals, found.read_only, found.io_errors), (Some(totals), Some(false), Some(0)));
        let absent = activity("mmcblk7", Some(folder.path())).unwrap();
        assert_eq!((absent.totals, absent.read_only, absent.io_errors), (None, None, None));
        assert!(activity("mmcblk0", Some(Path::new("/no such folder"))).is_err());
    }
}
