//! Offers, chunks and verdicts on their own.

use emmc_port::{Approved, ApprovedErase, CardData, CommandPort, PortError};
use emmc_regs::ext_csd::{EXT_CSD_BYTES, ExtCsd, reg};
use emmc_regs::{Area, CardKind};

use super::*;

const MIB: u64 = 1 << 20;

fn card(features: u8, rev: u8) -> CardData {
    let mut image = [0; EXT_CSD_BYTES];
    image[reg::EXT_CSD_REV] = rev;
    image[reg::SEC_FEATURE_SUPPORT] = features;
    image[212..216].copy_from_slice(&(8u32 << 21).to_le_bytes());
    image[reg::ERASE_GROUP_DEF] = 1;
    image[reg::HC_ERASE_GRP_SIZE] = 1;
    image[reg::ERASE_TIMEOUT_MULT] = 2;
    image[reg::TRIM_MULT] = 5;
    image[reg::SEC_ERASE_MULT] = 10;
    image[reg::SEC_TRIM_MULT] = 20;
    let ext_csd = Some(ExtCsd::from_bytes(image));
    CardData { kind: Some(CardKind::Emmc), ext_csd, ..CardData::default() }
}

#[test]
fn registers_say_which_kinds_there_are_and_how_long_they_take() {
    let has = |features, rev| -> Vec<&str> {
        let offers = offers(&card(features, rev), Area::User, 8 << 30).unwrap();
        offers.iter().filter(|offer| offer.available == Some(true)).map(|offer| offer.kind.name()).collect()
    };
    assert_eq!(has(0x55, 8), ["discard", "trim", "erase", "secure-trim", "secure-erase", "sanitize"]);
    assert_eq!(has(0x00, 5), ["erase"]);
    assert_eq!(has(0x01, 5), ["erase", "secure-erase"]);
    assert_eq!(has(0x10, 6), ["discard", "trim", "erase"]);
    // 16384 groups of 512 KiB, in units of 300 ms.
    let times: Vec<_> =
        offers(&card(0x55, 8), Area::User, 8 << 30).unwrap().iter().map(|offer| offer.time_ms_max).collect();
    let groups = 16_384 * 300;
    let expected = [Some(5 * groups), Some(5 * groups), Some(2 * groups), Some(40 * groups), Some(20 * groups), None];
    assert_eq!(times, expected);
    assert!(offers(&CardData { kind: Some(CardKind::Sd), ..card(0x55, 8) }, Area::User, 0).is_none());
}

#[test]
fn addresses_count_sectors_or_bytes_and_end_inside() {
    let geometry = Geometry::of(&card(0x55, 8)).unwrap();
    assert_eq!(geometry.addresses([MIB, 2 * MIB]), Some([2048, 4095]));
    assert_eq!(geometry.addresses([MIB, MIB]), None);
    let mut image = *card(0, 5).ext_csd.unwrap().bytes();
    image[212..216].copy_from_slice(&(1u32 << 21).to_le_bytes());
    image[reg::DATA_SECTOR_SIZE] = 1;
    let small = CardData { ext_csd: Some(ExtCsd::from_bytes(image)), ..card(0, 5) };
    let geometry = Geometry::of(&small).unwrap();
    assert_eq!(geometry.addresses([MIB, 2 * MIB]), Some([MIB as u32, 2 * MIB as u32 - 4096]));
    // 60 s at most by the registers, 64 MiB at most, a group at least.
    let geometry = Geometry::of(&card(0x55, 8)).unwrap();
    let chunks = [EraseKind::Trim, EraseKind::Erase, EraseKind::SecureErase].map(|kind| geometry.chunk_bytes(kind));
    assert_eq!(chunks, [20 * MIB, 50 * MIB, 5 * MIB]);
}

