//! A hardware-partition plan in the form of every plan.

use emmc_port::CardData;
use emmc_regs::ext_csd::{ByteWrite, ExtCsd, field_at, reg};

use super::document::{Capacity, CapacityOf, CardIdentity, Expected, Objection, Plan, PowerCycle, RegisterStep, Step};
use super::draft::{areas, lasts_text};
use super::rules::PARTITIONING;
use crate::finding::Finding;
use crate::hwpart::{HwPartPlan, Layout, Refusal, RegisterWrite, Step as Purpose};

/// The plan of a layout as a plan for `apply`.
pub fn of_hwpart(hwpart: &HwPartPlan, card: &CardData) -> Plan {
    let unknown = ExtCsd::unknown();
    let old = card.ext_csd.as_ref().unwrap_or(&unknown);
    let identity = CardIdentity::of(card);
    let rev = identity.ext_csd_rev.unwrap_or(0);
    let mut refusals: Vec<Objection> = hwpart.refusals.iter().map(of_refusal).collect();
    let mut steps = Vec::new();
    for write in &hwpart.writes {
        match register_step(write, rev) {
            Ok(step) => steps.extend(step.map(Step::Register)),
            Err(what) => refusals.push(super::rules::objection("not-writable", what, Vec::new())),
        }
    }
    let ok = hwpart.ok && refusals.is_empty();
    if !ok {
        steps.clear();
    }
    let before = areas(card, old);
    let layout = hwpart.layout.as_ref().filter(|_| ok);
    let after = hwpart.after.as_ref().filter(|_| ok);
    let beside = if ok { beside(&steps, old) } else { Vec::new() };
    Plan {
        change: "hwpart".into(),
        ok,
        source: hwpart.source.clone(),
        requested: hwpart.requested.clone(),
        card: identity,
        refusals,
        warnings: hwpart.warnings.iter().map(of_finding).collect(),
        permanent: steps.iter().any(Step::is_permanent),
        steps,
        lost: layout.map(|layout| layout.lost.what.clone()).unwrap_or_default(),
        capacity: Capacity { after: layout.map_or_else(Vec::new, sizes), before },
        power_cycle: PowerCycle { required: ok, wait_ms: after.and_then(|after| after.wait_ms) },
        verify: after.map_or_else(Vec::new, |after| after.checks.iter().map(|check| expected(check, old)).collect()),
        beside,
        after: after.map(|after| after.steps.clone()).unwrap_or_default(),
        commands: hwpart.commands.clone().filter(|_| ok),
    }
}

/// Nothing for a byte that holds its value already.
fn register_step(write: &RegisterWrite, rev: u8) -> Result<Option<RegisterStep>, String> {
    let passing = write.step == Purpose::GroupDefinition;
    if write.old == Some(write.new) && !passing {
        return Ok(None);
    }
    let old = write.old.unwrap_or(!write.new);
    let checked = ByteWrite::new(write.offset, old, write.new, rev).map_err(|error| error.to_string())?;
    let lasts = (0..8).filter(|bit| (old ^ write.new) >> bit & 1 == 1);
    let lasts = lasts.map(|bit| checked.field().persistence_of_bit(write.index, bit)).min();
    Ok(Some(RegisterStep {
        offset: write.offset,
        name: write.name.into(),
        index: write.index,
        mask: if field_at(write.offset) == Some(reg::ERASE_GROUP_DEF) { 1 } else { 0xff },
        old: write.old,
        new: write.new,
        one_time: checked.one_time() != 0,
        passing,
        shown_by: None,
        lasts: lasts_text(lasts.unwrap_or(emmc_regs::Persistence::UntilReset)).into(),
        purpose: purpose(write.step).into(),
    }))
}

/// The bytes of the partitioning that the plan does not write.
fn beside(steps: &[Step], old: &ExtCsd) -> Vec<Expected> {
    let is_written =
        |offset: u16| steps.iter().any(|step| matches!(step, Step::Register(step) if step.offset == offset));
    let bytes = PARTITIONING.into_iter().flat_map(|field| field.bytes().map(move |offset| (field, offset)));
    let kept = bytes.filter(|(_, offset)| !is_written(*offset)).filter_map(|(field, offset)| {
        let value = old.byte(offset).map(u64::from)?;
        Some(Expected {
            offset,
            width: 1,
            name: field.name.into(),
            mask: 0xff,
            before: Some(value),
            expected: value,
            certainty: crate::hwpart::Certainty::Exact,
            at_power_cycle: false,
        })
    });
    kept.collect()
}

const fn purpose(step: Purpose) -> &'static str {
    match step {
        Purpose::GroupDefinition => "groups of the high-capacity size",
        Purpose::EnhStart => "start of the enhanced user area",
        Purpose::EnhSize => "size of the enhanced user area",
        Purpose::GpSize => "size of a general purpose partition",
        Purpose::Attributes => "which areas are enhanced",
        Purpose::ExtAttributes => "extended attributes of partitions",
        Purpose::WriteReliability => "write reliability of the areas",
        Purpose::Commit => "makes all of them final",
    }
}

fn expected(check: &crate::hwpart::Check, old: &ExtCsd) -> Expected {
    Expected {
        offset: check.offset,
        width: check.width,
        name: check.name.into(),
        mask: u64::MAX >> (64 - 8 * u32::from(check.width.clamp(1, 8))),
        before: old.uint(check.offset, check.width),
        expected: check.expected,
        certainty: check.certainty,
        at_power_cycle: check.offset == reg::SEC_COUNT.offset,
    }
}

fn sizes(layout: &Layout) -> Vec<CapacityOf> {
    let of = |area: &crate::hwpart::Area| CapacityOf {
        area: area.name.into(),
        bytes: area.bytes,
        certainty: area.certainty,
    };
    layout.areas.iter().filter(|area| area.name != "enhanced-user").map(of).collect()
}

fn of_refusal(refusal: &Refusal) -> Objection {
    Objection {
        rule: refusal.rule.into(),
        what: refusal.what.clone(),
        evidence: refusal.evidence.iter().map(ToString::to_string).collect(),
        advice: refusal.advice.clone(),
    }
}

fn of_finding(finding: &Finding) -> Objection {
    Objection {
        rule: finding.id.into(),
        what: finding.what.clone(),
        evidence: finding.evidence.iter().map(ToString::to_string).collect(),
        advice: finding.advice.clone(),
    }
}
