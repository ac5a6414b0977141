//! The simulated cells of a profile: the iozone suite on the virtual card behind its measuring host.

use emmc_card::device::{Device, DeviceOptions};
use emmc_card::nand::StoredContent;
use emmc_card::profile::Profile;
use emmc_card::sim::SimTarget;
use emmc_host::HostTarget;
use emmc_units::{Instant, Nanos};
use emmc_workload::{Bench, Options, Unwatched, named};

use crate::table::{Cell, Column};

/// Why a profile has no cells.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// The profile makes no card.
    #[error("{0}")]
    Card(String),
    /// The suite does not fit the card.
    #[error(transparent)]
    Bench(#[from] emmc_workload::BenchError),
}

/// Every column of the records, in the order of the table: what one pass leaves behind, the next one meets.
///
/// Unit of `records`: KiB.
///
/// Errors: a profile that makes no card; a card that is too small or fails.
pub fn simulate(profile: &Profile, records: &[u64], file_bytes: u64) -> Result<Vec<Cell>, SimulateError> {
    let host = profile.host.unwrap_or_default();
    let device = Device::new(profile.clone(), DeviceOptions { keep: StoredContent::Nothing, seed: 1 })
        .map_err(|error| SimulateError::Card(error.to_string()))?;
    let card = SimTarget::new(device, &profile.name, Instant::START, true);
    let [read, write, per_kib] = [host.read_us, host.write_us, host.us_per_kib].map(Nanos::from_micros_f64);
    let mut target = HostTarget::measured(card, read, write, per_kib);
    let options = Options {
        rows: records.iter().map(u64::to_string).collect(),
        size_bytes: Some(file_bytes),
        ..Options::default()
    };
    let suite = named("iozone").expect("the suite is one of the crate's own");
    let outcome = Bench::run(suite, &mut target, &options, &mut Unwatched)?;
    let cell = |measured: &emmc_workload::Measurement| {
        let column = Column::ALL.into_iter().find(|column| column.name() == measured.column)?;
        let us = measured.block_bytes as f64 / measured.mb_per_s;
        Some(Cell { column, kib: measured.block_bytes / 1024, us })
    };
    Ok(outcome.measurements.iter().filter_map(cell).collect())
}
