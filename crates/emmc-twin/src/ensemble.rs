//! An ensemble of parts, moved from what is known before any data to what the data leaves possible.
//!
//! Each member is a set of unknowns, drawn from the priors. All are simulated; how their values scatter with the
//! unknowns says, over the whole width of the ensemble, how each unknown changes each observation. With that the
//! members move towards the observations, each towards its own draw of their errors. This is done several times with
//! errors that are larger at first and count once in all (ensemble smoother with multiple data assimilation, Emerick
//! and Reynolds 2013). A simulation that changes in steps has no useful slope at a point; over an ensemble it has one.
//! What is left of the scatter is the uncertainty, flat directions and pairs that stand in for one another included.

use emmc_units::Rng;
use nalgebra::{DMatrix, DVector};

use crate::least_squares::{Model, Observed, Prior, Reach, Unknown, costs};

/// Standard deviation of the logarithm of an observation.
pub(crate) const ERROR: f64 = 0.03;
/// A logarithm changes at most this much in one round.
const LONGEST: f64 = 1.5;
/// An observation that all members miss by more than this many times the median miss counts less.
const OUTLYING: f64 = 4.0;
/// The largest standard deviation of a logarithm of the first members: a factor of 2.7.
const WIDEST: f64 = 1.0;
/// Assimilations of which an ensemble around a point has the last ones.
const ROUNDS: u32 = 8;
/// How much the observations have counted for the members of an ensemble around a point.
const KEPT: f64 = 0.25;
/// The variance of an unknown that does not move, rounding included.
const STILL: f64 = 1e-12;

/// What is searched.
#[derive(Clone, Debug)]
pub(crate) struct Searched {
    /// Where each begins; those without a step stay there.
    pub(crate) unknowns: Vec<Unknown>,
    /// One for each unknown, in their order: an anchor comes before those in proportion to it.
    pub(crate) priors: Vec<Prior>,
    /// Of the logarithms.
    pub(crate) bounds: Vec<[f64; 2]>,
}

/// Members, and what the model gave for them.
#[derive(Clone, Debug)]
pub(crate) struct Ensemble {
    members: Vec<Vec<f64>>,
    /// The assimilations that they have had, and how many there are until the observations have counted once. The
    /// errors are doubled for each one before the last, in squares.
    rounds: (u32, u32),
    rng: Rng,
    /// Those of the last simulation, a column each, and their values: a row for each observation.
    simulated: Option<(DMatrix<f64>, DMatrix<f64>)>,
}

impl Ensemble {
    /// As the priors have it, before any of `rounds` assimilations.
    pub(crate) fn drawn(searched: &Searched, count: usize, rounds: u32) -> Self {
        let mut rng = Rng::new(1);
        let members = (0..count).map(|_| drawn(searched, &mut rng)).collect();
        Self { members, rounds: (0, rounds), rng, simulated: None }
    }

    /// Other members around where the unknowns begin, as if the observations had counted [`KEPT`] as much. The last
    /// `again` of [`ROUNDS`] assimilations are left: in these they count for the rest.
    pub(crate) fn around(&self, searched: &Searched, count: usize, again: u32) -> Option<Self> {
        let free: Vec<usize> =
            (0..searched.unknowns.len()).filter(|index| searched.unknowns[*index].step > 0.0).collect();
        let mut known = DMatrix::zeros(searched.unknowns.len(), searched.unknowns.len());
        for prior in &searched.priors {
            Prior { deviation: prior.deviation.min(WIDEST), ..*prior }.add_to(&mut known);
        }
        let known = known.select_rows(&free).select_columns(&free);
        let mut own = self.covariance().select_rows(&free).select_columns(&free);
        // Those that stayed where they were until now: only the priors speak of them.
        for index in (0..free.len()).filter(|index| own[(*index, *index)] < STILL).collect::<Vec<usize>>() {
            own[(index, index)] = 1.0 / known[(index, index)];
        }
        let own = own.try_inverse()?;
        let root = (own * KEPT + known * (1.0 - KEPT)).try_inverse()?.cholesky()?.unpack();
        let mut rng = self.rng.clone();
        let members = (0..count).map(|_| {
            let step = &root * DVector::from_fn(free.len(), |_, _| normal(&mut rng));
            let mut at: Vec<f64> = searched.unknowns.iter().map(|unknown| unknown.start).collect();
            for (index, step) in free.iter().zip(step.iter()) {
                at[*index] = within(at[*index] + step, searched.bounds[*index]);
            }
            at
        });
        Some(Self { members: members.collect(), rounds: (ROUNDS - again, ROUNDS), rng, simulated: None })
    }

