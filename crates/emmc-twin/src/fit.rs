//! The search over the simulator: the best of the forms that the cells allow.

use emmc_card::profile::Profile;
use emmc_regs::CardKind;
use nalgebra::DMatrix;

use crate::cell::{Cell, Column, records, time};
use crate::ensemble::{ERROR, Searched};
use crate::forms::search_pages;
use crate::known::Known;
use crate::least_squares::{Minimum, Observed, Prior, Reach, SCALE, Unknown, costs, minimise};
use crate::measured::Measured;
use crate::part::{Parameter, Part, READS, rate};
use crate::prior::priors;
use crate::segment;
use crate::simulate::{Plan, SimulateError};

/// Simulates plans on profiles, side by side if it can.
pub type Simulator<'a> = dyn Fn(&[Profile], &Plan) -> Vec<Result<Vec<Cell>, SimulateError>> + 'a;

/// Simulations from each start of a card that maps allocation units.
const FIRST_OF_UNITS: usize = 14;
/// Simulations from the best starts of such a card: slopes, steps and scans of the surroundings.
const LAST: usize = 320;
/// Starts of such a card that are searched to the end.
const BEST_OF_UNITS: usize = 4;

/// A fitted part.
#[derive(Clone, Debug)]
pub(crate) struct Fitted {
    pub(crate) part: Part,
    pub(crate) minimum: Minimum,
    pub(crate) priors: Vec<Prior>,
    /// Of the logarithms, as an ensemble has it.
    pub(crate) scatter: Option<DMatrix<f64>>,
}

/// Cells to which a part is fitted.
pub(crate) struct Training<'a> {
    pub(crate) measured: Measured,
    /// Logarithms of their times, less what searches leave out.
    pub(crate) observed: Vec<f64>,
    /// Whether they are reads.
    is_read: Vec<bool>,
    /// The scale of their errors, as logarithms.
    scale: f64,
    given: &'a Given<'a>,
}

/// What a search has beside the cells.
pub(crate) struct Given<'a> {
    /// Other parts.
    pub(crate) others: Vec<Part>,
    pub(crate) known: &'a Known,
    pub(crate) simulator: &'a Simulator<'a>,
}

impl<'a> Training<'a> {
    pub(crate) fn new(measured: Measured, given: &'a Given<'a>) -> Self {
        let observed = measured.cells.iter().map(|cell| cell.us.ln()).collect();
        let is_read = measured.cells.iter().map(|cell| cell.column.is_read()).collect();
        Self { measured, observed, is_read, scale: SCALE, given }
    }

    /// The same with the scale of the errors that a part has in the whole suite, at most [`SCALE`]. Where a part
    /// matches well, the cells say more than the priors.
    pub(crate) fn scaled_at(mut self, part: &Part) -> Self {
        if let Some(simulated) = self.whole_suite(part) {
            let cells = self.measured.cells.iter();
            let errors = cells.filter_map(|cell| Some(time(&simulated, cell.column, cell.kib)?.ln() - cell.us.ln()));
            self.scale = scale(&errors.collect::<Vec<f64>>(), part.values.len()).min(SCALE);
        }
        self
    }

    /// The same, corrected by what short passes on files of at most `file_bytes` leave out at a point: a search then
    /// agrees with the whole suite there, and only its slopes are those of what is short.
    ///
    /// Unchanged where the point has no times.
    pub(crate) fn corrected_at(&self, part: &Part, file_bytes: u64) -> Self {
        let given = self.given;
        let mut corrected = Self { scale: self.scale, ..Self::new(self.measured.clone(), given) };
        // Other suites are never cut short.
        let tables = Self::new(self.measured.iozone(), given);
        let at: Vec<f64> = part.values.iter().map(|value| value.ln()).collect();
        let short = tables.model(part, file_bytes, std::slice::from_ref(&at)).swap_remove(0);
        let Some((short, whole)) = short.zip(tables.whole_suite(part)) else { return corrected };
        for (cell, short) in tables.measured.cells.iter().zip(short) {
            let place = self.measured.cells.iter().position(|one| (one.column, one.kib) == (cell.column, cell.kib));
            if let Some((place, whole)) = place.zip(time(&whole, cell.column, cell.kib)) {
                corrected.observed[place] -= whole.ln() - short;
            }
        }
        corrected
    }

