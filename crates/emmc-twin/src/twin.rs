//! A fit with its errors, intervals and predictions; a check of a profile; the baseline.

use std::cell::Cell as Counter;

use emmc_card::profile::{Profile, ProfileError};
use emmc_regs::CardKind;

use crate::baseline::{copied, lines};
use crate::cell::{Cell, Column, records};
use crate::fit::{Fitted, Given, Simulator, scale, search};
use crate::interval::{DETERMINED, intervals};
use crate::known::Known;
use crate::measured::Measured;
use crate::next::next;
use crate::part::{Part, plausible};
use crate::result::{Baseline, Checked, ErrorSummary, HeldOut, HoldOut, ParameterFound, Twin, side_by_side};
use crate::segment;
use crate::simulate::Plan;
use crate::simulate::SimulateError;
use crate::text::rounded;

/// Beyond it two parameters cannot be told apart.
const CONFOUNDED: f64 = 0.9;

/// Why there is no twin.
#[derive(Debug, thiserror::Error)]
pub enum TwinError {
    /// There is nothing to compare.
    #[error("no measured cell can be predicted")]
    Nothing,
    /// No form has a start.
    #[error("no number of units makes the rates fall to a third; expected runs of flashbench -O on both sides of that")]
    NoCliff,
    /// A profile of the search breaks a rule.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A profile cannot be measured as the table was.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
}

/// Fits a profile to cells.
///
/// Errors: measurements for which no profile keeps the rules; records or a file that the virtual card cannot have.
pub fn fit(
    kind: CardKind,
    measured: &Measured,
    (split, like, known): (Option<HoldOut>, &[Profile], &Known),
    simulator: &Simulator<'_>,
) -> Result<(Profile, Twin), TwinError> {
    let simulations = Counter::new(0);
    let counted = |profiles: &[Profile], plan: &Plan| {
        simulations.set(simulations.get() + profiles.len() as u64);
        simulator(profiles, plan)
    };
    let given = Given { others: like.iter().filter_map(Part::of).collect(), known, simulator: &counted };
    // A search takes minutes: what no profile can follow is said before.
    let first = match records(&measured.cells).is_empty() {
        true => segment::starts(kind, &measured.cells, measured.unit_bytes).into_iter().next(),
        false => plausible(&measured.cells).first().map(|one| Part::start(kind, *one, false, (&measured.cells, known))),
    };
    predicted(&first.ok_or(TwinError::NoCliff)?.knowing(known).profile()?, measured, &counted)?;
    let fitted = search(kind, measured, &given).ok_or(TwinError::Nothing)?;
    let profile = rounded(fitted.part.profile()?);
    let cells = side_by_side(&measured.cells, &predicted(&profile, measured, &counted)?);
    let error = ErrorSummary::of_cells(&cells).ok_or(TwinError::Nothing)?;
    let logarithms: Vec<f64> = cells.iter().map(|cell| (cell.error_percent / 100.0).ln_1p()).collect();
    let scale = scale(&logarithms, fitted.part.values.len());
    let parameters = parameters(&fitted, measured, &given, scale);
    let next = next(&fitted, measured, scale, &counted);
    let held_out = match split {
        Some(split) => predictions(kind, measured, split, &given)?,
        None => None,
    };
    let twin = Twin {
        measurements: String::new(),
        target: None,
        firmware: fitted.part.firmware,
        parameters,
        cells,
        error,
        held_out,
        simulations: simulations.get(),
        next,
        left_out: measured.left_out.clone(),
        notes: Vec::new(),
    };
    Ok((profile, twin))
}

/// Measures a profile and compares.
///
/// Errors: a profile that makes no card, or one too small.
pub fn check(profile: &Profile, measured: &Measured, simulator: &Simulator<'_>) -> Result<Checked, TwinError> {
    let cells = side_by_side(&measured.cells, &predicted(profile, measured, simulator)?);
    let error = ErrorSummary::of_cells(&cells).ok_or(TwinError::Nothing)?;
    let left_out = measured.left_out.clone();
    Ok(Checked {
        measurements: String::new(),
        target: None,
        profile: profile.name.clone(),
        cells,
        error,
        left_out,
        notes: Vec::new(),
    })
}

