//! What a card's registers mean: findings, health, forecast, vendor health, capacity, hardware-partition plans.
//!
//! Everything here is a function from [`emmc_port::CardData`] to typed results that serialise as they are.
//! Absent on purpose: reading anything, writing anything, and layout on screen.

#[cfg(feature = "bench")]
pub mod advise;
pub mod bus;
pub mod capacity;
pub mod comparison;
pub mod erase;
pub mod evidence;
pub mod finding;
pub mod health;
pub mod hwpart;
pub mod maker_health;
#[cfg(feature = "bench")]
pub mod measured;
pub mod plan;
pub mod registers;
pub mod sample;
pub mod study;
pub mod trim;
pub mod trust;

pub use evidence::{Citation, Evidence};
pub use finding::{Command, Finding, Severity};
