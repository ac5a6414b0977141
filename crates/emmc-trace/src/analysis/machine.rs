//! Devices and processors, as serialised.

use serde::Serialize;

/// A device.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceRow {
    /// `major:minor`.
    pub device: String,
    /// Completed requests.
    pub requests: u64,
    /// Time with at least one request at the driver. Unit: milliseconds.
    pub busy_ms: f64,
    /// The same as a share of the recording. Unit: percent.
    pub busy_percent: f64,
    /// Requests at the driver: the most, and the mean while there are any.
    pub depth_max: u32,
    /// The mean.
    pub depth_mean: f64,
    /// Gaps: times without a request at the driver, between two with one.
    pub idle_gaps: u64,
    /// All of them. Unit: milliseconds.
    pub idle_ms: f64,
    /// The longest. Unit: milliseconds.
    pub idle_longest_ms: f64,
}

/// A processor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessorRow {
    /// Its number.
    pub cpu: usize,
    /// Time that it was not idle, from its first switch to the last event, without losses of events. Unit: percent.
    pub busy_percent: f64,
}

/// What a processor did for the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuRow {
    /// Its number.
    pub cpu: usize,
    /// Requests that it gave to the driver.
    pub issued: u64,
    /// Requests that it completed.
    pub completed: u64,
    /// Interrupts of MMC controllers that it took, if they are recorded.
    pub interrupts: u64,
}
