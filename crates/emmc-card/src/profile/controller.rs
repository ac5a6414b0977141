use serde::{Deserialize, Serialize};

/// The controller: its firmware times, its memory, its bus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Firmware time of a read command before the flash is accessed. The firmware does one command at a time, so this
    /// bounds the reads a second at any queue depth.
    ///
    /// Unit: microseconds.
    #[serde(default)]
    pub read_overhead_us: f64,
    /// Additional firmware time of a read for each KiB by which its mapping units are not covered.
    ///
    /// Unit: microseconds.
    #[serde(default)]
    pub read_missing_us_per_kib: f64,
    /// Firmware time of a write command, likewise.
    ///
    /// Unit: microseconds.
    #[serde(default)]
    pub write_overhead_us: f64,
    /// Variation of the firmware times of commands: evenly up to this share of them, both ways.
    #[serde(default)]
    pub time_spread: f64,
    /// Writes up to this size that continue no stream are small writes, with costs of their own; 0: none are.
    #[serde(default)]
    pub small_write_bytes: u32,
    /// Firmware time of a small write.
    ///
    /// Unit: microseconds.
    #[serde(default)]
    pub small_write_overhead_us: f64,
    /// Additional firmware time of a small write for each KiB by which its mapping units are not covered.
    ///
    /// Unit: microseconds.
    #[serde(default)]
    pub small_write_missing_us_per_kib: f64,
    /// Small writes fill a log of sectors of this size; the write after which it is full completes a merge unit. 0:
    /// they complete none.
    #[serde(default)]
    pub small_log_bytes: u32,
    /// The log of small writes maps pages of this size: a small write that covers less of one reads the rest, in the
    /// firmware's time of a read, and writes it again. 0: it maps units of the card.
    #[serde(default)]
    pub small_page_bytes: u32,
    /// The same as `small_write_missing_us_per_kib` for other writes.
    ///
    /// Unit: microseconds.
    #[serde(default)]
    pub missing_us_per_kib: f64,
    /// The merge unit: when another stream of writes begins, the rest of the last one's unit is copied; 0: nothing is.
    #[serde(default)]
    pub merge_bytes: u32,
    /// Whether each write beyond the small ones completes its merge unit, sequential ones too: no unit stays open
    /// between two commands.
    #[serde(default)]
    pub merge_each_write: bool,
    /// Memory from which an SD card acknowledges writes before they are in flash; 0: it acknowledges when they are. The
    /// data in it is lost with power, as in the cache of an eMMC.
    #[serde(default)]
    pub write_buffer_bytes: u32,
    /// Flash time for the map after each write from the write buffer that is not a small one; the command does not wait
    /// for it, the next programs do.
    ///
    /// Unit: microseconds.
    #[serde(default)]
    pub commit_us: f64,
    /// Whether the firmware takes no command while it copies for an earlier write: collects, folds or merges.
    #[serde(default)]
    pub copies_alone: bool,
    /// Whether secure erase and secure trim end only when every copy of the data is erased, as JESD84 had it before it
    /// made them obsolete (4.51). Else they free the sectors, like erase and trim: old copies stay until their blocks
    /// are erased for other reasons. SANITIZE erases them in any case.
    #[serde(default = "super::ftl::yes")]
    pub secure_erase_purges: bool,
    /// Memory for data in transfer; a transfer waits when it is full.
    pub buffer_bytes: u32,
    /// The volatile cache that CACHE_CTRL switches on; 0: none.
    #[serde(default)]
    pub cache_bytes: u32,
    /// Tasks of the command queue; 0: none.
    #[serde(default)]
    pub queue_depth: u8,
    /// The fastest mode that it offers.
    pub bus_max: BusMode,
    /// The mode in which `sim` drives it; absent: the fastest.
    #[serde(default)]
    pub bus: Option<BusMode>,
    /// The clock of the board with `bus`, if it is below the mode's; absent: the mode's.
    ///
    /// Unit: MHz.
    #[serde(default)]
    pub bus_clock_mhz: Option<f64>,
    /// Reads ahead on sequential access, up to this much; 0: none.
    #[serde(default)]
    pub read_ahead_bytes: u32,
    /// Whether every read of at least a mapping unit starts a read-ahead, which the next read elsewhere must wait for.
    #[serde(default)]
    pub read_ahead_always: bool,
    /// Time to load the part of the map that covers `map_span_bytes`, for reads.
    ///
    /// Unit: microseconds.
    #[serde(default)]
    pub map_load_us: f64,
    /// The span that one load covers, such as an allocation unit; 0: the map is in memory.
    #[serde(default)]
    pub map_span_bytes: u32,
    /// Spans in memory, the latest used ones.
    #[serde(default)]
    pub map_spans: u32,
    /// WR_REL_PARAM.HS_CTRL_REL: whether write reliability can be chosen.
    #[serde(default)]
    pub write_reliability: bool,
    /// Whether background operations may be switched to automatic.
    #[serde(default)]
    pub auto_bkops: bool,
    /// The largest packed command; 0: none.
    #[serde(default)]
    pub packed_commands: u8,
}

