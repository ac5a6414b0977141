//! How far errors of neighbouring cells are alike: such cells say the same thing once, not twice.
//!
//! Noise differs from cell to cell. What a twin cannot follow does not: the errors of a record size and the next one,
//! of a write and a rewrite, go the same way. Counted as noise, they would make intervals far too short.
//!
//! Source: the variance of a mean of values with a correlation r from each to the next one is larger by
//! (1 + r) / (1 - r); e.g. Box, Jenkins, Time Series Analysis, on effective sample sizes.

use crate::cell::Column;
use crate::result::CellError;

/// Columns whose cells have the mechanism in common, one after the other.
const NEIGHBOURS: [[Column; 2]; 4] = [
    [Column::Write, Column::Rewrite],
    [Column::Rewrite, Column::RandomWrite],
    [Column::Read, Column::Reread],
    [Column::Reread, Column::RandomRead],
];
/// The most that a correlation counts: a few cells cannot show more.
const MOST: f64 = 0.8;
/// With fewer pairs nothing is known.
const PAIRS_MIN: usize = 8;
/// An error counts as at most this many times the median one.
const CLIPPED: f64 = 3.0;

/// How many times larger the variance of what all cells say is than with independent errors; 1 or more.
pub(crate) fn inflation(cells: &[CellError]) -> f64 {
    let mut sizes: Vec<f64> = cells.iter().map(|cell| cell.logarithm().abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let Some(most) = sizes.get(sizes.len() / 2).map(|median| CLIPPED * median).filter(|most| *most > 0.0) else {
        return 1.0;
    };
    let error = |cell: &CellError| cell.logarithm().clamp(-most, most);
    let by_record: Vec<[f64; 2]> =
        cells.iter().filter_map(|cell| Some([cell, next(cells, cell)?].map(error))).collect();
    let by_column = cells.iter().flat_map(|cell| beside(cells, cell).map(move |other| [cell, other].map(error)));
    [by_record, by_column.collect()].iter().map(|pairs| larger(pairs)).product()
}

/// The cell of the same column at the next larger record.
fn next<'a>(cells: &'a [CellError], cell: &CellError) -> Option<&'a CellError> {
    let larger = cells.iter().filter(|other| other.column == cell.column && other.record_kib > cell.record_kib);
    larger.min_by_key(|other| other.record_kib)
}

/// The cells of the neighbouring columns at the same record.
fn beside<'a>(cells: &'a [CellError], cell: &'a CellError) -> impl Iterator<Item = &'a CellError> {
    let is_next = move |other: &&CellError| {
        NEIGHBOURS.contains(&[cell.column, other.column]) && other.record_kib == cell.record_kib
    };
    cells.iter().filter(is_next)
}

fn larger(pairs: &[[f64; 2]]) -> f64 {
    if pairs.len() < PAIRS_MIN {
        return 1.0;
    }
    let product: f64 = pairs.iter().map(|[a, b]| a * b).sum();
    let squares: f64 = pairs.iter().map(|[a, b]| (a * a + b * b) / 2.0).sum();
    // Noise alone has one of this size by accident.
    let accident = 1.0 / (pairs.len() as f64).sqrt();
    let correlation = (product / squares.max(f64::MIN_POSITIVE) - accident).clamp(0.0, MOST);
    (1.0 + correlation) / (1.0 - correlation)
}

#[cfg(test)]
mod tests {
    use emmc_units::Rng;

    use super::*;

    const COLUMNS: [Column; 6] =
        [Column::Write, Column::Rewrite, Column::RandomWrite, Column::Read, Column::Reread, Column::RandomRead];

    /// A table of 16 records with an error for each, by column and record.
    fn of(mut error: impl FnMut(usize, u32) -> f64) -> f64 {
        let mut cells = Vec::new();
        for (number, column) in COLUMNS.into_iter().enumerate() {
            for record in 0..16 {
                let error_percent = error(number, record).exp_m1() * 100.0;
                let [measured_kib_per_s, twin_kib_per_s] = [1.0; 2];
                let record_kib = 1 << record;
                cells.push(CellError { column, record_kib, measured_kib_per_s, twin_kib_per_s, error_percent });
            }
        }
        inflation(&cells)
    }

    #[test]
    fn noise_is_noise_and_what_goes_the_same_way_counts_once() {
        let mut rng = Rng::new(7);
        let mut noise = || (0..12).map(|_| rng.unit_f64()).sum::<f64>() - 6.0;
        let independent = of(|_, _| 0.02 * noise());
        assert!((1.0..1.5).contains(&independent), "{independent}");
        // A column with one error for each half of its records; the same in neighbouring columns.
        let alike = of(|column, record| if (record < 8) == (column < 3) { 0.05 } else { -0.05 } + 0.005 * noise());
        assert!(alike > 20.0, "{alike}");
        let by_record = of(|column, record| if (record / 4 + column as u32) % 2 == 0 { 0.05 } else { -0.05 });
        assert!((2.0..6.0).contains(&by_record), "{by_record}");
        assert_eq!(of(|_, _| 0.0), 1.0);
        assert_eq!(inflation(&[]), 1.0);
    }
}
