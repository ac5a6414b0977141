//! The capacity cost of enhanced groups, inferred from the part's own maximum.
//!
//! An enhanced area stores one bit per cell, so a group of it takes the place of two ordinary groups on MLC and of
//! three on TLC. No register says which; but a part that may be enhanced as a whole says how much would be left, and
//! SEC_COUNT / MAX_ENH_SIZE_MULT is the cost of one group. Both ends are then exact: nothing enhanced costs nothing,
//! and everything enhanced leaves the maximum, as published capacities show (31080448 -> 15384576 sectors with
//! 1897 / 939, 7471104 -> 3735552 with 2). In between it is an estimate.

use emmc_units::SECTOR_BYTES;
use serde::Serialize;

use super::certainty::Certainty;
use super::facts::Facts;

/// The cost of one enhanced group.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellModel {
    /// Ordinary groups replaced by one enhanced group, rounded to a thousandth.
    pub cost_per_enhanced_group: f64,
    /// Bits per cell of the ordinary area that fit the cost: 2 MLC, 3 TLC, 4 QLC; absent where none does.
    pub bits_per_cell: Option<u8>,
    /// The figures it was inferred from.
    pub evidence: String,
    /// Always estimated: no register states it.
    pub certainty: Certainty,
}

/// Input of the arithmetic; every figure but `max_enh` is above 0.
#[derive(Clone, Copy)]
pub(super) struct Model {
    /// Sectors in a write-protect group.
    pub(super) group: u64,
    /// Sectors of the present user area.
    pub(super) user: u64,
    /// MAX_ENH_SIZE_MULT; 0 where it is not known, as nothing can then be enhanced.
    pub(super) max_enh: u64,
}

/// What is placed already while the size of another piece is sought; all in groups but the start.
#[derive(Clone, Copy, Default)]
pub(super) struct Placed {
    /// First sector of the enhanced user area, if that has a size.
    pub(super) enh_start: Option<u64>,
    pub(super) enh_user: u64,
    pub(super) enh_gp: u64,
    pub(super) plain_gp: u64,
}

/// Largest number that GP_SIZE_MULT and ENH_SIZE_MULT hold.
pub(super) const MULT_MAX: u64 = 0xff_ffff;

impl Model {
    pub(super) fn new(facts: &Facts) -> Option<Self> {
        let max_enh = facts.info.hw_partition.max_enh_groups.unwrap_or(0);
        Some(Self { group: facts.group?.0 / SECTOR_BYTES, user: facts.user?.0, max_enh })
    }

    /// Sectors of the ordinary area that `groups` enhanced groups take; never fewer than they hold.
    pub(super) fn enh_cost(&self, groups: u64) -> u64 {
        let held = groups.saturating_mul(self.group);
        if self.max_enh == 0 {
            return held;
        }
        let cost = (u128::from(groups) * u128::from(self.user)).div_ceil(u128::from(self.max_enh));
        held.max(u64::try_from(cost).unwrap_or(u64::MAX))
    }

    /// The largest number of enhanced groups for `sectors` of the ordinary area.
    fn enh_fitting(&self, sectors: u64) -> u64 {
        let fitting = u128::from(sectors) * u128::from(self.max_enh) / u128::from(self.user);
        u64::try_from(fitting).unwrap_or(u64::MAX).min(sectors / self.group)
    }

    /// Sectors of the user area that are left beside everything placed, not counting the enhanced part itself.
    pub(super) fn left_beside(&self, placed: &Placed) -> Option<u64> {
        let enhanced = self.enh_cost(placed.enh_user.saturating_add(placed.enh_gp));
        self.user.checked_sub(placed.plain_gp.saturating_mul(self.group))?.checked_sub(enhanced)
    }

    /// Groups of the largest enhanced user area from sector `start` for which every rule holds.
    pub(super) fn largest_enh_user(&self, placed: &Placed, start: u64) -> u64 {
        let taken = placed.plain_gp.saturating_mul(self.group).saturating_add(start);
        let total = self.enh_fitting(self.user.saturating_sub(taken)).min(self.max_enh);
        total.saturating_sub(placed.enh_gp).min(MULT_MAX)
    }

