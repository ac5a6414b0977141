//! A look around a minimum: each unknown is moved by a large step while the others follow.
//!
//! A simulation has flat places, where a slope says nothing, and several minima, where one parameter stands in for
//! another. A step of Gauss and Newton leaves neither. Here one unknown at a time goes up and down by more than any
//! slope covers, and the others go where the slopes expect the least cost then.

use nalgebra::{DMatrix, DVector};

use super::{LONGEST, Point, Problem, Reach, by_cost, soft};

/// How far an unknown is moved, as a logarithm: by a fifth, and by a factor of two.
const DISTANCES: [f64; 4] = [-0.7, -0.2, 0.2, 0.7];

/// A move: which unknowns change, and by how much.
#[derive(Clone, Debug)]
struct Move {
    reach: Reach,
    change: Vec<f64>,
}

impl Problem<'_, '_> {
    /// Points of a scan, at most.
    pub(super) fn scan_points(&self) -> usize {
        DISTANCES.len() * self.groups().len() + 1
    }

    /// Moves each unknown, two that change nothing in common in one point; a better point becomes the best one.
    pub(super) fn scan(&mut self, best: &mut Point, slopes: &DMatrix<f64>) {
        let (normal, gradient) = self.equations(best, slopes);
        let groups: Vec<Vec<Move>> = self
            .groups()
            .iter()
            .flat_map(|group| DISTANCES.map(|distance| (group.clone(), distance)))
            .map(|(group, distance)| {
                let each = group.iter().filter_map(|index| self.followed((*index, distance), &normal, &gradient));
                each.collect()
            })
            .collect();
        let at = |moves: &[Move]| -> Vec<f64> {
            let change = |index: usize| moves.iter().map(|one| one.change[index]).sum::<f64>();
            best.at.iter().enumerate().map(|(index, at)| at + change(index)).collect()
        };
        let points = groups.iter().map(|moves| at(moves)).collect();
        let tried = self.points(points);
        // What a move of reads gains and what one of writes gains add up.
        let gains = |reach: Reach| {
            let found = groups.iter().zip(&tried).filter_map(|(moves, point)| {
                let one = moves.iter().find(|one| one.reach == reach)?;
                Some((one.clone(), self.cost_within(best, reach) - self.cost_within(point, reach)))
            });
            found.filter(|(_, gain)| *gain > 0.0).max_by(|a, b| a.1.total_cmp(&b.1)).map(|(one, _)| one)
        };
        let both: Vec<Move> = [Reach::Marked, Reach::Unmarked].into_iter().filter_map(gains).collect();
        let both = if both.is_empty() { Vec::new() } else { self.points(vec![at(&both)]) };
        if let Some(better) = tried.into_iter().chain(both).filter(|point| point.cost < best.cost).min_by(by_cost) {
            *best = better;
        }
    }

    /// An unknown moves, and those of the same reach follow.
    fn followed(
        &self,
        (moved, distance): (usize, f64),
        normal: &DMatrix<f64>,
        gradient: &DVector<f64>,
    ) -> Option<Move> {
        let reach = self.unknowns[moved].reach;
        let follows = |index: &usize| {
            let unknown = &self.unknowns[*index];
            *index != moved && unknown.step > 0.0 && (reach == Reach::All || unknown.reach == reach)
        };
        let others: Vec<usize> = (0..self.unknowns.len()).filter(follows).collect();
        let part = DMatrix::from_fn(others.len(), others.len(), |a, b| normal[(others[a], others[b])]);
        let wanted =
            DVector::from_fn(others.len(), |a, _| -gradient[others[a]] - distance * normal[(others[a], moved)]);
        let answer = part.cholesky()?.solve(&wanted);
        let mut change = vec![0.0; self.unknowns.len()];
        change[moved] = distance;
        for (index, step) in others.iter().zip(answer.iter()) {
            change[*index] = step.clamp(-LONGEST, LONGEST);
        }
        Some(Move { reach, change })
    }

    /// Half the sum of squares of the observations that an unknown of this reach changes.
    fn cost_within(&self, point: &Point, reach: Reach) -> f64 {
        let rows = (0..point.value.len())
            .filter(|row| reach == Reach::All || self.observed.is_marked[*row] == (reach == Reach::Marked));
        rows.map(|row| soft(self.residual(&point.value, row)).powi(2)).sum::<f64>() / 2.0
    }
}
