use super::*;

fn read(log: &str) -> Result<CardData, String> {
    let text = Text::new("log", log.as_bytes()).unwrap().unwrap();
    assert!(recognises(&text), "{log}");
    import(&text).map_err(|error| error.to_string())
}

/// The values of one published transcript: identity, registers, and the number of registers.
struct Expected<'e> {
    manufacturer_id: u8,
    oem_id: Option<u16>,
    name: &'e str,
    mode: Option<&'e str>,
    capacity: &'e str,
    /// EXT_CSD_REV, BOOT_SIZE_MULT, RPMB_SIZE_MULT.
    sizes: (u64, u64, u64),
    group_mib: u64,
    known_bytes: usize,
}

fn check(file: &str, expected: Expected) -> CardData {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(file);
    let data = crate::saved::read(file, &std::fs::read(path).unwrap()).unwrap();
    let (stated, ext_csd) = (&data.stated, data.ext_csd.as_ref().unwrap());
    assert_eq!(data.origins[0].format, Format::UBootInfo, "{file}");
    assert_eq!(data.kind, Some(CardKind::Emmc), "{file}");
    assert_eq!((stated.manufacturer_id, stated.oem_id), (Some(expected.manufacturer_id), expected.oem_id), "{file}");
    assert_eq!((stated.name.as_deref(), stated.bus_mode.as_deref()), (Some(expected.name), expected.mode), "{file}");
    let capacity = stated.user_capacity.as_ref().unwrap();
    assert_eq!(capacity.text, expected.capacity, "{file}");
    assert!(capacity.min < capacity.max, "{file}");
    let sizes = (ext_csd.uint(192, 1).unwrap(), ext_csd.uint(226, 1).unwrap(), ext_csd.uint(168, 1).unwrap());
    assert_eq!(sizes, expected.sizes, "{file}");
    assert_eq!(stated.hc_wp_group, Some(Bytes(expected.group_mib << 20)), "{file}");
    assert_eq!(stated.erase_group, Some(Bytes(512 << 10)), "{file}");
    assert_eq!(ext_csd.bit(167, 0), Some(true), "{file}");
    assert_eq!(ext_csd.bit(160, 1), Some(true), "{file}");
    assert_eq!(ext_csd.known_bytes(), expected.known_bytes, "{file}");
    data
}

#[test]
fn every_published_transcript_is_read() {
    let usual = |manufacturer_id, name, mode, capacity, sizes, group_mib| Expected {
        manufacturer_id,
        oem_id: Some(0x100),
        name,
        mode,
        capacity,
        sizes,
        group_mib,
        known_bytes: 3,
    };
    let high_speed = Some("MMC High Speed (52MHz)");
    let info = |part: &str| format!("uboot_mmc_info/{part}/mmc_info.txt");
    check(&info("amlogic-4fte4-mlc"), usual(0x15, "4FTE4", Some("HS200 (200MHz)"), "3.6 GiB", (8, 32, 4), 8));
    check(&info("samsung-8gme4-sunxi"), usual(0x15, "8GME4", Some("MMC legacy"), "7.3 GiB", (8, 32, 4), 8));
    check(&info("sandisk-dg403-zynqmp"), usual(0x45, "DG403", high_speed, "29.1 GiB", (8, 32, 32), 8));
    check(&info("toshiba-004ga-stm32mp"), usual(0x11, "004GA", high_speed, "3.7 GiB", (7, 16, 4), 4));
    let data = check(&info("sandisk-dg403-ipq"), usual(0x45, "DG403", high_speed, "29.1 GiB", (8, 32, 32), 8));
    let ext_csd = data.ext_csd.unwrap();
    assert_eq!((ext_csd.bits(174, 0x0f), ext_csd.byte(174)), (Some(0), None));
    let mut newer = usual(0x11, "016G70", high_speed, "14.7 GiB", (7, 32, 32), 4);
    newer.oem_id = None;
    let data = check(&info("toshiba-016g70"), newer);
    assert_eq!(
        data.origins[0].notes,
        [
            "OEM is OID without CBX, as U-Boot prints it since 2022",
            "not read, but inferred from U-Boot's words and sizes: PARTITIONING_SUPPORT, WR_REL_SET, RPMB_SIZE_MULT, BOOT_WP_STATUS, \
             EXT_CSD_REV, BOOT_SIZE_MULT"
        ]
    );
    assert_eq!(data.inferred, [160, 167, 168, 174, 192, 226]);
    assert!(data.is_inferred(226) && !data.is_inferred(227));
    let json = serde_json::to_vec(&crate::Snapshot::from(&data)).unwrap();
    assert_eq!(crate::saved::read("snapshot", &json).unwrap().inferred, data.inferred);
    let console = |file: &str| format!("seeds_console/uboot_mmc_info_{file}.txt");
    check(&console("colibri-imx6"), usual(0x11, "004GE", None, "3.7 GiB", (7, 16, 4), 4));
    let mut micron = usual(0x13, "S0J56", high_speed, "14.8 GiB", (8, 252, 32), 8);
    micron.oem_id = Some(0x14e);
    let data = check(&console("before_imx8qm"), micron);
    let ext_csd = data.ext_csd.unwrap();
    assert_eq!((ext_csd.bit(155, 0), ext_csd.bit(156, 0), ext_csd.byte(224)), (None, None, None));
}

