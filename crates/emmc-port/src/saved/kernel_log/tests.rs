use super::*;
use crate::saved;

fn read(log: &str) -> Result<CardData, String> {
    saved::read("dmesg", log.as_bytes()).map_err(|error| error.to_string())
}

#[test]
fn a_card_is_found_with_mode_name_and_sizes() {
    let log = "[    2.957000] sdhci: Secure Digital Host Controller Interface driver\n\
               [    4.168317] mmc0: Command Queue Engine enabled\n\
               [    4.176723] mmc0: new HS400 Enhanced strobe MMC card at address 0001\n\
               [    4.189609] mmcblk0: mmc0:0001 HBG4a2 29.1 GiB\n\
               [    4.193000]  mmcblk0: p1 p2\n\
               [    4.249403] mmcblk0boot0: mmc0:0001 HBG4a2 8.00 MiB\n\
               [    4.249600] mmcblk0rpmb: mmc0:0001 HBG4a2 4.00 MiB, chardev (240:0)\n";
    let data = read(log).unwrap();
    assert_eq!((data.kind, data.rca), (Some(CardKind::Emmc), Some(1)));
    assert_eq!(data.stated.bus_mode.as_deref(), Some("HS400 Enhanced strobe"));
    assert_eq!(data.stated.name.as_deref(), Some("HBG4a2"));
    let size = data.stated.user_capacity.unwrap();
    let part = 29_820u64 << 20;
    assert!(size.min.0 <= part && part <= size.max.0 && size.text == "29.1 GiB", "{size:?}");
    let disks: Vec<_> = data.blocks.disks.iter().map(|disk| (disk.name.as_str(), disk.bytes)).collect();
    assert_eq!(
        disks,
        [("mmcblk0", None), ("mmcblk0boot0", Some(Bytes(8 << 20))), ("mmcblk0rpmb", Some(Bytes(4 << 20)))]
    );
    assert!(data.origins[0].notes[0].contains("command queue"), "{:?}", data.origins);
}

#[test]
fn sd_cards_and_odd_names_are_read_as_logged() {
    for (log, kind, mode, name) in [
        (
            "mmc1: new ultra high speed SDR104 SDXC card at address aaaa\nmmcblk1: mmc1:aaaa SR128 119 GiB (ro)\n",
            CardKind::Sd,
            "ultra high speed SDR104",
            "SR128",
        ),
        ("mmc1: new UHS-I speed SDR104 SDHC card at address 59b4\n", CardKind::Sd, "UHS-I speed SDR104", ""),
        ("<6>[ 1.2] mmc0: new MMC card at address 0001\n", CardKind::Emmc, "legacy", ""),
        (
            "001: mmc2: new DDR MMC card at address 0001\n001: mmcblk2: mmc2:0001 Biwin  115 GiB\n",
            CardKind::Emmc,
            "DDR",
            "Biwin",
        ),
        (
            "Nov 22 10:00:00 board kernel: mmc0: new high speed DDR MMC card at address 0001\n\
             Nov 22 10:00:00 board kernel: mmcblk0boot0: mmc0:0001 SEM 08G partition 1 2.00 MiB\n",
            CardKind::Emmc,
            "high speed DDR",
            "SEM 08G",
        ),
    ] {
        let data = read(log).unwrap();
        assert_eq!((data.kind, data.stated.bus_mode.as_deref()), (Some(kind), Some(mode)), "{log}");
        assert_eq!(data.stated.name.unwrap_or_default(), name, "{log}");
    }
}

#[test]
fn two_cards_are_refused_and_sdio_is_ignored() {
    let two = "mmc0: new HS200 MMC card at address 0001\nmmc1: new SDHC card at address 0002\n";
    let message = read(two).unwrap_err();
    assert!(message.contains("line 2: expected one card, mmc0's as before"), "{message}");
    let message = read("[    1.0] mmc2: new high speed SDIO card at address 0001\n").unwrap_err();
    assert!(message.contains("found text that begins with") && !message.contains("JSON"), "{message}");
}

#[test]
fn a_log_beside_registers_of_another_card_is_left_out() {
    let log = "cid: 1501004d384731474303dc0db061506f\ncsd: d02701320f5903fff6dbffef8e40400d\n\
               mmc1: new SDHC card at address 0002\n";
    let data = read(log).unwrap();
    assert_eq!(data.kind, Some(CardKind::Emmc));
    assert!(data.origins[0].notes.iter().any(|note| note.contains("the kernel log in the same file is left out")));
}

#[test]
fn sizes_hold_what_either_rounding_prints() {
    for (text, bytes) in [
        ("7.28 GiB", 15_269_888u64 * 512),
        ("29.1 GiB", 31_268_536_320),
        ("115 GiB", 123_480_309_760),
        ("512 KiB", 512 << 10),
        ("31.5 MiB", 252 * (128 << 10)),
    ] {
        let size = size(text).unwrap();
        assert!(size.min <= bytes && bytes <= size.max, "{text}: {size:?}");
    }
    for none in ["", "7", "7 XB", "7,2 GiB", "12345 GiB", "1.234 GiB", "-1 B", " GiB"] {
        assert_eq!(size(none), None, "{none}");
    }
}