/// What fits of these tables must beat.
///
/// Errors: tables without cells.
pub fn baseline(tables: &[(String, Measured)]) -> Result<Baseline, TwinError> {
    let errors = |predict: &dyn Fn(&[Cell]) -> Vec<f64>| {
        ErrorSummary::of(tables.iter().flat_map(|(_, table)| predict(&table.cells)))
    };
    let in_sample = |cells: &[Cell]| simple_errors(cells, &lines(cells, &wanted(cells)));
    let halves = |cells: &[Cell]| -> Vec<f64> {
        let predict =
            |(training, left): (Vec<Cell>, Vec<Cell>)| simple_errors(&left, &lines(&training, &wanted(&left)));
        splits(cells, HoldOut::EverySecond).into_iter().flat_map(predict).collect()
    };
    let copies = |cells: &[Cell]| simple_errors(cells, &copied(cells, &wanted(cells)));
    Ok(Baseline {
        measurements: tables.iter().map(|(name, _)| name.clone()).collect(),
        lines: errors(&in_sample).ok_or(TwinError::Nothing)?,
        lines_every_second: errors(&halves),
        copied: errors(&copies),
    })
}

fn predicted(profile: &Profile, wanted: &Measured, simulator: &Simulator<'_>) -> Result<Vec<Cell>, TwinError> {
    let plan = Plan { measured: wanted.clone(), is_search: false };
    simulator(std::slice::from_ref(profile), &plan).pop().ok_or(TwinError::Nothing)?.map_err(TwinError::from)
}

fn parameters(fitted: &Fitted, measured: &Measured, given: &Given<'_>, scale: f64) -> Vec<ParameterFound> {
    let cells = &measured.cells;
    let reaches = intervals(fitted, measured, given, scale);
    let all = fitted.part.parameters();
    let is_used = |parameter: &crate::part::Parameter| fitted.part.uses(parameter, cells);
    let covariance = fitted.covariance(scale);
    let correlation =
        |a: usize, b: usize| covariance.as_ref().map_or(0.0, |all| all[(a, b)] / (all[(a, a)] * all[(b, b)]).sqrt());
    let found = |(index, parameter): (usize, &crate::part::Parameter)| {
        let value = fitted.part.values[index];
        let [down, up] = reaches[index].map(f64::exp);
        let others = all.iter().enumerate().filter(|(other, parameter)| *other != index && is_used(parameter));
        let confounded = others.filter(|(other, _)| correlation(index, *other).abs() > CONFOUNDED);
        ParameterFound {
            name: parameter.name,
            what: parameter.what,
            unit: parameter.unit,
            value,
            low: (value / down).max(parameter.low.min(value)),
            high: (value * up).min(parameter.high.max(value)),
            is_determined: reaches[index].iter().all(|reach| *reach < DETERMINED),
            confounded_with: confounded.map(|(_, other)| other.name).collect(),
        }
    };
    let used = all.iter().enumerate().filter(|(_, parameter)| is_used(parameter));
    used.map(found).collect()
}

/// Training and left-out cells of each part of a split.
fn splits(cells: &[Cell], split: HoldOut) -> Vec<(Vec<Cell>, Vec<Cell>)> {
    let divided = |is_left: &dyn Fn(&Cell) -> bool| cells.iter().copied().partition(|cell| !is_left(cell));
    match split {
        HoldOut::Columns => {
            let left = [Column::Rewrite, Column::Reread, Column::RandomWrite];
            vec![divided(&|cell| left.contains(&cell.column))]
        }
        HoldOut::EverySecond => {
            let records = records(cells);
            let place = |cell: &Cell| records.iter().position(|kib| *kib == cell.kib).unwrap_or(0);
            [0, 1].map(|half| divided(&|cell| place(cell) % 2 == half)).into()
        }
    }
}

