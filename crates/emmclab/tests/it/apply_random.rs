//! A thousand random plans, valid and not, on random cards: emmclab refuses exactly those that the card refuses, or
//! that would change or lose what the plan does not name. The card's own rules are asked by sending the same bytes raw.

use std::collections::BTreeMap;

use emmc_analysis::hwpart::{self, EnhRequest, ExtAttribute, GpRequest, LayoutRequest, WrRelArgument};
use emmc_analysis::plan::{Ended, Plan, Request, Stand, carry_out, of_hwpart, plan};
use emmc_port::{CommandPort, Consent};
use emmc_regs::ext_csd::{EXT_CSD_BYTES, Field, field_at, reg};
use emmc_sim::CommandTarget;
use emmc_units::{Bytes, Rng, Size};

use crate::support::virtual_cards::{self, SERIAL};

const PLANS: u32 = 1000;

/// Refusals that are stricter than the card, each with its reason.
const STRICTER: [(&str, &str); 11] = [
    ("action", "a write starts something and keeps nothing"),
    ("driver-register", "the host's driver owns it, and would overwrite it or be confused"),
    ("partitioning", "one byte of a layout alone: the commit would close the rest unset"),
    ("removal-type-unsupported", "the part does not offer it: its effect is not defined"),
    ("protection-spreads", "a boot area that the plan does not name would be protected for ever"),
    ("protection-mixed", "two kinds of protection at once: where the card stands could not be told"),
    ("not-writable", "past byte 191 the command's index wraps to another byte, or the byte is not kept"),
    ("request-empty", "the partitioning would be closed for nothing"),
    ("size-zero", "a piece without a size is a mistake"),
    ("enh-unaligned", "rounding takes capacity that the plan does not name"),
    ("gp-unaligned", "rounding takes capacity that the plan does not name"),
];

fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize]
}

/// A card with random features, and random settings that it could have.
fn card(rng: &mut Rng) -> CommandTarget {
    let (card, now) = virtual_cards::emmc().into_card();
    let mut card = card;
    let mut image = card.registers().ext_csd;
    let mut set = |field: &Field, values: &[u8], rng: &mut Rng| {
        if rng.below(4) == 0 {
            image[field.index()] = pick(rng, values);
        }
    };
    for (field, values) in [
        (reg::PARTITIONING_SUPPORT, &[0, 1, 3, 7][..]),
        (reg::WR_REL_PARAM, &[4, 5]),
        (reg::EXT_SUPPORT, &[0, 1, 2, 3]),
        (reg::BOOT_INFO, &[0, 1, 3, 5, 7]),
        (reg::BKOPS_SUPPORT, &[0, 1]),
        (reg::BARRIER_SUPPORT, &[0, 1]),
        (reg::SEC_FEATURE_SUPPORT, &[0, 0x15, 0x55]),
        (reg::NATIVE_SECTOR_SIZE, &[0, 1]),
        (reg::EXT_CSD_REV, &[5, 6, 7, 8]),
        (reg::BOOT_CONFIG_PROT, &[1, 0x10]),
        (reg::BOOT_WP, &[1, 4, 0x10, 0x40, 0x84]),
        (reg::USER_WP, &[8, 0x10, 0x80]),
        (reg::RST_n_FUNCTION, &[1, 2]),
        (reg::BKOPS_EN, &[1, 2, 3]),
        (reg::PARTITION_CONFIG, &[0x08, 0x10, 0x48, 0x38]),
        (reg::PRODUCT_STATE_AWARENESS_ENABLEMENT, &[1, 2, 3, 0x11]),
        (reg::SECURE_REMOVAL_TYPE, &[3, 7, 0xf]),
        (reg::FW_CONFIG, &[1]),
        (reg::PARTITION_SETTING_COMPLETED, &[0, 0, 1]),
        (reg::MAX_ENH_SIZE_MULT, &[140, 144]),
    ] {
        set(field, values, rng);
    }
    if rng.below(6) == 0 {
        image[reg::CACHE_SIZE.range()].fill(0);
    }
    // What BOOT_WP protects, its status says.
    if image[reg::BOOT_WP] & 4 != 0 {
        image[reg::BOOT_WP_STATUS] = if image[reg::BOOT_WP] & 0x80 != 0 { 2 } else { 0xa };
    } else if image[reg::BOOT_WP] & 1 != 0 {
        image[reg::BOOT_WP_STATUS] = 5;
    }
    card.adopt_ext_csd(&image);
    CommandTarget::new(card, now).unwrap()
}

