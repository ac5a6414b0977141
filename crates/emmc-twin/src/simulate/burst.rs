//! The suite `burst` on a new card: what small random writes write before their rate falls.

use emmc_card::profile::Profile;
use emmc_workload::{Bench, Detail, Options, Outcome, Unwatched, named};

use super::{SimulateError, target};
use crate::cell::{BURST_KIB, Cell, Column};
use crate::measured::Measured;

/// The cell of the suite, if it is wanted; all of the range if the rate does not fall.
///
/// Errors: a profile that makes no card; a card that is too small or fails.
pub(super) fn simulated(profile: &Profile, measured: &Measured) -> Result<Option<Cell>, SimulateError> {
    if !measured.cells.iter().any(|cell| cell.column == Column::Burst) {
        return Ok(None);
    }
    // A card may be smaller than the room that a fit gives to larger logs.
    let area_bytes = measured.burst_bytes.min(profile.areas.user_bytes);
    let options = Options {
        rows: vec![BURST_KIB.to_string()],
        size_bytes: Some(area_bytes),
        detail: Detail::Speeds,
        ..Options::default()
    };
    let suite = named("burst").expect("the suite is one of the crate's own");
    let outcome = Bench::run(suite, &mut target(profile)?, &options, &mut Unwatched)?;
    let bytes = volume(&outcome).unwrap_or(area_bytes as f64);
    Ok(Some(Cell::burst(bytes)))
}

/// What small random writes wrote before their rate fell; nothing if it did not. Unit: bytes.
pub(crate) fn volume(outcome: &Outcome) -> Option<f64> {
    let figure = outcome.figures.iter().find(|figure| figure.name == emmc_workload::BURST_VOLUME)?;
    figure.value.map(|mib| mib * f64::from(1 << 20)).filter(|bytes| *bytes > 0.0)
}

#[cfg(test)]
mod tests {
    use emmc_card::profile::shipped;

    use super::*;
    use crate::measured::CellsError;
    use crate::simulate::tests::measured_by;
    use crate::simulate::{Plan, simulate};

    fn run(mib: u64, rows: &[&str]) -> Result<Measured, CellsError> {
        let card = shipped::named("friendlyelec-emmc-8g").unwrap();
        let rows = rows.iter().map(|row| row.to_string()).collect();
        measured_by("burst", &card, &Options { size_bytes: Some(mib << 20), rows, ..Options::default() })
    }

    /// What the suite reports of a card, the card repeats in as much space as a fit gives it.
    #[test]
    fn a_burst_is_repeated() {
        let measured = run(128, &[]).unwrap();
        let [cell] = measured.cells[..] else { panic!("{measured:?}") };
        assert_eq!((cell.column, cell.kib, measured.burst_bytes), (Column::Burst, 4, 128 << 20));
        let mib = cell.kib_per_s() / 1024.0;
        assert!((16.0..18.0).contains(&mib), "{mib}");
        assert!(measured.left_out.iter().all(|why| why.contains("not small random writes")), "{measured:?}");
        let card = shipped::named("friendlyelec-emmc-8g").unwrap();
        let again = simulate(&card, &Plan { measured: measured.clone(), is_search: true }).unwrap();
        assert!((again[0].us / cell.us - 1.0).abs() < 0.03, "{again:?} {cell:?}");
        // In all of the card, if the room is larger.
        let all = Measured { burst_bytes: u64::MAX, ..measured.clone() };
        let all = simulate(&card, &Plan { measured: all, is_search: true }).unwrap();
        assert!((all[0].us / cell.us - 1.0).abs() < 0.03, "{all:?} {cell:?}");
        // With twice the log, twice as much.
        let mut larger = card;
        larger.ftl.slc_cache.as_mut().unwrap().blocks *= 2;
        let larger = simulate(&larger, &Plan { measured, is_search: true }).unwrap();
        assert!((1.8..2.5).contains(&(cell.us / larger[0].us)), "{larger:?} {cell:?}");
    }

    #[test]
    fn a_rate_that_does_not_fall_is_no_volume() {
        let error = run(12, &["4"]).unwrap_err().to_string();
        assert!(error.contains("(burst, 12 4 KiB random: the rate does not fall)"), "{error}");
    }
}
