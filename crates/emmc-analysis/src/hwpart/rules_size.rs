//! The rules about sizes: alignment, the enhanced maximum, and what fits into the part.

use emmc_regs::ext_csd::reg;
use emmc_units::{Bytes, SECTOR_BYTES, Size};

use super::AREAS;
use super::case::Case;
use super::facts::count;
use super::model::MULT_MAX;
use super::refusal::{Broken, broken};
use crate::evidence::Evidence;

const START: &str = "its start";

pub(super) fn enh_unaligned(case: &Case) -> Option<Broken> {
    let enh = case.request.enh_user?;
    let size = if let Size::Exact(size) = enh.size { Some(("its size", size)) } else { None };
    let what = "the enhanced user area does not start and end on a write-protect group";
    unaligned(case, what, [(START, enh.start)].into_iter().chain(size))
}

pub(super) fn gp_unaligned(case: &Case) -> Option<Broken> {
    let exact = case.gps().filter_map(|(index, request, _)| match request.size {
        Size::Exact(size) => Some((AREAS[index + 1], size)),
        _ => None,
    });
    unaligned(case, "a partition is not a whole number of write-protect groups", exact)
}

/// mmc-utils silently rounds such a size; here both neighbours are listed.
fn unaligned(case: &Case, what: &str, pieces: impl Iterator<Item = (&'static str, Bytes)>) -> Option<Broken> {
    let group = case.facts.group?;
    let mut found = broken(what, Vec::<Evidence>::new());
    for (name, bytes) in pieces.filter(|(_, bytes)| bytes.0 % group.0 != 0) {
        let below = bytes.0 / group.0;
        let rest = if bytes.0 % SECTOR_BYTES == 0 {
            format!("{}s", bytes.0 % group.0 / SECTOR_BYTES)
        } else {
            format!("{} bytes", bytes.0 % group.0)
        };
        found.evidence.push(format!("{name} of {bytes} is {} and {rest}", count(below, group)).into());
        let sectors = |groups: u64| groups.saturating_mul(group.0 / SECTOR_BYTES);
        let above = below.saturating_add(1);
        let nearest = |groups: u64| format!("{}s (group {groups})", sectors(groups));
        // 0 is a valid start but not a valid size.
        found.advice.push(if below == 0 && name != START {
            format!("{name}: {}", nearest(above))
        } else {
            format!("{name}: {} or {}", nearest(below), nearest(above))
        });
    }
    (!found.evidence.is_empty()).then_some(found)
}

pub(super) fn enh_too_large(case: &Case) -> Option<Broken> {
    let group = case.facts.group?;
    let max = case.facts.info.hw_partition.max_enh_groups?;
    let placed = case.placed();
    let total = placed.enh_user.saturating_add(placed.enh_gp);
    if total <= max {
        return None;
    }
    let evidence = vec![
        format!("{total} > {max} groups of {group}").into(),
        Evidence::of(reg::MAX_ENH_SIZE_MULT, format!(" is {}", case.facts.groups_text(max))),
    ];
    let advice = vec![format!("at most {} enhanced in all; `max` takes what is possible", case.facts.groups_text(max))];
    Some(Broken { advice, ..broken("the request enhances more than the part allows", evidence) })
}

pub(super) fn size_zero(case: &Case) -> Option<Broken> {
    let empty = case.pieces().filter(|(_, piece)| piece.bytes == Some(0));
    let evidence: Vec<String> = empty
        .map(|(name, piece)| match piece.requested {
            Size::Exact(_) => format!("{name} has size 0"),
            relative => format!("{name}: {relative} is 0 groups on this part"),
        })
        .collect();
    (!evidence.is_empty()).then(|| broken("a piece of the layout is empty", evidence))
}

pub(super) fn register_width(case: &Case) -> Option<Broken> {
    let group = case.facts.group?;
    let sized = case.pieces().filter_map(|(name, piece)| Some((name, piece.groups(group)?)));
    let mut evidence: Vec<String> = sized
        .filter(|(_, groups)| *groups > MULT_MAX)
        .map(|(name, groups)| format!("{name}: {}, the register holds at most {MULT_MAX}", count(groups, group)))
        .collect();
    if let (Some(enh), Some(unit)) = (case.request.enh_user, case.facts.address_bytes) {
        if enh.start.0 / unit > u64::from(u32::MAX) {
            evidence.push(format!(
                "its start: {} x {unit} B, ENH_START_ADDR holds at most {}",
                enh.start.0 / unit,
                u32::MAX
            ));
        }
    }
    (!evidence.is_empty()).then(|| broken("a size does not fit into its register", evidence))
}

/// What fits: first if enhanced groups cost only their size (certain), then as estimated.
enum Fit {
    /// No result: too little is known, or the part is already partitioned and its sizes include that.
    Unknown,
    /// Sectors that are left beside the pieces, and how that was found.
    Left(u64, &'static str),
    /// The pieces alone are too large: sectors they need.
    Short(u64, &'static str),
}

const CERTAIN: &str = "certain";
const ESTIMATED: &str = "estimated from SEC_COUNT and MAX_ENH_SIZE_MULT";

fn fit(case: &Case) -> Fit {
    let Some(model) = case.model.filter(|_| !case.facts.is_completed()) else { return Fit::Unknown };
    let placed = case.placed();
    let enhanced = placed.enh_user.saturating_add(placed.enh_gp);
    let held = placed.plain_gp.saturating_add(enhanced).saturating_mul(model.group);
    // The estimate is invalid beyond the part's own maximum, which has its own rule.
    let (needed, how) = if enhanced > 0 && enhanced <= model.max_enh {
        (placed.plain_gp.saturating_mul(model.group).saturating_add(model.enh_cost(enhanced)), ESTIMATED)
    } else {
        (held, CERTAIN)
    };
    match (model.user.checked_sub(held), model.user.checked_sub(needed)) {
        (None, _) => Fit::Short(held, CERTAIN),
        (_, None) => Fit::Short(needed, how),
        (_, Some(left)) => Fit::Left(left, how),
    }
}

pub(super) fn past_capacity(case: &Case) -> Option<Broken> {
    let Fit::Short(needed, how) = fit(case) else { return None };
    let mut evidence = vec![format!("needed {needed} sectors ({how}), the part has {}", case.facts.user?)];
    evidence.extend(cost_evidence(case));
    Some(broken("the pieces are larger than the part", evidence))
}

pub(super) fn enh_past_user_end(case: &Case) -> Option<Broken> {
    let (start, size) = (case.placed().enh_start?, case.placed().enh_user);
    let Fit::Left(left, how) = fit(case) else { return None };
    if start <= left {
        return None;
    }
    let held = size.saturating_mul(case.model?.group);
    let evidence = vec![
        format!(
            "start {start} + {held} sectors > {} sectors of the resulting user area ({how})",
            left.saturating_add(held)
        ),
        format!("user area now: {}", case.facts.user?),
    ];
    let evidence: Vec<String> = evidence.into_iter().chain(cost_evidence(case)).collect();
    Some(broken("the enhanced area would end past the end of the user area", evidence))
}

pub(super) fn no_user_area(case: &Case) -> Option<Broken> {
    let Fit::Left(left, how) = fit(case) else { return None };
    let group = case.model?.group;
    if case.placed().enh_user > 0 || left >= group || case.gps().next().is_none() {
        return None;
    }
    let evidence = vec![format!("{left} sectors left ({how}), a group is {group}")];
    Some(broken("no user area would remain", evidence))
}

fn cost_evidence(case: &Case) -> Option<String> {
    let cells = case.model?.cells().filter(|_| case.enhances())?;
    Some(format!("one enhanced group costs about {} ordinary ones: {}", cells.cost_per_enhanced_group, cells.evidence))
}