/// Sends bytes by CMD6 as a tool without rules would; whether the card takes all of them.
fn takes(card: CommandTarget, writes: &[(u16, u8)]) -> bool {
    let (mut card, mut now) = card.into_card();
    writes.iter().all(|&(offset, value)| {
        // The command's index has 8 bits.
        let argument = 3 << 24 | u32::from(offset as u8) << 16 | u32::from(value) << 8;
        let mut status = 0;
        for (opcode, argument) in [(6, argument), (13, 1 << 16)] {
            now = now + emmc_units::Nanos::from_millis(1);
            card.handle_timeout(now);
            let reply = card.handle_command(opcode, argument, now);
            now = reply.busy_until.map_or(now, |until| until.max(now));
            card.handle_timeout(now);
            match reply.response {
                emmc_regs::command::Response::R1(r1) | emmc_regs::command::Response::R1b(r1) => status |= r1.0,
                _ => return false,
            }
        }
        status & emmc_regs::r1::R1::SWITCH_ERROR.0 == 0
    })
}

/// The same card twice.
fn twice(seed: u64) -> (CommandTarget, CommandTarget) {
    (card(&mut Rng::new(seed)), card(&mut Rng::new(seed)))
}

/// Carries an accepted plan out: it must be taken, change what it names only, and stay over a power cycle.
fn is_carried_out(plan: &Plan, card: &mut CommandTarget, say: &str) {
    let before = card.ext_csd().unwrap();
    let consent = Consent::permanent(&format!("{SERIAL:x}"), SERIAL).unwrap();
    let ended = carry_out(plan, card, consent, &mut |_| true);
    assert_eq!(ended, Ended::Complete, "{say}");
    let after = card.ext_csd().unwrap();
    for offset in 0..EXT_CSD_BYTES as u16 {
        let at = usize::from(offset);
        let named = plan.registers().filter(|step| step.offset == offset).fold(0, |mask, step| mask | step.mask);
        let shown = plan.verify.iter().any(|check| (check.offset..check.offset + check.width).contains(&offset));
        assert!((before[at] ^ after[at]) & !named == 0 || shown, "{say}: {:?} changed", field_at(offset));
    }
    let lapses = plan.warnings.iter().any(|warning| warning.rule == "volatile");
    let standing = plan.standing(card).unwrap();
    assert!(matches!(standing.stand, Stand::Done | Stand::PowerCycleDue), "{say}: {standing:?}");
    card.power_cycle().unwrap();
    let standing = plan.standing(card).unwrap();
    assert!(standing.stand == Stand::Done || lapses && standing.stand != Stand::Differs, "{say}: {standing:?}");
}

#[derive(Default)]
struct Tally {
    accepted: u32,
    refused: u32,
    by_rule: BTreeMap<String, u32>,
}

/// A refused plan: the card refuses it, too, or one of the rules is one of the stricter ones.
fn judge(plan: &Plan, taken: bool, target: &mut CommandTarget, say: &str, tally: &mut Tally) {
    if plan.ok {
        assert!(taken, "{say}: emmclab accepts what the card refuses");
        is_carried_out(plan, target, say);
        tally.accepted += 1;
        return;
    }
    assert!(plan.steps.is_empty(), "{say}");
    let is_stricter = plan.refusals.iter().any(|refusal| STRICTER.iter().any(|(rule, _)| *rule == refusal.rule));
    assert!(!taken || is_stricter, "{say}: the card takes it: {:?}", plan.refusals);
    tally.refused += 1;
    for refusal in plan.refusals.iter().filter(|_| taken) {
        *tally.by_rule.entry(refusal.rule.clone()).or_default() += 1;
    }
}

#[test]
fn a_thousand_random_settings_are_judged_as_by_the_card() {
    let mut tally = Tally::default();
    for seed in 0.. {
        if tally.accepted + tally.refused == PLANS {
            break;
        }
        let mut rng = Rng::new(seed ^ 0x5e77_1765);
        let (raw, mut target) = twice(seed);
        let image = target.ext_csd().unwrap();
        // Mostly settings, now and then anything.
        let settings = [16u16, 17, 31, 33, 62, 131, 133, 134, 162, 163, 169, 171, 173, 177, 178, 179];
        let offset = if rng.below(4) == 0 { rng.below(512) as u16 } else { pick(&mut rng, &settings) };
        let old = image[usize::from(offset)];
        let value = match rng.below(4) {
            0 => rng.below(256) as u8,
            1 => rng.below(4) as u8,
            _ => old ^ 1 << rng.below(8),
        };
        if value == old {
            continue;
        }
        let request = Request::Set(vec![format!("{offset}={value}").parse().unwrap()]);
        let plan = plan(&target.card().device().card_data("card"), &request);
        let taken = takes(raw, &[(offset, value)]);
        let say = format!("seed {seed}: {offset} {old:#04x} -> {value:#04x}");
        judge(&plan, taken, &mut target, &say, &mut tally);
    }
    println!(
        "{} accepted, {} refused; refused though the card takes it: {:?}",
        tally.accepted, tally.refused, tally.by_rule
    );
    assert!(tally.accepted > 100 && tally.refused > 300, "{} {}", tally.accepted, tally.refused);
}