#[test]
fn every_end_says_how_far_it_came() {
    let ranges = [[MIB, 3 * MIB], [10 * MIB, 11 * MIB + 512]];
    let chunks = 4;
    for end_at in 0..=chunks {
        for is_lost in [false, true] {
            let mut done = Vec::new();
            let mut count = 0;
            let reach = in_chunks(
                &ranges,
                0,
                MIB,
                &mut |chunk| {
                    count += 1;
                    if is_lost && count > end_at {
                        return Err(PortError::Lost { opcode: 38, reason: "power".into() });
                    }
                    done.push(chunk);
                    Ok(())
                },
                &mut |event| is_lost || !matches!(event, Event::Sends(_)) || end_at > 0 && done_before(event, end_at),
            );
            let say = format!("{end_at} {is_lost}: {reach:?}");
            if end_at == chunks && is_lost || matches!(reach.ended, Ended::Complete) {
                assert_eq!((reach.ended.clone(), reach.to_bytes), (Ended::Complete, 11 * MIB + 512), "{say}");
                continue;
            }
            let last = done.last().map_or(MIB, |chunk| chunk[1]);
            assert_eq!((reach.to_bytes, reach.unsure.is_some()), (last, is_lost), "{say}");
            // From there on, exactly the rest.
            let mut rest = Vec::new();
            let mut take = |chunk| -> Result<(), PortError> {
                rest.push(chunk);
                Ok(())
            };
            in_chunks(&ranges, reach.to_bytes, MIB, &mut take, &mut |_| true);
            let all: u64 = done.iter().chain(&rest).map(|chunk| chunk[1] - chunk[0]).sum();
            assert_eq!(all, 3 * MIB + 512, "{say}");
            assert!(rest.first().is_none_or(|first| first[0] >= last), "{say}");
        }
    }
}

#[test]
fn what_the_target_does_not_have_changes_nothing() {
    let mut none = |_| Err(Ended::Unsupported("none".into()));
    let reach = in_chunks(&[[MIB, 2 * MIB]], 0, MIB, &mut none, &mut |_| true);
    assert_eq!((reach.ended, reach.to_bytes, reach.unsure), (Ended::Unsupported("none".into()), MIB, None));
}

/// Whether fewer than `end_at` chunks lie before this one.
fn done_before(event: Event, end_at: u64) -> bool {
    let starts = [MIB, 2 * MIB, 10 * MIB, 11 * MIB];
    let Event::Sends([at, _]) = event else { return true };
    starts.iter().position(|start| *start == at).is_some_and(|index| (index as u64) < end_at)
}

fn sample(before: u8, after: u8) -> Sample {
    Sample { offset_bytes: 4096, before: Some(vec![before; 8]), after: Some(vec![after; 8]) }
}

#[test]
fn samples_show_who_obeys() {
    let judge = |kind, samples: &[Sample]| verify(kind, &[0], samples).verdict;
    use EraseKind::{Discard, Sanitize, Trim};
    assert_eq!(judge(Trim, &[sample(7, 0), sample(0, 0)]), Verdict::Obeyed);
    assert_eq!(judge(Trim, &[sample(7, 7), sample(0, 0)]), Verdict::Ignored);
    assert_eq!(judge(Trim, &[sample(7, 0), sample(7, 7)]), Verdict::Ignored);
    assert_eq!(judge(Trim, &[sample(7, 9)]), Verdict::Ignored);
    assert_eq!(judge(Trim, &[sample(0, 0)]), Verdict::NotVisible);
    assert_eq!(judge(Trim, &[]), Verdict::NotVisible);
    assert_eq!(judge(Discard, &[sample(7, 7), sample(0, 0)]), Verdict::Ignored);
    assert_eq!(judge(Discard, &[sample(7, 7), sample(7, 0)]), Verdict::Obeyed);
    assert_eq!(judge(Sanitize, &[sample(7, 7), sample(0, 0)]), Verdict::NotVisible);
    assert_eq!(judge(Sanitize, &[sample(7, 0), sample(0, 0)]), Verdict::Ignored);
    let found = verify(Trim, &[0xff], &[sample(0, 0), sample(1, 0xff)]);
    assert_eq!((found.held_content, found.unchanged, found.first_kept_bytes), (2, 1, Some(4096)));
}

#[test]
fn samples_lie_inside_and_reach_both_ends() {
    let ranges = [[512, 9 * MIB], [20 * MIB, 20 * MIB + 4096], [30 * MIB, 30 * MIB + 512]];
    let all = positions(&ranges, 4096, 64);
    assert!(all.len() > 50 && all.contains(&4096) && all.contains(&(9 * MIB - 4096)) && all.contains(&(20 * MIB)));
    let inside = |at: &u64| ranges.iter().any(|[from, to]| at >= from && at + 4096 <= *to);
    assert!(all.iter().all(|at| at % 4096 == 0 && inside(at)), "{all:?}");
}

