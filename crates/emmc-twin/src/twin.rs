//! A fit with its errors, intervals and predictions; a check of a profile; the baseline.

use std::cell::Cell as Counter;

use emmc_card::profile::{Profile, ProfileError};
use emmc_regs::CardKind;

use crate::baseline::{copied, lines};
use crate::fit::{Fitted, Simulator, plausible, search};
use crate::part::{PARAMETERS, Part};
use crate::result::{Baseline, Checked, ErrorSummary, HeldOut, HoldOut, ParameterFound, Twin, side_by_side};
use crate::simulate::SimulateError;
use crate::table::{Cell, Column, MeasuredTable};

/// A parameter whose logarithm has a smaller standard deviation is determined to a factor of two (95 %).
const DETERMINED: f64 = 0.35;
/// Beyond it two parameters cannot be told apart.
const CONFOUNDED: f64 = 0.9;

/// Why there is no twin.
#[derive(Debug, thiserror::Error)]
pub enum TwinError {
    /// There is nothing to compare.
    #[error("no measured cell can be predicted")]
    Nothing,
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
    measured: &MeasuredTable,
    (split, like): (Option<HoldOut>, &[Profile]),
    simulator: &Simulator<'_>,
) -> Result<(Profile, Twin), TwinError> {
    let others: Vec<Part> = like.iter().filter_map(Part::of).collect();
    let simulations = Counter::new(0);
    let counted = |profiles: &[Profile], records: &[u64], file_bytes: u64| {
        simulations.set(simulations.get() + profiles.len() as u64);
        simulator(profiles, records, file_bytes)
    };
    // A search takes minutes: what no profile can follow is said before.
    if let Some(firmware) = plausible(&measured.cells).first() {
        predicted(&Part::start(kind, *firmware, false, &measured.cells).profile()?, measured, &counted)?;
    }
    let fitted = searched(kind, &measured.cells, measured.file_bytes, (&others, &counted))?;
    let profile = fitted.part.profile()?;
    let cells = side_by_side(&measured.cells, &predicted(&profile, measured, &counted)?);
    let error = ErrorSummary::of_cells(&cells).ok_or(TwinError::Nothing)?;
    let logarithms: Vec<f64> = cells.iter().map(|cell| (cell.error_percent / 100.0).ln_1p()).collect();
    let parameters = parameters(&fitted, fitted.scale(&logarithms));
    let held_out = match split {
        Some(split) => held_out(kind, measured, split, (&others, &counted))?,
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
    };
    Ok((profile, twin))
}

/// Measures a profile and compares.
///
/// Errors: a profile that makes no card, or one too small.
pub fn check(profile: &Profile, measured: &MeasuredTable, simulator: &Simulator<'_>) -> Result<Checked, TwinError> {
    let cells = side_by_side(&measured.cells, &predicted(profile, measured, simulator)?);
    let error = ErrorSummary::of_cells(&cells).ok_or(TwinError::Nothing)?;
    Ok(Checked { measurements: String::new(), target: None, profile: profile.name.clone(), cells, error })
}

/// What fits of these tables must beat.
///
/// Errors: tables without cells.
pub fn baseline(tables: &[(String, MeasuredTable)]) -> Result<Baseline, TwinError> {
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

fn searched(
    kind: CardKind,
    training: &[Cell],
    file_bytes: u64,
    (others, simulator): (&[Part], &Simulator<'_>),
) -> Result<Fitted, TwinError> {
    search(kind, training, file_bytes, (others, simulator)).ok_or(TwinError::Nothing)
}

fn predicted(profile: &Profile, wanted: &MeasuredTable, simulator: &Simulator<'_>) -> Result<Vec<Cell>, TwinError> {
    let mut records: Vec<u64> = wanted.cells.iter().map(|cell| cell.kib).collect();
    records.dedup();
    simulator(std::slice::from_ref(profile), &records, wanted.file_bytes)
        .pop()
        .ok_or(TwinError::Nothing)?
        .map_err(TwinError::from)
}

fn parameters(fitted: &Fitted, scale: f64) -> Vec<ParameterFound> {
    let covariance = fitted.covariance(scale);
    let correlation =
        |a: usize, b: usize| covariance.as_ref().map_or(0.0, |all| all[(a, b)] / (all[(a, a)] * all[(b, b)]).sqrt());
    let found = |(index, parameter): (usize, &crate::part::Parameter)| {
        let deviation = covariance.as_ref().map_or(f64::INFINITY, |all| all[(index, index)].sqrt());
        let (value, factor) = (fitted.part.values[index], (1.96 * deviation).exp());
        let others = PARAMETERS.iter().enumerate().filter(|(other, _)| *other != index);
        let confounded = others.filter(|(other, _)| correlation(index, *other).abs() > CONFOUNDED);
        ParameterFound {
            name: parameter.name,
            what: parameter.what,
            unit: parameter.unit,
            value,
            low: (value / factor).max(parameter.low.min(value)),
            high: (value * factor).min(parameter.high.max(value)),
            is_determined: deviation < DETERMINED,
            confounded_with: confounded.map(|(_, other)| other.name).collect(),
        }
    };
    let used = PARAMETERS.iter().enumerate().filter(|(_, parameter)| fitted.part.uses(parameter));
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
            let mut records: Vec<u64> = cells.iter().map(|cell| cell.kib).collect();
            records.dedup();
            let place = |cell: &Cell| records.iter().position(|kib| *kib == cell.kib).unwrap_or(0);
            [0, 1].map(|half| divided(&|cell| place(cell) % 2 == half)).into()
        }
    }
}

fn held_out(
    kind: CardKind,
    measured: &MeasuredTable,
    split: HoldOut,
    (others, simulator): (&[Part], &Simulator<'_>),
) -> Result<Option<HeldOut>, TwinError> {
    let (mut cells, mut by_lines, mut by_copies) = (Vec::new(), Vec::new(), Vec::new());
    for (training, left) in splits(&measured.cells, split) {
        if training.is_empty() || left.is_empty() {
            return Ok(None);
        }
        let profile = searched(kind, &training, measured.file_bytes, (others, simulator))?.part.profile()?;
        // The passes of the left-out cells run among the others, as they did on the card.
        cells.extend(side_by_side(&left, &predicted(&profile, measured, simulator)?));
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
            .flat_map(|kib| Column::ALL.map(|column| Cell { column, kib, us: 1.0 }))
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
        let cells = [4, 128].into_iter().flat_map(|kib| Column::ALL.map(|column| Cell { column, kib, us: 500.0 }));
        let table = MeasuredTable { cells: cells.collect(), file_bytes: 1 << 20 };
        let asked = Counter::new(0);
        let none = |profiles: &[Profile], records: &[u64], _: u64| {
            asked.set(asked.get() + profiles.len());
            assert_eq!(records, [4, 128]);
            profiles.iter().map(|_| Err(SimulateError::Card("no room".into()))).collect()
        };
        assert_eq!(fit(CardKind::Sd, &table, (None, &[]), &none).unwrap_err().to_string(), "no room");
        assert_eq!(asked.get(), 1, "the search began");
    }
}
