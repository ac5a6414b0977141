use emmc_units::{Bytes, Sectors};

use super::*;
use crate::Filesystem;

fn read(log: &str) -> Result<CardData, String> {
    let text = Text::new("log", log.as_bytes()).unwrap().unwrap();
    assert!(recognises(&text), "{log}");
    import(&text).map_err(|error| error.to_string())
}

fn partition(name: &str, start: Option<u64>, bytes: u64, kind: Option<&str>, mount: Option<&str>) -> Partition {
    Partition {
        name: name.into(),
        start: start.map(Sectors),
        bytes: Some(Bytes(bytes)),
        kind: kind.map(String::from),
        mount: mount.map(String::from),
    }
}

fn check(log: &str, expected: &[Partition]) {
    let data = read(log).unwrap();
    assert_eq!(
        data.blocks.disks.iter().flat_map(|disk| &disk.partitions).cloned().collect::<Vec<_>>(),
        expected,
        "{log}"
    );
}

fn real(file: &str) -> CardData {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/seeds_console").join(file);
    read(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_board_vendors_listings_are_read() {
    let disk = |name: &str, bytes, read_only, partitions: &[Partition]| Disk {
        name: name.into(),
        bytes: Some(Bytes(bytes)),
        read_only,
        partitions: partitions.to_vec(),
    };
    let (first, second) = (16_777_216, 3_829_399_552);
    let partitions = [
        partition("mmcblk0p1", None, first, None, Some("/media/mmcblk0p1")),
        partition("mmcblk0p2", None, second, None, Some("/")),
    ];
    let expected = [
        disk("mmcblk0", 3_850_371_072, Some(false), &partitions),
        disk("mmcblk0boot0", first, Some(true), &[]),
        disk("mmcblk0boot1", first, Some(true), &[]),
    ];
    assert_eq!(real("lsblk_colibri-imx6s.txt").blocks.disks, expected);
    let partitions = [
        partition("mmcblk0p1", Some(8192), first, Some("c Win95 FAT32 (LBA)"), None),
        partition("mmcblk0p2", Some(40_960), second, Some("83 Linux"), None),
    ];
    let expected = [
        disk("mmcblk0", 3_850_371_072, None, &partitions),
        disk("mmcblk0boot1", first, None, &[]),
        disk("mmcblk0boot0", first, None, &[]),
    ];
    assert_eq!(real("fdisk_colibri-imx6s.txt").blocks.disks, expected);
    let kib = |blocks: u64| Bytes(blocks * 1024);
    let filesystem = |device: &str, size, used, available, mount: &str| Filesystem {
        device: device.into(),
        fstype: None,
        bytes: kib(size),
        used: kib(used),
        available: kib(available),
        mount: mount.into(),
    };
    let expected = [
        filesystem("/dev/root", 3_615_352, 488_560, 2_923_428, "/"),
        filesystem("/dev/mmcblk0p1", 16_116, 5_179, 10_937, "/media/mmcblk0p1"),
    ];
    assert_eq!(real("df_colibri-imx6s.txt").blocks.filesystems, expected);
}

#[test]
fn tables_of_other_versions_are_read() {
    let (first, second) = (1 << 20, 1_073_741_824);
    check(
        "Disk /dev/mmcblk0: 29.12 GiB, 31268536320 bytes, 61071360 sectors\nUnits: sectors of 1 * 512 = 512 bytes\n\
         Device         Boot Start     End Sectors Size Id Type\n\
         /dev/mmcblk0p1 *     2048    4095    2048   1M  c W95 FAT32 (LBA)\n\
         /dev/mmcblk0p2       4096 2101247 2097152   1G 83 Linux\n",
        &[
            partition("mmcblk0p1", Some(2048), first, Some("c W95 FAT32 (LBA)"), None),
            partition("mmcblk0p2", Some(4096), second, Some("83 Linux"), None),
        ],
    );
    check(
        "Disk /dev/mmcblk0: 29 GB, 31268536320 bytes, 61071360 sectors\n\
         Device Start End Sectors Size Type\n/dev/mmcblk0p1 2048 4095 2048 1M Linux filesystem\n",
        &[partition("mmcblk0p1", Some(2048), first, Some("Linux filesystem"), None)],
    );
    check(
        "Disk /dev/mmcblk0: 29820 MB, 31268536320 bytes, 61071360 sectors\n\
         Device       Boot StartCHS    EndCHS        StartLBA     EndLBA    Sectors  Size Id Type\n\
         /dev/mmcblk0p1 *  0,32,33     0,65,1            2048       4095       2048 1024K  c Win95 FAT32 (LBA)\n",
        &[partition("mmcblk0p1", Some(2048), first, Some("c Win95 FAT32 (LBA)"), None)],
    );
    // The second partition begins inside a cylinder, and ends with half a block.
    check(
        "Disk /dev/mmcblk0: 3850 MB, 3850371072 bytes\nUnits = cylinders of 64 * 512 = 32768 bytes\n\
         Device Boot Start End Blocks Id System\n/dev/mmcblk0p1 129 160 1024 83 Linux\n/dev/mmcblk0p2 161 200 1000+ 83 Linux\n",
        &[
            partition("mmcblk0p1", Some(8192), first, Some("83 Linux"), None),
            partition("mmcblk0p2", None, 1_024_512, Some("83 Linux"), None),
        ],
    );
    check(
        "NAME          SIZE RO TYPE FSTYPE MOUNTPOINT\nsda 99 0 disk\nmmcblk1 1024 0 disk\n|-mmcblk1p1 512 0 part vfat /boot\n",
        &[partition("mmcblk1p1", None, 512, None, None)],
    );
}

#[test]
fn rounded_sizes_are_left_out_and_noted() {
    let data = read(
        "NAME MAJ:MIN RM SIZE RO TYPE MOUNTPOINTS\nmmcblk0 179:0 0 3.6G 0 disk\n└─mmcblk0p1 179:1 0 16M 0 part /a b\n",
    )
    .unwrap();
    assert_eq!((data.blocks.disks[0].bytes, data.origins[0].notes.len()), (None, 1));
    assert_eq!(data.blocks.disks[0].partitions[0].mount.as_deref(), Some("/a b"));
    let log = "Filesystem Type 1K-blocks Used Available Use% Mounted on\n/dev/a-very-long-name\n ext4 10 2 8 20% /x\n$ df -h\n\
               Filesystem Size Used Avail Use% Mounted on\n/dev/root 3.5G 1G 2G 30% /\n";
    let data = read(log).unwrap();
    assert_eq!(data.blocks.filesystems.len(), 1);
    let filesystem = &data.blocks.filesystems[0];
    assert_eq!(
        (filesystem.fstype.as_deref(), filesystem.available, filesystem.mount.as_str()),
        (Some("ext4"), Bytes(8192), "/x")
    );
    assert_eq!(data.origins[0].notes, ["1 lines of df are left out: their sizes are rounded"]);
}

#[test]
fn wrong_tables_are_refused() {
    for (log, message) in [
        ("NAME SIZE\nmmcblk0 many\n", "line 2: expected a size in bytes, found \"many\""),
        ("NAME SIZE\nmmcblk0\n", "line 2: expected a size in bytes, found the end of the line"),
        (
            "NAME SIZE\nsda 5\n",
            "line 1: expected a disk mmcblkN or a filesystem on /dev in the output of lsblk -b, fdisk -l or df, found none",
        ),
        (
            "NAME SIZE\nmmcblk0 512\nmmcblk0 1024\n",
            "line 3: expected one size for mmcblk0, which had 512 bytes before, found 1024 bytes",
        ),
        (
            "Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/root 1 x 1 1% /\n",
            "line 2: expected a number of blocks, found \"x\"",
        ),
        (
            "NAME SIZE\nmmcblk0 385037107\n",
            "line 2: expected a size in bytes that is a multiple of 512, found 385037107",
        ),
    ] {
        assert_eq!(read(log).unwrap_err(), format!("log: at {message}"));
    }
    let many: String = (0..300).map(|number| format!("mmcblk{number} 512\n")).collect();
    assert_eq!(
        read(&format!("NAME SIZE\n{many}")).unwrap_err(),
        "log: at line 258: expected at most 256 disks, found more"
    );
}
