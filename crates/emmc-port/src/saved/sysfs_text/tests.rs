use super::*;
use crate::saved;

fn read(log: &str) -> Result<CardData, String> {
    saved::read("log", log.as_bytes()).map_err(|error| error.to_string())
}

fn attribute<'a>(data: &'a CardData, name: &str) -> Option<&'a str> {
    data.sysfs.get(name).map(String::as_str)
}

#[test]
fn one_file_alone_is_recognised_by_its_form() {
    let data = read("0x01 0x0b\n").unwrap();
    assert_eq!((attribute(&data, "life_time"), data.kind), (Some("0x01 0x0b"), Some(CardKind::Emmc)));
    assert!(data.origins[0].notes[0].contains("read as the attribute life_time"), "{:?}", data.origins);
    assert_eq!(attribute(&read("0x01 0x0b").unwrap(), "life_time"), Some("0x01 0x0b"));
    assert_eq!(attribute(&read("\n0x03\r\n").unwrap(), "pre_eol_info"), Some("0x03"));
}

#[test]
fn a_truncated_file_gives_no_value() {
    let whole = "0x0b 0x0b\n";
    for end in 1..whole.len() - 1 {
        assert!(read(&whole[..end]).is_err(), "{:?}", &whole[..end]);
    }
    for cut in ["0x0b\n", "0x0\n", "0x01 0x0\n", "0x1 0x02\n", "0x01 0x02 0x03\n", "0x04\n", "0x01\n0x02\n"] {
        assert!(read(cut).is_err(), "{cut:?}");
    }
    let data = read("/sys/block/mmcblk0/device/life_time:0x01 0x0\n/sys/block/mmcblk0/device/type:MMC\n").unwrap();
    assert_eq!(attribute(&data, "life_time"), None);
    assert!(data.origins[0].notes[0].contains("line 1: life_time is left out"), "{:?}", data.origins);
}

#[test]
fn a_number_at_a_cut_end_is_left_out() {
    let whole = "/sys/block/mmcblk0/device/type:MMC\n/sys/block/mmcblk0/size:15269888\n";
    assert_eq!(read(whole).unwrap().blocks.disks[0].bytes, Some(Bytes(15_269_888 * 512)));
    for end in whole.find("15").unwrap()..whole.len() {
        let data = read(&whole[..end]).unwrap();
        assert!(data.blocks.disks.is_empty(), "{:?}", &whole[..end]);
    }
}

#[test]
fn grep_prints_paths_of_card_disks_and_driver() {
    let log = "/sys/bus/mmc/devices/mmc0:0001/life_time:0x01 0x02\n\
               /sys/bus/mmc/devices/mmc0:0001/date:07/2016\n\
               /sys/bus/mmc/devices/mmc0:0001/ocr:0x00300000\n\
               /sys/bus/mmc/devices/mmc0:0001/uevent:DRIVER=mmcblk\n\
               /sys/bus/mmc/devices/mmc0:0001/uevent:MMC_TYPE=MMC\n\
               /sys/bus/mmc/devices/mmc0:0001/power/control:on\n\
               /sys/bus/mmc/devices/mmc0:0001/enhanced_area_offset:18446744073709551594\n\
               /sys/bus/mmc/devices/mmc0:0001/block/mmcblk0/size:15269888\n\
               /sys/bus/mmc/devices/mmc0:0001/block/mmcblk0/ro:0\n\
               /sys/bus/mmc/devices/mmc0:0001/block/mmcblk0/queue/rotational:0\n\
               /sys/bus/mmc/devices/mmc0:0001/block/mmcblk0/mmcblk0p1/start:8192\n\
               /sys/bus/mmc/devices/mmc0:0001/block/mmcblk0/mmcblk0p1/size:2048\n\
               /sys/bus/mmc/devices/mmc0:0001/block/mmcblk0/mmcblk0boot0/size:8192\n";
    let data = read(log).unwrap();
    let names: Vec<&str> = data.sysfs.keys().map(String::as_str).collect();
    assert_eq!(names, ["date", "life_time", "ocr", "type"]);
    assert_eq!((data.kind, data.ocr), (Some(CardKind::Emmc), None));
    let sizes: Vec<_> = data.blocks.disks.iter().map(|disk| (disk.name.as_str(), disk.bytes.unwrap().0)).collect();
    assert_eq!(sizes, [("mmcblk0", 15_269_888 * 512), ("mmcblk0boot0", 4 << 20)]);
    let partition = &data.blocks.disks[0].partitions[0];
    assert_eq!((partition.start, partition.bytes), (Some(Sectors(8192)), Some(Bytes(1 << 20))));
}

#[test]
fn two_cards_in_one_listing_are_refused() {
    for (log, other) in [
        ("/sys/block/mmcblk0/device/life_time:0x0b 0x0b\n/sys/block/mmcblk1/device/life_time:0x01 0x01\n", "mmcblk1"),
        ("/sys/bus/mmc/devices/mmc0:0001/name:A\n/sys/bus/mmc/devices/mmc1:0001/date:01/2020\n", "mmc1:0001"),
    ] {
        let message = read(log).unwrap_err();
        assert!(message.contains("line 2: expected attributes of one card") && message.contains(other), "{message}");
    }
    let message = read("life_time: 0x0b 0x0b\n\nlife_time: 0x01 0x01\n").unwrap_err();
    assert_eq!(
        message,
        "log: at line 3: expected one card, whose life_time is \"0x0b 0x0b\" on line 1, found \"0x01 0x01\""
    );
}

