//! Uses on a copied /sys and /proc, and on this machine.

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
    let found = Look::new(&tree).unwrap().device(&folder, &Path::new("/dev").join(disk), Holder::Us);
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
    let uses =
        |folder: &Path| Look::new(&tree).unwrap().device(folder, Path::new("/no such node"), Holder::Nobody).uses;
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
    assert_eq!(
        Look::new(&tree).unwrap().device(&disk, Path::new("/no such node"), Holder::Nobody).model.as_deref(),
        Some("TESTED")
    );
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn an_ordinary_file_is_free() {
    let found = occupied(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml").as_path(), Holder::Nobody).unwrap();
    assert_eq!((found.name.as_str(), found.uses), ("Cargo.toml", Vec::new()));
    assert!(found.contents[0].contains("of a file"));
    assert!(occupied(Path::new("/no such device"), Holder::Nobody).is_err());
}
