//! The twin of a card: the profile whose simulated measurements match those of a part.
//!
//! `measured` has what was measured, in cells (`cell`); `part` has the parameters, the same for every card, and makes a
//! profile of them, `segment` those of cards that map allocation units; `known` is what registers and a host say;
//! `simulate` measures that profile as the part was; `fit` searches; `twin` reports errors, intervals and predictions;
//! `next` ranks measurements that were not made; `text` writes the profile; `baseline` is what a fit must beat; `truth`
//! has random cards with known parameters. Nothing is looked up: a part's name plays no role. Absent on purpose:
//! threads (the caller simulates profiles side by side), files, presentation.

mod baseline;
mod cell;
mod ensemble;
mod fit;
mod forms;
mod interval;
mod known;
mod least_squares;
mod measured;
mod next;
mod parameters;
mod part;
mod prior;
mod result;
mod segment;
mod simulate;
mod text;
#[cfg(feature = "truth")]
pub mod truth;
mod twin;
pub mod what_if;

pub use cell::{Cell, Column, Figure, Requests};
pub use fit::Simulator;
pub use known::Known;
pub use measured::{CellsError, Measured};
pub use part::Firmware;
pub use prior::PARTS_MIN as LIKE_MIN;
pub use result::{Baseline, CellError, Checked, ErrorSummary, HeldOut, HoldOut, NextMeasurement, ParameterFound, Twin};
pub use segment::Segment;
pub use simulate::{Plan, SimulateError, simulate};
pub use text::to_toml;
pub use twin::{TwinError, baseline, check, fit, hold_out};

/// Whether a profile has all parameters of a fit, so that it can be one of the parts that another fit is like.
pub fn is_fitted(profile: &emmc_card::profile::Profile) -> bool {
    part::Part::of(profile).is_some()
}
