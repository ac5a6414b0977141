//! The simulated cells of a profile: the runs of the suites on the virtual card behind its measuring host.

mod burst;
mod requests;
mod units;

use emmc_card::device::{Device, DeviceOptions};
use emmc_card::nand::StoredContent;
use emmc_card::profile::Profile;
use emmc_host::HostTarget;
use emmc_sim::SimTarget;
use emmc_units::{Instant, Nanos};
use emmc_workload::{Bench, Detail, EarlyEnds, Options, Unwatched, named};

use crate::cell::{Cell, Column};
use crate::measured::Measured;

pub(crate) use burst::volume;
#[cfg(feature = "truth")]
pub(crate) use requests::small;

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

/// What is simulated: the runs of some cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The cells, whose times are not used.
    pub measured: Measured,
    /// Reads, and random writes that bypass the log, are cut short: they leave nothing behind, so that a search may
    /// simulate fewer.
    pub is_search: bool,
}

/// What a pass that leaves nothing behind does in a search. Unit: bytes.
const SEARCH_PASS_BYTES: u64 = 4 << 20;

/// A card behind its host.
type Target = HostTarget<SimTarget>;

/// The cells of a plan: each kind of run on a new card, in the order of the suite, as what one pass leaves behind, the
/// next one meets.
///
/// Errors: a profile that makes no card; a card that is too small or fails.
pub fn simulate(profile: &Profile, plan: &Plan) -> Result<Vec<Cell>, SimulateError> {
    let measured = &plan.measured;
    let mut cells = iozone(profile, plan)?;
    cells.extend(units::simulated(profile, measured)?);
    cells.extend(requests::simulated(profile, measured)?);
    cells.extend(burst::simulated(profile, measured)?);
    Ok(cells)
}

fn target(profile: &Profile) -> Result<Target, SimulateError> {
    let host = profile.host.unwrap_or_default();
    let device = Device::new(profile.clone(), DeviceOptions { keep: StoredContent::Nothing, seed: 1 })
        .map_err(|error| SimulateError::Card(error.to_string()))?;
    let card = SimTarget::new(device, &profile.name, Instant::START, true);
    let card = card.with_commands_of(u64::from(host.command_kib) << 10);
    let [read, write, per_kib] = [host.read_us, host.write_us, host.us_per_kib].map(Nanos::from_micros_f64);
    Ok(HostTarget::measured(card, read, write, per_kib))
}

/// Reads, and random writes that bypass the log or are merged at once.
fn early_ends(profile: &Profile) -> EarlyEnds {
    let bypass = profile.ftl.slc_cache.filter(|_| profile.controller.small_log_bytes == 0);
    let random_writes_bytes = bypass.map_or(0, |cache| cache.bypass_bytes).into();
    EarlyEnds { after_bytes: SEARCH_PASS_BYTES, random_writes_bytes }
}

/// Every column of the records.
fn iozone(profile: &Profile, plan: &Plan) -> Result<Vec<Cell>, SimulateError> {
    let records = plan.measured.repeated_records();
    if records.is_empty() {
        return Ok(Vec::new());
    }
    let mut options = Options {
        rows: records.iter().map(u64::to_string).collect(),
        size_bytes: Some(plan.measured.file_bytes),
        early_ends: plan.is_search.then(|| early_ends(profile)),
        detail: Detail::Speeds,
        ..Options::default()
    };
    let suite = named("iozone").expect("the suite is one of the crate's own");
    let mut target = target(profile)?;
    let has_writes = plan.measured.cells.iter().any(|cell| cell.column.is_iozone() && !cell.column.is_read());
    if plan.is_search && !has_writes {
        // The file is written in large records, which is quick: good enough for where a search begins. Where every
        // read starts a read-ahead, small random reads are up to a quarter faster than of a file in small records.
        let all = std::mem::replace(&mut options.rows, vec![records[records.len() - 1].to_string()]);
        Bench::run(suite, &mut target, &options, &mut Unwatched)?;
        options = Options { rows: all, read_only: true, ..options };
    }
    let outcome = Bench::run(suite, &mut target, &options, &mut Unwatched)?;
    let cell = |measured: &emmc_workload::Measurement| {
        let column = Column::of_iozone(&measured.column)?;
        let us = measured.block_bytes as f64 / measured.mb_per_s;
        Some(Cell { column, kib: measured.block_bytes / 1024, us })
    };
    Ok(outcome.measurements.iter().filter_map(cell).collect())
}

