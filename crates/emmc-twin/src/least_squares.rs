//! Robust least squares over a model that may be a simulation: Levenberg-Marquardt with differences.
//!
//! Unknowns are logarithms. A residual is an error of a logarithm over [`SCALE`], then soft L1: large errors count in
//! proportion, not by their square. A prior keeps what the data does not determine where it was. The derivatives are
//! forward differences; their points are independent, so the caller may work on them side by side.

use levenberg_marquardt::{LeastSquaresProblem, LevenbergMarquardt};
use nalgebra::{DMatrix, DVector, Dyn, Owned};

/// The error at which soft L1 goes from square to linear: 5 %, about the scatter of a careful measurement.
pub(crate) const SCALE: f64 = 0.05;
/// An error of a point that has no value, e.g. a profile that breaks a rule.
const BAD: f64 = 3.0;

/// The logarithms that a model gives for each point; `None` where there is none.
pub(crate) type Model<'a> = dyn FnMut(&[Vec<f64>]) -> Vec<Option<Vec<f64>>> + 'a;

/// An unknown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unknown {
    /// Its logarithm where the search begins.
    pub(crate) start: f64,
    /// The centre of its prior.
    pub(crate) centre: f64,
    /// The standard deviation of its prior.
    pub(crate) deviation: f64,
    /// The step of its difference.
    pub(crate) step: f64,
}

/// Where a search ended.
#[derive(Clone, Debug)]
pub(crate) struct Minimum {
    pub(crate) at: Vec<f64>,
    /// Derivatives of the logarithms, a row for each observation, without prior and weights.
    pub(crate) jacobian: DMatrix<f64>,
    /// Half the sum of squares, priors included.
    pub(crate) cost: f64,
}

struct Problem<'a, 'm> {
    model: &'a mut Model<'m>,
    observed: &'a [f64],
    unknowns: &'a [Unknown],
    at: DVector<f64>,
    value: Vec<f64>,
    /// Derivatives at `at`, once computed.
    slopes: Option<DMatrix<f64>>,
}

fn soft(residual: f64) -> f64 {
    (2.0 * (residual.hypot(1.0) - 1.0)).max(0.0).sqrt().copysign(residual)
}

fn soft_slope(residual: f64) -> f64 {
    let value = soft(residual);
    if value.abs() < 1e-9 { 1.0 } else { residual / (residual.hypot(1.0) * value) }
}

impl Problem<'_, '_> {
    fn values(&mut self, points: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let bad = || self.observed.iter().map(|observed| observed + BAD).collect();
        (self.model)(points).into_iter().map(|value| value.unwrap_or_else(bad)).collect()
    }

    fn move_to(&mut self, at: &DVector<f64>) {
        self.at.copy_from(at);
        self.slopes = None;
        self.value = self.values(&[at.as_slice().to_vec()]).swap_remove(0);
    }

    fn differences(&mut self) -> DMatrix<f64> {
        if let Some(slopes) = &self.slopes {
            return slopes.clone();
        }
        let points: Vec<Vec<f64>> = (0..self.unknowns.len())
            .map(|index| {
                let mut point = self.at.as_slice().to_vec();
                point[index] += self.unknowns[index].step;
                point
            })
            .collect();
        let moved = self.values(&points);
        let slopes = DMatrix::from_fn(self.observed.len(), points.len(), |row, column| {
            (moved[column][row] - self.value[row]) / self.unknowns[column].step
        });
        self.slopes = Some(slopes.clone());
        slopes
    }

    fn residual(&self, row: usize) -> f64 {
        (self.value[row] - self.observed[row]) / SCALE
    }
}

/// The crate's problem asks by `&self`; differences need the model.
struct Shared<'a, 'm>(std::cell::RefCell<Problem<'a, 'm>>);

impl LeastSquaresProblem<f64, Dyn, Dyn> for Shared<'_, '_> {
    type ParameterStorage = Owned<f64, Dyn>;
    type ResidualStorage = Owned<f64, Dyn>;
    type JacobianStorage = Owned<f64, Dyn, Dyn>;

