//! The plan as a whole.

use emmc_port::CardData;
use serde::Serialize;

use super::case::Case;
use super::commands::{Commands, commands};
use super::layout::Layout;
use super::refusal::Refusal;
use super::request::LayoutRequest;
use super::rules::refusals;
use super::warnings::warnings;
use super::writes::{AfterCommit, RegisterWrite, after_commit, writes};
use crate::finding::Finding;

/// The effect of a request on a card, and every reason against it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HwPartPlan {
    /// Whether no rule is broken.
    pub ok: bool,
    /// The card's data, as the user called it.
    pub source: String,
    /// The request as command line arguments.
    pub requested: Vec<String>,
    /// Every rule that is broken.
    pub refusals: Vec<Refusal>,
    /// Warnings, although no rule is broken.
    pub warnings: Vec<Finding>,
    /// Notes on the resolved relative sizes.
    pub notes: Vec<String>,
    /// The resulting layout; absent if it cannot be computed.
    pub layout: Option<Layout>,
    /// The bytes to write, in order; empty where a rule is broken.
    pub writes: Vec<RegisterWrite>,
    /// Steps and checks after the last write.
    pub after: Option<AfterCommit>,
    /// The same as commands of other tools.
    pub commands: Option<Commands>,
}

/// Plans a layout. It never fails and never sends anything: an obstacle is a refusal.
pub fn plan(card: &CardData, request: &LayoutRequest) -> HwPartPlan {
    let case = Case::new(card, request);
    let mut refusals = refusals(&case);
    // An unknown register was not inferred either.
    let told = refusals.iter_mut().filter(|refusal| refusal.rule != "register-unknown");
    told.for_each(|refusal| refusal.evidence.mark(card));
    let mut warnings = warnings(&case);
    warnings.iter_mut().for_each(|warning| warning.evidence.mark(card));
    let layout = Layout::new(&case);
    // After the rules everything can be computed; if a rule missed a case, there must still be no write.
    let accepted = layout.as_ref().filter(|_| refusals.is_empty());
    let writes = accepted.and_then(|_| writes(&case)).unwrap_or_default();
    let accepted = accepted.filter(|_| !writes.is_empty());
    HwPartPlan {
        ok: accepted.is_some(),
        source: card.name(),
        requested: request.arguments(),
        after: accepted.map(|layout| after_commit(&case, layout, &writes)),
        commands: accepted.and_then(|layout| commands(&case, layout, card)),
        warnings,
        refusals,
        layout,
        writes,
        notes: case.notes,
    }
}

#[cfg(test)]
mod tests {
    use super::super::certainty::Certainty;
    use super::super::fixtures::{ac100, klm_8g, planned, s0j56, t30};
    use emmc_units::{Bytes, Sectors};

    #[test]
    fn the_board_vendors_example_is_planned_completely() {
        let refused = planned(&s0j56(), "0s:31080448s", &[], None);
        assert!(!refused.ok && refused.writes.is_empty());
        assert_eq!(refused.refusals.len(), 1);
        assert_eq!(refused.refusals[0].rule, "enh-too-large");
        assert_eq!(refused.refusals[0].evidence[0].to_string(), "1897 > 939 groups of 8 MiB");

        let plan = planned(&s0j56(), "max", &[], Some("on"));
        let layout = plan.layout.unwrap();
        assert!(plan.ok, "{:?}", plan.refusals);
        assert_eq!((layout.enh_user_start_sectors, layout.enh_user_sectors), (Sectors(0), Sectors(15_384_576)));
        assert_eq!((layout.user_sectors, layout.user_certainty), (Sectors(15_384_576), Certainty::Estimated));
        assert_eq!(layout.user_sectors.bytes().unwrap().to_string(), "7512 MiB");
        assert_eq!(layout.user_sectors.bytes().unwrap().rounded(), "7.3 GiB");
        assert_eq!(layout.areas[0].groups, Some(939));
        assert!(layout.areas[0].enhanced && layout.areas[0].write_reliability == Some(true));
        assert_eq!(layout.lost.capacity_bytes, Bytes((31_080_448 - 15_384_576) * 512));
        assert_eq!(layout.cells.unwrap().bits_per_cell, Some(2));
        let boot = layout.areas.iter().find(|area| area.name == "boot2").unwrap();
        assert_eq!((boot.bytes, boot.groups, boot.enhanced), (Bytes(252 * 131_072), None, true));
        assert!(plan.notes[0].contains("939 groups of 8 MiB = 7512 MiB = 15384576s"), "{:?}", plan.notes);
    }

