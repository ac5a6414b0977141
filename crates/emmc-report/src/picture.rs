use crate::Table;

/// Figures as a drawing without a script; as a table in text.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// What it shows.
    pub title: String,
    /// A description.
    pub caption: String,
    /// How it is drawn.
    pub drawing: Drawing,
    /// The same figures.
    pub table: Table,
}

/// How figures are drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Drawing {
    /// Rows and columns of coloured cells.
    Matrix(Matrix),
    /// Lines over a common axis.
    Curve(Curve),
}

/// Figures in rows and columns; larger figures have darker cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    /// What the rows are of: `record KiB`.
    pub rows_title: String,
    /// Left of each row.
    pub rows: Vec<String>,
    /// Above each column.
    pub columns: Vec<String>,
    /// The unit of every figure.
    pub unit: String,
    /// Row by row; `None` if there is no figure.
    pub values: Vec<Vec<Option<f64>>>,
}

/// One figure over another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// What the horizontal axis counts.
    pub x_title: String,
    /// The vertical axis, with its unit.
    pub y_title: String,
    /// The points, left to right.
    pub points: Vec<(f64, f64)>,
}

#[cfg(any(feature = "html", test))]
impl Matrix {
    /// The smallest and the largest figure above zero.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        let known = self.values.iter().flatten().flatten().copied().filter(|value| value.is_finite() && *value > 0.0);
        known.fold(None, |range, value| {
            Some(range.map_or((value, value), |(low, high): (f64, f64)| (low.min(value), high.max(value))))
        })
    }

    /// Shade of a cell, 0 to 1, by the logarithm of its figure: speeds differ by powers of ten.
    pub(crate) fn shade(&self, value: f64) -> f64 {
        match self.range() {
            Some((low, high)) if high > low && value > 0.0 => ((value / low).ln() / (high / low).ln()).clamp(0.0, 1.0),
            _ => 0.5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_are_logarithmic_and_in_range() {
        let values = vec![vec![Some(1.0), None], vec![Some(10.0), Some(100.0)], vec![Some(f64::NAN), Some(0.0)]];
        let matrix = Matrix { values, ..Matrix::default() };
        assert_eq!(matrix.range(), Some((1.0, 100.0)));
        assert_eq!([1.0, 10.0, 100.0, 1000.0].map(|value| matrix.shade(value)), [0.0, 0.5, 1.0, 1.0]);
        assert_eq!(Matrix::default().shade(3.0), 0.5);
    }
}
