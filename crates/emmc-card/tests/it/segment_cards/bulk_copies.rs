//! Copies in bulk give the same times, wear and places as copies page by page.
//!
//! Flash without content copies in bulk; flash with sequence numbers copies page by page.

use emmc_card::device::{Area, Device, DeviceOptions, WriteFlags};
use emmc_card::ftl::TrimKind;
use emmc_card::nand::StoredContent;
use emmc_card::profile::{Profile, SegmentOrder};
use emmc_units::{Instant, Rng};

use crate::segment_cards::host::named;

/// A part with few, full blocks, so that it merges all the time.
fn small(name: &str, change: impl Fn(&mut Profile)) -> Profile {
    let mut profile = named(name);
    profile.areas.user_bytes = 128 << 20;
    profile.areas.wp_group_bytes = profile.areas.erase_group_bytes;
    profile.nand.over_provisioning = 0.9;
    profile.nand.factory_bad_blocks = 1;
    change(&mut profile);
    profile
}

/// Random work; returns the end of each request.
fn work(device: &mut Device, seed: u64) -> Vec<Instant> {
    let (mut rng, mut now, mut times) = (Rng::new(seed), Instant::START, Vec::new());
    let sectors = device.sectors(Area::User);
    for _ in 0..4000 {
        let count = [8, 16, 24, 64, 512, 1024][rng.below(6) as usize];
        let lba = rng.below((sectors - count) / 8) * 8;
        let (kind, length) = (rng.below(40), count as u32);
        now = match kind {
            0 => device.flush(now).unwrap().done,
            1 => device.background(now).unwrap().unwrap_or(now),
            2 => device.trim(Area::User, lba, count, TrimKind::Trim, now).unwrap().done,
            3..10 => device.read(Area::User, lba, length, None, now).unwrap().done,
            _ => {
                let flags = WriteFlags { reliable: kind < 15, ..WriteFlags::default() };
                device.write(Area::User, lba, length, flags, None, now).unwrap().done
            }
        };
        times.push(now);
    }
    times
}

#[track_caller]
fn same(name: &str, change: impl Fn(&mut Profile)) {
    let part = |keep| Device::new(small(name, &change), DeviceOptions { keep, seed: 5 }).unwrap();
    let (mut plain, mut kept) = (part(StoredContent::Nothing), part(StoredContent::Orders));
    let found = work(&mut plain, 3);
    let expected = work(&mut kept, 3);
    assert_eq!(found.iter().zip(&expected).position(|(found, expected)| found != expected), None, "{name}: times");
    assert!(plain.stats().full_merges + plain.stats().partial_merges > 500, "{name}: {:?}", plain.stats());
    assert_eq!((plain.stats(), plain.nand().counters()), (kept.stats(), kept.nand().counters()), "{name}");
    assert_eq!((plain.nand().blocks(), plain.valid_units()), (kept.nand().blocks(), kept.valid_units()), "{name}");
    for block in 0..plain.nand().geometry().blocks {
        assert_eq!(plain.nand().spare(block), kept.nand().spare(block), "{name}: block {block}");
    }
    plain.audit().unwrap();
}

#[test]
fn results_agree_on_shipped_cards() {
    for name in ["intenso-class4-4g", "sandisk-ultra-8g", "toshiba-7au", "sandisk-20au"] {
        same(name, |_| ());
    }
}

#[test]
fn results_agree_with_several_lanes_in_any_order() {
    for (dies, planes, multi_plane) in [(1, 2, true), (2, 1, false), (2, 2, true)] {
        same("sandisk-20au", |profile| {
            profile.nand.dies = dies;
            profile.nand.planes = planes;
            profile.nand.multi_plane = multi_plane;
            profile.nand.cached_program = multi_plane;
            if let Some(segment) = &mut profile.ftl.segment {
                segment.order = SegmentOrder::Random;
                segment.random_logs = 1;
            }
        });
    }
}

#[test]
fn results_agree_with_failed_programs() {
    same("sandisk-20au", |profile| profile.nand.failures.program_ppb = 20_000);
    same("sandisk-ultra-8g", |profile| profile.nand.failures.program_ppb = 20_000);
}
