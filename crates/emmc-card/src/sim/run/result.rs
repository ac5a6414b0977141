//! Results of a run, as serialised.

use emmc_regs::ext_csd::reg;
use emmc_units::Instant;
use serde::Serialize;

use super::block_map::BlockMap;
use super::latency::LatencyResult;
use super::phase::Active;
use super::series::Series;
use super::sums::Sums;
use super::{Ended, Run};
use crate::device::{Device, Health};
use crate::ftl::FtlStats;
use crate::nand::{BlockHealth, Counters};

/// Most bars of the wear histogram.
const WEAR_BINS_MAX: u32 = 40;

/// Results of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunResult {
    /// The profile's name.
    pub profile: String,
    /// The seed of the job.
    pub seed: u64,
    /// How it ended.
    pub ended: Ended,
    /// Requests that the host made.
    pub host_requests: u64,
    /// Bytes that it wrote.
    pub host_written_bytes: u64,
    /// Bytes that it read.
    pub host_read_bytes: u64,
    /// Bytes that it trimmed.
    pub host_trimmed_bytes: u64,
    /// Host writes in mapping units of the card.
    pub host_writes: u64,
    /// Mapping units programmed, padding and the layer's own data included.
    pub nand_programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// `nand_programs` over `host_writes`; absent without writes.
    pub write_amplification: Option<f64>,
    /// Size of a mapping unit.
    pub unit_bytes: u32,
    /// Simulated duration of the run.
    pub simulated_s: f64,
    /// Latencies, counted from when the host made the requests.
    pub latency_us: LatencyResult,
    /// Uncorrectable reads.
    pub read_errors: u64,
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
    /// Results of each phase.
    pub phases: Vec<PhaseResult>,
    /// Speed over time.
    pub series: Series,
    /// The blocks at the end.
    pub block_map: BlockMap,
    /// The instant at which it ended, since the card was made.
    #[serde(skip)]
    pub now: Instant,
}

/// Results of a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseResult {
    /// Its name in the job.
    pub kind: &'static str,
    /// Its simulated duration.
    pub simulated_s: f64,
    /// Requests.
    pub host_requests: u64,
    /// Bytes written.
    pub host_written_bytes: u64,
    /// Bytes read.
    pub host_read_bytes: u64,
    /// Bytes trimmed.
    pub host_trimmed_bytes: u64,
    /// Host writes in mapping units.
    pub host_writes: u64,
    /// Mapping units programmed.
    pub nand_programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// `nand_programs` over `host_writes`; absent without writes.
    pub write_amplification: Option<f64>,
    /// Units copied.
    pub copied_units: u64,
    /// Times that the host waited for a collection, a fold or a merge.
    pub stalls: u64,
    /// Requests a second of simulated time.
    pub requests_per_s: f64,
    /// Bytes written, read and trimmed a second.
    ///
    /// Unit: MB (10^6 bytes) a second.
    pub mb_per_s: f64,
    /// Latencies of its requests.
    pub latency_us: LatencyResult,
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
        if device.profile().kind != emmc_regs::CardKind::Emmc {
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
    pub(crate) fn of(device: &Device, health: &Health) -> Self {
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

fn rate(amount: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount / seconds } else { 0.0 }
}

impl PhaseResult {
    pub(super) fn of(active: &Active, run: &Run) -> Self {
        let sums = run.sums.since(&active.before);
        let unit_bytes = u64::from(run.device.nand().geometry().unit_bytes);
        let seconds = run.now.since(active.started).as_secs_f64();
        let bytes = sums.written_bytes + sums.read_bytes + sums.trimmed_bytes;
        Self {
            kind: run.job.phases[active.index].kind,
            simulated_s: seconds,
            host_requests: sums.requests,
            host_written_bytes: sums.written_bytes,
            host_read_bytes: sums.read_bytes,
            host_trimmed_bytes: sums.trimmed_bytes,
            host_writes: sums.host_writes(unit_bytes),
            nand_programs: sums.nand_programs,
            erases: sums.erases,
            write_amplification: sums.write_amplification(unit_bytes),
            copied_units: run.device.stats().copied_units.saturating_sub(active.stats.copied_units),
            stalls: sums.stalls,
            requests_per_s: rate(sums.requests as f64, seconds),
            mb_per_s: rate(bytes as f64 / 1e6, seconds),
            latency_us: active.latencies.result(),
        }
    }
}

impl Run {
    /// Results of the run so far.
    pub(super) fn result(&self, ended: Ended) -> RunResult {
        let device = &self.device;
        let at_end: Sums = self.sums.with(device);
        let sums = at_end.since(&self.before);
        let unit_bytes = device.nand().geometry().unit_bytes;
        let health = device.health();
        RunResult {
            profile: device.profile().name.clone(),
            seed: self.job.seed,
            ended,
            host_requests: sums.requests,
            host_written_bytes: sums.written_bytes,
            host_read_bytes: sums.read_bytes,
            host_trimmed_bytes: sums.trimmed_bytes,
            host_writes: sums.host_writes(u64::from(unit_bytes)),
            nand_programs: sums.nand_programs,
            erases: sums.erases,
            write_amplification: sums.write_amplification(u64::from(unit_bytes)),
            unit_bytes,
            simulated_s: self.now.since(self.started).as_secs_f64(),
            latency_us: self.latencies.result(),
            read_errors: self.read_errors,
            wear: Wear::of(device, &health),
            registers: HealthRegisters::of(device),
            health,
            ftl: device.stats(),
            nand: *device.nand().counters(),
            phases: self.phases.clone(),
            series: self.buckets.series(&at_end, u64::from(unit_bytes)),
            block_map: BlockMap::of(device),
            now: self.now,
        }
    }
}