    #[test]
    fn capacities_before_and_after_match_published_ones() {
        let layout = planned(&t30(), "0s:3735552s", &[], None).layout.unwrap();
        assert_eq!(layout.user_sectors.bytes(), Some(Bytes(1_912_602_624)));
        assert_eq!(layout.lost.user_data_bytes, Bytes(3_825_205_248));
        let klm = planned(&klm_8g(), "max", &[], None).layout.unwrap();
        assert_eq!(klm.enh_user_sectors.bytes(), Some(Bytes(3_817_472 << 10)));
        assert_eq!(klm.user_sectors, klm.enh_user_sectors);
        let ac100 = planned(&ac100(), "max", &[], None).layout.unwrap();
        assert_eq!(ac100.user_sectors, Sectors(62_521_344 / 2));
    }

    #[test]
    fn enhanced_areas_cost_in_proportion_to_their_size() {
        let half = planned(&s0j56(), "0MiB:50%", &[], None);
        let layout = half.layout.unwrap();
        assert_eq!(layout.enh_user_sectors, Sectors(469 * 16_384));
        assert_eq!(layout.user_sectors, Sectors((1897 - 948 + 469) * 16_384));
        assert!(half.notes[0].contains("100 % is 939 groups"), "{:?}", half.notes);
        let plain = planned(&s0j56(), "", &["1:1GiB", "3:8MiB"], None);
        let layout = plain.layout.unwrap();
        assert_eq!((layout.user_sectors, layout.user_certainty), (Sectors((1897 - 129) * 16_384), Certainty::Exact));
        assert_eq!(layout.gp_sectors, [Sectors(1 << 21), Sectors(0), Sectors(16_384), Sectors(0)]);
        assert_eq!((layout.lost.capacity_bytes, layout.lost.moved_to_gp_bytes), (Bytes(0), Bytes(129 << 23)));
        assert!(layout.cells.is_none());
        let both = planned(&s0j56(), "max", &["1:50%:enh"], None).layout.unwrap();
        assert_eq!(both.enh_user_sectors.0 + both.gp_sectors[0].0, 939 * 16_384);
        assert_eq!(both.user_sectors, both.enh_user_sectors);
    }

    #[test]
    fn the_json_has_the_documented_keys() {
        let json = serde_json::to_value(planned(&s0j56(), "max", &[], Some("on"))).unwrap();
        assert_eq!(json["ok"], true);
        assert_eq!(json["refusals"], serde_json::json!([]));
        assert_eq!(json["layout"]["user_sectors"], 15_384_576);
        assert_eq!(json["layout"]["enh_user_start_sectors"], 0);
        assert_eq!(json["layout"]["enh_user_sectors"], 15_384_576);
        assert_eq!(json["layout"]["gp_sectors"], serde_json::json!([0, 0, 0, 0]));
        let first = &json["writes"][0];
        assert_eq!((&first["offset"], &first["old"], &first["new"]), (&175.into(), &0.into(), &1.into()));
        assert_eq!((&first["one_time"], &first["step"]), (&false.into(), &"group-definition".into()));
        let refused = serde_json::to_value(planned(&s0j56(), "0s:31080448s", &[], None)).unwrap();
        assert_eq!((&refused["ok"], &refused["writes"]), (&false.into(), &serde_json::json!([])));
        assert_eq!(refused["refusals"][0]["rule"], "enh-too-large");
        assert!(refused["refusals"][0]["evidence"][0].as_str().unwrap().contains("1897 > 939"));
    }
}
