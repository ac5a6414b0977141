//! Robust least squares over a model that may be a simulation: Levenberg-Marquardt with differences.
//!
//! Unknowns are logarithms. A residual is an error of a logarithm over its scale, then soft L1: large errors count in
//! proportion, not by their square. A prior keeps what the data does not determine where it was. The derivatives are
//! forward differences; their points are independent, so the caller may work on them side by side.

mod scan;

use nalgebra::{DMatrix, DVector};

/// The error at which soft L1 goes from square to linear where a search begins: 5 %.
pub(crate) const SCALE: f64 = 0.05;
/// An error of a point that has no value, e.g. a profile that breaks a rule.
const BAD: f64 = 3.0;
/// What one round tries, times the damping of the last.
const DAMPINGS: [f64; 4] = [0.1, 0.5, 3.0, 20.0];
/// A logarithm changes at most this much in one step.
const LONGEST: f64 = 1.0;
/// A share of the cost: after a larger gain the same slopes are used again.
const LARGE_GAIN: f64 = 0.05;
/// A share of the cost: a smaller one counts as none.
const SMALL_GAIN: f64 = 0.002;

/// The logarithms that a model gives for each point; `None` where there is none.
pub(crate) type Model<'a> = dyn FnMut(&[Vec<f64>]) -> Vec<Option<Vec<f64>>> + 'a;

/// An unknown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unknown {
    /// Its logarithm where the search begins.
    pub(crate) start: f64,
    /// The step of its difference; 0: it stays where it is.
    pub(crate) step: f64,
    /// Which observations it changes.
    pub(crate) reach: Reach,
}

/// The observations that an unknown changes: two with nothing in common share a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Any.
    All,
    /// Those marked.
    Marked,
    /// The others.
    Unmarked,
}

/// What is observed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed<'a> {
    /// Logarithms.
    pub(crate) values: &'a [f64],
    /// For [`Reach`].
    pub(crate) is_marked: &'a [bool],
    /// The error at which soft L1 goes from square to linear, as a logarithm.
    pub(crate) scale: f64,
}

/// What is known of an unknown before any data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prior {
    pub(crate) index: usize,
    /// The unknown to which it is in proportion.
    pub(crate) anchor: Option<usize>,
    /// The logarithm of its value, or of its ratio to the anchor's.
    pub(crate) centre: f64,
    /// The standard deviation of that.
    pub(crate) deviation: f64,
}

impl Prior {
    fn residual(&self, at: &[f64]) -> f64 {
        (at[self.index] - self.anchor.map_or(0.0, |anchor| at[anchor]) - self.centre) / self.deviation
    }

    /// Derivatives of the residual.
    fn slopes(&self) -> impl Iterator<Item = (usize, f64)> + Clone + use<> {
        let slope = 1.0 / self.deviation;
        [(self.index, slope)].into_iter().chain(self.anchor.map(|anchor| (anchor, -slope)))
    }

    /// Adds it to the matrix of normal equations.
    pub(crate) fn add_to(&self, normal: &mut DMatrix<f64>) {
        for (row, first) in self.slopes() {
            for (column, second) in self.slopes() {
                normal[(row, column)] += first * second;
            }
        }
    }
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
    observed: Observed<'a>,
    unknowns: &'a [Unknown],
    priors: &'a [Prior],
    /// Points so far.
    evaluated: usize,
}

/// A point of a search, with what the model gives there.
#[derive(Clone, Debug)]
struct Point {
    at: Vec<f64>,
    value: Vec<f64>,
    cost: f64,
}

fn soft(residual: f64) -> f64 {
    (2.0 * (residual.hypot(1.0) - 1.0)).max(0.0).sqrt().copysign(residual)
}

fn soft_slope(residual: f64) -> f64 {
    let value = soft(residual);
    if value.abs() < 1e-9 { 1.0 } else { residual / (residual.hypot(1.0) * value) }
}

