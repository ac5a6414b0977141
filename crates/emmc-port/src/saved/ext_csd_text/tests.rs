use super::*;
use emmc_regs::ext_csd::fields;

fn read(text: &str) -> Result<CardData, String> {
    let text = Text::new("log", text.as_bytes()).unwrap().unwrap();
    assert!(recognises(&text));
    import(&text).map_err(|error| error.to_string())
}

/// One line, and its value: offset, width, value.
fn check(line: &str, expected: (u16, u16, u64)) {
    let ext_csd = read(&format!("{line}\n")).unwrap().ext_csd.unwrap();
    let (offset, width, value) = expected;
    assert_eq!(ext_csd.uint(offset, width), Some(value), "{line}");
    assert_eq!(ext_csd.known_bytes(), usize::from(width), "{line}");
}

#[test]
fn each_kind_of_line_is_read() {
    for (line, expected) in [
        ("Card Supported Command sets [S_CMD_SET: 0x01]", (504, 1, 1)),
        ("HPI Features [HPI_FEATURE: 0x03]: implementation based on CMD12", (503, 1, 3)),
        ("Cache Size [CACHE_SIZE] is 8192 KiB", (249, 4, 65536)),
        ("Cache Size [CACHE_SIZE] is -31067442 KiB", (249, 4, 0xf12f_9670)),
        ("Boot partition size [BOOT_SIZE_MULTI: 0x20]", (226, 1, 32)),
        ("Power class for 200MHz at 3.6V [PWR_CL_200_360: 0x55]", (237, 1, 0x55)),
        ("Power class for 200MHz, at 1.95V [PWR_CL_200_195: 0x44]", (236, 1, 0x44)),
        (" [MIN_PERF_DDR_W_8_52: 0x0a]", (235, 1, 10)),
        ("Sector Count [SEC_COUNT: 0x01d29000]   = 30576640", (212, 4, 30_576_640)),
        ("Card Type [CARD_TYPE: 0x57]", (196, 1, 0x57)),
        ("Enhanced Strobe mode [STROBE_SUPPORT: 0x01]  <-----here", (184, 1, 1)),
        ("Boot Area Write protection [BOOT_WP]: 0x00", (173, 1, 0)),
        ("H/W reset function [RST_N_FUNCTION]: 0x01", (162, 1, 1)),
        ("Max Enhanced Area Size [MAX_ENH_SIZE_MULT]: 0x0001d2", (157, 3, 466)),
        (" [GP_SIZE_MULT_4]: 0x010203", (152, 3, 0x01_0203)),
        ("Enhanced User Data Start Address [ENH_START_ADDR]: 0x00002000", (136, 4, 0x2000)),
        ("Vendor Specific Fields [VENDOR_SPECIFIC_FIELD[101]]: 0x05", (101, 1, 5)),
        ("Context configuration [CONTEXT_CONF[51]]: 0x07", (51, 1, 7)),
        ("Number of addressed group to be Released[DYNCAP_NEEDED]: 0x00", (58, 1, 0)),
        ("Exception events status[EXCEPTION_EVENTS_STATUS]: 0x0102", (54, 2, 0x0102)),
        ("eMMC Life Time Estimation A [EXT_CSD_DEVICE_LIFE_TIME_EST_TYP_A]: 0x02", (268, 1, 2)),
        ("Device life time estimation type B [DEVICE_LIFE_TIME_EST_TYP_B: 0x01]", (269, 1, 1)),
        ("eMMC Pre EOL information [EXT_CSD_PRE_EOL_INFO]: 0x01", (267, 1, 1)),
        ("Command Queue Depth [CMDQ_DEPTH]: 16", (307, 1, 15)),
        ("Command Queue Depth [CMDQ_DEPTH]: 0x0f", (307, 1, 15)),
        ("  Extended CSD rev 1.8 (MMC 5.1)", (192, 1, 8)),
        ("# Extended CSD rev 1.9 (MMC 5.1B)", (192, 1, 9)),
        ("eMMC Firmware Version: P1XXXX01", (254, 8, u64::from_le_bytes(*b"P1XXXX01"))),
        ("[root@board ~]# x [SEC_COUNT: 0x00000001]\nSector Count [SEC_COUNT: 0x00000001]", (212, 4, 1)),
    ] {
        check(line, expected);
    }
}

