use serde::{Deserialize, Serialize};

/// Minimum of free blocks of page mapping: one to copy to, and two, so that a cut while copying, and one more while
/// recovering from it, leave one to copy to.
pub const LOW_BLOCKS_MIN: u32 = 3;

/// The translation layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FtlConfig {
    /// What it maps: units anywhere, or segments (AUs) with logs.
    pub mapping: Mapping,
    /// The mapping unit: a smaller write reads, changes and writes a whole unit.
    pub unit_bytes: u32,
    /// How a victim is chosen.
    #[serde(default)]
    pub gc: GcPolicy,
    /// Free blocks that a host write leaves; with page mapping one to copy to, and two for cuts, at least.
    #[serde(default = "three")]
    pub gc_low_blocks: u32,
    /// Whether host writes collect whole victims, or in steps.
    #[serde(default)]
    pub gc_pace: GcPace,
    /// With `paced`: the longest that one write collects while blocks are free. Unit: ms.
    #[serde(default = "busy_max")]
    pub gc_busy_max_ms: u32,
    /// Background collection (BKOPS) stops at this number of free blocks; 0 switches it off.
    #[serde(default)]
    pub gc_high_blocks: u32,
    /// Whether collected pages go to a block of their own.
    #[serde(default)]
    pub separate_gc: bool,
    /// Whether host writes are split by how often a unit was written lately.
    #[serde(default)]
    pub hot_cold: bool,
    /// Wear levelling.
    #[serde(default)]
    pub wear: WearLevelling,
    /// A limited cache of mapping pages; absent: the whole map is in memory.
    #[serde(default)]
    pub mapping_cache: Option<MappingCache>,
    /// SLC blocks in front; absent: none.
    #[serde(default)]
    pub slc_cache: Option<SlcCache>,
    /// For `segment` mapping.
    #[serde(default)]
    pub segment: Option<Segment>,
    /// When data is copied to keep it readable; absent: never.
    #[serde(default)]
    pub refresh: Option<Refresh>,
    /// Whether trim and discard free pages; a part may accept and ignore them.
    #[serde(default = "yes")]
    pub trim_frees: bool,
}

/// Refresh: data is copied before reads or time make it hard to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Refresh {
    /// Reads of a block since its erase, after which it is copied; 0: any number.
    pub reads: u32,
    /// Days since a block's first program, after which it is copied in idle time; 0: any.
    pub days: u32,
}

/// What the layer maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mapping {
    /// Every unit may lie anywhere.
    Page,
    /// An allocation unit has its own block, with logs for the open ones.
    Segment,
}

/// How garbage collection is divided over host writes (page mapping; segment mapping merges at once).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GcPace {
    /// As many copies for each host page as its collection costs.
    #[default]
    Paced,
    /// Whole victims, when free blocks run out.
    AtOnce,
}

/// How garbage collection chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GcPolicy {
    /// The block with the fewest valid units.
    #[default]
    Greedy,
    /// The block that was filled first.
    Fifo,
    /// The best of `d` random blocks; 1 is random.
    DChoices(u32),
    /// The best of the `w` oldest blocks.
    Windowed(u32),
    /// Age times free share over valid share.
    CostBenefit,
}

/// Wear levelling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WearLevelling {
    /// Free blocks are taken least worn first.
    #[serde(default)]
    pub dynamic: bool,
    /// Cold data is moved when the erase counts lie further apart than this; 0 switches it off.
    #[serde(default)]
    pub static_gap: u32,
}

/// Mapping pages held in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappingCache {
    /// Mapping pages in memory.
    pub pages: u32,
    /// Units that one mapping page covers.
    pub units_per_page: u32,
}

/// A log of SLC blocks that takes writes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlcCache {
    /// Blocks of it.
    pub blocks: u32,
    /// Folding starts at this number of free blocks.
    pub low_blocks: u32,
    /// Writes of at least this size bypass it; 0: none does.
    #[serde(default)]
    pub bypass_bytes: u32,
    /// Whether it is emptied while the card is idle.
    #[serde(default = "yes")]
    pub idle_fold: bool,
    /// Pages of the log that are folded beside each hundred pages that bypass it, while it has a full block; 0: none.
    #[serde(default)]
    pub stream_fold_percent: u32,
}

/// Segment mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// Allocation units that may be written at the same time.
    pub open_aus: u32,
    /// The write order that an open unit supports without a merge.
    pub order: SegmentOrder,
    /// Log blocks shared by open units for writes out of order; 0: every such write closes the unit.
    #[serde(default)]
    pub random_logs: u32,
    /// Writes of at most this size always go to these logs, and open no unit; 0: none. Unit: bytes.
    #[serde(default)]
    pub random_log_bytes: u32,
    /// Writes back into the block just written that the logs take of a unit before it is merged; 0: any number.
    #[serde(default)]
    pub steps_back: u32,
    /// With [`GcPace::Paced`]: how many units a log waits for until it merges them, all in one write.
    #[serde(default = "one")]
    pub merges_at_once: u32,
}

/// The write order that an open allocation unit supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentOrder {
    /// Ascending addresses only.
    Linear,
    /// Any order.
    Random,
}

fn one() -> u32 {
    1
}

fn three() -> u32 {
    LOW_BLOCKS_MIN
}

/// Source: SD's write timeout of 250 ms, within which phased garbage collection ends a busy state.
fn busy_max() -> u32 {
    250
}

pub(super) fn yes() -> bool {
    true
}
