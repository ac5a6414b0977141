//! Partitioning options: the hardware-partition section of a study.

use emmc_port::CardData;
use emmc_regs::ext_csd::reg;
use emmc_units::{Bytes, Size};
use serde::Serialize;

use super::AREAS;
use super::certainty::Certainty;
use super::facts::Facts;
use super::model::CellModel;
use super::plan::{HwPartPlan, plan};
use super::refusal::Refusal;
use super::request::{EnhRequest, ExtAttribute, GpRequest, LayoutRequest};
use crate::evidence::INFERRED;

/// The present hardware partitioning of a card, and its options.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HwPartOptions {
    /// Whether partitions can be created; absent if the source lacks data.
    pub partitionable: Option<bool>,
    /// The present layout; absent if there is none or it is unknown.
    pub partitioned: Option<Partitioned>,
    /// The write-protect group, the unit of every size.
    pub group_bytes: Option<Bytes>,
    /// The largest enhanced (pSLC) area; absent where there can be none.
    pub max_enhanced: Option<MaxEnhanced>,
    /// Why none is possible.
    pub why_not: Vec<Refusal>,
    /// Write reliability.
    pub wrrel: WrRelOptions,
}

/// The layout of a part that is partitioned already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Partitioned {
    /// Start of the enhanced user area.
    pub enh_user_start_bytes: Option<Bytes>,
    /// Size of the enhanced user area; 0 where there is none.
    pub enh_user_bytes: Option<Bytes>,
    /// Sizes of partitions 1 to 4; 0 where there is none.
    pub gp_bytes: [Option<Bytes>; 4],
    /// The areas that are enhanced: `user`, `gp1` to `gp4`; absent where that is not known.
    pub enhanced: Option<Vec<&'static str>>,
    /// Whether the enhanced area is all of the user area.
    pub user_is_enhanced_whole: Option<bool>,
}

/// The largest enhanced area.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MaxEnhanced {
    /// How large it would be.
    pub enhanced_bytes: Bytes,
    /// The same in groups: MAX_ENH_SIZE_MULT, unless less fits.
    pub enhanced_groups: u64,
    /// The user area now.
    pub user_before_bytes: Bytes,
    /// The user area then, the enhanced area included.
    pub user_after_bytes: Bytes,
    /// Certainty of `user_after_bytes`.
    pub user_after_certainty: Certainty,
    /// Capacity that would be lost.
    pub lost_bytes: Bytes,
    /// What an enhanced group costs.
    pub cells: Option<CellModel>,
}

/// Whether write reliability can be changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WrRelOptions {
    /// Whether it can be changed; absent if the source lacks data.
    pub can_set: Option<bool>,
    /// The areas for which it is on (`user`, `gp1` to `gp4`, whether or not they exist); absent where not known.
    pub on: Option<Vec<&'static str>>,
    /// Why it can, cannot, or is not known to.
    pub why: String,
}

/// Partitioning options. It never fails and never sends anything.
pub fn options(card: &CardData) -> HwPartOptions {
    let facts = Facts::new(card);
    let whole = EnhRequest { start: Bytes(0), size: Size::Max };
    let whole = plan(card, &LayoutRequest { enh_user: Some(whole), ..LayoutRequest::default() });
    HwPartOptions {
        partitionable: partitionable(card, &facts),
        partitioned: partitioned(&facts),
        group_bytes: facts.group,
        max_enhanced: max_enhanced(&facts, &whole),
        wrrel: wrrel(card, &facts),
        why_not: whole.refusals,
    }
}

/// Requests the smallest possible partition.
fn partitionable(card: &CardData, facts: &Facts) -> Option<bool> {
    let size = Size::Exact(facts.group.unwrap_or(Bytes(512)));
    let gp = GpRequest { size, enh: false, ext: ExtAttribute::None };
    let smallest = plan(card, &LayoutRequest { gp: [Some(gp), None, None, None], ..LayoutRequest::default() });
    let certain = |refusal: &Refusal| refusal.rule != "register-unknown";
    if smallest.ok { Some(true) } else { smallest.refusals.iter().any(certain).then_some(false) }
}

fn max_enhanced(facts: &Facts, whole: &HwPartPlan) -> Option<MaxEnhanced> {
    let layout = whole.layout.as_ref().filter(|_| whole.ok)?;
    Some(MaxEnhanced {
        enhanced_bytes: layout.enh_user_sectors.bytes()?,
        enhanced_groups: layout.enh_user_sectors.bytes()?.0 / layout.group.0,
        user_before_bytes: facts.user?.bytes()?,
        user_after_bytes: layout.user_sectors.bytes()?,
        user_after_certainty: layout.user_certainty,
        lost_bytes: layout.lost.capacity_bytes,
        cells: layout.cells.clone(),
    })
}

fn partitioned(facts: &Facts) -> Option<Partitioned> {
    if !facts.is_completed() || facts.is_sd {
        return None;
    }
    let hw = &facts.info.hw_partition;
    let bytes = |groups: Option<u64>| match groups? {
        0 => Some(Bytes(0)),
        groups => facts.group?.checked_mul(groups),
    };
    let enh_user = bytes(hw.enh_user_groups);
    let user = facts.user.and_then(|user| user.bytes());
    Some(Partitioned {
        enh_user_start_bytes: hw.enh_start,
        enh_user_bytes: enh_user,
        gp_bytes: hw.gp_groups.map(bytes),
        enhanced: hw.attributes.map(names),
        user_is_enhanced_whole: enh_user.zip(user).map(|(enh_user, user)| enh_user >= user),
    })
}

