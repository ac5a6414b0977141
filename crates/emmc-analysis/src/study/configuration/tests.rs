use emmc_port::Format;

use super::*;

fn emmc(registers: &[(u16, u16, u64)]) -> CardData {
    let mut csd = ExtCsd::from_bytes([0; 512]);
    csd.set_uint(192, 1, 8);
    registers.iter().for_each(|&(offset, width, value)| csd.set_uint(offset, width, value));
    CardData { kind: Some(CardKind::Emmc), ext_csd: Some(csd), ..CardData::new("part", Format::ExtCsdBinary) }
}

fn value(card: &CardData, name: &str) -> Option<String> {
    configuration(card).rows.into_iter().find(|row| row.name == name).map(|row| row.value)
}

#[test]
fn settings_are_read_as_the_standard_defines_them() {
    for (registers, name, expected) in [
        (
            &[(196, 1, 0x57)][..],
            "bus modes offered",
            "HS 26 MHz, HS 52 MHz, DDR52 1.8 V or 3 V, HS200 1.8 V, HS400 1.8 V",
        ),
        (&[(185, 1, 3)], "bus mode in use", "HS400"),
        (&[(249, 4, 65_536)], "cache size", "8 MiB"),
        (&[(249, 4, 65_536), (33, 1, 1)], "cache", "on"),
        (&[(308, 1, 1), (307, 1, 31)], "command queue supported", "yes"),
        (&[(502, 1, 1), (163, 1, 1)], "manual background operations", "on"),
        (&[(502, 1, 1), (163, 1, 2)], "automatic background operations", "on"),
        (&[(502, 1, 1), (246, 1, 3)], "background operations outstanding", "critical"),
        (&[(503, 1, 3)], "high-priority interrupt supported", "yes"),
        (&[(162, 1, 1)], "hardware reset", "permanently enabled"),
        (&[(34, 1, 1)], "power-off notification", "POWERED_ON"),
        (&[(493, 1, 1), (169, 1, 1)], "firmware update in the field", "no"),
        (&[(167, 1, 0x1e)], "write reliability of the user area", "off"),
        (&[(167, 1, 0x1f)], "write reliability of the user area", "on"),
        (&[(166, 1, 5)], "write reliability can be set", "once"),
        (&[(166, 1, 5), (155, 1, 1)], "write reliability can be set", "no"),
        (&[(166, 1, 4)], "reliable write", "enhanced"),
        (&[(179, 1, 0x48)], "boots from", "boot area 1"),
        (&[(179, 1, 0x38)], "boots from", "user area"),
        (&[(177, 1, 0x02)], "boot bus", "single rate, backward compatible, 8 lines"),
        (&[(177, 1, 0x10)], "boot bus", "double rate, 4 lines"),
        (&[(178, 1, 0x10)], "boot configuration", "permanently locked"),
        (&[(174, 1, 0x09)], "write protection of boot area 1", "until the next power cycle"),
        (&[(174, 1, 0x09)], "write protection of boot area 2", "permanent"),
        (&[(171, 1, 0x05)], "user write protection bits", "US_PWR_WP_EN, US_PERM_WP_EN"),
        (
            &[(231, 1, 0x55)],
            "erase features",
            "secure erase and trim, secure handling of retired blocks, trim, sanitize",
        ),
        (&[(16, 1, 0x39)], "secure removal", "vendor-specific"),
        (&[(63, 1, 1)], "sector size", "512 B"),
        (&[(61, 1, 1)], "sector size", "4 KiB"),
        (&[(224, 1, 1), (221, 1, 16)], "high-capacity write-protect group", "8 MiB"),
        (&[(265, 1, 8)], "best write size", "32 KiB"),
        (&[(241, 1, 0x1e)], "first start after partitioning", "3000 ms"),
        (&[(160, 1, 7)], "hardware partitioning", "open"),
        (&[(160, 1, 7), (155, 1, 1)], "hardware partitioning", "completed"),
        (&[(160, 1, 7), (157, 3, 939), (224, 1, 1), (221, 1, 16)], "largest enhanced area", "7512 MiB"),
    ] {
        assert_eq!(value(&emmc(registers), name).as_deref(), Some(expected), "{name} {registers:?}");
    }
}

#[test]
fn rows_of_a_later_standard_do_not_appear_on_an_older_part() {
    let old = emmc(&[(192, 1, 3)]);
    for name in
        ["background operations supported", "write reliability of the user area", "sector size", "production state"]
    {
        assert_eq!(value(&old, name), None, "{name}");
        assert!(!configuration(&old).not_told.contains(&name), "{name}");
    }
}

#[test]
fn missing_settings_are_listed_and_have_no_row() {
    let nothing = configuration(&CardData { kind: Some(CardKind::Emmc), ..CardData::default() });
    assert!(nothing.rows.is_empty() && nothing.not_told.contains(&"cache"), "{nothing:?}");
    assert_eq!(configuration(&CardData::default()), Configuration::default());
    // A bit known only from text has its own row.
    let mut csd = ExtCsd::unknown();
    csd.set_bits(167, 1, 1);
    let card = CardData { kind: Some(CardKind::Emmc), ext_csd: Some(csd), ..CardData::default() };
    assert_eq!(value(&card, "write reliability of the user area").as_deref(), Some("on"));
}

