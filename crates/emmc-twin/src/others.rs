//! Other parts, and how much each says of this one.
//!
//! Parts that resemble one another in their measured times resemble one another in what these times do not show. How
//! much, the other parts show among themselves: the correlation of two parts falls with the distance of their times
//! (kriging with an unknown mean; length and share of the correlation by restricted maximum likelihood). Where they do
//! not resemble one another, all count alike.

use nalgebra::{DMatrix, DVector};

use crate::cell::time;
use crate::fit::Simulator;
use crate::measured::Measured;
use crate::part::{Firmware, Part};
use crate::prior::{PARTS_MIN, each_ratio};
use crate::simulate::Plan;

/// Distances at which the correlation has fallen to a third, of which the likelihood chooses. Unit: mean difference of
/// the logarithms of two parts' times.
const LENGTHS: [f64; 6] = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6];
/// What two parts with the same times have in common, of which the likelihood chooses: a share of the variance.
const SHARES: [f64; 3] = [0.5, 0.75, 0.95];
/// The least variance of a logarithm among parts: fits are not more certain.
const LEAST_VARIANCE: f64 = 1e-4;

/// Other parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Others {
    parts: Vec<Part>,
    /// The correlations of the parts, and of each (the last row and column) with this one.
    correlations: DMatrix<f64>,
}

/// What some parts say of a number of this one.
struct Kriging {
    inverse: DMatrix<f64>,
    /// The logarithm of the determinant of the correlations.
    log_determinant: f64,
    /// The inverse times ones, and the sum of that.
    ones: (DVector<f64>, f64),
    /// The correlations with this part.
    own: DVector<f64>,
}

impl Others {
    /// Parts of which none is known to be more like this one than the others.
    pub(crate) fn new(parts: Vec<Part>) -> Self {
        let correlations = correlations(&vec![vec![0.0; parts.len() + 1]; parts.len() + 1], None);
        Self { parts, correlations }
    }

    /// The same parts, compared with the measured times; those that cannot be measured in the same way are left out.
    pub(crate) fn compared(&self, measured: &Measured, simulator: &Simulator<'_>) -> Self {
        if self.parts.len() < PARTS_MIN {
            return self.clone();
        }
        let table = measured.iozone();
        let plan = Plan { measured: table.clone(), is_search: false };
        let times_of = |part: &Part| {
            let simulated = simulator(&[part.profile().ok()?], &plan).swap_remove(0).ok()?;
            let each = table.cells.iter().map(|cell| time(&simulated, cell.column, cell.kib).map(f64::ln));
            Some((part.clone(), each.collect::<Option<Vec<f64>>>()?))
        };
        let (parts, mut times): (Vec<Part>, Vec<Vec<f64>>) = self.parts.iter().filter_map(times_of).unzip();
        times.push(table.cells.iter().map(|cell| cell.us.ln()).collect());
        let distance = |a: &Vec<f64>, b: &Vec<f64>| {
            a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>() / a.len().max(1) as f64
        };
        let distances: Vec<Vec<f64>> = times.iter().map(|a| times.iter().map(|b| distance(a, b)).collect()).collect();
        let of = |kind: Option<(f64, f64)>| Self { parts: parts.clone(), correlations: correlations(&distances, kind) };
        let kinds = LENGTHS.iter().flat_map(|length| SHARES.map(|share| (*length, share)));
        let mut best = of(None);
        for other in kinds.map(|kind| of(Some(kind))) {
            if other.log_likelihood() > best.log_likelihood() {
                best = other;
            }
        }
        best
    }

    /// The parts that fit a condition say this of a number that each of them has: its expected value for this part, and
    /// its variance. Nothing if they are fewer than [`PARTS_MIN`].
    pub(crate) fn expected(
        &self,
        is_wanted: impl Fn(&Part) -> bool,
        number: impl Fn(&Part) -> f64,
    ) -> Option<[f64; 2]> {
        let some: Vec<usize> = (0..self.parts.len()).filter(|place| is_wanted(&self.parts[*place])).collect();
        let numbers = DVector::from_iterator(some.len(), some.iter().map(|place| number(&self.parts[*place])));
        self.kriging(&some)?.expected(&numbers)
    }

