//! What a result was measured on and under: without it two results cannot be compared.
//!
//! Plain data. Who opens the target fills it in; what could not be found out is absent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Erase cycles that wear is told against where the card does not say how many it endures.
///
/// Assumed: what makers of eMMC with two or three bits a cell promise, 1000 to 3000 cycles; the lower end.
const ASSUMED_CYCLES: u32 = 1000;

/// Everything around a measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Context {
    /// The card, if the target is one or lies on one.
    pub card: Option<CardFacts>,
    /// The bus between it and the host.
    pub bus: Option<BusFacts>,
    /// DEVICE_LIFE_TIME before the first request.
    pub life_before: Option<Life>,
    /// The same after the last.
    pub life_after: Option<Life>,
    /// The block device that requests went to in the end, e.g. `mmcblk0`.
    pub disk: Option<DiskFacts>,
    /// The filesystem of a file.
    pub filesystem: Option<FilesystemFacts>,
    /// Filesystems that were made on a device for this, as they were mounted, in the order in which they were measured.
    pub made_filesystems: Vec<FilesystemFacts>,
    /// The machine.
    pub host: Option<HostFacts>,
    /// What the bench itself needed.
    pub effort: Option<Effort>,
    /// What the writes mean for the card's life.
    pub wear: Option<Wear>,
    /// What could not be found out and why, and what a reader should know.
    pub notes: Vec<String>,
}

/// A card's identity and the registers that decide its speed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CardFacts {
    /// `emmc` or `sd`.
    pub kind: Option<String>,
    /// Who probably made it.
    pub manufacturer: Option<String>,
    /// CID.PNM.
    pub name: Option<String>,
    /// CID.PSN, so that two results of one card are known as such.
    pub serial: Option<u32>,
    /// CID as hexadecimal digits.
    pub cid: Option<String>,
    /// Whether it can hold a queue of commands.
    pub queueing_offered: Option<bool>,
    /// Whether it does.
    pub queueing_on: Option<bool>,
    /// Its volatile cache; 0 where it has none. Unit: bytes.
    pub cache_bytes: Option<u64>,
    /// Whether the cache is on.
    pub cache_on: Option<bool>,
    /// EXT_CSD fields by name, as read.
    pub registers: BTreeMap<String, u64>,
}

/// The bus as it runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BusFacts {
    /// As the kernel calls it, e.g. `mmc HS400`.
    pub mode: String,
    /// Data lines.
    pub lines: u8,
    /// Unit: Hz.
    pub clock_hz: u64,
    /// What it carries at most, without commands and checksums. Unit: 10^6 bytes a second.
    pub mb_per_s_max: f64,
    /// Where this is from.
    pub source: String,
}

/// How much of a card's life is used, in its own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Life {
    /// DEVICE_LIFE_TIME_EST_TYP_A: tenths, 11 is past the end, 0 unknown.
    pub type_a: Option<u8>,
    /// DEVICE_LIFE_TIME_EST_TYP_B.
    pub type_b: Option<u8>,
    /// PRE_EOL_INFO: 1 normal, 2 warning, 3 urgent, 0 unknown.
    pub pre_eol_info: Option<u8>,
}

/// A block device and its queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskFacts {
    /// The kernel's name of the whole disk.
    pub name: String,
    /// What it says it is.
    pub model: Option<String>,
    /// Unit: bytes.
    pub size_bytes: Option<u64>,
    /// The scheduler in use.
    pub scheduler: Option<String>,
    /// Requests that the queue holds.
    pub queue_requests: Option<u64>,
    /// Largest request. Unit: KiB.
    pub request_kib_max: Option<u64>,
    /// `write back` or `write through`: whether the kernel thinks that a flush is needed.
    pub write_cache: Option<String>,
    /// Most that one discard covers; 0: it cannot. Unit: bytes.
    pub discard_bytes_max: Option<u64>,
}

/// A filesystem.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilesystemFacts {
    /// Its type.
    pub fstype: String,
    /// Where it is mounted.
    pub mount: String,
    /// How it is mounted.
    pub options: String,
    /// Unit: bytes.
    pub size_bytes: u64,
    /// Unit: bytes.
    pub available_bytes: u64,
    /// It has no device below it: what is measured is memory.
    pub in_memory: bool,
    /// It knows no way past the page cache.
    pub cached: bool,
    /// Bytes of the file that have no place on the device: reads of them do not reach it.
    pub hole_bytes: u64,
}

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostFacts {
    /// The kernel's release.
    pub kernel: String,
    /// The kind of processor.
    pub machine: String,
    /// The board, if it says what it is.
    pub model: Option<String>,
    /// Processors.
    pub processors: u32,
    /// Their frequency governors; none where the frequency is not Linux's to set.
    pub governors: Vec<String>,
}

/// What the bench needed of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Effort {
    /// Unit: seconds.
    pub time_s: f64,
    /// Processor time of this process. Unit: seconds.
    pub user_s: f64,
    /// Processor time of the kernel for this process; its own threads' does not count. Unit: seconds.
    pub system_s: f64,
}

/// What writes mean for the card's life.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Wear {
    /// Unit: bytes.
    pub written_bytes: u64,
    /// How often that fills the card.
    pub capacities: f64,
    /// Erase cycles that the card endures; assumed where it does not say so.
    pub cycles: u32,
    /// Whether they are assumed.
    pub cycles_assumed: bool,
    /// The share of its life that this costs if each write is one write of flash. Unit: percent.
    pub life_percent: f64,
}

impl Wear {
    /// Of so many bytes on a card of this capacity.
    pub fn of(written_bytes: u64, capacity_bytes: u64, cycles: Option<u32>) -> Self {
        let capacities = written_bytes as f64 / capacity_bytes.max(1) as f64;
        let endured = cycles.unwrap_or(ASSUMED_CYCLES).max(1);
        Self {
            written_bytes,
            capacities,
            cycles: endured,
            cycles_assumed: cycles.is_none(),
            life_percent: capacities / f64::from(endured) * 100.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wear_is_a_share_of_all_cycles() {
        let wear = Wear::of(1 << 30, 4 << 30, None);
        assert_eq!((wear.capacities, wear.cycles, wear.cycles_assumed), (0.25, ASSUMED_CYCLES, true));
        assert!((wear.life_percent - 0.025).abs() < 1e-12);
        assert_eq!(Wear::of(0, 0, Some(0)).life_percent, 0.0);
    }
}
