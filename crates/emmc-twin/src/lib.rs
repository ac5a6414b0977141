//! The twin of a card: the profile whose simulated measurements match those of a part.
//!
//! `table` has what was measured, in cells; `part` has the parameters, the same for every card, and makes a profile of
//! them; `simulate` measures that profile with the suites; `fit` searches; `twin` reports errors, intervals and
//! predictions; `baseline` is what a fit must beat. Nothing is looked up: a part's name plays no role. Absent on
//! purpose: threads (the caller simulates profiles side by side), files, presentation.

mod baseline;
mod fit;
mod least_squares;
mod part;
mod prior;
mod result;
mod simulate;
mod table;
mod twin;
pub mod what_if;

pub use fit::Simulator;
pub use part::Firmware;
pub use result::{Baseline, CellError, Checked, ErrorSummary, HeldOut, HoldOut, ParameterFound, Twin};
pub use simulate::{SimulateError, simulate};
pub use table::{Cell, CellsError, Column, MeasuredTable, cells};
pub use twin::{TwinError, baseline, check, fit};

/// Whether a profile has all parameters of a fit, so that it can be one of the parts that another fit is like.
pub fn is_fitted(profile: &emmc_card::profile::Profile) -> bool {
    part::Part::of(profile).is_some()
}

/// A profile as its file.
///
/// Errors: a value that TOML does not have.
pub fn to_toml(profile: &emmc_card::profile::Profile) -> Result<String, toml::ser::Error> {
    toml::to_string(profile)
}
