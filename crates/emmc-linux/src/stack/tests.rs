use super::*;

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// ext4 on LVM on dm-crypt on a partition, and swap on another one.
fn stacked() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "sys/block/mmcblk0/dev", "179:0\n");
    write(root, "sys/block/mmcblk0/size", "1000000\n");
    write(root, "sys/block/mmcblk0/queue/discard_max_bytes", "2199023255040\n");
    write(root, "sys/block/mmcblk0/stat", "10 0 8 1 20 0 16 2 0 3 4 5 0 24 1 7 2\n");
    for (part, number) in [("mmcblk0p1", 1), ("mmcblk0p2", 2)] {
        write(root, &format!("sys/block/mmcblk0/{part}/partition"), &format!("{number}\n"));
        write(root, &format!("sys/block/mmcblk0/{part}/dev"), &format!("179:{number}\n"));
        write(root, &format!("sys/block/mmcblk0/{part}/start"), "8192\n");
    }
    write(root, "sys/block/mmcblk0/mmcblk0p1/holders/dm-0/dev", "253:0\n");
    for (name, mapped, uuid, max) in
        [("dm-0", "secret", "CRYPT-LUKS2-00", "0"), ("dm-1", "vg-my--data", "LVM-abc", "0")]
    {
        write(root, &format!("sys/block/{name}/dm/name"), &format!("{mapped}\n"));
        write(root, &format!("sys/block/{name}/dm/uuid"), &format!("{uuid}\n"));
        write(root, &format!("sys/block/{name}/queue/discard_max_bytes"), &format!("{max}\n"));
        write(root, &format!("sys/block/{name}/dev"), &format!("253:{}\n", &name[3..]));
    }
    write(root, "sys/block/dm-0/holders/dm-1/dev", "253:1\n");
    write(root, "sys/block/dm-0/slaves/mmcblk0p1/dev", "179:1\n");
    write(root, "sys/block/dm-1/slaves/dm-0/dev", "253:0\n");
    write(root, "sys/fs/ext4/dm-1/lifetime_write_kbytes", "2048\n");
    write(root, "proc/self/mountinfo", "36 35 253:1 / /my\\040data rw,noatime - ext4 /dev/mapper/vg-my--data rw\n");
    write(root, "proc/swaps", "Filename Type Size Used Priority\n/dev/mmcblk0p2 partition 1 0 -2\n");
    write(root, "etc/fstab", "# a line\n/dev/vg/my-data /my\\040data ext4 defaults,noatime 0 2\n");
    write(root, "etc/crypttab", "secret /dev/mmcblk0p1 none luks,discard\nother /dev/x none luks\n");
    write(root, "etc/lvm/lvm.conf", "devices {\n  # issue_discards = 1\n  issue_discards = 0\n}\n");
    write(root, "etc/cron.weekly/trim", "#!/bin/sh\nfstrim -a\n");
    write(root, "etc/cron.daily/none", "# fstrim\n");
    write(root, "etc/systemd/system/x", "");
    write(root, "var/lib/systemd/timers/stamp-fstrim.timer", "");
    folder
}

#[test]
fn layers_come_after_those_below_them() {
    let folder = stacked();
    let stack = stack("/dev/mmcblk0", Some(folder.path())).unwrap();
    let found: Vec<_> = stack.layers.iter().map(|layer| (layer.name.as_str(), layer.kind, layer.is_swap)).collect();
    let expected = [
        ("mmcblk0", LayerKind::Disk, false),
        ("mmcblk0p1", LayerKind::Partition, false),
        ("dm-0", LayerKind::Crypt, false),
        ("dm-1", LayerKind::Lvm, false),
        ("mmcblk0p2", LayerKind::Partition, true),
    ];
    assert_eq!(found, expected);
    let top = stack.layer("dm-1").unwrap();
    let names: Vec<&str> = stack.path(top).iter().map(|layer| layer.name.as_str()).collect();
    assert_eq!(names, ["dm-1", "dm-0", "mmcblk0p1", "mmcblk0"]);
    let mounted = top.mounted.as_ref().unwrap();
    assert_eq!((mounted.point.as_str(), mounted.lifetime_written_bytes), ("/my data", Some(2 << 20)));
    assert_eq!(mounted.fstab_options.as_deref().unwrap(), ["defaults", "noatime"]);
    let limits: Vec<_> = stack.layers.iter().map(|layer| layer.discard_max_bytes).collect();
    assert_eq!(limits, [Some(2_199_023_255_040), Some(2_199_023_255_040), Some(0), Some(0), Some(2_199_023_255_040)]);
    let disk = &stack.layers[0];
    assert_eq!(
        (disk.written_bytes, disk.discarded_bytes, disk.size_bytes),
        (Some(8192), Some(12288), Some(512_000_000))
    );
}

#[test]
fn services_are_read_and_comments_are_not() {
    let folder = stacked();
    let services = stack("mmcblk0", Some(folder.path())).unwrap().services;
    assert_eq!((services.fstrim_timer, services.lvm_issue_discards), (Some(false), Some(false)));
    assert!(services.fstrim_last_run.is_some_and(|time| time.ends_with('Z')));
    assert_eq!(services.cron, ["/etc/cron.weekly/trim"]);
    assert_eq!(
        (services.crypttab, services.crypttab_discard),
        (vec!["secret".into(), "other".into()], vec!["secret".into()])
    );
}

#[test]
fn the_disk_is_found_below_every_name() {
    let folder = stacked();
    for place in ["/my data", "/dev/mapper/secret", "/dev/vg/my-data", "dm-1", "/dev/mmcblk0p2", "mmcblk0"] {
        assert_eq!(disk_below(place, Some(folder.path())).unwrap(), "mmcblk0", "{place}");
    }
    assert!(disk_below("/nothing", Some(folder.path())).unwrap_err().to_string().contains("/nothing"));
    assert!(stack("mmcblk7", Some(folder.path())).is_err());
}

#[test]
fn a_circle_in_a_copy_ends() {
    let folder = stacked();
    write(folder.path(), "sys/block/dm-1/holders/dm-0/dev", "253:0\n");
    write(folder.path(), "sys/block/dm-0/slaves/dm-1/dev", "253:1\n");
    let stack = stack("mmcblk0", Some(folder.path())).unwrap();
    assert_eq!(stack.layers.len(), 5);
    assert!(stack.path(stack.layer("dm-0").unwrap()).len() <= 5);
    assert!(disk_below("dm-1", Some(folder.path())).is_ok());
}
