//! Output of everyday tools for a card: identities of mmc-utils, sysfs by grep, head, cat and udevadm, lsblk, dmesg.

use emmc_regs::CardKind;
use emmc_regs::cid::Cid;
use emmc_units::Bytes;

use super::*;

const BJNB4R: &str = "150100424a4e4234520fdac7c038141f";

fn part(data: &CardData) -> (Option<CardKind>, Option<&str>, Option<u32>) {
    (data.kind, data.stated.name.as_deref(), data.stated.serial)
}

#[test]
fn identities_of_old_and_new_mmc_utils_are_read() {
    let emmc = (Some(CardKind::Emmc), Some("M8G1GC"), Some(0xdc0d_b061));
    let sd = (Some(CardKind::Sd), Some("SD16G"), Some(0xda89_b829));
    // The old one prints the OID as a letter: a zero byte in the file.
    assert!(bytes("mmc_utils_ids/m8g1gc_2022.txt").contains(&0));
    let old = read_file("mmc_utils_ids/m8g1gc_2022.txt").unwrap();
    assert_eq!((part(&old), old.stated.manufacturer_id, old.stated.oem_id), (emmc, None, None));
    assert!(old.origins[0].notes.iter().any(|note| note.contains("Samsung/SanDisk/LG")), "{:?}", old.origins);
    // The CSD of every larger part says 1 GiB.
    assert_eq!(old.stated.user_capacity, None);
    let new = read_file("mmc_utils_ids/m8g1gc_2026.txt").unwrap();
    assert_eq!((part(&new), new.stated.manufacturer_id), (emmc, Some(0x15)));
    for file in ["phison-sd16g_2022.txt", "phison-sd16g_2026_offline.txt"] {
        let data = read_file(&format!("mmc_utils_ids/{file}")).unwrap();
        assert_eq!((part(&data), data.stated.oem_id), (sd, Some(0x5048)), "{file}");
        let size = data.stated.user_capacity.unwrap();
        assert_eq!((size.min, size.max), (Bytes(15_523_119_104), Bytes(15_523_119_104)), "{file}");
    }
    let old = read_file("mmc_utils_ids/phison-sd16g_2022.txt").unwrap();
    assert_eq!(old.stated.sd_version.as_deref(), Some("3.0x"));
}

#[test]
fn every_print_of_the_files_gives_the_same_card() {
    for file in ["grep-r_sys-block", "grep-r_dot", "head_star", "tail_files", "udevadm_a"] {
        let data = read_file(&format!("sysfs_text/{file}.txt")).unwrap();
        assert_eq!(data.origins[0].format, Format::SysfsText, "{file}");
        assert_eq!((data.kind, data.cid), (Some(CardKind::Emmc), Cid::parse_hex(BJNB4R).ok()), "{file}");
        let health = ["life_time", "pre_eol_info", "rev"].map(|name| data.sysfs.get(name).map(String::as_str));
        assert_eq!(health, [Some("0x06 0x06"), Some("0x01"), Some("0x8")], "{file}");
        assert!(!data.sysfs.contains_key("enhanced_area_offset") && data.ocr.is_none(), "{file}");
        let size = data.blocks.disks.iter().find(|disk| disk.name == "mmcblk0").and_then(|disk| disk.bytes);
        let has_disks = file.starts_with("grep") || file.starts_with("udevadm");
        assert_eq!(size, has_disks.then_some(Bytes(61_071_360 * 512)), "{file}");
    }
    for file in ["udevadm_info", "udevadm_property", "udevadm_export"] {
        let data = read_file(&format!("sysfs_text/{file}.txt")).unwrap();
        let named = ["name", "serial"].map(|name| data.sysfs.get(name).map(String::as_str));
        assert_eq!(named, [Some("BJNB4R"), Some("0xdac7c038")], "{file}");
    }
    assert_eq!(read_file("sysfs_text/life_time.txt").unwrap().sysfs["life_time"], "0x06 0x06");
    assert_eq!(read_file("sysfs_text/pre_eol_info.txt").unwrap().sysfs["pre_eol_info"], "0x01");
}

