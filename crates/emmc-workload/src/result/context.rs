//! The target and the conditions of a measurement; without them two results cannot be compared.
//!
//! Plain data, filled in by the code that opens the target; unknown values are absent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Erase cycles for the wear estimate if the card does not report its endurance.
///
/// Assumed: makers of eMMC with two or three bits a cell specify 1000 to 3000 cycles; the lower end.
const ASSUMED_CYCLES: u32 = 1000;

/// Everything around a measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Context {
    /// The card, if the target is one or is on one.
    pub card: Option<CardFacts>,
    /// The bus between it and the host.
    pub bus: Option<BusFacts>,
    /// DEVICE_LIFE_TIME before the first request.
    pub life_before: Option<Life>,
    /// The same after the last.
    pub life_after: Option<Life>,
    /// The block device that received the requests, e.g. `mmcblk0`.
    pub disk: Option<DiskFacts>,
    /// The filesystem of a file.
    pub filesystem: Option<FilesystemFacts>,
    /// Filesystems that were created for this on a device, as mounted, in the order of measurement.
    pub made_filesystems: Vec<FilesystemFacts>,
    /// The machine.
    pub host: Option<HostFacts>,
    /// Resources that the bench itself used.
    pub effort: Option<Effort>,
    /// The wear that the writes caused.
    pub wear: Option<Wear>,
    /// What could not be found out and why, and other notes.
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
    /// CID.PSN, which identifies two results of one card.
    pub serial: Option<u32>,
    /// CID as hexadecimal digits.
    pub cid: Option<String>,
    /// Whether it supports command queueing.
    pub queueing_offered: Option<bool>,
    /// Whether command queueing is on.
    pub queueing_on: Option<bool>,
    /// Its volatile cache; 0 if it has none. Unit: bytes.
    pub cache_bytes: Option<u64>,
    /// Whether the cache is on.
    pub cache_on: Option<bool>,
    /// SSR.AU_SIZE of an SD card. Unit: bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub au_bytes: Option<u64>,
    /// What the kernel erases at once, from the card's registers. Unit: bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_erase_bytes: Option<u64>,
    /// EXT_CSD fields by name, as read.
    pub registers: BTreeMap<String, u64>,
}

/// The bus in its current mode.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BusFacts {
    /// As the kernel calls it, e.g. `mmc HS400`.
    pub mode: String,
    /// Data lines.
    pub lines: u8,
    /// Unit: Hz.
    pub clock_hz: u64,
    /// Its maximum throughput, without commands and checksums. Unit: 10^6 bytes a second.
    pub mb_per_s_max: f64,
    /// The source of these facts.
    pub source: String,
}

/// How much of a card's life is used, as it reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Life {
    /// DEVICE_LIFE_TIME_EST_TYP_A: tenths, 11 is beyond the end, 0 unknown.
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
    /// `write back` or `write through`: whether the kernel sends flushes.
    pub write_cache: Option<String>,
    /// Largest discard; 0: not supported. Unit: bytes.
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
    /// No device below it: memory is measured.
    pub in_memory: bool,
    /// It has no direct I/O: everything goes through the page cache.
    pub cached: bool,
    /// Bytes of the file without blocks on the device: reads of them do not reach it.
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
    /// The board, if it reports its model.
    pub model: Option<String>,
    /// Processors.
    pub processors: u32,
    /// Their frequency governors; empty if Linux does not control the frequency.
    pub governors: Vec<String>,
}

/// Resources that the bench used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Effort {
    /// Unit: seconds.
    pub time_s: f64,
    /// Processor time of this process. Unit: seconds.
    pub user_s: f64,
    /// Processor time of the kernel for this process, without kernel threads. Unit: seconds.
    pub system_s: f64,
}

/// The wear that writes cause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Wear {
    /// Unit: bytes.
    pub written_bytes: u64,
    /// How many times that fills the card.
    pub capacities: f64,
    /// Erase cycles that the card endures; assumed if it does not report them.
    pub cycles: u32,
    /// Whether they are assumed.
    pub cycles_assumed: bool,
    /// The share of its life that this costs at a write amplification of 1. Unit: percent.
    pub life_percent: f64,
}

impl Wear {
    /// The wear by `written_bytes` on a card of this capacity.
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
