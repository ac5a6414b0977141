//! How well the measurements bound each parameter: the scatter of an ensemble, or slopes that are checked by
//! simulations at the ends of the intervals.

use crate::fit::{Fitted, Given, Training};
use crate::least_squares::{SCALE, costs};
use crate::measured::Measured;

/// Of a normal distribution: 95 % are within.
const QUANTILE: f64 = 1.96;
/// Half its square: where the logarithm of the likelihood ends an interval.
const LIKELY: f64 = 1.92;
/// A parameter is determined if its interval goes to less than a factor of two, down and up.
pub(crate) const DETERMINED: f64 = std::f64::consts::LN_2;
/// How often the end of an interval may move outwards, each time to double the distance.
const WIDENED: usize = 3;

/// How far a parameter may be from where a search ended, as a logarithm: down and up, 95 %.
pub(crate) type Reaches = [f64; 2];

/// The interval of each parameter: the scatter of an ensemble, if there is one, otherwise where the likelihood falls
/// to that of 95 %, if the others follow.
///
/// The latter begins with what the slopes say. A simulation has flat places, which slopes do not show: a point at the
/// end of such an interval is simulated, and where that costs too little, the end moves outwards.
pub(crate) fn intervals(fitted: &Fitted, measured: &Measured, given: &Given<'_>, scale: f64) -> Vec<Reaches> {
    let part = &fitted.part;
    let Some(covariance) = fitted.covariance(scale) else { return vec![[f64::INFINITY; 2]; part.values.len()] };
    let by_slopes = |index: usize| QUANTILE * covariance[(index, index)].sqrt();
    let mut reaches: Vec<Reaches> = (0..part.values.len()).map(|index| [by_slopes(index); 2]).collect();
    if fitted.scatter.is_some() {
        return reaches;
    }
    let training = Training::new(measured.clone(), given);
    let at: Vec<f64> = part.values.iter().map(|value| value.ln()).collect();
    let cost = |point: &[f64], value: &[f64]| {
        let [data, prior] = costs((point, value), training.observed(), &fitted.priors);
        data * (SCALE / scale).powi(2) + prior
    };
    let moved = |index: usize, side: usize, reach: f64| -> Vec<f64> {
        let distance = if side == 0 { -reach } else { reach } / covariance[(index, index)];
        at.iter().enumerate().map(|(other, at)| at + covariance[(other, index)] * distance).collect()
    };
    let is_open =
        |index: &usize| part.uses(&part.parameters()[*index], &measured.cells) && by_slopes(*index) < DETERMINED;
    // With the last distance that cost too little, and the root of what it cost.
    let mut open: Vec<(usize, usize, [f64; 2])> =
        (0..at.len()).filter(is_open).flat_map(|index| [(index, 0, [0.0; 2]), (index, 1, [0.0; 2])]).collect();
    let Some(Some(here)) = training.model(part, measured.file_bytes, std::slice::from_ref(&at)).pop() else {
        return reaches;
    };
    let least = cost(&at, &here);
    for _ in 0..WIDENED {
        let points: Vec<Vec<f64>> =
            open.iter().map(|(index, side, _)| moved(*index, *side, reaches[*index][*side])).collect();
        let values = training.model(part, measured.file_bytes, &points);
        let mut still = Vec::new();
        for (((index, side, [inside, root_inside]), point), value) in open.into_iter().zip(&points).zip(values) {
            let rise = value.map_or(f64::INFINITY, |value| cost(point, &value) - least);
            let reach = &mut reaches[index][side];
            if rise < LIKELY && *reach < DETERMINED {
                still.push((index, side, [*reach, rise.max(0.0).sqrt()]));
                *reach *= 2.0;
            } else if inside > 0.0 && rise.is_finite() {
                // A rise grows with the square of the distance.
                let share = (LIKELY.sqrt() - root_inside) / (rise.sqrt() - root_inside).max(f64::MIN_POSITIVE);
                *reach = inside + (*reach - inside) * share.clamp(0.0, 1.0);
            }
        }
        open = still;
    }
    reaches
}

#[cfg(test)]
mod tests {
    use emmc_card::profile::Profile;
    use emmc_regs::CardKind;

    use super::*;
    use crate::cell::{Cell, Column};
    use crate::known::Known;
    use crate::least_squares::Minimum;
    use crate::part::{Part, firmwares, index};
    use crate::prior::priors;
    use crate::simulate::{Plan, SimulateError};
    use nalgebra::DMatrix;

    /// Slopes that hold at the end of an interval leave it; where the simulator is flat, the interval grows.
    #[test]
    fn an_interval_grows_over_a_flat_place() {
        let cells: Vec<Cell> = (0..4)
            .flat_map(|row| [Column::Write, Column::Rewrite].map(|column| Cell { column, kib: 4 << row, us: 500.0 }))
            .collect();
        let measured = Measured { cells, file_bytes: 1 << 20, ..Measured::default() };
        let known = Known::default();
        let part = Part::start(CardKind::Emmc, firmwares()[0], false, (&measured.cells, &known));
        let overhead = part.values[index::WRITE];
        let mut jacobian = DMatrix::zeros(measured.cells.len(), part.values.len());
        jacobian.column_mut(index::WRITE).fill(1.0);
        let at = part.values.iter().map(|value| value.ln()).collect();
        let priors = priors(&part, &[], None);
        let fitted = Fitted { part, minimum: Minimum { at, jacobian, cost: 0.0 }, priors, scatter: None };
        let reach = |rises: bool| {
            let simulator = |profiles: &[Profile], plan: &Plan| -> Vec<Result<Vec<Cell>, SimulateError>> {
                let times = |profile: &Profile| {
                    let factor = if rises { profile.controller.write_overhead_us / overhead } else { 1.0 };
                    plan.measured.cells.iter().map(|cell| Cell { us: 500.0 * factor, ..*cell }).collect()
                };
                profiles.iter().map(|profile| Ok(times(profile))).collect()
            };
            let given = Given { others: Vec::new(), known: &known, simulator: &simulator };
            intervals(&fitted, &measured, &given, SCALE)[index::WRITE]
        };
        let by_slopes = QUANTILE * SCALE / (measured.cells.len() as f64).sqrt();
        // Soft L1 of eight errors is 1.92 in all where each is 0.733 of its scale.
        for end in reach(true) {
            assert!((end / (0.733 * SCALE) - 1.0).abs() < 0.03, "{end}");
        }
        for end in reach(false) {
            assert!(end > 7.0 * by_slopes, "{end} {by_slopes}");
        }
    }
}
