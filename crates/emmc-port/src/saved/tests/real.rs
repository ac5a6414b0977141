use emmc_regs::CardKind;

use super::*;

/// The file is recognised as `format`; these bytes are known, and that many in all.
fn check(file: &str, format: Format, known: usize, expected: &[(u16, u16, u64)]) -> CardData {
    let data = read_file(file).unwrap();
    assert_eq!(data.origins[0].format, format, "{file}");
    let ext_csd = data.ext_csd.clone().unwrap_or(emmc_regs::ext_csd::ExtCsd::unknown());
    for &(offset, width, value) in expected {
        assert_eq!(ext_csd.uint(offset, width), Some(value), "{file} at {offset}");
    }
    assert_eq!(ext_csd.known_bytes(), known, "{file}");
    data
}

#[test]
fn raw_registers_are_read() {
    let hex = |part: &str| format!("ext_csd_raw/{part}/{part}.ext_csd.hex");
    check(&hex("samsung-klm-8g"), Format::ExtCsdHex, 512, &[(192, 1, 8), (212, 4, 15_269_888), (157, 3, 466)]);
    check(&hex("samsung-bjnb4r-32g"), Format::ExtCsdHex, 512, &[(192, 1, 8), (212, 4, 61_071_360), (268, 2, 0x0606)]);
    check(&hex("aaru-64g"), Format::ExtCsdHex, 512, &[(192, 1, 8), (212, 4, 120_832_000), (254, 8, 283)]);
    let data = check(&hex("ac100-mmc32g"), Format::ExtCsdHex, 512, &[(192, 1, 5), (226, 1, 16), (168, 1, 2)]);
    assert_eq!((data.kind, data.origins[0].notes.len()), (Some(CardKind::Emmc), 0));
    let partial = "ext_csd_raw/at91bootstrap-107-partial/at91-107.bytes0-335.partial.hex";
    let data = check(partial, Format::ExtCsdHex, 332, &[(192, 1, 5)]);
    assert_eq!(data.ext_csd.unwrap().byte(212), None);
    assert_eq!(
        data.origins[0].notes,
        [
            "332 of the 512 bytes of EXT_CSD, from byte 0 on; the rest is unknown",
            "EXT_CSD is incomplete and without addresses: its SEC_COUNT is not used"
        ]
    );
}

#[test]
fn mmc_utils_texts_are_read() {
    let format = Format::MmcUtilsExtCsd;
    let text = |part: &str, file: &str| format!("mmc_extcsd_text/{part}/{file}");
    check(
        &text("samsung-klm-8g", "extcsd.txt"),
        format,
        208,
        &[(192, 1, 8), (101, 1, 5), (249, 4, 65_536), (157, 3, 466), (212, 4, 15_269_888), (307, 1, 15), (36, 1, 0)],
    );
    let near = [(192, 1, 8), (212, 4, 0x1d20_0000), (249, 4, 1024), (157, 3, 0x136a), (307, 1, 31), (16, 1, 0x3b)];
    let data = check(&text("unknown-bredos-256g", "extcsd.txt"), format, 124, &near);
    let ext_csd = data.ext_csd.unwrap();
    assert_eq!((ext_csd.bit(211, 0), ext_csd.bit(211, 1), ext_csd.byte(211)), (Some(true), Some(false), None));
    check(&text("foresee-sld64g", "extcsd_partial.txt"), format, 64, &[(184, 1, 1), (212, 4, 120_832_000)]);
    check(&text("unknown-se-5.0", "extcsd_partial.txt"), format, 21, &[(192, 1, 7), (249, 4, 32_768), (239, 1, 0)]);
    check(&text("unknown-max-enh-9a2", "extcsd_excerpt.txt"), format, 8, &[(157, 3, 0x9a2), (269, 1, 0)]);
    check(&text("remarkable1-health", "console.txt"), format, 3, &[(267, 1, 1), (268, 1, 1), (269, 1, 1)]);
    check(&text("atk-stm32mp257-16g", "extcsd_fields.txt"), format, 22, &[(212, 4, 30_576_640), (179, 1, 0x50)]);
}

#[test]
fn console_excerpts_are_read() {
    let console = |file: &str| format!("seeds_console/{file}.txt");
    check(&console("extcsd_health"), Format::ChromiumOsExtCsd, 3, &[(267, 1, 1), (268, 1, 2), (269, 1, 1)]);
    check(&console("extcsd_head_rev"), Format::MmcUtilsExtCsd, 1, &[(192, 1, 7)]);
    check(&console("wrrel_on_colibri-imx6s"), Format::MmcUtilsExtCsd, 2, &[(167, 1, 0x1f), (166, 1, 5)]);
    check(&console("wrrel_off_colibri-imx6s"), Format::MmcUtilsExtCsd, 2, &[(167, 1, 0x1e), (166, 1, 5)]);
}