#[test]
fn head_and_tail_print_headings() {
    let cid = "1501004d384731474303dc0db061506f";
    for start in ["", "./", "/sys/block/mmcblk0/device/"] {
        let log = format!(
            "==> {start}block <==\nhead: error reading 'block': Is a directory\n\n==> {start}cid <==\n{cid}\n\n\
             ==> {start}life_time <==\n0x01 0x02\n\n==> {start}type <==\nMMC\n\n\
             ==> {start}uevent <==\nDRIVER=mmcblk\nMMC_TYPE=MMC\nMMC_NAME=M8G1GC\n"
        );
        let data = read(&log).unwrap();
        assert_eq!(data.cid, Cid::parse_hex(cid).ok(), "{start}");
        assert_eq!((attribute(&data, "life_time"), attribute(&data, "name")), (Some("0x01 0x02"), Some("M8G1GC")));
    }
    assert!(read("==> type <==\n1\n\n==> name <==\nx\n").is_err());
}

#[test]
fn names_and_values_are_read_if_one_is_specific_to_cards() {
    let log = "capability : 50\nerase_size : 4194304\noemid : 0x0100\nname : 008GE0\n\
               cid : 11010030303847453000912d76b6b000\ndate : 11/2013\nserial : 0x912d76b6\nmanfid : 0x000011\n";
    let data = read(log).unwrap();
    assert_eq!((attribute(&data, "manfid"), attribute(&data, "name")), (Some("0x000011"), Some("008GE0")));
    assert!(data.cid.is_some());
    assert!(read("name: x\ndate: 2020\nserial: 0x12\ntype: MMC\n").is_err());
}

#[test]
fn udev_parents_of_the_disk_are_read() {
    let log = "  looking at device '/devices/platform/soc/mmc_host/mmc0/mmc0:0001/block/mmcblk0':\n    \
               KERNEL==\"mmcblk0\"\n    ATTR{ro}==\"0\"\n    ATTR{size}==\"15269888\"\n    ATTR{queue/rotational}==\"0\"\n\n  \
               looking at parent device '/devices/platform/soc/mmc_host/mmc0/mmc0:0001':\n    KERNELS==\"mmc0:0001\"\n    \
               SUBSYSTEMS==\"mmc\"\n    ATTRS{cid}==\"1501004d384731474303dc0db061506f\"\n    \
               ATTRS{life_time}==\"0x01 0x02\"\n    ATTRS{type}==\"MMC\"\n\n  \
               looking at parent device '/devices/platform/soc':\n    ATTRS{driver_override}==\"(null)\"\n    ATTRS{type}==\"x\"\n";
    let data = read(log).unwrap();
    assert_eq!((attribute(&data, "life_time"), attribute(&data, "type")), (Some("0x01 0x02"), Some("MMC")));
    assert_eq!(data.blocks.disks[0].bytes, Some(Bytes(15_269_888 * 512)));
    assert!(data.cid.is_some() && data.sysfs.len() == 3, "{:?}", data.sysfs);
}

#[test]
fn udevs_properties_name_the_card() {
    let plain = "P: /devices/platform/soc/mmc_host/mmc0/mmc0:0001/block/mmcblk0\nN: mmcblk0\n\
                 E: DEVPATH=/devices/platform/soc/mmc_host/mmc0/mmc0:0001/block/mmcblk0\nE: DEVNAME=/dev/mmcblk0\n\
                 E: DEVTYPE=disk\nE: ID_NAME=DG4008\nE: ID_SERIAL=0x7f21d0b0\nE: SUBSYSTEM=block\n";
    for log in [
        plain.to_string(),
        plain.replace("E: ", ""),
        "DEVNAME='/dev/mmcblk0'\nID_NAME='DG4008'\nID_SERIAL='0x7f21d0b0'\n".into(),
    ] {
        let data = read(&log).unwrap();
        assert_eq!(
            (attribute(&data, "name"), attribute(&data, "serial")),
            (Some("DG4008"), Some("0x7f21d0b0")),
            "{log}"
        );
    }
    let partition = "DEVNAME=/dev/mmcblk0p2\nID_PART_ENTRY_OFFSET=8192\nID_PART_ENTRY_SIZE=2048\nID_NAME=DG4008\n";
    let data = read(partition).unwrap();
    let found = &data.blocks.disks[0].partitions[0];
    assert_eq!(
        (found.name.as_str(), found.start, found.bytes),
        ("mmcblk0p2", Some(Sectors(8192)), Some(Bytes(1 << 20)))
    );
    assert!(read("DEVNAME=/dev/sda\nID_NAME=x\nID_SERIAL=0x1\n").is_err());
}

#[test]
fn attributes_of_sysfs_are_kept_as_printed() {
    let log = "/sys/block/mmcblk0/device/life_time:0x01 0x02\n/sys/block/mmcblk0/device/type:MMC\n\
               /sys/block/mmcblk0/device/date:07/2016\n";
    let asked = "# cat /sys/block/mmcblk0/device/serial\n# cat /sys/block/mmcblk0/device/life_time\n0x01 0x02\n\
                 # cat /sys/block/mmcblk0/device/date\n07/2016\n# cat /sys/block/mmcblk0/device/type\nMMC\n# ";
    let expected = [("date", "07/2016"), ("life_time", "0x01 0x02"), ("type", "MMC")];
    for log in [log, asked] {
        let data = read(log).unwrap();
        assert_eq!(data.kind, Some(CardKind::Emmc));
        assert_eq!(data.sysfs, expected.map(|(name, value)| (name.to_string(), value.to_string())).into());
    }
}
