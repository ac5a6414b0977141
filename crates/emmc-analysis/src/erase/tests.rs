//! Offers, chunks and verdicts on their own.

use emmc_port::{CardData, PortError};
use emmc_regs::CardKind;
use emmc_regs::ext_csd::{EXT_CSD_BYTES, ExtCsd, reg};

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
        let offers = offers(&card(features, rev), 8 << 30).unwrap();
        offers.iter().filter(|offer| offer.available == Some(true)).map(|offer| offer.kind.name()).collect()
    };
    assert_eq!(has(0x55, 8), ["discard", "trim", "erase", "secure-trim", "secure-erase", "sanitize"]);
    assert_eq!(has(0x00, 5), ["erase"]);
    assert_eq!(has(0x01, 5), ["erase", "secure-erase"]);
    assert_eq!(has(0x10, 6), ["discard", "trim", "erase"]);
    // 16384 groups of 512 KiB, in units of 300 ms.
    let times: Vec<_> = offers(&card(0x55, 8), 8 << 30).unwrap().iter().map(|offer| offer.time_ms_max).collect();
    let groups = 16_384 * 300;
    let expected = [Some(5 * groups), Some(5 * groups), Some(2 * groups), Some(40 * groups), Some(20 * groups), None];
    assert_eq!(times, expected);
    assert!(offers(&CardData { kind: Some(CardKind::Sd), ..card(0x55, 8) }, 0).is_none());
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
            let mut take = |chunk| {
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