    /// The mean of each unknown.
    pub(crate) fn mean(&self) -> Vec<f64> {
        matrix(&self.members).column_mean().iter().copied().collect()
    }

    /// The covariance of the unknowns.
    pub(crate) fn covariance(&self) -> DMatrix<f64> {
        let differences = centred(&matrix(&self.members));
        &differences * differences.transpose() / (self.members.len() as f64 - 1.0)
    }

    /// The mean square of the differences of all members from a point, pairs included.
    pub(crate) fn scatter(ensembles: &[&Self], at: &[f64]) -> DMatrix<f64> {
        let members: Vec<Vec<f64>> =
            ensembles.iter().flat_map(|one| &one.members).map(|member| difference(member, at)).collect();
        let differences = matrix(&members);
        &differences * differences.transpose() / members.len() as f64
    }

    /// The derivative of each observation, a row each, by each unknown: linear regression over the members that were
    /// simulated last.
    pub(crate) fn slopes(&self) -> Option<DMatrix<f64>> {
        let (members, values) = self.simulated.as_ref()?;
        let (members, values) = (centred(members), centred(values));
        let mut squares = &members * members.transpose();
        // Those that stay where they are.
        for index in 0..squares.nrows() {
            squares[(index, index)] = squares[(index, index)] * (1.0 + 1e-6) + STILL;
        }
        Some(values * members.transpose() * squares.try_inverse()?)
    }

    /// The median over the members of half the sum of their squared errors, as they were simulated last.
    pub(crate) fn cost(&self, observed: Observed<'_>) -> f64 {
        let Some((_, values)) = &self.simulated else { return f64::INFINITY };
        let cost = |column: nalgebra::DVectorView<'_, f64>| costs((&[], column.as_slice()), observed, &[])[0];
        let mut costs: Vec<f64> = values.column_iter().map(cost).collect();
        costs.sort_by(f64::total_cmp);
        costs[costs.len() / 2]
    }

    /// Moves the members towards the observations by the next `count` assimilations.
    ///
    /// Nothing if the model has no value for any member.
    pub(crate) fn assimilate(
        &mut self,
        searched: &Searched,
        observed: Observed<'_>,
        count: u32,
        model: &mut Model<'_>,
    ) -> Option<()> {
        let whole: f64 = (0..self.rounds.1).map(|round| f64::from(1_u32 << round)).sum();
        let (first, all) = self.rounds;
        for round in first..(first + count).min(all) {
            let values = self.evaluated(model)?;
            let variance = ERROR * ERROR * whole / f64::from(1_u32 << round);
            self.simulated = Some((matrix(&self.members), values.clone()));
            self.update(searched, &values, observed, variance)?;
            self.rounds.0 = round + 1;
        }
        Some(())
    }

    /// The values of the members. One without a value goes to where another one is.
    fn evaluated(&mut self, model: &mut Model<'_>) -> Option<DMatrix<f64>> {
        let found = model(&self.members);
        let good: Vec<usize> = (0..found.len()).filter(|index| found[*index].is_some()).collect();
        let mut next = good.iter().cycle();
        let mut values = Vec::with_capacity(found.len());
        for index in 0..found.len() {
            let from = if found[index].is_some() { index } else { *next.next()? };
            self.members[index] = self.members[from].clone();
            values.push(found[from].clone()?);
        }
        Some(matrix(&values))
    }