    /// The cells of a part, with nothing cut short.
    fn whole_suite(&self, part: &Part) -> Option<Vec<Cell>> {
        let plan = Plan { measured: self.measured.clone(), is_search: false };
        (self.given.simulator)(&[part.profile().ok()?], &plan).swap_remove(0).ok()
    }

    /// What a fitted part costs in the whole suite, by the scale of these cells; infinite if it cannot be simulated.
    fn cost_of(&self, fitted: &Fitted) -> f64 {
        let cost = |simulated: Vec<Cell>| {
            let cells = self.measured.cells.iter();
            let values =
                cells.map(|cell| time(&simulated, cell.column, cell.kib).map(f64::ln)).collect::<Option<Vec<_>>>()?;
            Some(costs((&fitted.minimum.at, &values), self.observed(), &fitted.priors).iter().sum())
        };
        self.whole_suite(&fitted.part).and_then(cost).unwrap_or(f64::INFINITY)
    }

    /// Logarithms of the times of parts like `start`, on files of at most `file_bytes`.
    pub(crate) fn model(&self, start: &Part, file_bytes: u64, points: &[Vec<f64>]) -> Vec<Option<Vec<f64>>> {
        let cells = &self.measured.cells;
        let largest = self.measured.repeated_records().last().map_or(0, |kib| kib << 10);
        let file_bytes = self.measured.file_bytes.min(file_bytes.max(largest));
        let share = file_bytes as f64 / self.measured.file_bytes.max(1) as f64;
        let plan = Plan { measured: Measured { file_bytes, ..self.measured.clone() }, is_search: true };
        let parts: Vec<Part> = points.iter().map(|point| start.at(point)).collect();
        let logarithms = |simulated: Option<Vec<Cell>>| {
            let simulated = simulated?;
            cells.iter().map(|cell| time(&simulated, cell.column, cell.kib).map(f64::ln)).collect()
        };
        simulated(&parts, share, &plan, self.given.simulator).into_iter().map(logarithms).collect()
    }

    /// The best part near a start, with about `evaluations` simulations on files of at most `file_bytes`; `slopes` of a
    /// part like it.
    pub(crate) fn improve(
        &self,
        start: &Part,
        file_bytes: u64,
        (evaluations, slopes): (usize, Option<&DMatrix<f64>>),
    ) -> Fitted {
        let Searched { unknowns, priors, .. } = self.searched(start);
        let mut model = |points: &[Vec<f64>]| self.model(start, file_bytes, points);
        let minimum = minimise((&unknowns, &priors), self.observed(), (evaluations, slopes), &mut model);
        Fitted { part: start.at(&minimum.at), minimum, priors, scatter: None }
    }

    /// The unknowns of parts like `start`, and what is known of them.
    pub(crate) fn searched(&self, start: &Part) -> Searched {
        let unknown = |(parameter, value): (&Parameter, &f64)| {
            let is_of = |is_read: &bool| match parameter.reach {
                Reach::All => true,
                Reach::Marked => *is_read,
                Reach::Unmarked => !is_read,
            };
            let is_used = start.uses(parameter, &self.measured.cells) && self.is_read.iter().any(is_of);
            let step = if is_used { parameter.step } else { 0.0 };
            Unknown { start: value.ln(), step, reach: parameter.reach }
        };
        let parameters = start.parameters();
        Searched {
            unknowns: parameters.iter().zip(&start.values).map(unknown).collect(),
            priors: priors(start, &self.given.others, rate(&self.measured.cells, &READS)),
            bounds: parameters.iter().map(|parameter| [parameter.low.ln(), parameter.high.ln()]).collect(),
        }
    }

    /// Only the reads; nothing if there are none.
    pub(crate) fn reads(&self) -> Option<Self> {
        let reads: Vec<Cell> = self.measured.cells.iter().copied().filter(|cell| cell.column.is_read()).collect();
        let scale = self.scale;
        (!reads.is_empty()).then(|| Self { scale, ..Self::new(self.measured.with(reads), self.given) })
    }

