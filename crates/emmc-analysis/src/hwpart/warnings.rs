//! Warnings for a request that breaks no rule.

use emmc_regs::ext_csd::{Field, reg};

use super::AREAS;
use super::case::Case;
use super::request::WrRelArgument;
use crate::evidence::Evidence;
use crate::finding::{Finding, Severity};

const CHECKS: [fn(&Case) -> Option<Finding>; 9] = [
    gp_gap,
    wrrel_unused,
    wrrel_off,
    wrrel_last_chance,
    commits_only_wrrel,
    pending,
    cost_unclear,
    wait_unknown,
    small_rest,
];

pub(super) fn warnings(case: &Case) -> Vec<Finding> {
    if case.facts.is_sd || case.facts.is_completed() {
        return Vec::new();
    }
    CHECKS.iter().filter_map(|check| check(case)).collect()
}

fn gp_gap(case: &Case) -> Option<Finding> {
    let last = case.gps().map(|(index, ..)| index).last()?;
    let missing: Vec<&str> =
        (0..last).filter(|index| case.request.gp[*index].is_none()).map(|index| AREAS[index + 1]).collect();
    let what = "partition numbers have a gap: U-Boot and mmc-utils allow it, but it is rarely tested";
    (!missing.is_empty()).then(|| {
        Finding::new(Severity::Warning, "gp-gap", what)
            .evidence(format!("{} without {}", AREAS[last + 1], missing.join(", ")))
            .advice("number the partitions from 1 without a gap")
    })
}

fn wrrel_unused(case: &Case) -> Option<Finding> {
    let Some(WrRelArgument::Areas(areas)) = case.request.wrrel else { return None };
    let unused: Vec<&str> =
        (0..5).filter(|area| areas[*area].is_some() && !case.request.has_area(*area)).map(|area| AREAS[area]).collect();
    (!unused.is_empty()).then(|| {
        let what = "write reliability is given for areas outside the layout: it is not written";
        Finding::new(Severity::Warning, "wrrel-unused", what).evidence(unused.join(", "))
    })
}

fn wrrel_off(case: &Case) -> Option<Finding> {
    let (now, wanted) = (case.facts.wr_rel_set()?, case.wr_rel_wanted()?);
    (now & !wanted != 0).then(|| {
        let what = "write reliability will be switched off: a power cut during a write may then damage older data";
        Finding::new(Severity::Warning, "wrrel-off", what)
            .evidence(Evidence::of(reg::WR_REL_SET, format!(" {now:#04x} -> {wanted:#04x}")))
            .advice("U-Boot writes it as part of `complete`, mmc-utils can only switch it on")
            .advice("only the read-back shows whether the part accepts it: check before the commit")
    })
}

fn wrrel_last_chance(case: &Case) -> Option<Finding> {
    let (now, hw) = (case.facts.wr_rel_set()?, &case.facts.info.hw_partition);
    let areas = (0..5).filter(|area| case.request.has_area(*area));
    let off: Vec<&str> = areas
        .filter(|area| now >> area & 1 == 0 && case.request.wrrel_of(*area).is_none())
        .map(|area| AREAS[area])
        .collect();
    (!off.is_empty() && hw.wr_rel_writable == Some(true)).then(|| {
        let what = "write reliability is off and can be switched on with this layout only, never afterwards";
        Finding::new(Severity::Warning, "wrrel-last-chance", what)
            .evidence(Evidence::of(reg::WR_REL_SET, format!(" is {now:#04x}: off for {}", off.join(", "))))
            .advice("add --wrrel on, unless its cost in speed was measured and matters")
    })
}

fn commits_only_wrrel(case: &Case) -> Option<Finding> {
    (case.pieces().next().is_none() && case.request.wrrel.is_some()).then(|| {
        let what =
            "setting write reliability closes the partitioning registers: no enhanced area or partition is possible later";
        Finding::new(Severity::Warning, "commits-only-wrrel", what)
            .advice("decide on the enhanced area first; it must be in the same commit")
    })
}

/// Values of the request's own registers; those of others are a refusal.
fn pending(case: &Case) -> Option<Finding> {
    let hw = &case.facts.info.hw_partition;
    let mut held: Vec<Evidence> = Vec::new();
    let holds = |field: &'static Field, raw: u64| Evidence::of(field, format!(" holds {raw}"));
    if case.enh.is_some() {
        let start = case.facts.ext_csd.raw(reg::ENH_START_ADDR).filter(|raw| *raw > 0);
        held.extend(start.map(|raw| holds(reg::ENH_START_ADDR, raw)));
        held.extend(hw.enh_user_groups.filter(|raw| *raw > 0).map(|raw| holds(reg::ENH_SIZE_MULT, raw)));
    }
    for (index, ..) in case.gps() {
        held.extend(hw.gp_groups[index].filter(|raw| *raw > 0).map(|raw| holds(reg::GP_SIZE_MULT[index], raw)));
    }
    (!held.is_empty()).then(|| {
        let what = "a partitioning was started and not committed; some parts keep its values and refuse changes";
        let finding = Finding::new(Severity::Warning, "pending-overwritten", what);
        let finding = held.into_iter().fold(finding, Finding::evidence);
        finding.advice("power the card off and on, read it again, and check each byte's read-back before the commit")
    })
}

fn cost_unclear(case: &Case) -> Option<Finding> {
    let cells = case.model?.cells().filter(|cells| case.enhances() && cells.bits_per_cell.is_none())?;
    let what = "the capacity cost of an enhanced group is unknown: the ratio fits no cell type";
    Some(
        Finding::new(Severity::Unknown, "cost-unclear", what)
            .evidence(format!("{} = {}", cells.evidence, cells.cost_per_enhanced_group))
            .advice("ask the vendor for the user capacity after enhancement before committing"),
    )
}

fn wait_unknown(case: &Case) -> Option<Finding> {
    case.facts.info.init_timeout_ap_ms.is_none_or(|wait_ms| wait_ms == 0).then(|| {
        let what = "the part does not report how long it needs after the power cycle";
        Finding::new(Severity::Unknown, "wait-unknown", what)
            .evidence(Evidence::of(reg::INI_TIMEOUT_AP, " is 0 or not known"))
    })
}

/// A boot loader or kernel that no longer fits would be noticed too late.
fn small_rest(case: &Case) -> Option<Finding> {
    let model = case.model?;
    let placed = case.placed();
    let user = model.left_beside(&placed)?.checked_add(placed.enh_user.checked_mul(model.group)?)?;
    let percent = user.saturating_mul(100) / model.user;
    (percent < 10 && case.pieces().next().is_some()).then(|| {
        Finding::new(Severity::Warning, "small-user-area", "the user area shrinks to less than a tenth")
            .evidence(format!("{} -> about {user} sectors", model.user))
    })
}