impl Controller {
    /// The mode in which a simulation drives it.
    pub fn bus(&self) -> BusMode {
        self.bus.unwrap_or(self.bus_max)
    }

    /// The clock of [`Controller::bus`]. Unit: Hz.
    pub fn bus_clock_hz(&self) -> u64 {
        let mode = self.bus().clock_hz();
        self.bus_clock_mhz.map_or(mode, |mhz| (mhz * 1e6) as u64)
    }
}

/// Timing and width of the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BusMode {
    /// 26 MHz, one line.
    Legacy1,
    /// SD default speed: 25 MHz, four lines.
    SdDefault,
    /// SD high speed: 50 MHz, four lines.
    SdHigh,
    /// 26 MHz, four lines.
    Legacy4,
    /// 26 MHz, eight lines.
    Legacy8,
    /// 52 MHz, one line.
    Hs52x1,
    /// 52 MHz, four lines.
    Hs52x4,
    /// 52 MHz, eight lines.
    Hs52,
    /// SD UHS-I SDR50: 100 MHz, four lines.
    Sdr50,
    /// SD UHS-I DDR50: 50 MHz, both edges, four lines.
    Ddr50,
    /// 52 MHz, both edges, four lines.
    Ddr52x4,
    /// 52 MHz, both edges, eight lines.
    Ddr52,
    /// SD UHS-I SDR104: 208 MHz, four lines.
    Sdr104,
    /// 200 MHz, four lines.
    Hs200x4,
    /// 200 MHz, eight lines.
    Hs200,
    /// 200 MHz, both edges, eight lines.
    Hs400,
}

impl BusMode {
    /// Unit: Hz.
    pub const fn clock_hz(self) -> u64 {
        match self {
            Self::Legacy1 | Self::Legacy4 | Self::Legacy8 => 26_000_000,
            Self::SdDefault => 25_000_000,
            Self::SdHigh | Self::Ddr50 => 50_000_000,
            Self::Hs52x1 | Self::Hs52x4 | Self::Hs52 | Self::Ddr52x4 | Self::Ddr52 => 52_000_000,
            Self::Sdr50 => 100_000_000,
            Self::Sdr104 => 208_000_000,
            Self::Hs200x4 | Self::Hs200 | Self::Hs400 => 200_000_000,
        }
    }

    /// Data lines.
    pub const fn width(self) -> u32 {
        match self {
            Self::Legacy1 | Self::Hs52x1 => 1,
            Self::Legacy8 | Self::Hs52 | Self::Ddr52 | Self::Hs200 | Self::Hs400 => 8,
            _ => 4,
        }
    }

    /// Whether data is transferred on both edges.
    pub const fn ddr(self) -> bool {
        matches!(self, Self::Ddr50 | Self::Ddr52x4 | Self::Ddr52 | Self::Hs400)
    }
}
