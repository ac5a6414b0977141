//! Internal state of a virtual card: areas, wear, translation layer, blocks.
//!
//! Real cards do not report this; it allows checks of the values that they do report.

use serde::Serialize;

use super::run::{BlockMap, Wear};
use crate::device::{Device, Health};
use crate::ftl::FtlStats;
use crate::nand::Counters;

/// An area of the card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AreaSize {
    /// `user`, `boot0`, `boot1`, `rpmb`, `gp1` to `gp4`.
    pub area: String,
    /// Its size in 512-byte sectors.
    pub sectors: u64,
}

/// Internal state of a card.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Internals {
    /// The profile's name.
    pub profile: String,
    /// The profile's description.
    pub description: String,
    /// Simulated time since the card was made. Unit: seconds.
    pub simulated_s: f64,
    /// The areas that the host sees.
    pub areas: Vec<AreaSize>,
    /// Blocks of the flash.
    pub blocks: u32,
    /// A block in the built cell mode. Unit: bytes.
    pub block_bytes: u64,
    /// The program unit of one plane. Unit: bytes.
    pub page_bytes: u32,
    /// The mapping unit. Unit: bytes.
    pub unit_bytes: u32,
    /// Wear, bad blocks, spares.
    pub health: Health,
    /// DEVICE_LIFE_TIME_EST_TYP_A.
    pub life_time_a: u8,
    /// DEVICE_LIFE_TIME_EST_TYP_B.
    pub life_time_b: u8,
    /// PRE_EOL_INFO.
    pub pre_eol_info: u8,
    /// Whether it has turned read-only.
    pub worn_out: bool,
    /// Counters of the translation layers.
    pub ftl: FtlStats,
    /// Counters of the flash.
    pub nand: Counters,
    /// Units programmed over units that the host wrote; absent before the first write.
    pub write_amplification: Option<f64>,
    /// Whether it is an SD card, which has no health registers.
    pub is_sd: bool,
    /// Erase counts.
    pub wear: Wear,
    /// Its blocks.
    pub block_map: BlockMap,
}

impl Internals {
    /// Reads the internal state of a card.
    pub fn of(device: &Device, simulated_s: f64) -> Self {
        let (profile, geometry, health) = (device.profile(), device.nand().geometry(), device.health());
        let (ftl, nand) = (device.stats(), *device.nand().counters());
        let areas = device.areas().into_iter();
        Self {
            profile: profile.name.clone(),
            description: profile.description.clone(),
            simulated_s,
            areas: areas.map(|area| AreaSize { area: area.to_string(), sectors: device.sectors(area) }).collect(),
            blocks: geometry.blocks,
            block_bytes: u64::from(geometry.units_per_block()) * u64::from(geometry.unit_bytes),
            page_bytes: geometry.page_bytes(),
            unit_bytes: geometry.unit_bytes,
            life_time_a: health.life_time_a(),
            life_time_b: health.life_time_b(),
            pre_eol_info: health.pre_eol_info(),
            wear: Wear::of(device, &health),
            is_sd: profile.kind == emmc_regs::CardKind::Sd,
            health,
            worn_out: device.is_worn_out(),
            write_amplification: (ftl.host_units > 0).then(|| nand.unit_programs as f64 / ftl.host_units as f64),
            ftl,
            nand,
            block_map: BlockMap::of(device),
        }
    }
}
