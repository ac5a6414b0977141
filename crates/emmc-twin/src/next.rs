//! Which measurement to make next: the one after which the intervals of the parameters are expected to be narrowest.
//!
//! The slopes of cells that were not measured come from the simulator at the fitted point, as those of measured cells
//! did; with them, the covariance after a measurement is known before it is made.

use nalgebra::{DMatrix, DVector};

use crate::cell::{Cell, Column, Figure, Requests, time};
use crate::fit::{Fitted, Simulator, simulated};
use crate::measured::Measured;
use crate::part::Part;
use crate::result::NextMeasurement;
use crate::simulate::Plan;

/// Files of iozone for the slopes. Unit: bytes.
const FILE_BYTES: u64 = 16 << 20;
/// The range of the suite `speed`. Unit: bytes.
const SPEED_BYTES: u64 = 64 << 20;
/// What the suite `burst` writes. Unit: bytes.
const BURST_BYTES: u64 = 256 << 20;
/// A logarithm of which no more than this is known does not count: other measurements are needed. A factor of 4.5.
const WIDE: f64 = 1.5;

/// A measurement that could be made.
struct Candidate {
    what: &'static str,
    command: String,
    cells: Vec<Cell>,
}

fn candidates(measured: &Measured) -> Vec<Candidate> {
    let cell = |column, kib| Cell { column, kib, us: 1.0 };
    let iozone = |records: &[u64], columns: &[Column]| -> Vec<Cell> {
        records.iter().flat_map(|kib| columns.iter().map(move |column| cell(*column, *kib))).collect()
    };
    let requests = |is_aged, is_write, depth, figure| {
        cell(Column::Requests(Requests { is_aged, is_write, is_random: true, depth, figure }), 4)
    };
    let records = |what, records: [u64; 3]| {
        let rows = records.map(|kib| kib.to_string()).join(",");
        let command = format!("emmclab bench DEVICE --suite iozone --rows {rows}");
        Candidate { what, command, cells: iozone(&records, &Column::IOZONE) }
    };
    let all = vec![
        records("records of less than a page", [1, 2, 8]),
        records("records around the largest write to the log", [32, 64, 128]),
        records("records around the merge unit", [128, 256, 512]),
        Candidate {
            what: "random requests one at a time and 32 at a time",
            command: "emmclab bench DEVICE --suite speed".into(),
            cells: [(true, 1), (true, 32), (false, 1), (false, 32)]
                .map(|(is_write, depth)| requests(false, is_write, depth, Figure::Rate))
                .to_vec(),
        },
        Candidate {
            what: "random writes to a full card",
            command: "emmclab bench DEVICE --suite steady".into(),
            cells: vec![requests(true, true, 1, Figure::Rate), requests(true, true, 1, Figure::P99)],
        },
        Candidate {
            what: "a burst of small random writes until they become slow",
            command: "emmclab bench DEVICE --suite burst".into(),
            cells: vec![Cell::burst(BURST_BYTES as f64)],
        },
    ];
    let is_new = |one: &Cell| time(&measured.cells, one.column, one.kib).is_none();
    let without = |candidate: Candidate| {
        let cells: Vec<Cell> = candidate.cells.into_iter().filter(is_new).collect();
        Candidate { cells, ..candidate }
    };
    all.into_iter().map(without).filter(|candidate| !candidate.cells.is_empty()).collect()
}

/// The measurements, the most useful one first. Empty where the simulator has no values, or for a card that maps
/// allocation units.
pub(crate) fn next(
    fitted: &Fitted,
    measured: &Measured,
    scale: f64,
    simulator: &Simulator<'_>,
) -> Vec<NextMeasurement> {
    let part = &fitted.part;
    let before = fitted.covariance(scale).filter(|_| part.firmware.segment.is_none());
    let Some(mut before) = before else { return Vec::new() };
    let candidates = candidates(measured);
    let mut cells: Vec<Cell> = candidates.iter().flat_map(|candidate| candidate.cells.clone()).collect();
    cells.sort_by_key(|cell| (cell.column, cell.kib));
    cells.dedup_by_key(|cell| (cell.column, cell.kib));
    let seen: Vec<Cell> = measured.cells.iter().chain(&cells).copied().collect();
    let used: Vec<usize> =
        (0..part.values.len()).filter(|index| part.uses(&part.parameters()[*index], &seen)).collect();
    // Nothing is known yet of what no cell has shown.
    for index in used.iter().copied().filter(|index| !part.uses(&part.parameters()[*index], &measured.cells)) {
        before[(index, index)] = WIDE * WIDE;
    }
    let file_bytes = FILE_BYTES.min(measured.file_bytes.max(1 << 20));
    let plan = Plan {
        measured: Measured {
            cells,
            file_bytes,
            range_bytes: SPEED_BYTES,
            burst_bytes: BURST_BYTES,
            ..Measured::default()
        },
        is_search: true,
    };
    let at: Vec<f64> = part.values.iter().map(|value| value.ln()).collect();
    let share = file_bytes as f64 / measured.file_bytes.max(1) as f64;
    let points = std::iter::once(at.clone()).chain((0..at.len()).map(|index| {
        let mut moved = at.clone();
        moved[index] += part.parameters()[index].step;
        moved
    }));
    let parts: Vec<Part> = points.map(|point| part.at(&point)).collect();
    let simulated: Option<Vec<_>> = simulated(&parts, share, &plan, simulator).into_iter().collect();
    let Some(simulated) = simulated else { return Vec::new() };
    let Some((base, moved)) = simulated.split_first() else { return Vec::new() };
    let slopes = |cell: &Cell| {
        let slope = |index: usize| {
            let [here, there] = [base, &moved[index]].map(|cells| time(cells, cell.column, cell.kib).map(f64::ln));
            Some((there? - here?) / part.parameters()[index].step)
        };
        (0..at.len()).map(slope).collect::<Option<Vec<f64>>>().map(DVector::from_vec)
    };
    let mut found: Vec<NextMeasurement> =
        candidates.iter().map(|candidate| judged(candidate, (part, &used), (&before, scale), &slopes)).collect();
    found.sort_by(|a, b| b.narrower_percent.total_cmp(&a.narrower_percent));
    found
}