#[cfg(test)]
mod tests {
    use emmc_regs::CardKind;
    use emmc_workload::import::SavedResult;

    use super::*;
    use crate::cell::time;
    use crate::known::Known;
    use crate::measured::CellsError;
    use crate::part::{Part, firmwares};

    /// What a suite finds of a card.
    pub(super) fn measured_by(suite: &str, card: &Profile, options: &Options) -> Result<Measured, CellsError> {
        let mut target = target(card).unwrap();
        let outcome = Bench::run(named(suite).unwrap(), &mut target, options, &mut Unwatched).unwrap();
        Measured::of(&SavedResult { name: suite.into(), outcomes: vec![outcome], ..SavedResult::default() })
    }

    /// Reads alone need one quick pass of writes before them. They take as long as among all passes, but for cards that
    /// read ahead at every read, which the record of the writes changes.
    #[test]
    fn reads_alone_take_as_long_as_among_writes() {
        let cell = |column, kib| Cell { column, kib, us: 300.0 };
        let all: Vec<Cell> =
            [1, 4, 16, 128, 1024].into_iter().flat_map(|kib| Column::IOZONE.map(|column| cell(column, kib))).collect();
        let reads: Vec<Cell> = all.iter().copied().filter(|cell| cell.column.is_read()).collect();
        for firmware in firmwares().into_iter().filter(|firmware| !firmware.read_ahead_always) {
            let profile = Part::start(CardKind::Emmc, firmware, false, (&all, &Known::default())).profile().unwrap();
            let simulated = |cells: &[Cell]| {
                let measured = Measured { cells: cells.to_vec(), file_bytes: 8 << 20, ..Measured::default() };
                simulate(&profile, &Plan { measured, is_search: true }).unwrap()
            };
            let (whole, alone) = (simulated(&all), simulated(&reads));
            assert!(alone.iter().all(|cell| cell.column.is_read()), "{alone:?}");
            for cell in &reads {
                let [whole, alone] = [&whole, &alone].map(|cells| time(cells, cell.column, cell.kib).unwrap());
                assert!((alone / whole - 1.0).abs() < 0.02, "{firmware:?} {cell:?}: {alone} {whole}");
            }
        }
    }
    /// Rows whose cells are left out were run all the same: the debt that they leave is in the others.
    #[test]
    fn a_part_of_a_table_is_repeated_among_the_rows_that_were_run() {
        let profile = emmc_card::profile::shipped::named("sandisk-ultra-a1-32g").unwrap();
        let cell = |column, kib| Cell { column, kib, us: 300.0 };
        let all: Vec<Cell> =
            [16, 512].into_iter().flat_map(|kib| Column::IOZONE.map(|column| cell(column, kib))).collect();
        let records = vec![16, 512];
        let whole = Measured { cells: all.clone(), records, file_bytes: 100 << 20, ..Measured::default() };
        let of_row = all.iter().copied().filter(|cell| cell.kib == 512).collect();
        let times = |measured: Measured| {
            let cells = simulate(&profile, &Plan { measured, is_search: false }).unwrap();
            Column::IOZONE.map(|column| time(&cells, column, 512).unwrap())
        };
        let row = whole.with(of_row);
        let (among, alone) = (times(row.clone()), times(Measured { records: Vec::new(), ..row }));
        assert_eq!(among, times(whole));
        assert!(among[0] > 1.2 * alone[0], "the first write pays what random writes left: {among:?} {alone:?}");
        let reads = all.into_iter().filter(|cell| cell.column.is_read() && cell.kib == 512).collect();
        assert_eq!(Measured { records: vec![16, 512], cells: reads, ..Measured::default() }.repeated_records(), [512]);
    }
}
