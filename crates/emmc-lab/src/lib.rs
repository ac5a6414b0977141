//! The laboratory: a real Linux (User-Mode Linux) runs a script against a virtual card, both in simulated time.
//!
//! `kernel` finds what is started; `guest` has the scripts that every guest starts with; `machine` starts the
//! kernel's process in a `folder` of the run; `run` serves the card to it and watches both, `boots` joins the records
//! of machines that the script restarts; `cost` has the instructions of the processor's work; `account` sums up the
//! requests that the card saw, by `phase`; `calibration` finds the host's share of them. User page: docs/lab.md.
//! Absent on purpose: how kernel and first file system are built (`cargo xtask guest build --uml`), and the making of
//! cards.

pub mod account;
mod boots;
pub mod calibration;
pub mod cost;
mod error;
pub mod folder;
pub mod guest;
pub mod kernel;
pub mod machine;
pub mod run;

pub use error::LabError;