fn names(bits: u8) -> Vec<&'static str> {
    (0..5).filter(|area| bits >> area & 1 == 1).map(|area| AREAS[area]).collect()
}

fn wrrel(card: &CardData, facts: &Facts) -> WrRelOptions {
    let hw = &facts.info.hw_partition;
    let (can_set, why) = match (facts.is_sd, hw.completed, hw.wr_rel_writable) {
        (true, ..) => (Some(false), "an SD card has no such setting"),
        (_, Some(true), _) => (Some(false), "PARTITION_SETTING_COMPLETED is 1: it can no longer change"),
        (.., Some(false)) => (Some(false), "WR_REL_PARAM.HS_CTRL_REL is 0: the setting is fixed"),
        (_, Some(false), Some(true)) => {
            (Some(true), "once, together with the partitioning, which is then closed permanently")
        }
        (_, Some(false), None) => (None, "the source does not have WR_REL_PARAM"),
        (_, None, Some(true)) => (None, "the source does not have PARTITION_SETTING_COMPLETED"),
        (_, None, None) => (None, "the source has neither WR_REL_PARAM nor PARTITION_SETTING_COMPLETED"),
    };
    let on = hw.wr_rel_set.filter(|_| !facts.is_sd).map(names);
    let completed = hw.completed == Some(true) && !facts.is_sd && card.is_inferred(reg::PARTITION_SETTING_COMPLETED);
    let why = if completed { format!("{why}{}", INFERRED) } else { why.to_owned() };
    WrRelOptions { can_set, on, why }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{aaru_64g, bjnb4r, cisco_hynix, klm_8g, s0j56, sd_card, with};
    use super::*;

    #[test]
    fn options_of_unpartitioned_parts() {
        for (card, enhanced_groups, user_after, bits, can_set) in [
            (s0j56(), 939, 7512 << 20, 2, Some(true)),
            (klm_8g(), 466, 3_817_472 << 10, 2, Some(false)),
            (aaru_64g(), 4916, 4916 << 22, 3, Some(true)),
            (bjnb4r(), 1863, 1863 << 23, 2, Some(false)),
        ] {
            let options = options(&card);
            let max = options.max_enhanced.expect("enhanced area");
            assert_eq!(
                (max.enhanced_groups, max.user_after_bytes),
                (enhanced_groups, Bytes(user_after)),
                "{}",
                card.name()
            );
            assert_eq!(max.cells.and_then(|cells| cells.bits_per_cell), Some(bits), "{}", card.name());
            assert_eq!((options.wrrel.can_set, options.partitionable), (can_set, Some(true)), "{}", card.name());
            assert_eq!((options.why_not.len(), options.partitioned), (0, None));
            assert_eq!(max.lost_bytes.0, max.user_before_bytes.0 - max.user_after_bytes.0);
        }
        assert_eq!(options(&klm_8g()).wrrel.on.unwrap(), AREAS);
    }

    #[test]
    fn a_partitioned_part_says_what_is_set() {
        let options = options(&cisco_hynix());
        assert_eq!((options.partitionable, options.max_enhanced), (Some(false), None));
        assert!(options.why_not.iter().any(|refusal| refusal.rule == "already-completed"));
        assert_eq!(options.wrrel.can_set, Some(false));
        let partitioned = options.partitioned.unwrap();
        assert_eq!(partitioned.enhanced, Some(vec!["user"]));
        // The log names 0x748 groups but not how large a group is.
        assert_eq!((partitioned.enh_user_bytes, partitioned.user_is_enhanced_whole), (None, None));
        let all = with(&s0j56(), &[(155, 1, 1), (140, 3, 939), (156, 1, 1), (212, 4, 15_384_576)]);
        let partitioned = super::options(&all).partitioned.unwrap();
        assert_eq!(
            (partitioned.enh_user_bytes, partitioned.enh_user_start_bytes),
            (Some(Bytes(7512 << 20)), Some(Bytes(0)))
        );
        assert_eq!((partitioned.gp_bytes, partitioned.user_is_enhanced_whole), ([Some(Bytes(0)); 4], Some(true)));
    }

    #[test]
    fn unknown_stays_unknown_and_sd_is_not_supported() {
        let nothing = options(&CardData::default());
        assert_eq!((nothing.partitionable, nothing.max_enhanced, nothing.wrrel.can_set), (None, None, None));
        assert_eq!((nothing.why_not.len(), nothing.wrrel.on), (1, None));
        assert!(nothing.wrrel.why.contains("neither WR_REL_PARAM nor PARTITION_SETTING_COMPLETED"));
        let half = options(&with(&CardData::default(), &[(166, 1, 5)]));
        assert_eq!(half.wrrel.why, "the source does not have PARTITION_SETTING_COMPLETED");
        let sd = options(&sd_card());
        assert_eq!((sd.partitionable, sd.partitioned, sd.wrrel.can_set), (Some(false), None, Some(false)));
    }
}
