//! The maker's report of the virtual card, read over its commands and decoded as a real card's would be.

use emmc_analysis::Severity;
use emmc_analysis::maker_health::{Area, Family, VendorHealth, allowed_reads, consistency, decode_reply};
use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::{Profile, shipped};
use emmc_regs::CardKind;
use emmc_regs::command::Response;
use emmc_regs::ext_csd::ExtCsd;
use emmc_units::{Instant, Nanos};

/// `generic-8g` at 64 MiB, so that it is aged quickly in a debug build.
fn profile() -> Profile {
    let mut profile = shipped::named("generic-8g").unwrap();
    profile.areas.user_bytes = 64 << 20;
    profile.areas.enhanced_groups_max = 4;
    (profile.nand.pages_per_block, profile.nand.over_provisioning) = (32, 0.3);
    profile
}

/// A card in `tran`, `share` of whose life is used up.
fn card(profile: Profile, share: f64) -> (Card, Instant) {
    let mut card = Card::new(profile, DeviceOptions { keep: StoredContent::Nothing, seed: 7 }).unwrap();
    // A card may wear out during the run; then it can still be read.
    let aged = card.device_mut().age(share, Instant::START + Nanos::from_secs(1));
    let mut now = aged.unwrap_or(Instant::START + Nanos::from_secs(100_000));
    for (index, argument) in [(0, 0), (1, 0x40ff_8080), (2, 0), (3, 0x1_0000), (7, 0x1_0000)] {
        now = now + Nanos::from_millis(100);
        let reply = card.handle_command(index, argument, now);
        assert!(index == 0 || reply.response != Response::None, "CMD{index}");
    }
    (card, now)
}

fn read(card: &mut Card, index: u8, argument: u32, now: Instant) -> Vec<u8> {
    assert_ne!(card.handle_command(index, argument, now).response, Response::None, "CMD{index} {argument:#x}");
    card.poll_data(now).unwrap().bytes
}

fn reply(card: &mut Card, argument: u32, now: Instant) -> VendorHealth {
    let bytes = read(card, 56, argument, now);
    decode_reply(Some(Family::Micron), Some(argument), &bytes)
        .unwrap_or_else(|refusal| panic!("{argument:#x}: {refusal}"))
}

#[test]
fn the_report_agrees_with_the_registers_at_every_age() {
    for (share, eol, b) in [(0.05, 1, 1), (0.35, 1, 4), (0.97, 1, 10), (1.2, 3, 11)] {
        let (mut card, now) = card(profile(), share);
        let bytes = <[u8; 512]>::try_from(read(&mut card, 8, 0, now)).unwrap();
        assert_eq!((bytes[267], bytes[269]), (eol, b), "{share}");
        let mut health = reply(&mut card, 0x11, now);
        for argument in [0x21, 0x23, 0x25] {
            health.merge(reply(&mut card, argument, now)).unwrap();
        }
        let average = |area| health.area(area).unwrap().average.as_ref().unwrap().value.as_f64().unwrap();
        let native = &card.device().profile().nand.native;
        let band = |used: f64| if used >= 1.0 { 11 } else { (used * 10.0) as u8 + 1 };
        assert_eq!(band(average(Area::Mlc) / f64::from(native.endurance)), b, "{share}");
        let single = card.device().profile().nand.slc.as_ref().unwrap().endurance;
        assert_eq!(band(average(Area::Enhanced) / f64::from(single)), bytes[268], "{share}");
        let (info, _) = ExtCsd::from_bytes(bytes).decode();
        let findings = consistency(&health, &info);
        let bad: Vec<_> = findings.iter().filter(|finding| finding.severity < Severity::Notice).collect();
        assert!(bad.is_empty(), "{share}: {bad:?}");
        assert!(findings.iter().any(|finding| finding.id == "vendor-spare-agrees"), "{share}");
        assert!(health.implausible.is_empty(), "{:?}", health.implausible);
    }
}

#[test]
fn the_tables_list_every_good_block_once() {
    let (mut card, now) = card(profile(), 0.3);
    let device = card.device().health();
    let tables = reply(&mut card, 0x83, now).number("erase_tables").unwrap() as u32;
    let (mut listed, mut total) = (Vec::new(), 0);
    for table in 0..tables {
        for row in reply(&mut card, table << 8 | 0x85, now).blocks {
            listed.push(row.block);
            total += u64::from(row.erases.unwrap());
        }
        assert!(!reply(&mut card, table << 8 | 0x87, now).blocks.is_empty());
    }
    assert!(listed.windows(2).all(|pair| pair[0] < pair[1]), "in order, none twice");
    assert_eq!((listed.len() as u32, total), (device.all.blocks, device.all.total));
    let bad = reply(&mut card, 0x11, now);
    assert_eq!(bad.number("initial_bad_blocks"), Some(f64::from(device.factory_bad)));
    assert_eq!(bad.number("later_bad_blocks"), Some(f64::from(device.grown_bad)));
    let smart = reply(&mut card, 0x39, now);
    assert_eq!(smart.number("spare_blocks_left"), Some(f64::from(device.spares_left)));
}

#[test]
fn every_vendor_read_of_a_tool_is_answered() {
    let (mut card, now) = card(profile(), 0.1);
    let maker = card.registers().cid[0];
    let steps = allowed_reads(CardKind::Emmc, maker);
    assert!(!steps.is_empty(), "the profile's maker is one that tools know");
    for argument in [0x01, 0x11, 0x21, 0x23, 0x25, 0x39] {
        assert_eq!(read(&mut card, 56, argument, now).len(), 512);
    }
    let mut other = profile();
    other.identity.manufacturer_id = 0x15;
    let (mut silent, now) = self::card(other, 0.1);
    assert_eq!(read(&mut silent, 56, 0x11, now), [0; 512], "another maker's part has no such report");
}