/// Predicts cells that fits of the others have not seen; nothing if a half has none.
///
/// Errors: as [`fit`].
pub fn hold_out(
    kind: CardKind,
    measured: &Measured,
    (split, like): (HoldOut, &[Profile]),
    simulator: &Simulator<'_>,
) -> Result<Option<HeldOut>, TwinError> {
    let others = like.iter().filter_map(Part::of).collect();
    predictions(kind, measured, split, &Given { others, known: &Known::default(), simulator })
}

fn predictions(
    kind: CardKind,
    measured: &Measured,
    split: HoldOut,
    given: &Given<'_>,
) -> Result<Option<HeldOut>, TwinError> {
    let (mut cells, mut by_lines, mut by_copies) = (Vec::new(), Vec::new(), Vec::new());
    for (training, left) in splits(&measured.cells, split) {
        if training.is_empty() || left.is_empty() {
            return Ok(None);
        }
        let profile =
            search(kind, &measured.with(training.clone()), given).ok_or(TwinError::Nothing)?.part.profile()?;
        // The passes of the left-out cells run among the others, as they did on the card.
        cells.extend(side_by_side(&left, &predicted(&profile, measured, given.simulator)?));
        by_lines.extend(simple_errors(&left, &lines(&training, &wanted(&left))));
        by_copies.extend(simple_errors(&left, &copied(&training, &wanted(&left))));
    }
    let Some(ErrorSummary { median, p90, .. }) = ErrorSummary::of_cells(&cells) else { return Ok(None) };
    let [lines, copied] = [by_lines, by_copies].map(ErrorSummary::of);
    Ok(Some(HeldOut { split, median, p90, cells, lines, copied }))
}

fn wanted(cells: &[Cell]) -> Vec<(Column, u64)> {
    cells.iter().map(|cell| (cell.column, cell.kib)).collect()
}

/// Errors of the cells that have a prediction. Unit: %.
fn simple_errors(measured: &[Cell], predicted: &[Option<Cell>]) -> Vec<f64> {
    let pairs = measured.iter().zip(predicted);
    pairs.filter_map(|(cell, found)| Some((cell.us / found.as_ref()?.us - 1.0) * 100.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each cell is left out once by every second record, and a column either wholly or not at all.
    #[test]
    fn splits_leave_out_what_they_say() {
        let all: Vec<Cell> = [1, 4, 16, 128]
            .into_iter()
            .flat_map(|kib| Column::IOZONE.map(|column| Cell { column, kib, us: 1.0 }))
            .collect();
        let halves = splits(&all, HoldOut::EverySecond);
        let mut left: Vec<Cell> = halves.iter().flat_map(|(_, left)| left.clone()).collect();
        left.sort_by_key(|cell| (cell.kib, cell.column));
        assert_eq!(left, all);
        for (training, left) in &halves {
            assert!(training.iter().all(|cell| left.iter().all(|other| other.kib != cell.kib)));
        }
        let columns = splits(&all, HoldOut::Columns);
        let [(training, left)] = columns.as_slice() else { panic!("{columns:?}") };
        assert_eq!((training.len(), left.len()), (12, 12));
        assert!(training.iter().all(|cell| left.iter().all(|other| other.column != cell.column)));
    }

    #[test]
    fn what_cannot_be_simulated_is_said_before_the_search() {
        let cells = [4, 128].into_iter().flat_map(|kib| Column::IOZONE.map(|column| Cell { column, kib, us: 500.0 }));
        let table = Measured { cells: cells.collect(), file_bytes: 1 << 20, ..Measured::default() };
        let asked = Counter::new(0);
        let none = |profiles: &[Profile], plan: &Plan| {
            asked.set(asked.get() + profiles.len());
            assert_eq!(records(&plan.measured.cells), [4, 128]);
            profiles.iter().map(|_| Err(SimulateError::Card("no room".into()))).collect()
        };
        assert_eq!(
            fit(CardKind::Sd, &table, (None, &[], &Known::default()), &none).unwrap_err().to_string(),
            "no room"
        );
        assert_eq!(asked.get(), 1, "the search began");
    }
}
