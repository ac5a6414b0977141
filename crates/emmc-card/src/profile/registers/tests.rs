use emmc_regs::CardKind;
use emmc_regs::cid::Cid;
use emmc_regs::crc::Crc;
use emmc_regs::csd::Csd;
use emmc_regs::ext_csd::{ExtCsd, field_named};
use emmc_regs::ocr::{AccessMode, Ocr};
use emmc_regs::scr::Scr;
use emmc_regs::ssr::Ssr;

use super::ext_csd::IMPLIED;
use super::*;
use crate::profile::{SdIdentity, shipped};

fn generic() -> Profile {
    shipped::named("generic-8g").unwrap()
}

fn card(user_bytes: u64, app_class: u8, bus_max: BusMode) -> Profile {
    let mut profile = generic();
    profile.kind = CardKind::Sd;
    profile.identity.product = "SD32G".into();
    profile.identity.oem_id = 0x5344;
    let (uhs_grade, au_bytes) = (if bus_max >= BusMode::Sdr50 { 1 } else { 0 }, 4 << 20);
    profile.identity.sd = Some(SdIdentity { speed_class: 10, uhs_grade, app_class, au_bytes });
    profile.areas.user_bytes = user_bytes;
    profile.controller.bus_max = bus_max;
    profile
}

fn raw(image: &RegisterImage, name: &str) -> u64 {
    ExtCsd::from_bytes(image.ext_csd).raw(field_named(name).unwrap()).unwrap()
}

#[test]
fn every_shipped_part_decodes_without_an_anomaly() {
    for profile in shipped::names().map(|name| shipped::named(name).unwrap()) {
        let image = RegisterImage::new(&profile);
        let name = &profile.name;
        let cid = Cid(image.cid);
        let identity = cid.decode(profile.kind, Some(profile.identity.ext_csd_rev));
        assert_eq!(cid.crc(), Crc::Matches, "{name}");
        assert_eq!(identity.product_name, profile.identity.product.trim_end(), "{name}");
        assert_eq!(identity.serial_number, profile.identity.serial, "{name}");
        let date = identity
            .manufacture_date
            .candidates()
            .iter()
            .any(|date| (date.year, date.month) == (profile.identity.year, profile.identity.month));
        assert!(date, "{name}: {}", identity.manufacture_date);
        let csd = Csd::new(profile.kind, image.csd);
        assert_eq!(csd.crc(), Crc::Matches, "{name}");
        if profile.kind == CardKind::Sd {
            assert_eq!(csd.capacity_bytes(), Some(profile.areas.user_bytes), "{name}");
            assert_eq!(Ssr(image.ssr).au_size_bytes(), Some(profile.identity.sd.unwrap().au_bytes.into()), "{name}");
            assert!(Scr(image.scr).specification().is_some(), "{name}");
            assert_eq!(image.ext_csd, [0; EXT_CSD_BYTES], "{name}");
            continue;
        }
        let (info, anomalies) = ExtCsd::from_bytes(image.ext_csd).decode();
        assert!(anomalies.is_empty(), "{name}: {anomalies:?}");
        assert_eq!(info.user_sectors.map(|sectors| sectors.0 * 512), Some(profile.areas.user_bytes), "{name}");
        assert_eq!(info.boot.map(|boot| boot.0), Some(profile.areas.boot_bytes.into()), "{name}");
        assert_eq!(info.rpmb.map(|rpmb| rpmb.0), Some(profile.areas.rpmb_bytes.into()), "{name}");
        assert_eq!(info.hc_wp_group.map(|group| group.0), Some(profile.areas.wp_group_bytes.into()), "{name}");
        assert_eq!(info.hw_partition.max_enh_groups, Some(profile.areas.enhanced_groups_max.into()), "{name}");
        assert_eq!(info.hw_partition.completed, Some(false), "{name}");
        assert_eq!(csd.capacity_bytes().is_none(), profile.areas.user_bytes > BYTE_ADDRESSED_MAX, "{name}");
    }
}

#[test]
fn no_register_is_newer_than_the_part() {
    for rev in 5..=9 {
        let mut profile = generic();
        profile.identity.ext_csd_rev = rev;
        let image = RegisterImage::new(&profile);
        let ext_csd = ExtCsd::from_bytes(image.ext_csd);
        for field in emmc_regs::ext_csd::fields().filter(|field| field.since_rev > rev) {
            let set = (field.offset..field.offset + field.width).any(|at| ext_csd.byte(at) != Some(0));
            assert!(!set, "{field} at revision {rev}");
        }
        let (_, anomalies) = ext_csd.decode();
        assert!(anomalies.is_empty(), "{rev}: {anomalies:?}");
        assert_eq!(raw(&image, "CMDQ_SUPPORT") == 1, rev >= 8);
        assert_eq!(raw(&image, "CACHE_SIZE") > 0, rev >= 6);
    }
}