#[test]
fn the_kernels_log_names_cards() {
    let data = read_file("kernel_log/hbg4a2.txt").unwrap();
    assert_eq!((data.kind, data.stated.bus_mode.as_deref()), (Some(CardKind::Emmc), Some("HS400 Enhanced strobe")));
    let data = read_file("kernel_log/g1m15n_gp.txt").unwrap();
    let disks: Vec<_> = data.blocks.disks.iter().map(|disk| (disk.name.as_str(), disk.bytes)).collect();
    let boot = Some(Bytes(252 * 131_072));
    let expected = [
        ("mmcblk2", None),
        ("mmcblk2boot0", boot),
        ("mmcblk2boot1", boot),
        ("mmcblk2gp0", None),
        ("mmcblk2rpmb", Some(Bytes(4 << 20))),
    ];
    assert_eq!(disks, expected);
    let data = read_file("kernel_log/sdcit.txt").unwrap();
    assert_eq!((data.kind, data.stated.name.as_deref()), (Some(CardKind::Sd), Some("SDCIT")));
}

#[test]
fn lsblk_prints_the_same_tree_as_json() {
    for file in ["bjnb4r_2.38_b.json", "bjnb4r_2.29_b.json"] {
        let data = read_file(&format!("lsblk_json/{file}")).unwrap();
        let disks: Vec<_> = data.blocks.disks.iter().map(|disk| (disk.name.as_str(), disk.bytes.unwrap().0)).collect();
        let expected = [("mmcblk0", 31_268_536_320), ("mmcblk0boot0", 4 << 20), ("mmcblk0boot1", 4 << 20)];
        assert_eq!(disks, expected, "{file}");
        let [disk, boot, ..] = data.blocks.disks.as_slice() else { panic!("{file}") };
        assert_eq!((disk.read_only, boot.read_only), (Some(false), Some(true)), "{file}");
        let partitions: Vec<_> = disk.partitions.iter().map(|one| (one.name.as_str(), one.mount.as_deref())).collect();
        assert_eq!(partitions, [("mmcblk0p1", Some("/boot")), ("mmcblk0p2", Some("/"))], "{file}");
    }
    let rounded = read_file("lsblk_json/bjnb4r_2.38.json").unwrap();
    assert_eq!((rounded.blocks.disks.len(), rounded.blocks.disks[0].bytes), (3, None));
    assert!(rounded.origins[0].notes[0].contains("without -b"), "{:?}", rounded.origins);
    let json = bytes("lsblk_json/bjnb4r_2.38_b.json");
    let behind_a_prompt = [b"# lsblk -J -b\n", json.as_slice(), b"# exit\n"].concat();
    assert_eq!(read("log", &behind_a_prompt).unwrap().blocks.disks.len(), 3);
    for cut in [200, json.len() / 2, json.len() - 3] {
        let message = read("log", &json[..cut]).unwrap_err().to_string();
        assert!(message.contains("expected the whole output of lsblk -J"), "{message}");
    }
    assert!(read("log", b"{\"blockdevices\": [{\"name\": \"sda\", \"size\": 1}]}").is_err());
}

#[test]
fn the_card_of_a_document_is_a_source() {
    let data = read_file("ext_csd_raw/samsung-bjnb4r-32g/samsung-bjnb4r-32g.ext_csd.hex").unwrap();
    let snapshot = serde_json::to_string(&crate::Snapshot::from(&data)).unwrap();
    let show = format!("{{\"schema\": \"emmclab.show/1\", \"tool\": \"emmclab 0.1.0\", \"card\": {snapshot}}}");
    let again = read("show.json", show.as_bytes()).unwrap();
    assert_eq!((again.ext_csd, again.origins[0].format), (data.ext_csd, Format::Snapshot));
    let check = "{\"schema\": \"emmclab.check/1\", \"status\": \"OK\"}";
    let message = read("check.json", check.as_bytes()).unwrap_err().to_string();
    assert!(message.contains("found \"emmclab.check/1\", which holds none"), "{message}");
    assert!(read("show.json", &show.as_bytes()[..show.len() / 2]).is_err());
}

#[test]
fn the_largest_enhanced_area_in_kib_gives_the_group_size() {
    let data = read_file("mmc_extcsd_text/unknown-max-enh-9a2/extcsd_excerpt.txt").unwrap();
    assert_eq!(data.stated.max_enh_size, Some(Bytes(10_100_736 << 10)));
    assert_eq!(data.stated.hc_wp_group, Some(Bytes(4 << 20)));
    let whole = read_file("mmc_extcsd_text/samsung-klm-8g/extcsd.txt").unwrap();
    assert_eq!(whole.stated.hc_wp_group, None);
    let wrong = "Max Enhanced Area Size [MAX_ENH_SIZE_MULT]: 0x0009a2\n i.e. 10100737 KiB\n";
    assert_eq!(read("log", wrong.as_bytes()).unwrap().stated, crate::Stated::default());
}