    /// The share of parts that fit a condition, more like ones counted more: at least that of one part among two more
    /// than there are. A half if the parts are too few.
    pub(crate) fn share(&self, is_so: impl Fn(&Part) -> bool) -> f64 {
        let all: Vec<usize> = (0..self.parts.len()).collect();
        let Some(kriging) = self.kriging(&all) else { return 0.5 };
        let weights = kriging.weights();
        let share: f64 = self.parts.iter().zip(weights.iter()).filter(|(part, _)| is_so(part)).map(|(_, w)| w).sum();
        let least = 1.0 / (self.parts.len() as f64 + 2.0);
        share.clamp(least, 1.0 - least)
    }

    /// Minus the logarithm of how likely a kind of firmware is, one property after the other.
    pub(crate) fn unlikely(&self, firmware: &Firmware) -> f64 {
        let alike: [&dyn Fn(&Firmware) -> bool; 6] = [
            &|other| other.threshold_kib == firmware.threshold_kib,
            &|other| other.read_ahead_always == firmware.read_ahead_always,
            &|other| other.page_kib == firmware.page_kib,
            &|other| other.channels == firmware.channels,
            &|other| other.merges_each_write == firmware.merges_each_write,
            &|other| other.keeps_pages == firmware.keeps_pages,
        ];
        -alike.iter().map(|is_alike| self.share(|part| is_alike(&part.firmware)).ln()).sum::<f64>()
    }

    pub(crate) fn any(&self, is_so: impl Fn(&Part) -> bool) -> bool {
        self.parts.iter().any(is_so)
    }

    /// How likely the parts' ratios are with these correlations.
    fn log_likelihood(&self) -> f64 {
        let groups = each_ratio(&self.parts);
        let of_group = |(places, ratios): &(Vec<usize>, Vec<f64>)| {
            self.kriging(places).map_or(0.0, |kriging| kriging.log_likelihood(&DVector::from_vec(ratios.clone())))
        };
        groups.iter().map(of_group).sum()
    }

    fn kriging(&self, some: &[usize]) -> Option<Kriging> {
        if some.len() < PARTS_MIN {
            return None;
        }
        let own = self.correlations.column(self.parts.len()).select_rows(some);
        let own = DVector::from_iterator(some.len(), own.iter().copied());
        let factor = self.correlations.select_rows(some).select_columns(some).cholesky()?;
        let log_determinant = 2.0 * factor.l_dirty().diagonal().iter().map(|value| value.ln()).sum::<f64>();
        let inverse = factor.inverse();
        let ones = &inverse * DVector::from_element(some.len(), 1.0);
        let sum = ones.sum();
        Some(Kriging { inverse, log_determinant, ones: (ones, sum), own })
    }
}

impl Kriging {
    /// How much each part counts; one in all.
    fn weights(&self) -> DVector<f64> {
        let (ones, sum) = &self.ones;
        &self.inverse * &self.own + ones * ((1.0 - ones.dot(&self.own)) / *sum)
    }

    /// The parts' own variance of a number, without what they have in common.
    fn variance(&self, numbers: &DVector<f64>) -> f64 {
        let (ones, sum) = &self.ones;
        let rest = numbers.add_scalar(-ones.dot(numbers) / sum);
        (rest.dot(&(&self.inverse * &rest)) / (numbers.len() as f64 - 1.0)).max(LEAST_VARIANCE)
    }

    fn expected(&self, numbers: &DVector<f64>) -> Option<[f64; 2]> {
        let (ones, sum) = &self.ones;
        let known = self.own.dot(&(&self.inverse * &self.own));
        let share = 1.0 - known + (1.0 - ones.dot(&self.own)).powi(2) / sum;
        let found = [self.weights().dot(numbers), self.variance(numbers) * share];
        found.iter().all(|value| value.is_finite()).then_some(found)
    }

    fn log_likelihood(&self, numbers: &DVector<f64>) -> f64 {
        let spare = numbers.len() as f64 - 1.0;
        -0.5 * (spare * self.variance(numbers).ln() + self.log_determinant + self.ones.1.ln())
    }
}

/// Of a length and a share; without them, nothing is correlated.
fn correlations(distances: &[Vec<f64>], kind: Option<(f64, f64)>) -> DMatrix<f64> {
    DMatrix::from_fn(distances.len(), distances.len(), |row, column| match kind {
        _ if row == column => 1.0,
        Some((length, share)) => share * (-distances[row][column] / length).exp(),
        None => 0.0,
    })
}