#[test]
fn bits_are_read_and_others_stay_unknown() {
    let data = read("eMMC SECURE_WP_SUPPORT: 1\neMMC SECURE_WP_EN_STATUS: 0\neMMC Firmware Version: \u{6}\n").unwrap();
    let ext_csd = data.ext_csd.unwrap();
    assert_eq!((ext_csd.bit(211, 0), ext_csd.bit(211, 1), ext_csd.bit(211, 2)), (Some(true), Some(false), None));
    for lost in ["", "ABC", "ABCDEFG\u{fffd}", "ABCDEFGHI"] {
        let data = read(&format!("eMMC Firmware Version: {lost}\n[PRE_EOL_INFO: 0x01]")).unwrap();
        assert_eq!(data.ext_csd.unwrap().byte(254), None, "{lost:?}");
    }
}

#[test]
fn other_lines_are_left_out() {
    let log = "[sudo] password for alarm:\n[   12.3] mmc0: new card\n[PRE_EOL_INFO: 0x02]\n[NEW_THING: 0x05]\n...\n";
    let data = read(log).unwrap();
    assert_eq!(data.ext_csd.as_ref().unwrap().known_bytes(), 1);
    assert_eq!(data.origins[0].notes, ["line 4: NEW_THING is no known register"]);
    for none in
        ["[sudo] password", "[A: 1]", "[", "[]", "[CONTEXT_CONF[5]]: 0x00", "Extended CSD rev", "[CONTEXT_CONF[x]]: 0"]
    {
        assert!(!recognises(&Text::new("log", none.as_bytes()).unwrap().unwrap()), "{none}");
    }
}

#[test]
fn wrong_values_are_refused_with_their_line() {
    for (text, message) in [
        ("\n[BOOT_SIZE_MULTI: 0x120]", "line 2: expected 2 digits after 0x for BOOT_SIZE_MULT, found \"0x120]\""),
        ("[SEC_COUNT: 123]", "line 1: expected 8 digits after 0x for SEC_COUNT, found \"123]\""),
        ("[CMDQ_DEPTH]: 33", "line 1: expected a CMDQ_DEPTH of 1 to 32, found \"33\""),
        ("[CACHE_SIZE] is x KiB", "line 1: expected CACHE_SIZE in KiB, found \"x KiB\""),
        ("Extended CSD rev 1.x", "line 1: expected Extended CSD rev 1.0 to 1.9, found \"x\""),
        ("eMMC SECURE_WP_SUPPORT: 2", "line 1: expected 0 or 1, found \"2\""),
        (
            "[PRE_EOL_INFO: 0x01]\n\n[EXT_CSD_PRE_EOL_INFO]: 0x02",
            "line 3: expected PRE_EOL_INFO to be 0x1 as line 1 says, found 0x2",
        ),
    ] {
        // A last line without an end would be cut, and no error.
        assert_eq!(read(&format!("{text}\n")).unwrap_err(), format!("log: at {message}"));
    }
}

#[test]
fn a_cache_size_without_a_date_is_questioned() {
    let noted = |text: &str| read(text).unwrap().origins[0].notes.len();
    assert_eq!(noted("[CACHE_SIZE] is 128 KiB"), 1);
    assert_eq!(noted("[CACHE_SIZE] is 128 KiB\n[BARRIER_CTRL]: 0x00"), 0);
}

#[test]
fn every_register_of_the_table_is_known_by_its_standard_name() {
    // The two power classes are the exception: mmc-utils uses one's name for the other.
    for field in fields().filter(|field| !field.is_reserved() && !field.is_array() && field.name != "PWR_CL_200_195") {
        let value = if field.width == 8 { 1 } else { (1u64 << (8 * field.width)) - 1 };
        let digits = 2 * usize::from(field.width);
        check(&format!("[{}]: 0x{value:0digits$x}", field.name), (field.offset, field.width, value));
    }
}
