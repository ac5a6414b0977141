//! A table that a suite has computed, as opposed to a layout of its measurements.

use serde::{Deserialize, Serialize};

/// Rows of figures under columns that each have a unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Grid {
    /// Its title, e.g. `align, read`.
    pub name: String,
    /// The heading of the rows, e.g. `boundary`.
    pub rows: String,
    /// Its columns.
    pub columns: Vec<GridColumn>,
    /// Its rows, in display order.
    pub lines: Vec<GridLine>,
    /// Explanation of the table.
    pub caption: String,
}

/// A column of a [`Grid`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GridColumn {
    /// What it is.
    pub name: String,
    /// Its unit; empty for plain numbers.
    pub unit: String,
}

/// A row of a [`Grid`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GridLine {
    /// Its label, e.g. `4 MiB`.
    pub row: String,
    /// A value for each column; empty if there is none.
    pub values: Vec<Option<f64>>,
}

impl Grid {
    /// A grid without rows; columns as name and unit.
    pub fn new(name: impl Into<String>, rows: &str, columns: &[(&str, &str)], caption: impl Into<String>) -> Self {
        let column = |(name, unit): &(&str, &str)| GridColumn { name: (*name).into(), unit: (*unit).into() };
        Self {
            name: name.into(),
            rows: rows.into(),
            columns: columns.iter().map(column).collect(),
            lines: Vec::new(),
            caption: caption.into(),
        }
    }

    /// Adds a row in which every value is known.
    pub fn line(&mut self, row: impl Into<String>, values: &[f64]) {
        self.lines.push(GridLine { row: row.into(), values: values.iter().copied().map(Some).collect() });
    }

    /// The value at a row and a column, by their names.
    pub fn value(&self, row: &str, column: &str) -> Option<f64> {
        let index = self.columns.iter().position(|known| known.name == column)?;
        self.lines.iter().find(|line| line.row == row)?.values.get(index).copied().flatten()
    }
}
