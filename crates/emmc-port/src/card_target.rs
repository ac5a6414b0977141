//! A virtual card as the target of a job: a block target with areas, power and counters.
//!
//! Jobs (`emmc-workload`) know a card only by this trait; `emmc-card` implements it. Absent on purpose: registers,
//! commands and the state of single blocks.

use emmc_regs::Area;
use emmc_units::Nanos;

use crate::block_target::{BlockTarget, TargetError};

/// How a card executes the requests that follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The area that offsets count in.
    pub area: Area,
    /// Writes are reliable writes.
    pub reliable: bool,
    /// Trims are discards, after which the old content may come back.
    pub discard: bool,
}

/// Running counts of a card; the difference of two covers the time between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CardCounters {
    /// Mapping units programmed, padding and the layer's own data included.
    pub programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Mapping units copied by the translation layers.
    pub copied_units: u64,
    /// Times that the host waited for a collection, a fold or a merge.
    pub stalls: u64,
}

/// A virtual card below a job.
pub trait CardTarget: BlockTarget {
    /// The size of an area; 0 if the card does not have it. Unit: bytes.
    fn area_bytes(&self, area: Area) -> u64;

    /// The size of a mapping unit. Unit: bytes.
    fn unit_bytes(&self) -> u32;

    /// Whether the unit at an offset of an area is mapped in flash.
    fn is_mapped(&self, area: Area, offset_bytes: u64) -> bool;

    /// The execution of later requests; at first the user area, normal writes and discards.
    fn set_access(&mut self, access: Access);

    /// Switches the volatile cache, if the card has one. A worn-out card is not an error here.
    ///
    /// Errors: the card cannot continue.
    fn set_cache(&mut self, on: bool) -> Result<(), TargetError>;

    /// Time without requests and without background work.
    fn pass(&mut self, time: Nanos);

    /// A power cycle, after a flush if the host announces it; nothing is outstanding.
    ///
    /// Errors: the card cannot continue.
    fn power_cycle(&mut self, is_announced: bool) -> Result<(), TargetError>;

    /// Whether the card keeps what it needs to recover from an unannounced power cut.
    fn can_recover(&self) -> bool;

    /// The counters.
    fn counters(&self) -> CardCounters;

    /// The used share of the rated erases, of the most worn kind of block, 0 to 1.
    fn used_life(&self) -> f64;

    /// Rated erases of a block.
    fn endurance(&self) -> u32;
}
