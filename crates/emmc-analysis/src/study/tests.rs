//! Whole studies of real parts, and of random bytes.

use std::path::Path;

use emmc_port::{CardData, Format, saved};
use emmc_regs::CardKind;
use emmc_regs::cid::Cid;
use emmc_regs::ext_csd::ExtCsd;

use super::*;
use crate::capacity::AreaName;
use crate::finding::Severity;

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");

fn card(path: &str) -> CardData {
    let bytes = std::fs::read(Path::new(TESTDATA).join(path)).unwrap();
    saved::read(path, &bytes).unwrap_or_else(|error| panic!("{error}"))
}

fn of(path: &str) -> Study {
    study(&card(path), &StudyOptions::default())
}

fn ids(study: &Study) -> Vec<&str> {
    study.findings.iter().map(|finding| finding.id).collect()
}

fn setting<'a>(study: &'a Study, name: &str) -> Option<&'a str> {
    study.configuration.rows.iter().find(|row| row.name == name).map(|row| row.value.as_str())
}

#[test]
fn the_samsung_8g_of_a_board_owner_is_studied() {
    let study = of("ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex");
    assert_eq!(study.identity.standard.as_deref(), Some("eMMC 5.1"));
    assert_eq!(study.health.verdict.severity, Severity::Good);
    // The owner states 7634944 KiB, and 3817472 KiB that could be enhanced.
    let user = &study.capacity.areas[0];
    assert_eq!((user.name, user.size.bytes.map(|bytes| bytes.0)), (AreaName::User, Some(7_634_944 * 1024)));
    assert_eq!(study.hw_partition.max_enhanced.as_ref().map(|max| max.enhanced_bytes.0), Some(3_817_472 * 1024));
    assert_eq!(ids(&study), ["boot-enabled", "boot-unprotected", "bkops-off"]);
    assert_eq!(setting(&study, "write reliability of the user area"), Some("on"));
    assert_eq!(setting(&study, "boots from"), Some("boot area 1"));
}

#[test]
fn the_part_under_linux_has_a_cache_and_a_slow_bus() {
    let study = of("mmc_extcsd_text/samsung-klm-8g/extcsd.txt");
    let bus = study.findings.iter().find(|finding| finding.id == "bus-slower-than-offered").unwrap();
    assert_eq!(bus.severity, Severity::Warning);
    assert!(ids(&study).contains(&"cache-on"));
    assert_eq!(setting(&study, "cache"), Some("on"));
}

#[test]
fn an_old_toshiba_has_no_wear_register() {
    let study = of("ext_csd_raw/ac100-mmc32g/ac100-mmc32g.ext_csd.hex");
    assert_eq!(study.health.verdict.severity, Severity::Unknown);
    assert_eq!(ids(&study), ["write-reliability-off", "hardware-reset-off", "no-health-registers"]);
    // The kernel printed 29.8 GiB, boot areas of 2.00 MiB, and an RPMB of 256 KiB.
    let sizes: Vec<String> = study.capacity.areas.iter().filter_map(|area| Some(area.size.bytes?.rounded())).collect();
    assert_eq!(sizes, ["29.8 GiB", "2.0 MiB", "2.0 MiB", "256.0 KiB"]);
}

#[test]
fn a_samsung_at_half_of_its_life_is_named_by_its_cid() {
    let mut half_worn = card("ext_csd_raw/samsung-bjnb4r-32g/samsung-bjnb4r-32g.ext_csd.hex");
    half_worn.merge(card("ids/samsung-bjnb4r-32g/cid")).unwrap();
    let study = study(&half_worn, &StudyOptions::default());
    assert_eq!(study.identity.product_name.as_deref(), Some("BJNB4R"));
    assert_eq!(study.identity.manufacture_date.as_ref().map(ToString::to_string).as_deref(), Some("2017-01"));
    assert_eq!((study.health.life_a.used_lower_percent, study.health.life_b.used_upper_percent), (Some(50), Some(60)));
    assert_eq!(study.capacity.areas[0].size.sectors.map(|sectors| sectors.0), Some(61_071_360));
    assert_eq!(study.sources.len(), 2);
}