    /// One assimilation. An unknown that changes only some observations is moved by those alone.
    fn update(
        &mut self,
        searched: &Searched,
        values: &DMatrix<f64>,
        observed: Observed<'_>,
        variance: f64,
    ) -> Option<()> {
        let mean = values.column_mean();
        let missed: Vec<f64> =
            observed.values.iter().zip(mean.iter()).map(|(observed, mean)| (observed - mean).abs()).collect();
        let mut sorted = missed.clone();
        sorted.sort_by(f64::total_cmp);
        let usual = sorted[sorted.len() / 2].max(ERROR);
        let variances: Vec<f64> =
            missed.iter().map(|missed| variance * (missed / (OUTLYING * usual)).max(1.0)).collect();
        let innovations = DMatrix::from_fn(missed.len(), self.members.len(), |row, member| {
            observed.values[row] + variances[row].sqrt() * normal(&mut self.rng) - values[(row, member)]
        });
        let (spread, scatter) = (centred(&matrix(&self.members)), centred(values));
        let count = self.members.len() as f64 - 1.0;
        for reach in [Reach::All, Reach::Marked, Reach::Unmarked] {
            let is_in = |row: &usize| reach == Reach::All || observed.is_marked[*row] == (reach == Reach::Marked);
            let rows: Vec<usize> = (0..missed.len()).filter(is_in).collect();
            let is_moved = |index: &usize| {
                let unknown = &searched.unknowns[*index];
                unknown.reach == reach && unknown.step > 0.0
            };
            let indices: Vec<usize> = (0..searched.unknowns.len()).filter(is_moved).collect();
            if rows.is_empty() || indices.is_empty() {
                continue;
            }
            let scatter = scatter.select_rows(&rows);
            let mut own = &scatter * scatter.transpose() / count;
            for (place, row) in rows.iter().enumerate() {
                own[(place, place)] += variances[*row];
            }
            let gain = own.cholesky()?.solve(&innovations.select_rows(&rows));
            let steps = spread.select_rows(&indices) * scatter.transpose() / count * gain;
            for (member, at) in self.members.iter_mut().enumerate() {
                for (place, index) in indices.iter().enumerate() {
                    at[*index] += steps[(place, member)].clamp(-LONGEST, LONGEST);
                }
            }
            // Slopes are those of a regression: where members are few, it explains some of the scatter by accident.
            let widen = (count / (count - indices.len() as f64).max(1.0)).sqrt();
            for index in indices {
                let mean = self.members.iter().map(|at| at[index]).sum::<f64>() / self.members.len() as f64;
                for at in &mut self.members {
                    at[index] = within(mean + widen * (at[index] - mean), searched.bounds[index]);
                }
            }
        }
        Some(())
    }
}

/// The differences of the columns from their mean.
fn centred(columns: &DMatrix<f64>) -> DMatrix<f64> {
    let mean = columns.column_mean();
    let mut differences = columns.clone();
    for mut column in differences.column_iter_mut() {
        column -= &mean;
    }
    differences
}

/// Normally distributed, as good as a sum of twelve is.
fn normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.unit_f64()).sum::<f64>() - 6.0
}

/// Reflected at the bounds.
fn within(value: f64, [low, high]: [f64; 2]) -> f64 {
    let reflected = if value < low { 2.0 * low - value } else { value };
    let reflected = if reflected > high { 2.0 * high - reflected } else { reflected };
    reflected.clamp(low, high)
}

