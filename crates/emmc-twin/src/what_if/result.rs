//! Answers, as serialised.

use serde::{Deserialize, Serialize};

/// What changes if something is changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhatIf {
    /// The profile's name.
    pub profile: String,
    /// What is written.
    pub duty: DutyFacts,
    /// Today, then each change.
    pub answers: Vec<Answer>,
}

/// What is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DutyFacts {
    /// In words.
    pub sentence: String,
    /// What the programs write each day, without updates.
    pub bytes_per_day: f64,
    /// The share of it that is random; absent for a recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random_share: Option<f64>,
    /// Size of a random overwrite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u32>,
    /// The data that is overwritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_bytes: Option<u64>,
}

/// A card under the duty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// `today`, or the changes as written.
    pub change: String,
    /// The part.
    pub profile: String,
    /// The user area.
    pub user_bytes: u64,
    /// The part of it that a partition uses.
    pub usable_bytes: u64,
    /// The part of the user area with one bit a cell.
    pub enhanced_bytes: u64,
    /// What the card receives each day.
    pub host_bytes_per_day: f64,
    /// Units programmed over units that the card received.
    pub write_amplification: f64,
    /// Bytes programmed over bytes that the programs wrote: with what a filesystem adds, and without what memory keeps.
    pub total_amplification: f64,
    /// The rated erases that a day uses, of the kind of block that wears most.
    pub wear_percent_per_day: f64,
    /// The register that shows it: `DEVICE_LIFE_TIME_EST_TYP_A` or `_B`.
    pub wear_register: String,
    /// Until PRE_EOL_INFO warns: 80 % of the spare blocks are used. Absent: not within a thousand years, or no spares.
    pub years_to_pre_eol_warning: Option<f64>,
    /// Until the rated erases are used: the register is 0x0B.
    pub years_to_rated_erases: Option<f64>,
    /// Until no spare block is left and the card is read-only.
    pub years_to_read_only: Option<f64>,
    /// Until the rated erases of the log of small writes are used; the card goes on without it, slower and with more
    /// wear. Absent also without a log.
    #[serde(default)]
    pub years_to_log_end: Option<f64>,
    /// The earliest of the three.
    pub years_to_end_of_life: Option<f64>,
    /// The same over that of today.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub life_times_today: Option<f64>,
    /// As fast as the card takes the same requests, without flushes.
    ///
    /// Unit: MB (10^6 bytes) a second.
    pub write_mb_per_s: f64,
    /// The share of the time that the card works on the load's requests. Above 1 it cannot keep up.
    pub busy_share: f64,
    /// Latencies of writes at their times, from when the host hands one over; absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_us: Option<Latencies>,
    /// Latencies of flushes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush_us: Option<Latencies>,
    /// Writes of more than 100 ms.
    pub stalls_over_100_ms: u64,
    /// Writes of more than 250 ms.
    pub stalls_over_250_ms: u64,
    /// Writes measured.
    pub writes: u64,
    /// Whether write amplification had settled (two parts within 1 % of the two before) before it was measured.
    pub is_steady: bool,
    /// What the card received before the measurement.
    pub warm_up_bytes: u64,
    /// What it received in the measurement.
    pub measured_bytes: u64,
    /// What to know about it.
    pub notes: Vec<String>,
}

/// Latencies.
///
/// Unit: microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latencies {
    /// Half of them are at most this.
    pub p50: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

impl From<&emmc_workload::Latency> for Latencies {
    fn from(latency: &emmc_workload::Latency) -> Self {
        Self { p50: latency.p50, p99: latency.p99, p999: latency.p999, max: latency.max }
    }
}
