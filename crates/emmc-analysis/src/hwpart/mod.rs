//! Hardware partitioning of an eMMC: the register writes of a request, the resulting layout, and broken rules.
//!
//! `LayoutRequest` (the request) -> `Layout` (the result on the part) -> ordered `RegisterWrite`s, all in one
//! [`HwPartPlan`]. A plan never fails: an unsuitable part or missing data gives a refusal. Absent on purpose: sending
//! anything. Nothing here can reach a card, nor give the approval that a commit needs.
//!
//! Source: the arithmetic and the order of rules and writes are U-Boot's `mmc_hwpart_config()`, checked against
//! mmc-utils; rules that both lack say so.

mod case;
mod certainty;
mod commands;
mod facts;
mod layout;
mod model;
mod options;
mod plan;
mod refusal;
mod request;
mod rules;
mod rules_size;
mod warnings;
mod writes;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests_random;
#[cfg(test)]
mod tests_rules;

pub use certainty::Certainty;
pub(crate) use commands::device;
pub use commands::{Commands, Equivalent};
pub use layout::{Area, Layout, Lost};
pub use model::CellModel;
pub use options::{HwPartOptions, MaxEnhanced, Partitioned, WrRelOptions};
pub use plan::{HwPartPlan, plan};
pub use refusal::Refusal;
pub use request::{EnhRequest, ExtAttribute, GpArgument, GpRequest, LayoutRequest, RequestError, WrRelArgument};
pub use writes::{AfterCommit, Check, RegisterWrite, Step};

pub use options::options;

/// The areas in the order of the bits of WR_REL_SET and PARTITIONS_ATTRIBUTE.
pub const AREAS: [&str; 5] = [
    emmc_regs::Area::User.name(),
    emmc_regs::Area::Gp(0).name(),
    emmc_regs::Area::Gp(1).name(),
    emmc_regs::Area::Gp(2).name(),
    emmc_regs::Area::Gp(3).name(),
];
