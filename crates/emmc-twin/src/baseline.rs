//! What a fit must beat: a line for each column, and one column taken for another.

use crate::cell::{Cell, Column, time};

/// Time = a + b x record for each column, both not negative, the least sum of squared relative errors of the
/// `training` cells; the prediction of `wanted`. A column with fewer than two records has none.
pub(crate) fn lines(training: &[Cell], wanted: &[(Column, u64)]) -> Vec<Option<Cell>> {
    let line = |column| {
        let cells: Vec<&Cell> = training.iter().filter(|cell| cell.column == column).collect();
        (cells.len() >= 2).then(|| fitted(&cells))
    };
    let known = Column::IOZONE.map(line);
    let predict = |&(column, kib): &(Column, u64)| {
        let place = Column::IOZONE.iter().position(|one| *one == column)?;
        let (fixed, slope) = known[place]?;
        Some(Cell { column, kib, us: fixed + slope * kib as f64 })
    };
    wanted.iter().map(predict).collect()
}

/// Weighted least squares: each residual over its own time.
fn fitted(cells: &[&Cell]) -> (f64, f64) {
    let sum = |of: &dyn Fn(f64, f64) -> f64| cells.iter().map(|cell| of(cell.kib as f64, cell.us)).sum::<f64>();
    let (aa, ab, bb) = (sum(&|_, t| 1.0 / (t * t)), sum(&|s, t| s / (t * t)), sum(&|s, t| s * s / (t * t)));
    let (a, b) = (sum(&|_, t| 1.0 / t), sum(&|s, t| s / t));
    let determinant = aa * bb - ab * ab;
    if determinant <= 1e-12 * aa * bb {
        return (a / aa, 0.0);
    }
    let (fixed, slope) = ((a * bb - b * ab) / determinant, (aa * b - ab * a) / determinant);
    if fixed < 0.0 {
        (0.0, b / bb)
    } else if slope < 0.0 {
        (a / aa, 0.0)
    } else {
        (fixed, slope)
    }
}

/// The time of the column that is most like it: writes for rewrites and random writes, reads for rereads.
pub(crate) fn copied(training: &[Cell], wanted: &[(Column, u64)]) -> Vec<Option<Cell>> {
    let copy = |&(column, kib): &(Column, u64)| {
        let from = match column {
            Column::Rewrite | Column::RandomWrite => Column::Write,
            Column::Reread | Column::RandomRead => Column::Read,
            _ => return None,
        };
        time(training, from, kib).map(|us| Cell { column, kib, us })
    };
    wanted.iter().map(copy).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_through_points_of_a_line_is_exact_and_never_falls_below_zero() {
        let cell = |kib: u64, us| Cell { column: Column::Read, kib, us };
        let points = [cell(4, 140.0), cell(16, 260.0), cell(128, 1380.0)];
        let found = lines(&points, &[(Column::Read, 64), (Column::Write, 64)]);
        assert!((found[0].unwrap().us - 740.0).abs() < 1e-6 && found[1].is_none());
        let falling = [cell(4, 900.0), cell(16, 500.0)];
        assert!(lines(&falling, &[(Column::Read, 1 << 20)])[0].unwrap().us > 0.0);
        let through_zero = [cell(4, 1.0), cell(16, 100.0)];
        assert!(lines(&through_zero, &[(Column::Read, 1)])[0].unwrap().us > 0.0);
    }
}