#[test]
fn the_registers_follow_the_profile_by_field() {
    let mut profile = generic();
    profile.controller.queue_depth = 17;
    profile.registers.insert("optimal_write_size".into(), 0x21);
    profile.registers.insert("CACHE_FLUSH_POLICY".into(), 1);
    let image = RegisterImage::new(&profile);
    for (name, value) in [
        ("SEC_COUNT", 7_818_182_656 / 512),
        ("BOOT_SIZE_MULT", 32),
        ("HC_WP_GRP_SIZE", 16),
        ("HC_ERASE_GRP_SIZE", 1),
        ("MAX_ENH_SIZE_MULT", 466),
        ("PARTITIONING_SUPPORT", 7),
        ("DEVICE_TYPE", 0x57),
        ("CACHE_SIZE", 4096),
        ("CMDQ_DEPTH", 16),
        ("WR_REL_PARAM", 5),
        ("OPTIMAL_WRITE_SIZE", 0x21),
        ("OPTIMAL_READ_SIZE", 4),
        ("OPTIMAL_TRIM_UNIT_SIZE", 1),
        ("ACC_SIZE", 7),
        ("CACHE_FLUSH_POLICY", 1),
        ("PRE_EOL_INFO", 1),
    ] {
        assert_eq!(raw(&image, name), value, "{name}");
    }
    assert_eq!(&raw(&image, "FIRMWARE_VERSION").to_le_bytes(), b"EMMCLAB1");
    assert!(Csd::new(CardKind::Emmc, image.csd).has_class(11));
    assert_eq!(Csd::new(CardKind::Emmc, image.csd).erase_group_sectors(), Some(1024));
    let ocr = Ocr(image.ocr);
    assert_eq!(ocr.access_mode(CardKind::Emmc), Some(AccessMode::Sector));
    assert!(ocr.contains(Ocr::VDD_27_36) && !ocr.powered_up());
}

#[test]
fn small_parts_have_their_size_in_the_csd() {
    for (user_bytes, expected) in [(64 << 20, true), (1 << 30, true), (2 << 30, true), ((2 << 30) + (8 << 20), false)] {
        let mut profile = generic();
        profile.areas.user_bytes = user_bytes;
        let image = RegisterImage::new(&profile);
        let csd = Csd::new(CardKind::Emmc, image.csd);
        assert_eq!(csd.capacity_bytes(), expected.then_some(user_bytes));
        let byte = Ocr(image.ocr).access_mode(CardKind::Emmc) == Some(AccessMode::Byte);
        assert_eq!(byte, expected);
        assert_eq!(
            Csd::new(CardKind::Sd, RegisterImage::new(&card(user_bytes, 0, BusMode::SdHigh)).csd).capacity_bytes(),
            Some(user_bytes)
        );
    }
    assert_eq!(byte_addressed_size((64 << 20) + 512), None);
}

#[test]
fn sd_cards_follow_the_version_of_their_features() {
    for (bytes, app_class, bus, spec, ccs, s18a, cmd23) in [
        (1 << 30, 0, BusMode::SdHigh, "2.00", false, false, false),
        (8 << 30, 0, BusMode::SdHigh, "2.00", true, false, false),
        (16 << 30, 0, BusMode::Sdr104, "3.0x", true, true, true),
        (32 << 30, 1, BusMode::Sdr104, "5.xx", true, true, true),
        (64 << 30, 2, BusMode::Ddr50, "6.xx", true, true, false),
        (64 << 30, 0, BusMode::SdHigh, "3.0x", true, false, false),
    ] {
        let image = RegisterImage::new(&card(bytes, app_class, bus));
        let scr = Scr(image.scr);
        assert_eq!(scr.specification(), Some(spec));
        assert_eq!(scr.has_set_block_count(), cmd23);
        assert!(scr.has_bus_width(4));
        assert_eq!((Ocr(image.ocr).contains(Ocr::CCS), Ocr(image.ocr).contains(Ocr::S18A)), (ccs, s18a));
        let ssr = Ssr(image.ssr);
        assert_eq!((ssr.speed_class(), ssr.app_perf_class()), (Some(10), Some(app_class.into())));
        assert_eq!((ssr.au_size_bytes(), ssr.erase_timeout_ms(16)), (Some(4 << 20), Some(2000)));
    }
}

#[test]
fn each_override_names_its_own_field() {
    assert_eq!(override_fault("OPTIMAL_READ_SIZE", 255), None);
    for (name, value, fault) in [
        ("OPTIMAL_READ_SIZE", 256, "fit into 8 bits"),
        ("NO_SUCH_FIELD", 0, "name of an EXT_CSD field"),
        ("CONTEXT_CONF[37]", 0, "name of an EXT_CSD field"),
        ("VENDOR_SPECIFIC_FIELD", 0, "more than 8 bytes"),
        ("sec_count", 5, "areas.user_bytes"),
    ] {
        assert!(override_fault(name, value).unwrap().contains(fault), "{name}");
    }
    for (name, _) in IMPLIED {
        assert!(field_named(name).is_some(), "{name}");
    }
}