#[test]
fn the_host_and_the_kernel_take_precedence() {
    let mut card = emmc(&[(185, 1, 1), (308, 1, 1)]);
    assert_eq!(value(&card, "command queue").as_deref(), Some("off"));
    for (key, text) in [("timing spec", "9 (mmc HS200)"), ("bus width", "3 (8 bits)"), ("clock", "200000000 Hz")] {
        card.host.ios.insert(key.into(), text.into());
    }
    card.sysfs.insert("cmdq_en".into(), "1".into());
    for (name, expected) in [
        ("bus mode in use", "HS200"),
        ("data lines in use", "8"),
        ("requested clock", "200000000 Hz"),
        ("command queue", "on"),
    ] {
        assert_eq!(value(&card, name).as_deref(), Some(expected), "{name}");
    }
}

#[test]
fn every_row_names_its_source() {
    let card = emmc(&[(502, 1, 1), (493, 1, 1), (503, 1, 1), (308, 1, 1), (249, 4, 8)]);
    let configuration = configuration(&card);
    assert!(configuration.rows.len() > 35, "{}", configuration.rows.len());
    for row in &configuration.rows {
        assert!(!row.source.to_string().is_empty() && !row.value.is_empty(), "{row:?}");
    }
}

#[test]
fn the_status_of_an_sd_card_gives_its_classes() {
    let ssr = "8000000000000000040090000f053a1e000800000002ff0003".to_owned() + &"0".repeat(78);
    let card = CardData {
        kind: Some(CardKind::Sd),
        ssr: emmc_regs::ssr::Ssr::parse_hex(&ssr).ok().map(|ssr| ssr.0),
        scr: Some([0x02, 0x35, 0x80, 0x02, 0x01, 0, 0, 0]),
        ..CardData::default()
    };
    for (name, expected) in [
        ("speed class", "C10"),
        ("UHS speed grade", "U3"),
        ("video speed class", "V30"),
        ("application performance class", "A2"),
        ("allocation unit", "4 MiB"),
        ("data lines offered", "1 and 4"),
        ("discard", "yes"),
    ] {
        assert_eq!(value(&card, name).as_deref(), Some(expected), "{name}");
    }
    assert_eq!(configuration(&card).not_told, ["write protection of the whole card"]);
}

#[test]
fn fields_absent_from_the_revision_are_no_settings() {
    let old = emmc(&[(192, 1, 5), (308, 1, 1), (486, 1, 1), (493, 1, 1), (249, 4, 8)]);
    let told = configuration(&old);
    for name in ["command queue supported", "command queue", "cache", "cache size"] {
        assert!(told.not_in_revision.contains(&name), "{name}: {:?}", told.not_in_revision);
        assert!(!told.not_told.contains(&name) && value(&old, name).is_none(), "{name}");
    }
    let barrier = emmc(&[(192, 1, 7), (486, 1, 1), (249, 4, 8)]);
    assert!(configuration(&barrier).not_in_revision.contains(&"cache barrier"));
    assert_eq!(configuration(&emmc(&[])).not_in_revision, [""; 0]);
}

#[test]
fn words_of_u_boot_are_settings() {
    let saved = |text: &str| emmc_port::saved::read("mmc info", text.as_bytes()).unwrap();
    let card = saved(
        "Device: mmc@ff160000\nManufacturer ID: 45\nOEM: 100\nName: DG403 \nBus Speed: 52000000\n\
         Mode: MMC High Speed (52MHz)\nRd Block Len: 512\nMMC version 5.1\nHigh Capacity: Yes\nCapacity: 29.1 GiB\n\
         Bus Width: 4-bit\nErase Group Size: 512 KiB\nHC WP Group Size: 8 MiB\nUser Capacity: 29.1 GiB WRREL\n\
         Boot Capacity: 4 MiB ENH\nRPMB Capacity: 4 MiB ENH\nBoot area 0 is not write protected\n\
         Boot area 1 is power on protected\n",
    );
    for (name, expected) in [
        ("high-capacity write-protect group", "8 MiB"),
        ("erase group in force", "512 KiB"),
        ("write protection of boot area 1", "not protected"),
        ("write protection of boot area 2", "until the next power cycle"),
    ] {
        assert_eq!(value(&card, name).as_deref(), Some(expected), "{name}");
    }
    let sd = saved(
        "Device: mmc@7e202000\nManufacturer ID: 3\nOEM: 5344\nName: SC16G \nBus Speed: 50000000\n\
         Mode: SD High Speed (50MHz)\nRd Block Len: 512\nSD version 3.0\nHigh Capacity: Yes\nCapacity: 14.8 GiB\n\
         Bus Width: 4-bit\nErase Group Size: 512 Bytes\n",
    );
    assert_eq!(value(&sd, "bus mode in use").as_deref(), Some("SD High Speed (50MHz)"));
    assert_eq!(value(&sd, "data lines in use").as_deref(), Some("4"));
    assert_eq!(identity::identity(&sd).standard.as_deref(), Some("SD 3.0"));
}