#[test]
fn vendor_reports_are_read() {
    for tool in ["bad_block", "erase_count", "sect_count", "spare_block"] {
        let file = format!("seeds_console/emmcparm_{tool}.txt");
        let data = check(&file, Format::VendorReport, 1, &[(192, 1, 7)]);
        assert_eq!(
            (data.reports[0].format.clone(), &data.reports[0].content),
            (crate::VendorFormat::Emmcparm, &bytes(&file))
        );
    }
    let data = check("emmcparm/cisco-hynix-hbg4e/emmcparm_V.txt", Format::VendorReport, 1, &[(192, 1, 7)]);
    let stated = data.stated;
    assert_eq!((stated.manufacturer_id, stated.name.as_deref()), (Some(0x90), Some("HBG4e")));
    assert_eq!(stated.date.as_deref(), Some("08/2016"));
    check("emmcparm/cisco-hynix-hbg4e/emmcparm_I_excerpt.txt", Format::VendorReport, 8, &[(254, 8, 0x81)]);
    for file in real_files().iter().filter(|file| file.starts_with("sdmon/") && file.contains("json")) {
        let data = check(file, Format::VendorReport, 0, &[]);
        assert_eq!((data.kind, data.reports.len()), (Some(CardKind::Sd), 1), "{file}");
        assert_eq!(
            (data.reports[0].format.clone(), &data.reports[0].content),
            (crate::VendorFormat::Sdmon, &bytes(file))
        );
    }
}

#[test]
fn an_sd_partition_check_is_read() {
    let known = [(160, 1, 7), (157, 3, 0x748), (241, 1, 10)];
    let data = check("hwpartition/cisco-hynix-hbg4e/sd_partition.txt", Format::SdPartition, 5, &known);
    let ext_csd = data.ext_csd.unwrap();
    assert_eq!((ext_csd.bit(155, 0), ext_csd.bit(156, 0), ext_csd.byte(155)), (Some(true), Some(true), None));
    assert_eq!(ext_csd.byte(140), None);
    assert_eq!(data.origins[0].notes, ["ENH_SIZE_MULT is not zero; its value is not printed"]);
}

#[test]
fn identities_are_read() {
    let data = check("ids/samsung-bjnb4r-32g/cid", Format::RegisterHex, 0, &[]);
    assert_eq!((data.kind, data.cid.map(|cid| cid.0[3..9] == *b"BJNB4R")), (Some(CardKind::Emmc), Some(true)));
    let data = check("ids/cisco-hynix-hbg4e/cid", Format::RegisterHex, 0, &[]);
    assert_eq!((data.kind, data.cid.map(|cid| cid.0[0])), (Some(CardKind::Emmc), Some(0x90)));
    let data = check("ids/ac100-mmc32g/csd", Format::RegisterHex, 0, &[]);
    assert_eq!((data.kind, data.csd.map(|csd| csd[0]), data.cid), (Some(CardKind::Emmc), Some(0x90), None));
    let data = check("sdmon/sandisk-ultra-sd128/mmc_cid_csd_read.txt", Format::MmcUtilsIds, 0, &[]);
    let stated = data.stated;
    assert_eq!((data.kind, stated.oem_id, stated.serial), (Some(CardKind::Sd), Some(0x5344), Some(0xfecb_bd8b)));
    assert_eq!((stated.name.as_deref(), stated.date.as_deref()), (Some("SD128"), Some("2024 may")));
}

#[test]
fn every_real_file_imports_or_is_refused_with_its_reason() {
    let refused = [
        ("cmd56_raw/negative-mbr-in-cmd56/cmd56.partial.hex", "boot code of an MBR"),
        ("ext_csd_raw/aaru-64g/aaru-64g.decoded.json", "JSON or similar text that is not a snapshot"),
        ("ext_csd_raw/ac100-mmc32g/ac100-mmc32g.ids.json", "JSON or similar text that is not a snapshot"),
        ("ext_csd_raw/samsung-bjnb4r-32g/samsung-bjnb4r-32g.ids.json", "JSON or similar text that is not a snapshot"),
        ("ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ids.json", "JSON or similar text that is not a snapshot"),
        ("hwpartition/cisco-hynix-hbg4e/registers.json", "JSON or similar text that is not a snapshot"),
        ("kernel_log/edison_two_cards.txt", "a card of mmc1"),
        ("sysfs_text/grep-r_two-cards.txt", "mmc1:e624's"),
        ("hwpartition/copyright1999-klm8g-enh/commands.txt", "commands without their output"),
        ("seeds_console/t30_bonnie_dd_after.txt", "the output of dd"),
        ("seeds_console/t30_bonnie_dd_before.txt", "the output of dd"),
        ("seeds_console/uboot_hwpartition_check_fail_imx8qm.txt", "U-Boot's plan"),
        ("seeds_console/uboot_hwpartition_check_ok_imx8qm.txt", "U-Boot's plan"),
        ("seeds_console/uboot_hwpartition_complete_imx8qm.txt", "U-Boot's plan"),
        ("seeds_console/uboot_hwpartition_query_imx8qm.txt", "U-Boot's plan"),
    ];
    let files = real_files();
    assert!(files.len() > 50, "{}", files.len());
    for file in files {
        match (read_file(&file), refused.iter().find(|(name, _)| *name == file)) {
            (Err(message), Some((_, what))) => assert!(message.contains(what), "{message}"),
            (Err(message), None) => panic!("{message}"),
            (Ok(data), Some(_)) => panic!("{file}: {data:?}"),
            (Ok(data), None) => assert_ne!(CardData { origins: Vec::new(), ..data }, CardData::default(), "{file}"),
        }
    }
}
