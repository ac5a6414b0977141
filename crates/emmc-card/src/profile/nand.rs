use serde::{Deserialize, Serialize};

use crate::nand::CellMode;

/// The flash: geometry, times, endurance, failures.
///
/// A block is here the translation layer's unit of erasing: one physical block of every plane of every die.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NandConfig {
    /// Bits in a cell as the flash is built: `slc`, `mlc` or `tlc`.
    pub cell: CellMode,
    /// Buses between controller and dies.
    #[serde(default = "one")]
    pub channels: u32,
    /// Dies; a multiple of the channels.
    #[serde(default = "one")]
    pub dies: u32,
    /// Planes of a die.
    #[serde(default = "one")]
    pub planes: u32,
    /// The program unit of one plane.
    pub page_bytes: u32,
    /// Pages of a block over all lanes (dies x planes), in the built cell mode.
    pub pages_per_block: u32,
    /// Blocks in all; absent: as many as user area, over-provisioning and spares need.
    #[serde(default)]
    pub blocks: Option<u32>,
    /// Physical over logical capacity, less one: 0.07 is 7 %. Not counting spares.
    pub over_provisioning: f64,
    /// Blocks kept to replace bad ones.
    #[serde(default)]
    pub spare_blocks: u32,
    /// Blocks that are bad from the factory, replaced from the spares.
    #[serde(default)]
    pub factory_bad_blocks: u32,
    /// Rate of one channel.
    ///
    /// Unit: MB/s.
    pub channel_mb_s: f64,
    /// Whether the next page is sent while the last one is programmed.
    #[serde(default = "yes")]
    pub cached_program: bool,
    /// Whether all planes of a die program together.
    #[serde(default = "yes")]
    pub multi_plane: bool,
    /// Whether a read senses the pages of all planes of a die together.
    #[serde(default)]
    pub multi_plane_read: bool,
    /// Times and endurance in the built mode.
    pub native: CellConfig,
    /// Times and endurance with one bit a cell: pSLC, boot areas, SLC cache. Absent: the native ones.
    #[serde(default)]
    pub slc: Option<CellConfig>,
    /// Failures while in use.
    #[serde(default)]
    pub failures: Failures,
    /// What wear, time and reads change; absent: nothing but the erases that a block has left.
    #[serde(default)]
    pub ageing: Option<Ageing>,
}

/// How flash changes with wear, time and reads. Wear is the share of its rated erases that a block has had, at most 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ageing {
    /// By which share programs are faster at wear 1, and in proportion before.
    pub program_faster: f64,
    /// By which share erases are slower at wear 1.
    pub erase_slower: f64,
    /// Read retries at wear 1, on average: each is one more sense of the page.
    pub retries_worn: f64,
    /// What each year since the data was programmed adds to them.
    pub retries_year: f64,
    /// What each 100 000 reads of the block since its erase add to them.
    pub retries_disturbed: f64,
    /// Whether the spread of endurance goes below the rating too.
    pub endurance_below: bool,
}

/// What a cell mode costs and bears.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellConfig {
    /// From command to page register.
    ///
    /// Unit: microseconds.
    pub read_us: f64,
    /// Program time of the first, second, third page of a word line, in turn.
    ///
    /// Unit: microseconds.
    pub program_us: Vec<f64>,
    /// Unit: milliseconds.
    pub erase_ms: f64,
    /// Erase cycles that a block is rated for.
    pub endurance: u32,
    /// Variation of operation times, uniform: 0.05 is up to 5 % either way.
    #[serde(default)]
    pub time_spread: f64,
    /// Variation of blocks' endurance, as a standard deviation over the mean. Only above the rating: parts are sold by
    /// their worst block.
    #[serde(default)]
    pub endurance_spread: f64,
}

/// How often operations fail.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failures {
    /// Page programs that fail, of a thousand million.
    #[serde(default)]
    pub program_ppb: u32,
    /// Block erases that fail before the block's endurance is used up, of a million.
    #[serde(default)]
    pub erase_ppm: u32,
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}