/// A card of version `rev` with boot areas, RPMB and a completed general purpose partition.
fn with_areas(rev: u8) -> CardData {
    let mut image = *card(0x55, rev).ext_csd.unwrap().bytes();
    for (field, value) in [
        (reg::BOOT_SIZE_MULT, 32),
        (reg::RPMB_SIZE_MULT, 1),
        (reg::HC_WP_GRP_SIZE, 16),
        (reg::PARTITION_SETTING_COMPLETED, 1),
        (reg::PARTITION_CONFIG, 0x10),
    ] {
        image[field] = value;
    }
    image[149] = 2;
    CardData { ext_csd: Some(ExtCsd::from_bytes(image)), ..card(0x55, rev) }
}

#[test]
fn areas_have_their_own_sizes_and_the_groups_of_the_card() {
    let card = with_areas(8);
    let sizes: Vec<_> = areas(&card.ext_csd.as_ref().unwrap().decode().0);
    let sizes: Vec<_> = sizes.iter().map(|(area, bytes)| (area.name(), bytes.0)).collect();
    let expected = [("user", 8 << 30), ("boot0", 4 * MIB), ("boot1", 4 * MIB), ("rpmb", MIB / 8), ("gp3", 16 * MIB)];
    assert_eq!(sizes, expected);
    let of = |area| Geometry::of_area(&card, area);
    let (user, gp) = (of(Area::User).unwrap(), of(Area::Gp(2)).unwrap());
    assert_eq!(Some(user), Geometry::of(&card));
    assert_eq!((gp.size_bytes, gp.wp_group_bytes), (16 * MIB, Some(8 * MIB)));
    // Boot areas have no groups of write protection, and all have the addresses of the user area.
    assert_eq!(of(Area::Boot(1)).unwrap().wp_group_bytes, None);
    assert_eq!(of(Area::Boot(1)).unwrap().addresses([MIB, 2 * MIB]), user.addresses([MIB, 2 * MIB]));
    assert!([Area::Rpmb, Area::Gp(0)].into_iter().all(|area| of(area).is_none()));
    // What SEC_FEATURE_SUPPORT has is not known of boot areas; what it has not, is not there.
    let known = |area| -> Vec<_> { offers(&card, area, MIB).unwrap().iter().map(|offer| offer.available).collect() };
    assert_eq!(known(Area::Gp(2)), [Some(true); 6]);
    assert_eq!(known(Area::Boot(0)), [None, None, None, None, None, Some(true)]);
    let left = untouched(&card.ext_csd.as_ref().unwrap().decode().0, Area::Boot(0));
    assert!(left.len() == 4 && left.iter().any(|left| left == "boot area 2 (boot1), 4.0 MiB"), "{left:?}");
}

#[test]
fn protection_of_an_area_and_what_boots_from_it_is_known() {
    let with = |card: CardData, field: &emmc_regs::ext_csd::Field, value| {
        let mut image = *card.ext_csd.unwrap().bytes();
        image[field] = value;
        CardData { ext_csd: Some(ExtCsd::from_bytes(image)), ..card }
    };
    let says = |card: &CardData, area| protection(card, area).unwrap_or_default();
    let all = [Area::User, Area::Boot(0), Area::Boot(1), Area::Gp(2)];
    assert!(all.into_iter().all(|area| protection(&with_areas(8), area).is_none()));
    let one = with(with_areas(8), reg::BOOT_WP_STATUS, 0x04);
    assert!(
        says(&one, Area::Boot(1)).contains("until the card is powered off") && says(&one, Area::Boot(0)).is_empty()
    );
    let one = with(with_areas(8), reg::BOOT_WP_STATUS, 0x02);
    assert!(says(&one, Area::Boot(0)).contains("permanently") && says(&one, Area::Boot(1)).is_empty());
    // Cards before BOOT_WP_STATUS have one bit for both.
    let old = with(with_areas(5), reg::BOOT_WP, 0x01);
    assert!(says(&old, Area::Boot(0)).contains("BOOT_WP is 0x01") && says(&old, Area::Boot(1)).contains("BOOT_WP"));
    assert!(says(&with(with_areas(5), reg::BOOT_WP_STATUS, 0x0f), Area::Boot(0)).is_empty());
    let mut csd = [0; 16];
    csd[14] = 0x10;
    let whole = CardData { csd: Some(csd), ..with_areas(8) };
    assert!(all.into_iter().all(|area| says(&whole, area).contains("TMP_WRITE_PROTECT of its CSD")), "{whole:?}");
    let boots = |config| -> Vec<_> {
        let card = with(with_areas(8), reg::PARTITION_CONFIG, config);
        all.into_iter().filter(|area| boots(&card, *area).is_some()).collect()
    };
    assert_eq!([boots(0), boots(0x08), boots(0x10), boots(0x38)], [vec![], vec![all[1]], vec![all[2]], vec![all[0]]]);
}

