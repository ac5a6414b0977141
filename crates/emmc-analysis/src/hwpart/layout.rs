//! The layout after the commit and a power cycle.

use emmc_units::{Bytes, SECTOR_BYTES, Sectors};
use serde::Serialize;

use super::AREAS;
use super::case::Case;
use super::certainty::Certainty;
use super::model::{CellModel, Model};
use super::request::ExtAttribute;

/// The layout that results from a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Layout {
    /// The user area, its enhanced part included.
    pub user_sectors: Sectors,
    /// Certainty of `user_sectors`.
    pub user_certainty: Certainty,
    /// Where the enhanced part of the user area starts; 0 where there is none.
    pub enh_user_start_sectors: Sectors,
    /// How large it is; 0 where there is none.
    pub enh_user_sectors: Sectors,
    /// General purpose partitions 1 to 4; 0 where there is none.
    pub gp_sectors: [Sectors; 4],
    /// The write-protect group, the unit of every size.
    #[serde(rename = "group_bytes")]
    pub group: Bytes,
    /// Every area with its size in every unit.
    pub areas: Vec<Area>,
    /// The cost of an enhanced group; absent without an enhanced area.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cells: Option<CellModel>,
    /// What is lost.
    pub lost: Lost,
    /// Certainty of the figures, with reasons.
    pub certainty: Vec<String>,
}

/// One area of the part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Area {
    /// `user`, `enhanced-user` (a part of it), `boot1`, `boot2`, `rpmb`, `gp1` to `gp4`.
    pub name: &'static str,
    /// Its size.
    pub bytes: Bytes,
    /// Its size in sectors.
    pub sectors: Sectors,
    /// Its size in write-protect groups; absent where it is not a whole number of them.
    pub groups: Option<u64>,
    /// Whether all of it is enhanced.
    pub enhanced: bool,
    /// Its extended attribute.
    pub ext: ExtAttribute,
    /// Whether data written before survives a power failure during a write; absent where not known or not settable.
    pub write_reliability: Option<bool>,
    /// Certainty of the size.
    pub certainty: Certainty,
}

/// What is permanently lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lost {
    /// Data in the user area, all of it.
    pub user_data_bytes: Bytes,
    /// Capacity that is in no area afterwards.
    pub capacity_bytes: Bytes,
    /// Capacity that moves from the user area to partitions.
    pub moved_to_gp_bytes: Bytes,
    /// The same in sentences.
    pub what: Vec<String>,
}

impl Layout {
    /// The layout; absent where the sizes are not known, or do not fit into the part.
    pub(super) fn new(case: &Case) -> Option<Self> {
        let model = case.model.filter(|_| !case.facts.is_completed() && !case.facts.is_sd)?;
        let placed = case.placed();
        if case.pieces().any(|(_, piece)| piece.bytes.is_none()) {
            return None;
        }
        let enhanced = placed.enh_user.saturating_add(placed.enh_gp);
        let left = model.left_beside(&placed)?;
        // The remainder of an estimate is reported only in whole groups.
        let left = if enhanced > 0 { left / model.group * model.group } else { left };
        let enh_user = placed.enh_user.checked_mul(model.group)?;
        let user = left.checked_add(enh_user)?;
        let mut gp_sectors = [Sectors(0); 4];
        for (index, _, piece) in case.gps() {
            gp_sectors[index] = Sectors(piece.groups(case.facts.group?)?.checked_mul(model.group)?);
        }
        let gp_total: u64 = gp_sectors.iter().map(|sectors| sectors.0).sum();
        let mut layout = Self {
            user_sectors: Sectors(user),
            user_certainty: if enhanced > 0 { Certainty::Estimated } else { Certainty::Exact },
            enh_user_start_sectors: Sectors(placed.enh_start.unwrap_or(0)),
            enh_user_sectors: Sectors(enh_user),
            gp_sectors,
            group: Bytes(model.group * SECTOR_BYTES),
            areas: Vec::new(),
            cells: model.cells().filter(|_| enhanced > 0),
            lost: lost(&model, user, gp_total)?,
            certainty: certainty(&model, user, left, enhanced),
        };
        layout.areas = areas(case, &layout)?;
        Some(layout)
    }
}

