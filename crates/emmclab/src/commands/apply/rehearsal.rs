//! A rehearsal: the plan on a virtual card with the registers of the real one, with its power cycle.
//!
//! Absent on purpose: the behaviour of the maker's firmware; the virtual card keeps the standard's rules.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use emmc_analysis::plan::{CardIdentity, Plan, Stand};
use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::{Profile, shipped};
use emmc_port::{CardData, CommandPort, Consent, serial_text};
use emmc_regs::CardKind;
use emmc_regs::cid::Cid;
use emmc_regs::ext_csd::ExtCsd;
use emmc_sim::CommandTarget;
use emmc_units::{Bytes, Instant, Sectors};

use super::{ApplyDocument, port_error, unsupported, work};
use crate::cli::ApplyArgs;
use crate::save::Refused;

/// Carries the plan out on a virtual card with the registers of `source`, and cycles its power.
pub(super) fn run(plan: &Plan, source: &CardData, args: &ApplyArgs) -> anyhow::Result<ApplyDocument> {
    let target = &args.target;
    let Some(ext_csd) = source.ext_csd.as_ref().filter(|ext_csd| ext_csd.is_complete()) else {
        return unsupported(target, "a rehearsal needs all 512 bytes of EXT_CSD");
    };
    let identity = CardIdentity::of(source);
    // Registers without a CID are good enough for a rehearsal, and so is a plan of such registers.
    let is_known = identity.cid.is_some() && plan.card.cid.is_some();
    let known =
        if is_known { identity.clone() } else { CardIdentity { cid: plan.card.cid.clone(), ..identity.clone() } };
    plan.card.is_of(&known).map_err(|other| Refused(format!("{target}: {other}")))?;
    let card = virtual_card(source, ext_csd).with_context(|| format!("{target}: cannot be rehearsed"))?;
    let mut port = CommandTarget::new(card, Instant::START).map_err(|error| port_error(target, &error))?;
    let mut document = work::document("rehearse", plan, args, identity);
    let before = plan.standing(&mut port).map_err(|error| port_error(target, &error))?;
    if !matches!(before.stand, Stand::NothingDone | Stand::PartlyWritten) {
        document.next = work::next(plan, Some(&before), args);
        document.standing = Some(before);
        return Ok(document);
    }
    // Nothing of it is lost with the virtual card.
    let consent = Consent::permanent(&serial_text(0), 0).map_err(|error| anyhow::anyhow!("{error}"))?;
    work::carry(plan, &mut port, consent, &Arc::new(AtomicBool::new(false)), &mut document);
    port.power_cycle().map_err(|error| port_error(target, &error))?;
    let after = plan.standing(&mut port).map_err(|error| port_error(target, &error))?;
    // What does not outlast a power cycle is judged before it.
    let lapses = after.stand == Stand::NothingDone && !plan.power_cycle.required;
    if !lapses {
        document.standing = Some(after);
    }
    let image = port.ext_csd().map_err(|error| port_error(target, &error))?;
    document.user_bytes = ExtCsd::from_bytes(image).decode().0.user_sectors.and_then(Sectors::bytes);
    Ok(document)
}

/// A card with areas of the same sizes and the same EXT_CSD; its cells have as many bits as the enhanced maximum says.
fn virtual_card(source: &CardData, ext_csd: &ExtCsd) -> anyhow::Result<Card> {
    let (info, _) = ext_csd.decode();
    let user =
        info.user_sectors.and_then(Sectors::bytes).filter(|bytes| bytes.0 > 0).context("its size is not known")?;
    let profile = profile(source, ext_csd, user)?;
    let mut card = Card::new(profile, DeviceOptions { keep: StoredContent::Nothing, seed: 1 })?;
    card.adopt_ext_csd(ext_csd.bytes());
    Ok(card)
}

fn profile(source: &CardData, ext_csd: &ExtCsd, user: Bytes) -> anyhow::Result<Profile> {
    let (info, _) = ext_csd.decode();
    let group = info.hc_wp_group.map_or(0, |group| group.0);
    let enhanced = info.hw_partition.max_enh_groups.unwrap_or(0);
    // One enhanced group in the place of two ordinary ones, or of three.
    let is_tlc = group > 0 && enhanced > 0 && user.0 / group >= enhanced * 5 / 2;
    let mut profile = shipped::named(if is_tlc { "generic-32g" } else { "generic-8g" })?;
    let number = |bytes: Option<Bytes>| bytes.and_then(|bytes| u32::try_from(bytes.0).ok()).unwrap_or(0);
    let areas = &mut profile.areas;
    areas.user_bytes = user.0;
    (areas.boot_bytes, areas.rpmb_bytes) = (number(info.boot), number(info.rpmb));
    if group > 0 {
        areas.wp_group_bytes = u32::try_from(group).context("its write-protect group is too large")?;
        areas.erase_group_bytes = number(info.hc_erase_group).max(512 << 10);
    }
    areas.enhanced_groups_max = u32::try_from(enhanced).unwrap_or(0);
    if let Some(Cid(cid)) = source.cid {
        let identity = Cid(cid).decode(CardKind::Emmc, info.rev);
        profile.identity.serial = identity.serial_number;
        profile.identity.manufacturer_id = identity.manufacturer_id;
    }
    Ok(profile)
}