#[cfg(test)]
mod tests {
    use emmc_regs::CardKind;

    use super::*;
    use crate::cell::{Cell, Column};
    use crate::known::Known;
    use crate::part::{firmwares, index};
    use crate::simulate::simulate;

    /// Parts of two families: the firmware of one is three times slower, its programs are twice as long for each KiB
    /// of the bus, and it reads ahead at every read.
    fn families() -> Vec<Part> {
        let cells = Column::IOZONE.map(|column| Cell { column, kib: 4, us: 300.0 });
        let start = Part::start(CardKind::Sd, firmwares()[0], false, (&cells, &Known::default()));
        let part = |is_slow: bool, by: f64| {
            let (mut part, times) = (start.clone(), if is_slow { 3.0 } else { 1.0 });
            for place in [index::BUS, index::READ, index::WRITE, index::SMALL] {
                part.values[place] *= times * by;
            }
            part.values[index::PROGRAM] = part.values[index::BUS] * if is_slow { 4.0 } else { 2.0 } * by;
            part.firmware.read_ahead_always = is_slow;
            part
        };
        let each = |is_slow| [0.96, 0.99, 1.01, 1.04].map(|by| part(is_slow, by));
        [each(false), each(true)].concat()
    }

    /// The first of the parts, as the others have it.
    fn compared(all: &[Part]) -> Others {
        let cell = |column, kib| Cell { column, kib, us: 1.0 };
        let wanted: Vec<Cell> =
            [4, 128].into_iter().flat_map(|kib| Column::IOZONE.map(|column| cell(column, kib))).collect();
        let measured = Measured { cells: wanted, file_bytes: 4 << 20, ..Measured::default() };
        let plan = Plan { measured: measured.clone(), is_search: false };
        let cells = simulate(&all[0].profile().unwrap(), &plan).unwrap();
        let simulator =
            |profiles: &[_], plan: &Plan| profiles.iter().map(|profile| simulate(profile, plan)).collect::<Vec<_>>();
        Others::new(all[1..].to_vec()).compared(&measured.with(cells), &simulator)
    }

    fn program_over_bus(part: &Part) -> f64 {
        (part.values[index::PROGRAM] / part.values[index::BUS]).ln()
    }

    #[test]
    fn parts_that_resemble_this_one_count_more() {
        let all = families();
        let alike = Others::new(all[1..].to_vec());
        let compared = compared(&all);
        let is_any = |_: &Part| true;
        let [mean, variance] = alike.expected(is_any, program_over_bus).unwrap();
        let numbers: Vec<f64> = all[1..].iter().map(program_over_bus).collect();
        assert!((mean - numbers.iter().sum::<f64>() / 7.0).abs() < 1e-9, "not compared, all count alike");
        let [near, certain] = compared.expected(is_any, program_over_bus).unwrap();
        assert!((near.exp() - 2.0).abs() < 0.2 && (mean.exp() - 2.0).abs() > 0.8, "{} {}", near.exp(), mean.exp());
        assert!(certain < variance / 4.0, "{certain} {variance}");
        assert!(alike.share(|part| part.firmware.read_ahead_always) > 0.5);
        assert!(compared.share(|part| part.firmware.read_ahead_always) < 0.2);
        let cost = |always: usize| compared.unlikely(&all[always].firmware);
        assert!(cost(7) > cost(0) + 1.0, "{} {}", cost(7), cost(0));
    }

    #[test]
    fn two_parts_show_no_scatter() {
        let few = Others::new(families()[..2].to_vec());
        assert_eq!(few.expected(|_| true, program_over_bus), None);
        assert_eq!(few.share(|part| part.firmware.read_ahead_always), 0.5);
        assert_eq!(Others::default().share(|_| true), 0.5);
    }

    /// What only the parts of one kind have is expected of these.
    #[test]
    fn a_condition_chooses_the_parts() {
        let all = families();
        let others = Others::new(all.clone());
        let slow = others.expected(|part| part.firmware.read_ahead_always, program_over_bus).unwrap()[0];
        assert!((slow.exp() - 4.0).abs() < 0.1, "{}", slow.exp());
    }
}