#[test]
fn ranges_are_whole_units_or_would_be_rounded() {
    let offers = offers(&card(0x55, 8), Area::User, 0).unwrap();
    let rounded = |kind, range| {
        let offer = offers.iter().find(|offer| offer.kind == kind).unwrap();
        offer.rounded(range, 8 * MIB + 4096)
    };
    let group = MIB / 2;
    assert_eq!(rounded(EraseKind::Erase, [group, MIB]), None);
    assert_eq!(rounded(EraseKind::Erase, [group + 512, MIB]), Some([group, MIB]));
    assert_eq!(rounded(EraseKind::Erase, [group, MIB + 512]), Some([group, 3 * group]));
    // The end of the card ends the last unit.
    assert_eq!(rounded(EraseKind::Erase, [0, 8 * MIB + 4096]), None);
    assert_eq!(rounded(EraseKind::Erase, [0, 8 * MIB + 512]), Some([0, 8 * MIB + 4096]));
    assert_eq!(rounded(EraseKind::Trim, [512, 1024]), None);
    assert_eq!(rounded(EraseKind::Trim, [512, 1000]), Some([512, 1024]));
    assert_eq!(rounded(EraseKind::Sanitize, [1, 2]), None);
}

/// A card with groups of 8 MiB that has these kinds of protection of its first 32, and takes nothing.
struct Protected(u64);

impl CommandPort for Protected {
    fn ext_csd(&mut self) -> Result<[u8; EXT_CSD_BYTES], PortError> {
        Err(PortError::Lost { opcode: 8, reason: "not asked".into() })
    }

    fn protection(&mut self, address: u32) -> Result<u64, PortError> {
        Ok(self.0.checked_shr(2 * (address / 16_384)).unwrap_or(0))
    }

    fn send(&mut self, command: Approved) -> Result<(), PortError> {
        Err(PortError::Lost { opcode: command.opcode(), reason: "not sent".into() })
    }

    fn erase(&mut self, _: ApprovedErase) -> Result<(), PortError> {
        Err(PortError::Lost { opcode: 38, reason: "not sent".into() })
    }
}

#[test]
fn every_kind_of_protection_of_a_group_is_found() {
    let card = with_areas(8);
    let geometry = Geometry::of(&card).unwrap();
    // Groups 1 to 3: temporary, until power-off, permanent; group 5.
    let mut port = Protected(1 << 2 | 2 << 4 | 3 << 6 | 1 << 10);
    let mut found = |ranges: &[[u64; 2]]| protected(&mut port, &geometry, ranges).unwrap();
    assert_eq!(found(&[[0, 8 << 30]]), [[8 * MIB, 32 * MIB], [40 * MIB, 48 * MIB]]);
    assert_eq!(found(&[[0, 8 * MIB], [33 * MIB, 41 * MIB]]), [[40 * MIB, 41 * MIB]]);
    assert_eq!(found(&[[48 * MIB, 8 << 30]]), [] as [[u64; 2]; 0]);
    // A boot area has no groups, and is not asked.
    let boot = Geometry::of_area(&card, Area::Boot(0)).unwrap();
    assert_eq!(protected(&mut Protected(u64::MAX), &boot, &[[0, 4 * MIB]]), Ok(vec![]));
}
