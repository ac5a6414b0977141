//! The search: firmware by firmware, then the continuous parameters, over the simulator.

use emmc_card::profile::Profile;
use emmc_regs::CardKind;
use nalgebra::DMatrix;

use crate::least_squares::{Minimum, SCALE, Unknown, minimise};
use crate::part::{Firmware, PARAMETERS, Part, firmwares};
use crate::simulate::SimulateError;
use crate::table::{Cell, Column, time};

/// Simulates the cells of profiles, side by side if it can.
/// Arguments: profiles, records in KiB, the size of the file in bytes.
pub type Simulator<'a> = dyn Fn(&[Profile], &[u64], u64) -> Vec<Result<Vec<Cell>, SimulateError>> + 'a;

/// The same with files of one size.
pub(crate) type Tables<'a> = dyn Fn(&[Profile], &[u64]) -> Vec<Result<Vec<Cell>, SimulateError>> + 'a;

/// The standard deviation of a parameter's logarithm that nothing but the physics bounds: a factor of 4.5.
const PRIOR_DEVIATION: f64 = 1.5;
/// Residual evaluations for each parameter.
const PATIENCE: usize = 1;

/// A fitted part.
#[derive(Clone, Debug)]
pub(crate) struct Fitted {
    pub(crate) part: Part,
    pub(crate) minimum: Minimum,
}

/// Fits a part to cells; of the given firmwares, the one with the least cost.
pub(crate) fn search(kind: CardKind, training: &[Cell], tried: &[Firmware], simulator: &Tables<'_>) -> Option<Fitted> {
    let mut records: Vec<u64> = training.iter().map(|cell| cell.kib).collect();
    records.dedup();
    let wanted: Vec<(Column, u64)> = training.iter().map(|cell| (cell.column, cell.kib)).collect();
    let observed: Vec<f64> = training.iter().map(|cell| cell.us.ln()).collect();
    let from = |(firmware, commits): (&Firmware, bool)| {
        let start = Part::start(kind, *firmware, commits, training);
        let logarithms: Vec<f64> = start.values.iter().map(|value| value.ln()).collect();
        let unknowns: Vec<Unknown> = logarithms
            .iter()
            .enumerate()
            .map(|(index, &start)| Unknown {
                start,
                centre: start,
                deviation: PRIOR_DEVIATION,
                step: PARAMETERS[index].step,
            })
            .collect();
        let mut model = |points: &[Vec<f64>]| {
            let profiles: Vec<Option<Profile>> = points.iter().map(|point| start.at(point).profile().ok()).collect();
            let good: Vec<Profile> = profiles.iter().flatten().cloned().collect();
            let mut simulated = simulator(&good, &records).into_iter();
            let each = profiles.iter().map(|profile| {
                profile.as_ref()?;
                let cells = simulated.next()?.ok()?;
                wanted.iter().map(|(column, kib)| time(&cells, *column, *kib).map(f64::ln)).collect()
            });
            each.collect()
        };
        let minimum = minimise(&unknowns, &observed, PATIENCE, &mut model);
        Fitted { part: start.at(&minimum.at), minimum }
    };
    // An eMMC of the template has no buffer to commit from.
    let commits: &[bool] = if kind == CardKind::Sd { &[false, true] } else { &[false] };
    let all = tried.iter().flat_map(|firmware| commits.iter().map(move |commits| (firmware, *commits))).map(from);
    all.min_by(|a, b| a.minimum.cost.total_cmp(&b.minimum.cost))
}

/// The firmwares that the cells leave open.
pub(crate) fn plausible(cells: &[Cell]) -> Vec<Firmware> {
    let ratio = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a / b);
    let random = ratio(time(cells, Column::RandomWrite, 16), time(cells, Column::Rewrite, 16));
    let first = ratio(time(cells, Column::Write, 1), time(cells, Column::Write, 4));
    let known = random.is_some() || first.is_some();
    let collapses = random.is_some_and(|ratio| ratio > 8.0) || first.is_some_and(|ratio| ratio > 2.0);
    let fits = |firmware: &Firmware| !known || (firmware.threshold_kib == 8) == collapses;
    firmwares().into_iter().filter(fits).collect()
}

impl Fitted {
    /// The covariance of the logarithms: the errors' own scale, the slopes at the minimum, and the prior.
    pub(crate) fn covariance(&self, scale: f64) -> Option<DMatrix<f64>> {
        let slopes = &self.minimum.jacobian;
        let mut information = slopes.transpose() * slopes / (scale * scale);
        for index in 0..information.nrows() {
            information[(index, index)] += 1.0 / (PRIOR_DEVIATION * PRIOR_DEVIATION);
        }
        information.try_inverse()
    }

    /// The scale of the errors, from their median, at least a hundredth; [`SCALE`] if there are fewer cells than
    /// parameters.
    pub(crate) fn scale(&self, errors: &[f64]) -> f64 {
        if errors.len() <= PARAMETERS.len() {
            return SCALE;
        }
        let spare = errors.len() as f64 / (errors.len() - PARAMETERS.len()) as f64;
        let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        (1.4826 * sizes[sizes.len() / 2] * spare.sqrt()).max(0.01)
    }
}