/// A member as the priors have it.
fn drawn(searched: &Searched, rng: &mut Rng) -> Vec<f64> {
    let mut at: Vec<f64> = searched.unknowns.iter().map(|unknown| unknown.start).collect();
    for prior in &searched.priors {
        let draw = normal(rng);
        if searched.unknowns[prior.index].step > 0.0 {
            let centre = prior.centre + prior.anchor.map_or(0.0, |anchor| at[anchor]);
            let value = centre + prior.deviation.min(WIDEST) * draw;
            at[prior.index] = within(value, searched.bounds[prior.index]);
        }
    }
    at
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

fn matrix(columns: &[Vec<f64>]) -> DMatrix<f64> {
    let columns: Vec<DVector<f64>> = columns.iter().map(|column| DVector::from_column_slice(column)).collect();
    DMatrix::from_columns(&columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn searched(starts: &[f64]) -> Searched {
        let unknown = |start: &f64| Unknown { start: *start, step: 0.01, reach: Reach::All };
        let prior = |(index, start): (usize, &f64)| Prior { index, anchor: None, centre: *start, deviation: 1.0 };
        Searched {
            unknowns: starts.iter().map(unknown).collect(),
            priors: starts.iter().enumerate().map(prior).collect(),
            bounds: vec![[-5.0, 5.0]; starts.len()],
        }
    }

    /// Where the model is linear, the posterior is known.
    #[test]
    fn a_linear_model_has_its_own_mean_and_covariance() {
        let slopes = DMatrix::from_row_slice(5, 3, &[1., 0., 0., 1., 0.5, 0., 0., 1., 0., 0., 0.8, 0., 1., 1., 0.05]);
        let truth = DVector::from_column_slice(&[0.8, -0.6, 0.9]);
        let observed = &slopes * &truth;
        let mut model = |points: &[Vec<f64>]| -> Vec<Option<Vec<f64>>> {
            let value = |at: &Vec<f64>| &slopes * DVector::from_column_slice(at);
            points.iter().map(|at| Some(value(at).iter().copied().collect())).collect()
        };
        let searched = searched(&[0.0; 3]);
        let seen = Observed { values: observed.as_slice(), is_marked: &[false; 5], scale: ERROR };
        let mut ensemble = Ensemble::drawn(&searched, 400, 8);
        ensemble.assimilate(&searched, seen, 8, &mut model).unwrap();
        let exact = (slopes.transpose() * &slopes / (ERROR * ERROR) + DMatrix::identity(3, 3)).try_inverse().unwrap();
        let mean = &exact * slopes.transpose() * &observed / (ERROR * ERROR);
        let covariance = ensemble.covariance();
        for index in 0..3 {
            let deviation = exact[(index, index)].sqrt();
            assert!((ensemble.mean()[index] - mean[index]).abs() < 0.5 * deviation, "{index}: {:?}", ensemble.mean());
            let ratio = covariance[(index, index)].sqrt() / deviation;
            assert!((0.8..1.25).contains(&ratio), "{index}: {ratio}");
        }
        let found = ensemble.slopes().unwrap();
        assert!((found - &slopes).abs().max() < 0.01);
    }

    /// A staircase has no slope at any point; over an ensemble it has one. Its last step is the uncertainty.
    #[test]
    fn a_model_of_steps_is_followed() {
        let stairs = |at: f64| (at / 0.2).round() * 0.2;
        let mut model = |points: &[Vec<f64>]| -> Vec<Option<Vec<f64>>> {
            points.iter().map(|at| Some(vec![stairs(at[0]), stairs(at[0] + 0.1)])).collect()
        };
        let searched = searched(&[0.0]);
        let seen = Observed { values: &[1.4, 1.4], is_marked: &[false; 2], scale: ERROR };
        let mut ensemble = Ensemble::drawn(&searched, 60, 8);
        ensemble.assimilate(&searched, seen, 8, &mut model).unwrap();
        let (mean, deviation) = (ensemble.mean()[0], ensemble.covariance()[(0, 0)].sqrt());
        assert!((mean - 1.35).abs() < 0.1 && deviation < 0.1, "{mean} {deviation}");
    }

    /// One that changes only the marked observations is not moved by the others, and one without a step not at all.
    #[test]
    fn an_unknown_is_moved_by_what_it_changes() {
        let mut searched = searched(&[0.0; 3]);
        searched.unknowns[0].reach = Reach::Marked;
        searched.unknowns[1].reach = Reach::Unmarked;
        searched.unknowns[2].step = 0.0;
        let mut model = |points: &[Vec<f64>]| -> Vec<Option<Vec<f64>>> {
            points.iter().map(|at| (at[0] < 1.5).then(|| vec![at[0], at[1]])).collect()
        };
        let seen = Observed { values: &[1.0, -1.0], is_marked: &[true, false], scale: ERROR };
        let mut ensemble = Ensemble::drawn(&searched, 80, 8);
        assert!(ensemble.members.iter().any(|at| at[0] > 1.5), "a member without a value");
        ensemble.assimilate(&searched, seen, 8, &mut model).unwrap();
        let mean = ensemble.mean();
        assert!((mean[0] - 1.0).abs() < 0.03 && (mean[1] + 1.0).abs() < 0.03, "{mean:?}");
        assert!(ensemble.members.iter().all(|at| at[2] == 0.0));
        let mut none = |points: &[Vec<f64>]| vec![None; points.len()];
        assert_eq!(Ensemble::drawn(&searched, 10, 8).assimilate(&searched, seen, 1, &mut none), None);
    }

    /// New members are wider, but not where only the priors speak.
    #[test]
    fn members_around_a_point_forget_a_part_of_the_observations() {
        let mut model =
            |points: &[Vec<f64>]| -> Vec<Option<Vec<f64>>> { points.iter().map(|at| Some(vec![at[0]])).collect() };
        let searched = searched(&[0.0; 2]);
        let seen = Observed { values: &[0.5], is_marked: &[false], scale: ERROR };
        let mut ensemble = Ensemble::drawn(&searched, 300, 8);
        ensemble.assimilate(&searched, seen, 8, &mut model).unwrap();
        let (narrow, wide) = (ensemble.covariance(), ensemble.around(&searched, 3000, 3).unwrap().covariance());
        let ratio = |index: usize| (wide[(index, index)] / narrow[(index, index)]).sqrt();
        assert!((ratio(0) - 2.0).abs() < 0.2 && (ratio(1) - 1.0).abs() < 0.1, "{} {}", ratio(0), ratio(1));
    }
}