impl Problem<'_, '_> {
    fn points(&mut self, points: Vec<Vec<f64>>) -> Vec<Point> {
        self.evaluated += points.len();
        let values = (self.model)(&points);
        let each = points.into_iter().zip(values).map(|(at, value)| {
            let value = value.unwrap_or_else(|| self.observed.values.iter().map(|observed| observed + BAD).collect());
            let [data, prior] = costs((&at, &value), self.observed, self.priors);
            Point { at, value, cost: data + prior }
        });
        each.collect()
    }

    fn residual(&self, value: &[f64], row: usize) -> f64 {
        (value[row] - self.observed.values[row]) / self.observed.scale
    }

    /// Slopes by differences to one side; a better point among theirs becomes the best one.
    fn slopes(&mut self, best: &mut Point, side: f64) -> DMatrix<f64> {
        let groups = self.groups();
        let points = groups.iter().map(|group| {
            let mut at = best.at.clone();
            group.iter().for_each(|index| at[*index] += side * self.unknowns[*index].step);
            at
        });
        let moved = self.points(points.collect());
        let mut slopes = DMatrix::zeros(self.observed.values.len(), self.unknowns.len());
        for (group, moved) in groups.iter().zip(&moved) {
            for index in group {
                let Unknown { step, reach, .. } = self.unknowns[*index];
                for row in 0..slopes.nrows() {
                    let is_marked = self.observed.is_marked[row];
                    if reach == Reach::All || is_marked == (reach == Reach::Marked) {
                        slopes[(row, *index)] = (moved.value[row] - best.value[row]) / (side * step);
                    }
                }
            }
        }
        if let Some(better) = moved.into_iter().filter(|point| point.cost < best.cost).min_by(by_cost) {
            *best = better;
        }
        slopes
    }

    /// The searched unknowns: alone, or two that change nothing in common.
    fn groups(&self) -> Vec<Vec<usize>> {
        let of = |wanted: Reach| {
            let is_wanted = move |(_, unknown): &(usize, &Unknown)| unknown.reach == wanted && unknown.step > 0.0;
            self.unknowns.iter().enumerate().filter(is_wanted).map(|(index, _)| index)
        };
        let (mut marked, mut unmarked) = (of(Reach::Marked), of(Reach::Unmarked));
        let mut groups: Vec<Vec<usize>> = of(Reach::All).map(|index| vec![index]).collect();
        loop {
            let group: Vec<usize> = marked.next().into_iter().chain(unmarked.next()).collect();
            if group.is_empty() {
                return groups;
            }
            groups.push(group);
        }
    }

    /// The point that a damped step reaches; `None` where the equations have no solution.
    fn step(&self, best: &Point, slopes: &DMatrix<f64>, damping: f64) -> Option<Vec<f64>> {
        let (mut normal, gradient) = self.equations(best, slopes);
        for index in 0..normal.nrows() {
            normal[(index, index)] *= 1.0 + damping;
        }
        let step = normal.cholesky()?.solve(&gradient);
        let moved = |(at, step): (&f64, &f64)| at - step.clamp(-LONGEST, LONGEST);
        Some(best.at.iter().zip(step.iter()).map(moved).collect())
    }

    /// The matrix of the normal equations, and the gradient.
    fn equations(&self, best: &Point, slopes: &DMatrix<f64>) -> (DMatrix<f64>, DVector<f64>) {
        let weighted = DMatrix::from_fn(slopes.nrows(), slopes.ncols(), |row, column| {
            slopes[(row, column)] * soft_slope(self.residual(&best.value, row)) / self.observed.scale
        });
        let rows = (0..slopes.nrows()).map(|row| soft(self.residual(&best.value, row)));
        let mut gradient = weighted.transpose() * DVector::from_iterator(slopes.nrows(), rows);
        let mut normal = weighted.transpose() * &weighted;
        for prior in self.priors {
            prior.add_to(&mut normal);
            for (index, slope) in prior.slopes() {
                gradient[index] += slope * prior.residual(&best.at);
            }
        }
        (normal, gradient)
    }
}