fn size(rng: &mut Rng, group: u64, groups: u64) -> Bytes {
    match rng.below(10) {
        0 => Bytes(rng.below(64) * 512 * 1024),
        1 => Bytes(0),
        _ => Bytes(group * rng.below(groups)),
    }
}

fn layout(rng: &mut Rng, group: u64, groups: u64) -> LayoutRequest {
    let mut request = LayoutRequest::default();
    if rng.below(3) > 0 {
        let start = if rng.below(2) == 0 { Bytes(0) } else { size(rng, group, groups) };
        request.enh_user = Some(EnhRequest { start, size: Size::Exact(size(rng, group, groups / 2 + 4)) });
    }
    for slot in &mut request.gp {
        if rng.below(4) == 0 {
            let ext = pick(
                rng,
                &[ExtAttribute::None, ExtAttribute::None, ExtAttribute::SystemCode, ExtAttribute::NonPersistent],
            );
            *slot = Some(GpRequest { size: Size::Exact(size(rng, group, groups / 4)), enh: rng.below(3) == 0, ext });
        }
    }
    if rng.below(4) == 0 {
        request.wrrel = Some(WrRelArgument::All(rng.below(2) == 0));
    }
    request
}

/// The bytes that a tool without rules sends for a layout: sizes rounded up to groups, starts as they are.
fn raw_bytes(request: &LayoutRequest, image: &[u8; EXT_CSD_BYTES], group: u64) -> Vec<(u16, u8)> {
    let mut writes = vec![(reg::ERASE_GROUP_DEF.offset, 1)];
    let mut number = |field: &Field, value: u64| {
        writes.extend((0..field.width).zip(value.to_le_bytes()).map(|(index, byte)| (field.offset + index, byte)));
    };
    let bytes = |size: Size| if let Size::Exact(bytes) = size { bytes.0 } else { 0 };
    let mut attributes = 0u64;
    if let Some(enh) = request.enh_user {
        number(reg::ENH_START_ADDR, enh.start.0 / 512);
        number(reg::ENH_SIZE_MULT, bytes(enh.size).div_ceil(group));
        attributes |= 1;
    }
    let (mut ext, mut any) = (0u64, request.enh_user.is_some());
    for (index, gp) in request.gp.iter().enumerate().filter_map(|(index, gp)| Some((index, (*gp)?))) {
        number(reg::GP_SIZE_MULT[index], bytes(gp.size).div_ceil(group));
        attributes |= u64::from(gp.enh) << (index + 1);
        ext |= u64::from(gp.ext.nibble()) << (4 * index);
        any = true;
    }
    if any {
        number(reg::PARTITIONS_ATTRIBUTE, attributes);
    }
    for (index, byte) in (0u16..).zip(ext.to_le_bytes()).take(2).filter(|(_, byte)| *byte != 0) {
        writes.push((reg::EXT_PARTITIONS_ATTRIBUTE.offset + index, byte));
    }
    if let Some(WrRelArgument::All(on)) = request.wrrel {
        let areas = (0..5).filter(|area| request.has_area(*area)).fold(0u8, |mask, area| mask | 1 << area);
        let now = image[reg::WR_REL_SET];
        let new = if on { now | areas } else { now & !areas };
        // Nothing is sent where nothing changes.
        writes.extend((new != now).then_some((reg::WR_REL_SET.offset, new)));
    }
    // What holds its value already is not sent: a part without a feature refuses even its zero.
    writes.retain(|(offset, value)| image[usize::from(*offset)] != *value);
    // The last one is always sent.
    writes.push((reg::PARTITION_SETTING_COMPLETED.offset, 1));
    writes
}

#[test]
fn a_thousand_random_layouts_are_judged_as_by_the_card() {
    let mut tally = Tally::default();
    for seed in 0..u64::from(PLANS) {
        let mut rng = Rng::new(seed ^ 0x1a70_0175);
        let (raw, mut target) = twice(seed << 20);
        let image = target.ext_csd().unwrap();
        let request = layout(&mut rng, 8 << 20, 288);
        let data = target.card().device().card_data("card");
        let plan = of_hwpart(&hwpart::plan(&data, &request), &data);
        let taken = takes(raw, &raw_bytes(&request, &image, 8 << 20));
        let say = format!("seed {seed}: {:?}", plan.requested);
        judge(&plan, taken, &mut target, &say, &mut tally);
    }
    println!(
        "{} accepted, {} refused; refused though the card takes it: {:?}",
        tally.accepted, tally.refused, tally.by_rule
    );
    assert!(tally.accepted > 50 && tally.refused > 300, "{} {}", tally.accepted, tally.refused);
}