    pub(crate) fn observed(&self) -> Observed<'_> {
        Observed { values: &self.observed, is_marked: &self.is_read, scale: self.scale }
    }
}

/// The cells of parts whose log is `share` of its size, as the files of the plan are; but the whole log where its size
/// is what is measured. Nothing where a part makes no card.
pub(crate) fn simulated(parts: &[Part], share: f64, plan: &Plan, simulator: &Simulator<'_>) -> Vec<Option<Vec<Cell>>> {
    let each = |share: f64, plan: &Plan| -> Vec<Option<Vec<Cell>>> {
        let profiles: Vec<Option<Profile>> = parts.iter().map(|part| part.with_share_of_log(share).ok()).collect();
        let good: Vec<Profile> = profiles.iter().flatten().cloned().collect();
        let mut simulated = simulator(&good, plan).into_iter();
        profiles.iter().map(|profile| profile.as_ref().and_then(|_| simulated.next()?.ok())).collect()
    };
    let (bursts, others): (Vec<Cell>, Vec<Cell>) =
        plan.measured.cells.iter().partition(|cell| cell.column == Column::Burst);
    if bursts.is_empty() {
        return each(share, plan);
    }
    let with = |cells| Plan { measured: plan.measured.with(cells), ..plan.clone() };
    let (others, bursts) = (each(share, &with(others)), each(1.0, &with(bursts)));
    others.into_iter().zip(bursts).map(|(others, bursts)| Some([others?, bursts?].concat())).collect()
}

pub(crate) fn best(found: impl IntoIterator<Item = Fitted>) -> Option<Fitted> {
    found.into_iter().min_by(|a, b| a.minimum.cost.total_cmp(&b.minimum.cost))
}

/// Fits a part to cells: the form, the firmware, the start and the log with the least cost.
pub(crate) fn search(kind: CardKind, measured: &Measured, with: &Given<'_>) -> Option<Fitted> {
    let pages = (!records(&measured.cells).is_empty()).then(|| search_pages(kind, measured, with)).flatten();
    let units = search_units(kind, measured, with);
    // Each search ends with its own scale of the errors.
    let training = Training::new(measured.clone(), with);
    match (pages, units) {
        (Some(pages), Some(units)) => {
            [pages, units].into_iter().min_by(|a, b| training.cost_of(a).total_cmp(&training.cost_of(b)))
        }
        (pages, units) => pages.or(units),
    }
}

/// The best card that maps allocation units; nothing if the cells do not show how many are open.
fn search_units(kind: CardKind, measured: &Measured, with: &Given<'_>) -> Option<Fitted> {
    let training = Training::new(measured.clone(), with);
    let starts = segment::starts(kind, &measured.cells, measured.unit_bytes).into_iter();
    let starts: Vec<Part> = starts.map(|start| start.knowing(with.known)).collect();
    let mut first: Vec<Fitted> =
        starts.iter().map(|start| training.improve(start, measured.file_bytes, (FIRST_OF_UNITS, None))).collect();
    first.sort_by(|a, b| a.minimum.cost.total_cmp(&b.minimum.cost));
    first.truncate(BEST_OF_UNITS);
    let last =
        |start: &Fitted| training.improve(&start.part, measured.file_bytes, (LAST, Some(&start.minimum.jacobian)));
    best(first.iter().map(last))
}

impl Fitted {
    /// The covariance of the logarithms: the errors' own scale, the slopes at the minimum, and the prior.
    pub(crate) fn covariance(&self, scale: f64) -> Option<DMatrix<f64>> {
        if let Some(scatter) = &self.scatter {
            return Some(scatter * (scale / ERROR).max(1.0).powi(2));
        }
        let slopes = &self.minimum.jacobian;
        let mut information = slopes.transpose() * slopes / (scale * scale);
        for prior in &self.priors {
            prior.add_to(&mut information);
        }
        information.try_inverse()
    }
}

