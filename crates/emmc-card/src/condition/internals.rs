//! Internal state of a virtual card: areas, wear, translation layer, blocks.
//!
//! Real cards do not report this; it allows checks of the values that they do report.

use emmc_regs::CardKind;
use emmc_regs::ext_csd::reg;
use serde::Serialize;

use super::block_map::BlockMap;
use crate::device::{Device, Health};
use crate::ftl::FtlStats;
use crate::nand::{BlockHealth, Counters};

/// Most bars of the wear histogram.
const WEAR_BINS_MAX: u32 = 40;

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
            is_sd: profile.kind == CardKind::Sd,
            health,
            worn_out: device.is_worn_out(),
            write_amplification: (ftl.host_units > 0).then(|| nand.unit_programs as f64 / ftl.host_units as f64),
            ftl,
            nand,
            block_map: BlockMap::of(device),
        }
    }
}

/// The condition of a card after a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Condition {
    /// The profile's name.
    pub profile: String,
    /// Erase counts of the blocks, including those before the run.
    pub wear: Wear,
    /// Health registers.
    pub registers: HealthRegisters,
    /// Wear, bad blocks and spares.
    pub health: Health,
    /// Counters of the translation layers, including those before the run.
    pub ftl: FtlStats,
    /// Counters of the flash, including those before the run.
    pub nand: Counters,
    /// The blocks at the end.
    pub block_map: BlockMap,
}

impl Condition {
    /// The condition of a card now.
    pub fn of(device: &Device) -> Self {
        let health = device.health();
        Self {
            profile: device.profile().name.clone(),
            wear: Wear::of(device, &health),
            registers: HealthRegisters::of(device),
            health,
            ftl: device.stats(),
            nand: *device.nand().counters(),
            block_map: BlockMap::of(device),
        }
    }
}

/// Erase counts of the good blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Wear {
    /// The lowest of a block.
    pub min: u32,
    /// Their mean.
    pub mean: f64,
    /// The highest of a block.
    pub max: u32,
    /// Number of blocks by erase count, ascending.
    pub histogram: Vec<WearBin>,
}

/// Blocks with about the same erase count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WearBin {
    /// The lowest erase count of this bar.
    pub from: u32,
    /// The highest.
    pub to: u32,
    /// Blocks.
    pub blocks: u32,
}

/// Health registers of EXT_CSD; absent for an SD card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HealthRegisters {
    /// DEVICE_LIFE_TIME_EST_TYP_A.
    pub life_time_a: Option<u8>,
    /// DEVICE_LIFE_TIME_EST_TYP_B.
    pub life_time_b: Option<u8>,
    /// PRE_EOL_INFO.
    pub pre_eol_info: Option<u8>,
    /// BKOPS_STATUS.
    pub bkops_status: Option<u8>,
}

impl HealthRegisters {
    fn of(device: &Device) -> Self {
        if device.profile().kind != CardKind::Emmc {
            return Self::default();
        }
        let ext_csd = device.registers().ext_csd;
        Self {
            life_time_a: Some(ext_csd[reg::DEVICE_LIFE_TIME_EST_TYP_A]),
            life_time_b: Some(ext_csd[reg::DEVICE_LIFE_TIME_EST_TYP_B]),
            pre_eol_info: Some(ext_csd[reg::PRE_EOL_INFO]),
            bkops_status: Some(ext_csd[reg::BKOPS_STATUS]),
        }
    }
}

impl Wear {
    fn of(device: &Device, health: &Health) -> Self {
        let (min, max) = (health.all.min, health.all.max);
        let width = (max - min) / WEAR_BINS_MAX + 1;
        let mut histogram: Vec<WearBin> = (min..=max)
            .step_by(width as usize)
            .map(|from| WearBin { from, to: (from + width - 1).min(max), blocks: 0 })
            .collect();
        for block in device.nand().blocks().iter().filter(|block| block.health == BlockHealth::Good) {
            histogram[((block.erase_count - min) / width) as usize].blocks += 1;
        }
        Self { min, mean: health.all.mean(), max, histogram }
    }
}