/// How much narrower the intervals become.
fn judged(
    candidate: &Candidate,
    (part, used): (&Part, &[usize]),
    (before, scale): (&DMatrix<f64>, f64),
    slopes: &dyn Fn(&Cell) -> Option<DVector<f64>>,
) -> NextMeasurement {
    let deviation = |covariance: &DMatrix<f64>, index: usize| covariance[(index, index)].max(0.0).sqrt().min(WIDE);
    let mut after = before.clone();
    for slope in candidate.cells.iter().filter_map(slopes) {
        // One more observation, by Sherman and Morrison.
        let gain = &after * &slope;
        let spread = scale * scale + slope.dot(&gain);
        after -= &gain * gain.transpose() / spread;
    }
    let parameters = part.parameters();
    let ratio = |index: &usize| deviation(&after, *index) / deviation(before, *index).max(f64::MIN_POSITIVE);
    let mean = used.iter().map(|index| ratio(index).max(1e-3).ln()).sum::<f64>() / used.len().max(1) as f64;
    let mut most: Vec<usize> = used.iter().copied().filter(|index| ratio(index) < 0.7).collect();
    most.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    NextMeasurement {
        what: candidate.what,
        command: candidate.command.clone(),
        narrower_percent: (1.0 - mean.exp()) * 100.0,
        parameters: most.into_iter().take(4).map(|index| parameters[index].name).collect(),
    }
}

#[cfg(test)]
mod tests {
    use emmc_card::profile::Profile;
    use emmc_regs::CardKind;

    use super::*;
    use crate::known::Known;
    use crate::least_squares::Minimum;
    use crate::part::{PARAMETERS, firmwares, index};
    use crate::simulate::simulate;

    /// A parameter that the part does not have gains nothing; one that no cell has shown yet gains by those that do.
    #[test]
    fn what_is_not_used_is_not_narrowed() {
        let cell = |column, kib| Cell { column, kib, us: 300.0 };
        let cells: Vec<Cell> = [4, 64].into_iter().flat_map(|kib| Column::IOZONE.map(|one| cell(one, kib))).collect();
        let part = Part::start(CardKind::Emmc, firmwares()[0], false, (&cells, &Known::default()));
        let count = part.values.len();
        let minimum = Minimum { at: Vec::new(), jacobian: DMatrix::zeros(cells.len(), count), cost: 1.0 };
        // As an ensemble has it: what is not searched does not scatter.
        let searched = |index: usize| if part.uses(&PARAMETERS[index], &cells) { 0.25 } else { 0.0 };
        let scatter = DMatrix::from_diagonal(&DVector::from_fn(count, |index, _| searched(index)));
        let fitted = Fitted { part: part.clone(), minimum, priors: Vec::new(), scatter: Some(scatter) };
        let measured = Measured { cells, file_bytes: 8 << 20, range_bytes: 16 << 20, ..Measured::default() };
        let each = |profiles: &[Profile], plan: &Plan| profiles.iter().map(|one| simulate(one, plan)).collect();
        let found = next(&fitted, &measured, 0.03, &each);
        let names = |found: &NextMeasurement| found.parameters.clone();
        assert!(found.len() == 6 && found.iter().all(|one| !names(one).contains(&PARAMETERS[index::COMMIT].name)));
        assert!(found.iter().all(|one| (0.0..90.0).contains(&one.narrower_percent)), "{found:?}");
        let full = found.iter().find(|one| one.what.contains("full card")).unwrap();
        assert!(names(full).contains(&"over_provisioning"), "{full:?}");
    }
}
