//! The geometry and the limits of a flash card, inferred from the times of requests.
//!
//! Probers ask a [`BlockTarget`](emmc_port::BlockTarget) for requests and get their times; each parameter ends as a
//! value with its evidence and a confidence, or as "cannot tell" with the reason. The target owns the clock, so the
//! same probers run on a device in real time and on a virtual card in simulated time. A value has high confidence only
//! if two independent kinds of observation lead to it. Absent on purpose: opening targets and the consent of their
//! owner (`emmc-linux`, `emmclab`), presentation (`emmc-report`).

mod advice;
pub mod bus;
mod capacity;
mod declared;
mod idle;
pub mod noise;
mod order;
mod part;
mod probe;
mod reads;
mod regions;
mod requests;
mod result;
mod robust;
mod saved;
mod steps;
mod suite;
mod sustained;
#[cfg(feature = "truth")]
pub mod truth;
mod units;
mod volatile;
mod written;

pub use advice::layout_advice;
pub use part::{Part, Settings};
pub use probe::probe;
pub use result::{Advice, Bound, Confidence, Declared, Evidence, Findings, Parameter, Spent, Value};
pub use saved::conclude;
pub use suite::ProbeSuite;
