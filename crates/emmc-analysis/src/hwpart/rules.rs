//! The rules for a request, in U-Boot's order, then those that U-Boot lacks; all are checked, not only the
//! first. Sizes are in `rules_size`.

use emmc_regs::ext_csd::{Field, reg};
use emmc_units::Size;

use super::AREAS;
use super::case::Case;
use super::refusal::{Broken, Refusal, broken};
use super::request::ExtAttribute;
use super::rules_size as size;
use crate::evidence::{Citation, Evidence, EvidenceList};

type Rule = (&'static str, fn(&Case) -> Option<Broken>);

const RULES: [Rule; 22] = [
    ("register-unknown", register_unknown),
    ("version", version),
    ("partitioning-unsupported", partitioning_unsupported),
    ("group-size", group_size),
    ("enh-unaligned", size::enh_unaligned),
    ("gp-unaligned", size::gp_unaligned),
    ("enh-unsupported", enh_unsupported),
    ("enh-too-large", size::enh_too_large),
    ("wrrel-fixed", wrrel_fixed),
    ("already-completed", already_completed),
    // U-Boot and mmc-utils do not check the following rules, or not before they write.
    ("request-empty", request_empty),
    ("several-max", several_max),
    ("size-zero", size::size_zero),
    ("register-width", size::register_width),
    ("past-capacity", size::past_capacity),
    ("enh-past-user-end", size::enh_past_user_end),
    ("no-user-area", size::no_user_area),
    ("ext-unsupported", ext_unsupported),
    ("ext-type-unsupported", ext_type_unsupported),
    ("enh-and-ext", enh_and_ext),
    ("pending-sizes", pending_sizes),
    ("pending-attributes", pending_attributes),
];

/// Every rule that the request breaks.
pub(super) fn refusals(case: &Case) -> Vec<Refusal> {
    if case.facts.is_sd {
        let what = "an SD card has no hardware partitions, enhanced areas or write reliability settings".into();
        return vec![Refusal { rule: "sd-card", what, evidence: vec!["card kind is SD"].into(), advice: Vec::new() }];
    }
    let judge = |(rule, check): &Rule| {
        let Broken { what, evidence, advice } = check(case)?;
        Some(Refusal { rule, what, evidence: EvidenceList(evidence), advice })
    };
    RULES.iter().filter_map(judge).collect()
}

/// All deciding registers must be known: irreversible writes are not based on assumptions.
fn register_unknown(case: &Case) -> Option<Broken> {
    let (csd, info) = (case.facts.ext_csd, &case.facts.info);
    let hw = &info.hw_partition;
    let any_ext = case.gps().any(|(_, request, _)| request.ext != ExtAttribute::None);
    let start = case.request.enh_user.is_some_and(|enh| enh.start.0 > 0);
    let needs_user = info.user_sectors.is_none() || case.facts.user.is_some();
    let ext_attributes = csd.raw(reg::EXT_PARTITIONS_ATTRIBUTE);
    let whole = |field: &'static Field, is_known: bool| (Evidence::of(field, ""), is_known);
    let bits = |field, name, is_known: bool| (Evidence::of(Citation::bits(field, name), ""), is_known);
    let mut needed = vec![
        whole(reg::EXT_CSD_REV, info.rev.is_some()),
        bits(reg::PARTITIONING_SUPPORT, "PARTITIONING_EN", hw.partitioning_supported.is_some()),
        whole(reg::HC_WP_GRP_SIZE, csd.byte(reg::HC_WP_GRP_SIZE).is_some()),
        whole(reg::HC_ERASE_GRP_SIZE, csd.byte(reg::HC_ERASE_GRP_SIZE).is_some()),
        whole(reg::SEC_COUNT, info.user_sectors.is_some()),
        (Evidence::of(reg::SEC_COUNT, " is 0 and no CSD is known: the size of the user area"), needs_user),
        whole(reg::PARTITION_SETTING_COMPLETED, hw.completed.is_some()),
        whole(reg::ENH_START_ADDR, csd.raw(reg::ENH_START_ADDR).is_some()),
        whole(reg::ENH_SIZE_MULT, hw.enh_user_groups.is_some()),
        whole(reg::PARTITIONS_ATTRIBUTE, hw.attributes.is_some()),
    ];
    needed
        .extend(reg::GP_SIZE_MULT.into_iter().zip(hw.gp_groups).map(|(field, groups)| whole(field, groups.is_some())));
    if case.enhances() {
        needed.push(bits(reg::PARTITIONING_SUPPORT, "ENH_ATTRIBUTE_EN", hw.enh_supported.is_some()));
        needed.push(whole(reg::MAX_ENH_SIZE_MULT, hw.max_enh_groups.is_some()));
    }
    if start {
        needed.push(("OCR bit 30, which says what ENH_START_ADDR counts".into(), case.facts.address_bytes.is_some()));
    }
    if case.request.wrrel.is_some() {
        needed.push(bits(reg::WR_REL_PARAM, "HS_CTRL_REL", hw.wr_rel_writable.is_some()));
        needed.push(whole(reg::WR_REL_SET, case.facts.wr_rel_set().is_some()));
    }
    if any_ext {
        needed.push(bits(reg::PARTITIONING_SUPPORT, "EXT_ATTRIBUTE_EN", hw.ext_supported.is_some()));
        needed.push(whole(reg::EXT_SUPPORT, csd.bits(reg::EXT_SUPPORT, 3).is_some()));
        needed.push(whole(reg::EXT_PARTITIONS_ATTRIBUTE, ext_attributes.is_some()));
    }
    let missing: Vec<Evidence> = needed.into_iter().filter(|(_, is_known)| !is_known).map(|(name, _)| name).collect();
    if missing.is_empty() {
        return None;
    }
    let advice = vec!["read all 512 bytes from the card, or give a dump of them".into()];
    Some(Broken { advice, ..broken("the source lacks registers that are needed for a decision", missing) })
}

fn version(case: &Case) -> Option<Broken> {
    let rev = case.facts.info.rev.filter(|rev| *rev < 5)?;
    let version = emmc_regs::ext_csd::mmc_version(rev).unwrap_or("unknown");
    let evidence =
        vec![Evidence::of(reg::EXT_CSD_REV, format!(" is {rev} (eMMC {version}), 5 (4.41) or higher is required"))];
    Some(broken("the part is older than eMMC 4.41", evidence))
}

fn partitioning_unsupported(case: &Case) -> Option<Broken> {
    (case.facts.info.hw_partition.partitioning_supported == Some(false)).then(|| {
        let evidence = vec![Evidence::of(Citation::bits(reg::PARTITIONING_SUPPORT, "PARTITIONING_EN"), " is 0")];
        broken("the part does not support hardware partitioning", evidence)
    })
}

fn group_size(case: &Case) -> Option<Broken> {
    let csd = case.facts.ext_csd;
    case.facts.info.hc_wp_group.filter(|group| group.0 == 0)?;
    let sizes = [reg::HC_WP_GRP_SIZE, reg::HC_ERASE_GRP_SIZE].into_iter();
    let evidence = sizes.filter_map(|field| Some(Evidence::of(field, format!(" is {}", csd.byte(field)?)))).collect();
    Some(broken("the part does not report the size of a write-protect group, the unit of every size", evidence))
}

fn enh_unsupported(case: &Case) -> Option<Broken> {
    (case.enhances() && case.facts.info.hw_partition.enh_supported == Some(false)).then(|| {
        let evidence = vec![Evidence::of(Citation::bits(reg::PARTITIONING_SUPPORT, "ENH_ATTRIBUTE_EN"), " is 0")];
        broken("the part has no enhanced areas", evidence)
    })
}

fn wrrel_fixed(case: &Case) -> Option<Broken> {
    let (now, wanted) = (case.facts.wr_rel_set()?, case.wr_rel_wanted()?);
    if now == wanted || case.facts.info.hw_partition.wr_rel_writable != Some(false) {
        return None;
    }
    let evidence = vec![
        Evidence::of(Citation::bits(reg::WR_REL_PARAM, "HS_CTRL_REL"), " is 0"),
        Evidence::of(reg::WR_REL_SET, format!(" is {now:#04x}, wanted {wanted:#04x}")),
    ];
    Some(broken("the part does not let the host change write reliability", evidence))
}

fn already_completed(case: &Case) -> Option<Broken> {
    let hw = &case.facts.info.hw_partition;
    hw.completed.filter(|completed| *completed)?;
    let mut evidence = vec![Evidence::of(reg::PARTITION_SETTING_COMPLETED, " is 1")];
    evidence.extend(hw.attributes.map(|bits| Evidence::of(reg::PARTITIONS_ATTRIBUTE, format!(" is {bits:#04x}"))));
    let sizes = [(reg::ENH_SIZE_MULT, hw.enh_user_groups)].into_iter().chain(gp_sizes(case));
    let set = sizes.filter_map(|(field, groups)| Some((field, groups.filter(|groups| *groups > 0)?)));
    evidence.extend(set.map(|(field, groups)| Evidence::of(field, format!(" is {}", case.facts.groups_text(groups)))));
    Some(broken("the part is already partitioned, which is possible only once", evidence))
}

fn gp_sizes(case: &Case) -> impl Iterator<Item = (&'static Field, Option<u64>)> {
    reg::GP_SIZE_MULT.into_iter().zip(case.facts.info.hw_partition.gp_groups)
}

/// A commit without a change would still close the registers permanently.
fn request_empty(case: &Case) -> Option<Broken> {
    if case.pieces().next().is_some() {
        return None;
    }
    match (case.request.wrrel, case.facts.wr_rel_set(), case.wr_rel_wanted()) {
        (None, ..) => {
            Some(broken("nothing is requested", vec!["no enhanced area, no partition, no write reliability"]))
        }
        (Some(_), Some(now), Some(wanted)) if now == wanted => {
            let evidence = vec![Evidence::of(reg::WR_REL_SET, format!(" is {now:#04x} already"))];
            Some(broken("nothing would change, but the partitioning registers would be closed permanently", evidence))
        }
        _ => None,
    }
}

fn several_max(case: &Case) -> Option<Broken> {
    let max: Vec<String> =
        case.pieces().filter(|(_, piece)| piece.requested == Size::Max).map(|(name, _)| name.to_string()).collect();
    let advice = vec!["give the others a size or a percentage".into()];
    (max.len() > 1).then(|| Broken { advice, ..broken("only one piece can take the remaining space", max) })
}

fn ext_unsupported(case: &Case) -> Option<Broken> {
    let evidence = ext_names(case, |_| true);
    (!evidence.is_empty() && case.facts.info.hw_partition.ext_supported == Some(false)).then(|| {
        let evidence =
            [vec![Evidence::of(Citation::bits(reg::PARTITIONING_SUPPORT, "EXT_ATTRIBUTE_EN"), " is 0")], evidence]
                .concat();
        broken("the part has no extended attributes", evidence)
    })
}

fn ext_type_unsupported(case: &Case) -> Option<Broken> {
    let offered = case.facts.ext_csd.bits(reg::EXT_SUPPORT, 3)?;
    let evidence = ext_names(case, |ext| offered & ext.nibble() == 0);
    (!evidence.is_empty()).then(|| {
        let evidence = [vec![Evidence::of(reg::EXT_SUPPORT, format!(" is {offered:#04x}"))], evidence].concat();
        broken("the part does not have this extended attribute", evidence)
    })
}

fn ext_names(case: &Case, which: impl Fn(ExtAttribute) -> bool) -> Vec<Evidence> {
    let wanted = case.gps().filter(|(_, request, _)| request.ext != ExtAttribute::None && which(request.ext));
    wanted
        .map(|(index, request, _)| match request.ext {
            ExtAttribute::NonPersistent => format!("{} is requested as non-persistent", AREAS[index + 1]).into(),
            _ => format!("{} is requested for system code", AREAS[index + 1]).into(),
        })
        .collect()
}

fn enh_and_ext(case: &Case) -> Option<Broken> {
    let both: Vec<String> = case
        .gps()
        .filter(|(_, request, _)| request.enh && request.ext != ExtAttribute::None)
        .map(|(index, ..)| format!("{} has both", AREAS[index + 1]))
        .collect();
    (!both.is_empty()).then(|| broken("a partition has the enhanced attribute or an extended one, not both", both))
}

/// Values of an unfinished partitioning would be committed along with the request.
fn pending_sizes(case: &Case) -> Option<Broken> {
    if case.facts.is_completed() {
        return None;
    }
    let enh = case.request.enh_user.is_none();
    let mut left: Vec<(&'static Field, u64)> = Vec::new();
    left.extend(case.facts.ext_csd.raw(reg::ENH_START_ADDR).filter(|_| enh).map(|raw| (reg::ENH_START_ADDR, raw)));
    left.extend(case.facts.ext_csd.raw(reg::ENH_SIZE_MULT).filter(|_| enh).map(|raw| (reg::ENH_SIZE_MULT, raw)));
    let unwanted = gp_sizes(case).enumerate().filter(|(index, _)| case.request.gp[*index].is_none());
    left.extend(unwanted.filter_map(|(_, (field, groups))| Some((field, groups?))));
    let left =
        left.iter().filter(|(_, raw)| *raw > 0).map(|(field, raw)| Evidence::of(*field, format!(" holds {raw}")));
    pending("sizes outside the request are already written and would be committed with it", left.collect())
}

/// A set bit of a one-time register cannot be cleared.
fn pending_attributes(case: &Case) -> Option<Broken> {
    if case.facts.is_completed() {
        return None;
    }
    let mut left = Vec::new();
    if let Some(now) = case.facts.info.hw_partition.attributes.filter(|now| now & !case.attributes() != 0) {
        let text = format!(" is {now:#04x}, wanted {:#04x}", case.attributes());
        left.push(Evidence::of(reg::PARTITIONS_ATTRIBUTE, text));
    }
    let ext = case.facts.ext_csd.raw(reg::EXT_PARTITIONS_ATTRIBUTE).and_then(|raw| u16::try_from(raw).ok());
    if let Some(now) = ext.filter(|now| now & !case.ext_attributes() != 0) {
        let text = format!(" is {now:#06x}, wanted {:#06x}", case.ext_attributes());
        left.push(Evidence::of(reg::EXT_PARTITIONS_ATTRIBUTE, text));
    }
    pending("attribute bits outside the request are set", left)
}

fn pending(what: &str, evidence: Vec<Evidence>) -> Option<Broken> {
    let advice = "power the card off and on and read it again: most parts drop uncommitted values; \
                  a part that keeps them accepts only a layout that includes them";
    (!evidence.is_empty()).then(|| Broken { advice: vec![advice.into()], ..broken(what, evidence) })
}