#[test]
fn an_enhanced_user_area_gives_more_registers() {
    let expected = |manufacturer_id, oem_id, name, mode, capacity, sizes| Expected {
        manufacturer_id,
        oem_id: Some(oem_id),
        name,
        mode: Some(mode),
        capacity,
        sizes,
        group_mib: 8,
        // EXT_CSD_REV, the two sizes, ENH_START_ADDR, HC_ERASE_GRP_SIZE and HC_WP_GRP_SIZE.
        known_bytes: 9,
    };
    let enhanced = |data: CardData| {
        let ext_csd = data.ext_csd.unwrap();
        assert_eq!((ext_csd.bit(155, 0), ext_csd.bit(156, 0)), (Some(true), Some(true)));
        assert_eq!((ext_csd.uint(136, 4), ext_csd.byte(224), ext_csd.byte(221)), (Some(0), Some(1), Some(16)));
        data.stated.enh_user_size.unwrap().text
    };
    let data = check(
        "seeds_console/uboot_mmc_info_after_imx8qm.txt",
        expected(0x13, 0x14e, "S0J56", "MMC High Speed (52MHz)", "7.3 GiB", (8, 252, 32)),
    );
    let size = data.stated.enh_user_size.clone().unwrap();
    assert!(size.min.0 <= 7512 << 20 && 7512 << 20 <= size.max.0);
    assert_eq!(enhanced(data), "7.3 GiB");
    let data = check(
        "uboot_mmc_info/brightsign-4fte4-pslc/mmc_info.txt",
        expected(0x15, 0x100, "4FTE4", "HS400 Enhanced Strobe", "1.8 GiB", (8, 32, 4)),
    );
    assert_eq!(enhanced(data), "1.8 GiB");
}

const PARTITIONED: &str = "Manufacturer ID: 15\nMMC version 4.4.1\nHigh Capacity: Yes\nErase Group Size: 1 MiB\n\
    HC WP Group Size: 8 MiB\nUser Capacity: 6 GiB\nBoot Capacity: 4 MiB ENH\nRPMB Capacity: 128 KiB ENH\n\
    GP1 Capacity: 64 MiB ENH WRREL\nGP2 Capacity: 1.2 GiB\n";

#[test]
fn gp_partitions_and_large_erase_groups_are_read() {
    let ext_csd = read(PARTITIONED).unwrap().ext_csd.unwrap();
    assert_eq!((ext_csd.byte(192), ext_csd.byte(224), ext_csd.byte(221)), (Some(5), Some(2), Some(8)));
    assert_eq!((ext_csd.bits(167, 0b111), ext_csd.bits(156, 0b111)), (Some(0b010), Some(0b010)));
    assert_eq!((ext_csd.uint(143, 3), ext_csd.uint(146, 3), ext_csd.bit(155, 0)), (Some(8), None, Some(true)));
    assert_eq!(ext_csd.byte(168), Some(1));
}