#[test]
fn outputs_of_the_board_vendors_walk_through_are_studied() {
    let mut all = card("seeds_console/fdisk_colibri-imx6s.txt");
    for path in ["lsblk_colibri-imx6s.txt", "df_colibri-imx6s.txt", "extcsd_health.txt", "wrrel_off_colibri-imx6s.txt"]
    {
        all.merge(card(&format!("seeds_console/{path}"))).unwrap();
    }
    let study = study(&all, &StudyOptions::default());
    let user = study.capacity.areas.iter().find(|area| area.name == AreaName::User).unwrap();
    assert_eq!(user.size.bytes.map(|bytes| bytes.0), Some(3_850_371_072));
    let boot = study.capacity.areas.iter().filter(|area| matches!(area.name, AreaName::Boot1 | AreaName::Boot2));
    assert_eq!(boot.filter_map(|area| area.size.bytes).map(|bytes| bytes.0).collect::<Vec<_>>(), [16_777_216; 2]);
    let slots: Vec<(Option<&str>, Option<u64>)> = study.capacity.tables[0]
        .slots
        .iter()
        .map(|slot| (slot.name.as_deref(), slot.bytes.map(|bytes| bytes.0)))
        .collect();
    assert_eq!(
        slots,
        [(None, Some(4_194_304)), (Some("mmcblk0p1"), Some(16_777_216)), (Some("mmcblk0p2"), Some(3_829_399_552))]
    );
    let root = study.capacity.filesystems.iter().find(|filesystem| filesystem.mount == "/").unwrap();
    assert_eq!((root.partition.as_str(), root.overhead_bytes.map(|bytes| bytes.0)), ("mmcblk0p2", Some(127_279_104)));
    assert_eq!(
        study.health.verdict.sentence,
        "10 % to 20 % of life used (type A cells), 0 % to 10 % (type B cells); reserved blocks normal"
    );
    assert!(ids(&study).contains(&"write-reliability-off"), "{:?}", ids(&study));
}

#[test]
fn u_boot_info_of_an_enhanced_part_gives_intervals() {
    let study = of("seeds_console/uboot_mmc_info_after_imx8qm.txt");
    assert_eq!(study.identity.manufacturer.map(|maker| maker.name), Some("Micron"));
    let user = &study.capacity.areas[0];
    let (low, high) = (user.size.min_bytes.unwrap().0, user.size.max_bytes.unwrap().0);
    assert!(user.size.bytes.is_none() && low <= 7512 << 20 && 7512 << 20 <= high && user.enhanced == Some(true));
    assert_eq!(study.capacity.areas[1].size.bytes.map(|bytes| bytes.0), Some(252 * 131_072));
    assert_eq!(study.capacity.not_accounted, [AreaName::User]);
    assert_eq!(ids(&study), ["partitioning-completed"]);
    // U-Boot printed words and sizes; no register was read.
    let how = "inferred from U-Boot's text";
    assert_eq!(study.capacity.areas[1].size.source, format!("EXT_CSD BOOT_SIZE_MULT, {how}"));
    assert!(
        study.findings[0].evidence.iter().all(|evidence| evidence.to_string().contains(how)),
        "{:?}",
        study.findings
    );
    let rows = &study.configuration.rows;
    assert!(rows.iter().any(|row| row.source.to_string() == format!("EXT_CSD WR_REL_SET[167] ({how})")), "{rows:?}");
    let wrrel = &study.hw_partition.wrrel;
    assert!(wrrel.why.starts_with("PARTITION_SETTING_COMPLETED is 1") && wrrel.why.contains(how), "{wrrel:?}");
    let evidence = |rule: &str| {
        let refusal = study.hw_partition.why_not.iter().find(|refusal| refusal.rule == rule);
        refusal.unwrap_or_else(|| panic!("{rule}")).evidence.texts().join("\n")
    };
    assert_eq!(evidence("already-completed"), format!("PARTITION_SETTING_COMPLETED[155] is 1 ({how})"));
    assert!(!evidence("register-unknown").contains(how));
    let read = of("ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex");
    assert!(!serde_json::to_string(&read).unwrap().contains(how));
}