/// Half the sums of squares of the data and of the priors, at a point with what the model gives there.
pub(crate) fn costs((at, value): (&[f64], &[f64]), observed: Observed<'_>, priors: &[Prior]) -> [f64; 2] {
    let data = value.iter().zip(observed.values).map(|(value, own)| soft((value - own) / observed.scale).powi(2));
    let prior = priors.iter().map(|prior| prior.residual(at).powi(2));
    [data.sum::<f64>() / 2.0, prior.sum::<f64>() / 2.0]
}

fn by_cost(a: &Point, b: &Point) -> std::cmp::Ordering {
    a.cost.total_cmp(&b.cost)
}

/// Broyden's correction: the slopes then lead from one point to the other.
fn correct(slopes: &mut DMatrix<f64>, from: &Point, to: &Point) {
    let difference = |a: &[f64], b: &[f64]| DVector::from_iterator(a.len(), a.iter().zip(b).map(|(a, b)| a - b));
    let step = difference(&to.at, &from.at);
    let length = step.norm_squared();
    if length > 0.0 {
        let missed = difference(&to.value, &from.value) - &*slopes * &step;
        *slopes += missed * step.transpose() / length;
    }
}

/// Searches from the start of the unknowns, with about `evaluations` of the model; `known` are slopes near the start.
///
/// A simulation has steps and noise where a closed form is smooth, and its points can be evaluated side by side.
/// Therefore each round tries several dampings of the Gauss-Newton step (Levenberg, Marquardt), and corrects the slopes
/// by where they led. When that gains little, the slopes are measured again, each time to the other side; when that
/// gains nothing either, the search ends.
pub(crate) fn minimise(
    (unknowns, priors): (&[Unknown], &[Prior]),
    observed: Observed<'_>,
    (evaluations, known): (usize, Option<&DMatrix<f64>>),
    model: &mut Model<'_>,
) -> Minimum {
    let mut problem = Problem { model, observed, unknowns, priors, evaluated: 0 };
    let start = unknowns.iter().map(|unknown| unknown.start).collect();
    let mut best = problem.points(vec![start]).swap_remove(0);
    let (mut side, mut damping, mut idle) = (1.0, 0.1, 0);
    let known = known.filter(|known| known.shape() == (observed.values.len(), unknowns.len()));
    let mut slopes = known.cloned().unwrap_or_else(|| problem.slopes(&mut best, side));
    while problem.evaluated < evaluations {
        let before = best.clone();
        let steps = DAMPINGS.map(|factor| (damping * factor).clamp(1e-4, 1e4));
        let points: Vec<(f64, Vec<f64>)> =
            steps.iter().filter_map(|damping| Some((*damping, problem.step(&before, &slopes, *damping)?))).collect();
        let (dampings, points): (Vec<f64>, Vec<Vec<f64>>) = points.into_iter().unzip();
        let tried = problem.points(points);
        let nearest = dampings.iter().zip(&tried).min_by(|a, b| by_cost(a.1, b.1));
        let Some((found, nearest)) = nearest else { break };
        damping *= 10.0;
        if nearest.cost < before.cost {
            damping = *found;
            best = nearest.clone();
        }
        let gain = 1.0 - best.cost / before.cost.max(f64::MIN_POSITIVE);
        if gain > LARGE_GAIN {
            correct(&mut slopes, &before, nearest);
            idle = 0;
            continue;
        }
        idle = if gain < SMALL_GAIN { idle + 1 } else { 0 };
        // Both sides were tried.
        if idle > 2 && problem.evaluated + problem.scan_points() <= evaluations {
            let before = best.cost;
            problem.scan(&mut best, &slopes);
            if 1.0 - best.cost / before.max(f64::MIN_POSITIVE) > SMALL_GAIN {
                (damping, idle) = (0.1, 0);
            }
        }
        if idle > 2 || problem.evaluated + unknowns.len() > evaluations {
            break;
        }
        side = -side;
        slopes = problem.slopes(&mut best, side);
    }
    Minimum { at: best.at, jacobian: slopes, cost: best.cost }
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
        let unknown = |start: f64| Unknown { start: start.ln(), step: 0.01, reach: Reach::All };
        let prior = |index, start: f64| Prior { index, anchor: None, centre: start.ln(), deviation: 3.0 };
        let mut model = |points: &[Vec<f64>]| {
            points.iter().map(|point| Some(times(point[0].exp(), point[1].exp()))).collect::<Vec<_>>()
        };
        let found = minimise(
            (&[unknown(100.0), unknown(40.0)], &[prior(0, 100.0), prior(1, 40.0)]),
            Observed { values: &observed, is_marked: &[false; 10], scale: SCALE },
            (200, None),
            &mut model,
        );
        let (a, b) = (found.at[0].exp(), found.at[1].exp());
        assert!((a / 300.0 - 1.0).abs() < 0.03 && (b / 12.0 - 1.0).abs() < 0.03, "{a} {b}");
        assert_eq!(found.jacobian.shape(), (10, 2));
    }

    /// Two that change nothing in common share the point of their differences.
    #[test]
    fn unknowns_of_different_observations_share_points() {
        let mut points_seen = 0;
        let mut model = |points: &[Vec<f64>]| {
            points_seen += points.len();
            points.iter().map(|point| Some(vec![point[0] + point[2], point[1] - point[2]])).collect::<Vec<_>>()
        };
        let unknown = |reach| Unknown { start: 0.0, step: 0.01, reach };
        let unknowns = [unknown(Reach::Marked), unknown(Reach::Unmarked), unknown(Reach::All)];
        let observed = Observed { values: &[1.0, 2.0], is_marked: &[true, false], scale: SCALE };
        let found = minimise((&unknowns, &[]), observed, (0, None), &mut model);
        let expected = DMatrix::from_row_slice(2, 3, &[1.0, 0.0, 1.0, 0.0, 1.0, -1.0]);
        assert!((found.jacobian - expected).abs().max() < 1e-9);
        assert_eq!(points_seen, 3, "the start and two points for three unknowns");
    }

    /// A place without a slope: only a look around shows that the observation can be met.
    #[test]
    fn a_flat_place_is_left() {
        let mut model = |points: &[Vec<f64>]| -> Vec<Option<Vec<f64>>> {
            points.iter().map(|point| Some(vec![point[0].max(0.5), point[1]])).collect()
        };
        let unknown = |reach| Unknown { start: 0.0, step: 0.01, reach };
        let observed = Observed { values: &[1.0, 0.3], is_marked: &[false, true], scale: SCALE };
        let unknowns = [unknown(Reach::Unmarked), unknown(Reach::Marked)];
        let prior = |index| Prior { index, anchor: None, centre: 0.0, deviation: 3.0 };
        let found = minimise((&unknowns, &[prior(0), prior(1)]), observed, (200, None), &mut model);
        assert!((found.at[0] - 1.0).abs() < 0.01 && (found.at[1] - 0.3).abs() < 0.01, "{:?}", found.at);
        let stuck = minimise((&unknowns, &[prior(0), prior(1)]), observed, (12, None), &mut model);
        assert!(stuck.at[0] < 0.5, "without a scan: {:?}", stuck.at);
    }

    /// A model that has no value everywhere: the search stays where it has one.
    #[test]
    fn a_point_without_a_value_is_left() {
        let mut model = |points: &[Vec<f64>]| {
            points.iter().map(|point| (point[0] < 1.0).then(|| vec![point[0]])).collect::<Vec<_>>()
        };
        let unknown = Unknown { start: 0.0, step: 0.01, reach: Reach::All };
        let observed = Observed { values: &[2.0], is_marked: &[false], scale: SCALE };
        let found = minimise((&[unknown], &[]), observed, (100, None), &mut model);
        assert!((0.5..1.0).contains(&found.at[0]), "{}", found.at[0]);
    }
}