    fn set_params(&mut self, at: &DVector<f64>) {
        self.0.get_mut().move_to(at);
    }

    fn params(&self) -> DVector<f64> {
        self.0.borrow().at.clone()
    }

    fn residuals(&self) -> Option<DVector<f64>> {
        let problem = self.0.borrow();
        let data = (0..problem.observed.len()).map(|row| soft(problem.residual(row)));
        let prior =
            problem.unknowns.iter().zip(&problem.at).map(|(unknown, at)| (at - unknown.centre) / unknown.deviation);
        Some(DVector::from_vec(data.chain(prior).collect()))
    }

    fn jacobian(&self) -> Option<DMatrix<f64>> {
        let mut problem = self.0.borrow_mut();
        let slopes = problem.differences();
        let (rows, columns) = slopes.shape();
        Some(DMatrix::from_fn(rows + columns, columns, |row, column| match row.checked_sub(rows) {
            None => slopes[(row, column)] * soft_slope(problem.residual(row)) / SCALE,
            Some(prior) if prior == column => 1.0 / problem.unknowns[column].deviation,
            Some(_) => 0.0,
        }))
    }
}

/// Searches from the start of the unknowns; at most `patience` evaluations for each unknown.
pub(crate) fn minimise(unknowns: &[Unknown], observed: &[f64], patience: usize, model: &mut Model<'_>) -> Minimum {
    let start = DVector::from_iterator(unknowns.len(), unknowns.iter().map(|unknown| unknown.start));
    let mut problem = Problem { model, observed, unknowns, at: start.clone(), value: Vec::new(), slopes: None };
    problem.move_to(&start);
    let search = LevenbergMarquardt::new().with_ftol(1e-4).with_xtol(1e-4).with_gtol(1e-6).with_stepbound(10.0);
    let (found, report) = search.with_patience(patience).minimize(Shared(std::cell::RefCell::new(problem)));
    let mut problem = found.0.into_inner();
    let jacobian = problem.differences();
    Minimum { at: problem.at.as_slice().to_vec(), jacobian, cost: report.objective_function }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time = a + b x record: both are found from ten times, one of which is wrong by a factor of three.
    #[test]
    fn a_minimum_is_found_in_spite_of_an_outlier() {
        let records: Vec<f64> = (0..10).map(|index| f64::from(1 << index)).collect();
        let times = |a: f64, b: f64| records.iter().map(|kib| (a + b * kib).ln()).collect::<Vec<f64>>();
        let mut observed = times(300.0, 12.0);
        observed[4] += 3.0f64.ln();
        let unknown = |start: f64| Unknown { start: start.ln(), centre: start.ln(), deviation: 3.0, step: 0.01 };
        let mut model = |points: &[Vec<f64>]| {
            points.iter().map(|point| Some(times(point[0].exp(), point[1].exp()))).collect::<Vec<_>>()
        };
        let found = minimise(&[unknown(100.0), unknown(40.0)], &observed, 20, &mut model);
        let (a, b) = (found.at[0].exp(), found.at[1].exp());
        assert!((a / 300.0 - 1.0).abs() < 0.03 && (b / 12.0 - 1.0).abs() < 0.03, "{a} {b}");
        assert_eq!(found.jacobian.shape(), (10, 2));
    }

    /// A model that has no value everywhere: the search stays where it has one.
    #[test]
    fn a_point_without_a_value_is_left() {
        let mut model = |points: &[Vec<f64>]| {
            points.iter().map(|point| (point[0] < 1.0).then(|| vec![point[0]])).collect::<Vec<_>>()
        };
        let unknown = Unknown { start: 0.0, centre: 0.0, deviation: 10.0, step: 0.01 };
        let found = minimise(&[unknown], &[2.0], 20, &mut model);
        assert!((0.5..1.0).contains(&found.at[0]), "{}", found.at[0]);
    }
}