#[test]
fn vendor_tables_and_registers_make_one_study() {
    let mut both = card("seeds_console/extcsd_health.txt");
    both.merge(card("seeds_console/emmcparm_spare_block.txt")).unwrap();
    let good = study(&both, &StudyOptions::default());
    assert_eq!((good.vendor.len(), good.vendor_refused.len()), (1, 0));
    assert!(ids(&good).contains(&"vendor-spare-agrees"), "{:?}", ids(&good));
}

#[test]
fn findings_of_real_parts_have_evidence_and_serialise() {
    let mut studied = 0;
    for folder in ["ext_csd_raw", "mmc_extcsd_text", "uboot_mmc_info", "ids", "sdmon"] {
        for part in std::fs::read_dir(Path::new(TESTDATA).join(folder)).unwrap() {
            for file in std::fs::read_dir(part.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                let Ok(card) = saved::read("part", &std::fs::read(&path).unwrap()) else { continue };
                let study = study(&card, &StudyOptions::default());
                for finding in &study.findings {
                    assert!(!finding.evidence.is_empty(), "{}: {finding:?}", path.display());
                }
                assert!(serde_json::to_value(&study).unwrap()["findings"].is_array());
                studied += 1;
            }
        }
    }
    assert!(studied > 20, "{studied}");
}

#[test]
fn no_unusual_card_makes_a_study_fail() {
    let mut seed = 0x1234_5678_9abc_def1_u64;
    let mut noise = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 24) as u8
    };
    for round in 0..400 {
        let mut bytes = [0; 512];
        let mut mask = [0xff; 512];
        bytes.iter_mut().for_each(|byte| *byte = noise());
        if round % 2 == 0 {
            mask.iter_mut().for_each(|byte| *byte = noise());
        }
        bytes[192] %= 11;
        let mut card = CardData::new("noise", Format::ExtCsdBinary);
        card.kind = [None, Some(CardKind::Emmc), Some(CardKind::Sd)][round % 3];
        card.ext_csd = Some(ExtCsd::with_mask(bytes, mask));
        card.csd = Some(std::array::from_fn(|_| noise()));
        card.cid = Some(Cid(std::array::from_fn(|_| noise())));
        card.ssr = Some(std::array::from_fn(|_| noise()));
        card.scr = Some(std::array::from_fn(|_| noise()));
        card.status = Some(u32::from(noise()) << 24);
        card.sysfs.insert("life_time".into(), format!("0x{:x} {}", noise(), noise()));
        card.host.ios.insert("timing spec".into(), format!("{} (mmc HS{}00)", noise(), noise() % 5));
        card.host.err_stats.insert("Data CRC Errors".into(), u64::from(noise()) << 56);
        let study = study(&card, &StudyOptions::default());
        assert!(study.findings.iter().all(|finding| !finding.evidence.is_empty()), "{:?}", study.findings);
        assert!(serde_json::to_string(&study).is_ok());
    }
}

#[test]
fn the_json_keeps_its_keys() {
    let json = serde_json::to_value(of("ext_csd_raw/aaru-64g/aaru-64g.ext_csd.hex")).unwrap();
    let keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "anomalies",
            "capacity",
            "card",
            "configuration",
            "findings",
            "health",
            "hw_partition",
            "identity",
            "sources",
            "vendor",
            "vendor_refused",
            "verdict"
        ]
    );
    assert_eq!(json["capacity"]["areas"][0]["name"], "user");
    assert_eq!(json["configuration"]["rows"][0]["topic"], "bus");
}