#[test]
fn impossible_values_are_left_out_with_a_note() {
    let data = read(&PARTITIONED.replace("4.4.1", "9.9")).unwrap();
    assert_eq!((data.stated.mmc_version, data.kind), (None, Some(CardKind::Emmc)));
    assert_eq!(data.ext_csd.unwrap().byte(192), None);
    assert_eq!(data.origins[0].notes[0], "MMC version 9.9 is not known; it is left out");
    let with_capacity = |capacity: &str| {
        read(&format!(
            "Capacity: {capacity}
{PARTITIONED}"
        ))
        .unwrap()
    };
    let data = with_capacity("4 MiB");
    assert_eq!(data.stated.user_capacity.map(|size| size.text).as_deref(), Some("6 GiB"));
    assert_eq!(
        data.origins[0].notes[0],
        "Capacity is 4 MiB and User Capacity 6 GiB: another hardware partition was selected; User Capacity is used"
    );
    assert_eq!(with_capacity("6 GiB").origins[0].notes.len(), 1);
}

#[test]
fn an_sd_card_has_no_ext_csd() {
    let log = "Device: FSL_SDHC\nManufacturer ID: 3\nOEM: 5344\nName: SL16G \nBus Speed: 50000000\n\
               Mode: SD High Speed (50MHz)\nRd Block Len: 512\nSD version 3.0\nHigh Capacity: Yes\nCapacity: 14.8 GiB\n\
               Bus Width: 4-bit\nErase Group Size: 512 Bytes\n";
    let data = read(log).unwrap();
    let stated = &data.stated;
    assert_eq!((data.kind, data.ext_csd.is_some()), (Some(CardKind::Sd), false));
    assert_eq!(
        (stated.oem_id, stated.name.as_deref(), stated.bus_speed_hz),
        (Some(0x5344), Some("SL16G"), Some(50_000_000))
    );
    assert_eq!((stated.erase_group, stated.mmc_version.as_deref()), (Some(Bytes(512)), None));
}

#[test]
fn a_version_gives_a_revision_only_if_it_is_unique() {
    for (version, revision) in [
        ("4.0", None),
        ("4.3", Some(3)),
        ("4.41", Some(5)),
        ("4.5", Some(6)),
        ("5.1", Some(8)),
        ("5.1.11", Some(9)),
        ("6.0", None),
    ] {
        assert_eq!(ext_csd_rev(version), revision, "{version}");
    }
}

#[test]
fn values_that_u_boot_never_prints_are_refused() {
    let with = |old: &str, new: &str| read(&PARTITIONED.replace(old, new)).unwrap_err();
    for (old, new, message) in [
        ("ID: 15", "ID: 115", "line 1: expected Manufacturer ID of at most 2 hexadecimal digits, found \"115\""),
        ("4 MiB ENH", "4.05 MiB", "line 7: expected a size such as 7.3 GiB for Boot Capacity, found \"4.05 MiB\""),
        ("128 KiB", "100 KiB", "line 8: expected a multiple of 128 KiB for RPMB Capacity, found \"100 KiB\""),
        (
            "4 MiB ENH",
            "4 MiB",
            "line 8: expected PARTITIONING_SUPPORT, byte 160, to be 0x00 in bits 0x02 as line 7 says, found 0x02",
        ),
        ("8 MiB", "0 Bytes", "line 5: expected a multiple of 512 KiB for HC WP Group Size, found \"0 Bytes\""),
        ("8 MiB", "3.1 MiB", "line 5: expected a multiple of 512 KiB for HC WP Group Size, found \"3.1 MiB\""),
        ("4 MiB ENH", "63 MiB ENH", "line 7: expected a value of 1 byte for BOOT_SIZE_MULT, found 0x1f8"),
    ] {
        assert_eq!(with(old, new), format!("log: at {message}"));
    }
    let two = format!("{PARTITIONED}\n{}", PARTITIONED.replace("6 GiB", "7 GiB"));
    let message = read(&two).unwrap_err();
    assert_eq!(
        message,
        "log: at line 17: expected one card, whose User Capacity is \"6 GiB\" on line 6, found \"7 GiB\""
    );
}
