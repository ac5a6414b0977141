//! Seeded random requests and registers: every accepted plan keeps the invariants, and no call panics.

use emmc_port::CardData;
use emmc_regs::CardKind;
use emmc_regs::ext_csd::ExtCsd;
use emmc_units::{Bytes, Size};

use super::fixtures::*;
use super::{EnhRequest, ExtAttribute, GpRequest, HwPartPlan, LayoutRequest, WrRelArgument, options, plan};

/// SplitMix64: small, and the same on every machine.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn chance(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

fn size(rng: &mut Rng, group: u64, groups: u64) -> Size {
    match rng.below(8) {
        0 => Size::Max,
        1 => Size::Percent(rng.below(101) as u8),
        2 => Size::Exact(Bytes(rng.next() >> rng.below(64))),
        _ => Size::Exact(Bytes(group.saturating_mul(rng.below(groups.max(1) + 2)))),
    }
}

fn random_request(rng: &mut Rng, group: u64, groups: u64) -> LayoutRequest {
    let mut request = LayoutRequest::default();
    if !rng.chance(4) {
        let start = if rng.chance(2) { 0 } else { group * rng.below(groups.max(1)) };
        request.enh_user = Some(EnhRequest { start: Bytes(start), size: size(rng, group, groups / 3) });
    }
    for slot in &mut request.gp {
        if rng.chance(3) {
            let ext =
                [ExtAttribute::None, ExtAttribute::SystemCode, ExtAttribute::NonPersistent][rng.below(3) as usize];
            let ext = if rng.chance(3) { ext } else { ExtAttribute::None };
            *slot = Some(GpRequest { size: size(rng, group, groups / 6), enh: rng.chance(2), ext });
        }
    }
    request.wrrel = match rng.below(4) {
        0 => Some(WrRelArgument::All(rng.chance(2))),
        1 => Some(WrRelArgument::Areas([0; 5].map(|_| [None, Some(true), Some(false)][rng.below(3) as usize]))),
        _ => None,
    };
    request
}

/// What a part that takes the writes would hold.
fn written(card: &CardData, plan: &HwPartPlan) -> ExtCsd {
    let mut ext_csd = card.ext_csd.clone().unwrap();
    for write in &plan.writes {
        ext_csd.set_bits(write.offset, 0xff, write.new);
    }
    ext_csd
}

fn invariants(card: &CardData, request: &LayoutRequest, plan: &HwPartPlan) {
    let say = format!("{} {:?}", card.name(), plan.requested);
    assert_eq!(plan.ok, plan.refusals.is_empty(), "{say}");
    assert_eq!(plan.ok, !plan.writes.is_empty(), "{say}");
    assert_eq!(plan.ok, plan.commands.is_some() && plan.after.is_some(), "{say}");
    if !plan.ok {
        return;
    }
    let layout = plan.layout.as_ref().unwrap();
    let before = card.ext_csd.as_ref().unwrap();
    let (old, after) = (before.decode().0, written(card, plan));
    let hw = after.decode().0.hw_partition;
    let group = layout.group.0 / 512;
    let (enh, start) = (layout.enh_user_sectors.0, layout.enh_user_start_sectors.0);
    assert_eq!(hw.completed, Some(true), "{say}");
    assert_eq!(plan.writes.last().map(|write| write.offset), Some(155), "{say}");
    assert!(enh % group == 0 && start % group == 0, "{say}");
    assert_eq!(hw.enh_user_groups, Some(enh / group), "{say}");
    assert_eq!(hw.gp_groups, layout.gp_sectors.map(|sectors| Some(sectors.0 / group)), "{say}");
    assert!(layout.gp_sectors.iter().all(|sectors| sectors.0 % group == 0), "{say}");
    assert!(layout.user_sectors.0 >= group && start + enh <= layout.user_sectors.0, "{say}");
    let gp_total: u64 = layout.gp_sectors.iter().map(|sectors| sectors.0).sum();
    assert!(layout.user_sectors.0 + gp_total <= old.user_sectors.unwrap().0, "{say}");
    let enhanced: u64 =
        (0..4).filter(|gp| hw.attributes.unwrap() >> (gp + 1) & 1 == 1).map(|gp| hw.gp_groups[gp].unwrap()).sum();
    assert!(enhanced + enh / group <= hw.max_enh_groups.unwrap(), "{say}");
    assert_eq!(hw.attributes.unwrap() & 1 == 1, request.enh_user.is_some(), "{say}");
    // Bytes outside the writes stay, and only bytes of partitioning are written.
    let offsets: Vec<u16> = plan.writes.iter().map(|write| write.offset).collect();
    assert!(offsets.iter().all(|offset| matches!(offset, 52 | 53 | 136..=156 | 167 | 175)), "{say}");
    assert!(plan.writes.iter().all(|write| write.old == before.byte(write.offset)), "{say}");
}

fn parts() -> Vec<CardData> {
    let no_enh = with(&s0j56(), &[(160, 1, 5), (157, 3, 0)]);
    let coarse = with(&s0j56(), &[(221, 1, 255), (224, 1, 4), (157, 3, 7)]);
    let odd = with(&s0j56(), &[(212, 4, 31_080_448 - 5), (157, 3, 1896)]);
    vec![s0j56(), t30(), klm_8g(), aaru_64g(), bjnb4r(), ac100(), no_enh, coarse, odd]
}

