//! Published results, compiled in, for comparison by name.
//!
//! Source: `testdata/`, whose README says where each was published; a test regenerates the files in `reference/` from
//! it. Absent on purpose: figures that were published without their conditions, and MB for MiB: rates are converted.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::import::{SavedResult, iozone_measurements};
use crate::result::grid::Grid;
use crate::result::{Outcome, Pivot};

/// The prefix of a reference's name, where a file name is also possible.
pub const PREFIX: &str = "ref:";
/// The collections.
const COLLECTIONS: [&str; 4] = [
    include_str!("../../../reference/nine-cards.json"),
    include_str!("../../../reference/board-vendor.json"),
    include_str!("../../../reference/open-units-2011.json"),
    include_str!("../../../reference/white-paper.json"),
];

/// A published result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reference {
    /// Its name after `ref:`.
    pub name: String,
    /// What was measured.
    pub about: String,
    /// Where it was published.
    pub source: String,
    /// iozone's columns as published, KiB a second by record size in KiB, of files of 100 MiB.
    pub iozone: Option<Grid>,
    /// Everything else.
    pub outcomes: Vec<Outcome>,
}

impl Reference {
    /// As a result that can be compared.
    pub fn result(self) -> SavedResult {
        let mut outcomes = self.outcomes;
        outcomes.splice(0..0, self.iozone.as_ref().map(iozone));
        let mut result = SavedResult { name: format!("{PREFIX}{}", self.name), outcomes, ..SavedResult::default() };
        result.target = Some(self.about);
        result.context.notes.push(format!("published: {}", self.source));
        result
    }
}

/// The file size of the published iozone runs. Unit: KiB.
const IOZONE_FILE_KIB: u64 = 100 << 10;

fn iozone(grid: &Grid) -> Outcome {
    let pivot = Pivot {
        table: "iozone".into(),
        rows: grid.rows.clone(),
        unit: "KiB/s".into(),
        caption: "KiB a second, as published".into(),
    };
    let mut outcome = Outcome { suite: "iozone".into(), about: grid.caption.clone(), ..Outcome::default() };
    outcome.tables.push(pivot);
    for line in &grid.lines {
        let Ok(record) = line.row.parse::<u64>() else { continue };
        let cells = grid.columns.iter().zip(&line.values);
        let cells =
            cells.filter_map(|(column, value)| iozone_measurements(IOZONE_FILE_KIB, record, &column.name, (*value)?));
        outcome.measurements.extend(cells);
    }
    outcome
}

/// All of them, in list order.
pub fn references() -> Vec<Reference> {
    let read = |text| serde_json::from_str::<Vec<Reference>>(text).unwrap_or_default();
    COLLECTIONS.into_iter().flat_map(read).collect()
}

/// The reference with a name.
pub fn reference(name: &str) -> Option<Reference> {
    references().into_iter().find(|reference| reference.name == name)
}