/// The scale of the errors around a fit of this number of parameters, from their median, at least a hundredth;
/// [`SCALE`] if there are fewer cells than parameters.
pub(crate) fn scale(errors: &[f64], parameters: usize) -> f64 {
    if errors.len() <= parameters {
        return SCALE;
    }
    let spare = errors.len() as f64 / (errors.len() - parameters) as f64;
    let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    (1.4826 * sizes[sizes.len() / 2] * spare.sqrt()).max(0.01)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::Known;
    use crate::part::firmwares;
    use crate::simulate::simulate;

    /// Each search ends with the scale of its own part: what it found costs more where the part matches better.
    #[test]
    fn searches_of_other_forms_are_compared_by_one_scale() {
        let cells = Column::IOZONE.map(|column| Cell { column, kib: 4, us: 100.0 });
        let known = Known::default();
        let part = Part::start(CardKind::Emmc, firmwares()[0], false, (&cells, &known));
        let fitted = |part: Part, cost: f64| {
            let at = part.values.iter().map(|value| value.ln()).collect();
            let jacobian = DMatrix::zeros(cells.len(), part.values.len());
            let minimum = Minimum { at, jacobian, cost };
            Fitted { part, minimum, priors: Vec::new(), scatter: None }
        };
        // One per cent and four per cent too slow.
        let near = fitted(part.clone(), 100.0);
        let far = fitted(part.with_pages(8), 10.0);
        let each = |profiles: &[Profile], _: &Plan| {
            let of = |profile: &Profile| {
                let share = if profile.nand.page_bytes == 8192 { 1.04 } else { 1.01 };
                Ok(cells.iter().map(|cell| Cell { us: cell.us * share, ..*cell }).collect())
            };
            profiles.iter().map(of).collect()
        };
        let given = Given { others: Vec::new(), known: &known, simulator: &each };
        let training = Training::new(Measured { cells: cells.to_vec(), ..Measured::default() }, &given);
        let [near, far] = [near, far].map(|fitted| training.cost_of(&fitted));
        assert!(near < 0.2 * far, "{near} {far}");
    }

    /// A search then misses the cells by as much as the whole suite does; what is never cut short stays as it was.
    #[test]
    fn short_passes_are_corrected_by_what_they_leave_out() {
        let cell = |column, kib| Cell { column, kib, us: 300.0 };
        let mut cells: Vec<Cell> =
            [4, 64, 512].into_iter().flat_map(|kib| Column::IOZONE.map(|column| cell(column, kib))).collect();
        let known = Known::default();
        let part = Part::start(CardKind::Emmc, firmwares()[0], false, (&cells, &known));
        let depth = crate::cell::Requests {
            is_aged: false,
            is_write: false,
            is_random: true,
            depth: 1,
            figure: crate::cell::Figure::Rate,
        };
        cells.insert(0, cell(Column::Requests(depth), 4));
        let each = |profiles: &[Profile], plan: &Plan| profiles.iter().map(|one| simulate(one, plan)).collect();
        let given = Given { others: Vec::new(), known: &known, simulator: &each };
        let measured = Measured { cells, file_bytes: 32 << 20, range_bytes: 16 << 20, ..Measured::default() };
        let training = Training::new(measured.clone(), &given);
        let short_bytes = 8 << 20;
        let corrected = training.corrected_at(&part, short_bytes);
        let at: Vec<f64> = part.values.iter().map(|value| value.ln()).collect();
        let short = training.model(&part, short_bytes, &[at]).swap_remove(0).unwrap();
        let whole = simulate(&part.profile().unwrap(), &Plan { measured: measured.clone(), is_search: false }).unwrap();
        let mut left_out = 0;
        for (place, cell) in measured.cells.iter().enumerate() {
            let missed = time(&whole, cell.column, cell.kib).unwrap().ln() - training.observed[place];
            assert!((short[place] - corrected.observed[place] - missed).abs() < 1e-9, "{cell:?}");
            left_out += usize::from((corrected.observed[place] - training.observed[place]).abs() > 0.001);
        }
        assert!(left_out > 2, "{left_out}");
        assert_eq!(corrected.observed[0], training.observed[0]);
    }
}
