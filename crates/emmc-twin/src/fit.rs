//! The search: firmware by firmware, then the continuous parameters, over the simulator.

use emmc_card::profile::Profile;
use emmc_regs::CardKind;
use nalgebra::DMatrix;

use crate::least_squares::{Minimum, Prior, SCALE, Unknown, minimise};
use crate::part::{Firmware, LOGS_MIB, PAGES_KIB, PARAMETERS, Parameter, Part, firmwares};
use crate::prior::priors;
use crate::simulate::SimulateError;
use crate::table::{Cell, Column, time};

/// Simulates the cells of profiles, side by side if it can.
/// Arguments: profiles, records in KiB, the size of the file in bytes.
pub type Simulator<'a> = dyn Fn(&[Profile], &[u64], u64) -> Vec<Result<Vec<Cell>, SimulateError>> + 'a;

/// Files of the first part of a search are at most this large, so that a simulation is short. Unit: bytes.
const SMALL_FILE_BYTES: u64 = 32 << 20;
/// Simulations from each start: the slopes twice, and some steps.
const FIRST: usize = 60;
/// Simulations from the best start, with each size of the log, then of pages.
const OTHERS: usize = 45;
/// Simulations from the best of them.
const LAST: usize = 200;

/// A fitted part.
#[derive(Clone, Debug)]
pub(crate) struct Fitted {
    pub(crate) part: Part,
    pub(crate) minimum: Minimum,
    priors: Vec<Prior>,
}

/// Cells to which a part is fitted.
struct Training<'a> {
    cells: &'a [Cell],
    records: Vec<u64>,
    /// Logarithms of their times.
    observed: Vec<f64>,
    file_bytes: u64,
    /// Other parts.
    others: &'a [Part],
    simulator: &'a Simulator<'a>,
}

impl Training<'_> {
    /// The best part near a start, with about `evaluations` simulations on files of at most `file_bytes`.
    fn improve(&self, start: &Part, file_bytes: u64, evaluations: usize) -> Fitted {
        let largest = self.cells.iter().map(|cell| cell.kib << 10).max().unwrap_or(0);
        let file_bytes = self.file_bytes.min(file_bytes.max(largest));
        let share = file_bytes as f64 / self.file_bytes as f64;
        let unknown = |(parameter, value): (&Parameter, &f64)| Unknown { start: value.ln(), step: parameter.step };
        let unknowns: Vec<Unknown> = PARAMETERS.iter().zip(&start.values).map(unknown).collect();
        let mut model = |points: &[Vec<f64>]| {
            let profiles: Vec<Option<Profile>> =
                points.iter().map(|point| start.at(point).with_share_of_log(share).ok()).collect();
            let good: Vec<Profile> = profiles.iter().flatten().cloned().collect();
            let mut simulated = (self.simulator)(&good, &self.records, file_bytes).into_iter();
            let each = profiles.iter().map(|profile| {
                profile.as_ref()?;
                let simulated = simulated.next()?.ok()?;
                self.cells.iter().map(|cell| time(&simulated, cell.column, cell.kib).map(f64::ln)).collect()
            });
            each.collect()
        };
        let priors = priors(start, self.others);
        let minimum = minimise((&unknowns, &priors), &self.observed, evaluations, &mut model);
        Fitted { part: start.at(&minimum.at), minimum, priors }
    }
}

/// Fits a part to cells. Of the firmwares, the starts and the sizes of the log, those with the least cost.
pub(crate) fn search(
    kind: CardKind,
    cells: &[Cell],
    file_bytes: u64,
    (others, simulator): (&[Part], &Simulator<'_>),
) -> Option<Fitted> {
    let mut records: Vec<u64> = cells.iter().map(|cell| cell.kib).collect();
    records.dedup();
    let observed = cells.iter().map(|cell| cell.us.ln()).collect();
    let training = Training { cells, records, observed, file_bytes, others, simulator };
    let best = |found: &mut dyn Iterator<Item = Fitted>| found.min_by(|a, b| a.minimum.cost.total_cmp(&b.minimum.cost));
    // An eMMC of the template has no buffer to commit from.
    let commits: &[bool] = if kind == CardKind::Sd { &[false, true] } else { &[false] };
    let firmwares = plausible(cells);
    let starts = firmwares.iter().flat_map(|firmware| commits.iter().map(move |commits| (firmware, *commits)));
    let mut first = starts.map(|(firmware, commits)| {
        training.improve(&Part::start(kind, *firmware, commits, cells), SMALL_FILE_BYTES, FIRST)
    });
    let part = best(&mut first)?.part;
    // Random writes that copy megabytes take seconds to simulate on the whole file.
    let file_bytes = if part.merges_megabytes() { file_bytes.min(SMALL_FILE_BYTES) } else { file_bytes };
    let mut logs = LOGS_MIB.into_iter().map(|mib| training.improve(&part.clone().with_log(mib), file_bytes, OTHERS));
    let with_log = best(&mut logs)?;
    let part = &with_log.part;
    let others = PAGES_KIB[1..].iter().map(|kib| part.clone().with_pages(*kib));
    let others = others.chain([part.clone().merging_each_write()]);
    let mut others = others.map(|part| training.improve(&part, file_bytes, OTHERS)).chain([with_log.clone()]);
    let part = best(&mut others)?.part;
    Some(training.improve(&part, file_bytes, LAST))
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
        for prior in &self.priors {
            prior.add_to(&mut information);
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
