//! Plans: the changes of a card's configuration, checked before anything is sent, and where a card stands with one.
//!
//! A request becomes bits of registers (`request`), which the field table and the rules between registers judge
//! (`draft`, `rules`); the result is a [`Plan`], one form for every kind of change, hardware partitions included
//! (`of_hwpart`). Sizes of boot areas are no settings of the standard: `boot_size`. [`Standing`] compares a plan with a
//! card; [`carry_out`] sends what is missing to a [`emmc_port::CommandPort`], with a read-back after each step. Absent
//! on purpose: opening a card, asking the user.

mod boot_size;
mod carry;
mod commands;
mod describe;
mod document;
mod draft;
mod groups;
mod of_hwpart;
mod request;
mod rules;
mod setting;
mod standing;

pub use boot_size::{BootSizePlan, SentCommand, SizeChange, boot_size};
pub use carry::{Ended, Event, carry_out};
pub use document::{
    Capacity, CapacityOf, CardIdentity, Expected, GroupStep, Objection, PLAN_SCHEMA, Plan, PlanError, PowerCycle,
    RegisterStep, Step,
};
pub use draft::plan;
pub use groups::Protection;
pub use of_hwpart::of_hwpart;
pub use request::{BootMode, Request, WpRange};
pub use setting::{Assignment, AssignmentError};
pub use standing::{Held, OtherCard, Stand, Standing, StepStand};