fn lost(model: &Model, user: u64, gp_total: u64) -> Option<Lost> {
    let bytes = |sectors: u64| Sectors(sectors).bytes();
    let capacity = bytes(model.user.saturating_sub(user).saturating_sub(gp_total))?;
    let (before, after, moved) = (bytes(model.user)?, bytes(user)?, bytes(gp_total)?);
    let mut what = vec![format!(
        "all data in the user area ({}); assume that all other data on the part is lost too",
        before.rounded()
    )];
    if capacity.0 > 0 {
        what.push(format!(
            "{} of capacity: {} of user area become {}",
            capacity.rounded(),
            before.rounded(),
            after.rounded()
        ));
    }
    if moved.0 > 0 {
        what.push(format!("{} of the user area become separate partitions", moved.rounded()));
    }
    what.push("any further change: the partitioning registers can never be written again".into());
    Some(Lost { user_data_bytes: before, capacity_bytes: capacity, moved_to_gp_bytes: moved, what })
}

fn certainty(model: &Model, user: u64, left: u64, enhanced: u64) -> Vec<String> {
    let mut lines = vec!["the part decides: read SEC_COUNT back after the power cycle".to_string()];
    let Some(cells) = model.cells().filter(|_| enhanced > 0) else { return lines };
    let bits = cells.bits_per_cell.map(|bits| format!(", as {bits} bits per cell stored as 1 would"));
    lines.push(format!(
        "the user capacity is estimated: {} = {}{}",
        cells.evidence,
        cells.cost_per_enhanced_group,
        bits.unwrap_or_else(|| "; no cell type fits that, so the estimate may be far off".into())
    ));
    let whole = cells.bits_per_cell.and_then(|bits| enhanced.checked_mul(u64::from(bits))?.checked_mul(model.group));
    let spread = whole.and_then(|whole| model.enh_cost(enhanced).checked_sub(whole)).unwrap_or(0) / model.group;
    if spread > 0 && left > 0 {
        let upper = Sectors(user.saturating_add(spread * model.group)).bytes().unwrap_or_default();
        lines.push(format!(
            "if enhancement cost only the cells, up to {spread} more groups would remain: {}",
            upper.rounded()
        ));
    }
    lines
}

fn areas(case: &Case, layout: &Layout) -> Option<Vec<Area>> {
    let wr_rel = case.wr_rel_wanted();
    let area = |name, bytes: Bytes, enhanced: bool, certainty: Certainty| Area {
        name,
        bytes,
        sectors: Sectors(bytes.0 / SECTOR_BYTES),
        groups: (bytes.0 % layout.group.0 == 0).then(|| bytes.0 / layout.group.0),
        enhanced,
        ext: ExtAttribute::None,
        write_reliability: AREAS.iter().position(|area| *area == name).and_then(|bit| Some(wr_rel? >> bit & 1 == 1)),
        certainty,
    };
    let all_enhanced = layout.enh_user_sectors == layout.user_sectors;
    let mut areas = vec![area("user", layout.user_sectors.bytes()?, all_enhanced, layout.user_certainty)];
    if layout.enh_user_sectors.0 > 0 {
        areas.push(area("enhanced-user", layout.enh_user_sectors.bytes()?, true, Certainty::Exact));
    }
    // Boot areas and RPMB are made of the enhanced medium on every part that has it, as U-Boot prints them.
    let enhanced = case.facts.info.hw_partition.enh_supported == Some(true);
    if let Some(boot) = case.facts.info.boot {
        areas.extend(["boot1", "boot2"].map(|name| area(name, boot, enhanced, Certainty::Exact)));
    }
    areas.extend(case.facts.info.rpmb.map(|rpmb| area("rpmb", rpmb, enhanced, Certainty::Exact)));
    for (index, request, _) in case.gps() {
        let bytes = layout.gp_sectors[index].bytes()?;
        areas.push(Area { ext: request.ext, ..area(AREAS[index + 1], bytes, request.enh, Certainty::Exact) });
    }
    Some(areas)
}