#[test]
fn every_accepted_plan_keeps_the_invariants() {
    let mut rng = Rng(20_260_801);
    let mut passed = 0;
    for card in parts() {
        let info = card.ext_csd.as_ref().unwrap().decode().0;
        let group = info.hc_wp_group.unwrap().0;
        let groups = info.user_sectors.unwrap().0 * 512 / group;
        for _ in 0..2000 {
            let request = random_request(&mut rng, group, groups);
            let plan = plan(&card, &request);
            invariants(&card, &request, &plan);
            passed += u32::from(plan.ok);
        }
    }
    assert!((2000..16_000).contains(&passed), "{passed} of 18000 passed: the requests test too little");
}

/// With one relative size resolved, one group less must pass and one group more must not.
#[test]
fn the_maximum_is_the_largest_accepted_size() {
    let mut rng = Rng(7);
    let mut tried = 0;
    for card in parts() {
        let info = card.ext_csd.as_ref().unwrap().decode().0;
        let group = info.hc_wp_group.unwrap().0;
        let groups = info.user_sectors.unwrap().0 * 512 / group;
        for round in 0..600 {
            let mut request = random_request(&mut rng, group, groups);
            let slot = rng.below(4) as usize;
            let on_gp = round % 2 == 0;
            if on_gp {
                request.gp[slot] = Some(GpRequest { size: Size::Max, enh: rng.chance(2), ext: ExtAttribute::None });
            } else {
                request.enh_user.get_or_insert(EnhRequest { start: Bytes(0), size: Size::Max }).size = Size::Max;
            }
            let found = plan(&card, &request);
            let Some(layout) = found.layout.as_ref().filter(|_| found.ok) else { continue };
            let sectors = if on_gp { layout.gp_sectors[slot] } else { layout.enh_user_sectors };
            // Percentages beside it would be computed again; their results replace them.
            let mut exact = |sectors: u64| {
                for (gp, sectors) in request.gp.iter_mut().zip(layout.gp_sectors) {
                    gp.iter_mut().for_each(|gp| gp.size = Size::Exact(sectors.bytes().unwrap()));
                }
                request
                    .enh_user
                    .iter_mut()
                    .for_each(|enh| enh.size = Size::Exact(layout.enh_user_sectors.bytes().unwrap()));
                let size = Size::Exact(Bytes(sectors * 512));
                if on_gp {
                    request.gp[slot].iter_mut().for_each(|gp| gp.size = size);
                } else {
                    request.enh_user.iter_mut().for_each(|enh| enh.size = size);
                }
                plan(&card, &request)
            };
            let say = format!("{} {:?} {:?}", card.name(), found.requested, found.notes);
            let same = exact(sectors.0);
            assert!(same.ok && same.layout == found.layout, "{say} {:?}", same.refusals);
            assert!(!exact(sectors.0 + group / 512).ok, "{say}: one group more");
            let less = exact(sectors.0 - group / 512);
            let empty = sectors.0 == group / 512;
            assert_eq!(less.ok, !empty, "{say}: one group less {:?}", less.refusals);
            tried += 1;
        }
    }
    assert!(tried > 800, "{tried}");
}

#[test]
fn no_register_content_causes_a_panic() {
    let mut rng = Rng(99);
    let base = s0j56();
    for round in 0..20_000 {
        let (mut bytes, mut mask) = ([0u8; 512], [0u8; 512]);
        match round % 3 {
            // Anything at all; all of one byte; a sound part with some bytes turned.
            0 => bytes
                .iter_mut()
                .zip(&mut mask)
                .for_each(|(byte, mask)| (*byte, *mask) = (rng.next() as u8, rng.next() as u8)),
            1 => (bytes, mask) = ([rng.next() as u8; 512], [0xff; 512]),
            _ => {
                (bytes, mask) = (*base.ext_csd.as_ref().unwrap().bytes(), [0xff; 512]);
                for _ in 0..rng.below(6) {
                    let offset =
                        [52, 136, 139, 140, 143, 155, 156, 157, 159, 160, 167, 192, 212, 214, 215, 221, 224, 494];
                    bytes[offset[rng.below(18) as usize]] = rng.next() as u8;
                }
            }
        }
        let mut card = card("random", ExtCsd::with_mask(bytes, mask));
        card.kind = [None, Some(CardKind::Emmc), Some(CardKind::Sd)][rng.below(3) as usize];
        card.ocr = rng.chance(2).then(|| rng.next() as u32);
        card.csd = rng.chance(2).then(|| (u128::from(rng.next()) << 64 | u128::from(rng.next())).to_be_bytes());
        let request = random_request(&mut rng, 8 << 20, 2000);
        let plan = plan(&card, &request);
        assert_eq!(plan.ok, plan.refusals.is_empty() && plan.layout.is_some() && !plan.writes.is_empty());
        assert_eq!(plan.refusals.is_empty(), plan.ok, "{:?} {:?}", card.ext_csd, plan.requested);
        let options = options(&card);
        assert_eq!(options.max_enhanced.is_some(), options.why_not.is_empty());
    }
}