    /// Groups of the largest further general purpose partition for which every rule holds.
    ///
    /// It leaves the user area what lies before its enhanced part, or else one group, so that there still is one.
    pub(super) fn largest_gp(&self, placed: &Placed, enh: bool) -> u64 {
        let kept = placed.enh_start.unwrap_or(self.group);
        let enhanced = placed.enh_user.saturating_add(placed.enh_gp);
        let plain = placed.plain_gp.saturating_mul(self.group);
        let groups = if enh {
            let room = self.user.saturating_sub(plain.saturating_add(kept));
            self.enh_fitting(room).min(self.max_enh).saturating_sub(enhanced)
        } else {
            let taken = plain.saturating_add(kept).saturating_add(self.enh_cost(enhanced));
            self.user.saturating_sub(taken) / self.group
        };
        groups.min(MULT_MAX)
    }

    pub(super) fn cells(&self) -> Option<CellModel> {
        if self.max_enh == 0 {
            return None;
        }
        let held = self.max_enh as f64 * self.group as f64;
        let cost = (self.user as f64 / held).max(1.0);
        // A part reserves a few groups, so the ratio is slightly above an integer; 12 % still separates 3 from 4.
        let bits = (2..=4).find(|bits| (cost / f64::from(*bits) - 1.0).abs() < 0.12);
        let evidence = if self.user % self.group == 0 {
            format!("SEC_COUNT / MAX_ENH_SIZE_MULT = {} / {} groups", self.user / self.group, self.max_enh)
        } else {
            format!("SEC_COUNT / MAX_ENH_SIZE_MULT = {} sectors / {} groups", self.user, self.max_enh)
        };
        Some(CellModel {
            cost_per_enhanced_group: (cost * 1000.0).round() / 1000.0,
            bits_per_cell: bits,
            evidence,
            certainty: Certainty::Estimated,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S0J56: Model = Model { group: 16_384, user: 31_080_448, max_enh: 939 };

    #[test]
    fn both_limits_are_exact_and_fit_is_the_inverse_of_cost() {
        let t30 = Model { group: 8192, user: 7_471_104, max_enh: 456 };
        let half_group = Model { group: 16_384, user: 61_071_360, max_enh: 1863 };
        for model in [S0J56, t30, half_group, Model { group: 1024, user: 4096, max_enh: 77 }] {
            assert_eq!(model.enh_cost(0), 0);
            assert!(model.max_enh > 76 && model.enh_cost(model.max_enh) >= model.user);
            for groups in 0..=model.max_enh.min(model.user / model.group) {
                let cost = model.enh_cost(groups);
                assert!(model.enh_fitting(cost) >= groups && (cost == 0 || model.enh_fitting(cost - 1) < groups));
            }
        }
        assert_eq!(S0J56.enh_cost(939), 31_080_448);
        assert_eq!(t30.enh_cost(228), 7_471_104 / 2);
    }

    #[test]
    fn cell_types_follow_published_parts() {
        for (user_groups, max_enh, bits) in [
            (1897, 939, Some(2)),
            (932, 466, Some(2)),
            (7632, 3816, Some(2)),
            (14_750, 4916, Some(3)),
            (14_912, 4970, Some(3)),
            (1000, 400, None),
            (1000, 1000, None),
            (1000, 2000, None),
            (1000, 100, None),
        ] {
            let cells = Model { group: 16_384, user: user_groups * 16_384, max_enh }.cells().unwrap();
            assert_eq!(cells.bits_per_cell, bits, "{}", cells.evidence);
        }
        assert_eq!(S0J56.cells().unwrap().cost_per_enhanced_group, 2.02);
        assert!(Model { max_enh: 0, ..S0J56 }.cells().is_none());
    }

    #[test]
    fn extreme_figures_saturate() {
        let model = Model { group: 255 * 255 * 1024, user: u64::from(u32::MAX), max_enh: MULT_MAX };
        assert_eq!(model.enh_cost(u64::MAX), u64::MAX);
        let placed = Placed { enh_start: Some(u64::MAX), enh_user: u64::MAX, enh_gp: u64::MAX, plain_gp: u64::MAX };
        assert_eq!((model.largest_gp(&placed, true), model.largest_gp(&placed, false)), (0, 0));
        assert_eq!((model.largest_enh_user(&placed, u64::MAX), model.left_beside(&placed)), (0, None));
    }
}
