//! The kind of firmware, and which of them measured cells leave open.

use serde::Serialize;

use super::{COMMANDS_KIB, PAGES_KIB, PLANES};
use crate::cell::{Cell, Column, time};
use crate::segment::Segment;

/// The kind of firmware: tried, or chosen by ratios of cells; not searched.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Firmware {
    /// Writes up to this size go to the log. Unit: KiB.
    pub threshold_kib: u32,
    /// Every read starts a read-ahead.
    pub read_ahead_always: bool,
    /// A page of the flash. Unit: KiB.
    pub page_kib: u32,
    /// Channels of the flash, a die each. Pages are spread over them.
    pub channels: u32,
    /// Each write completes its merge unit.
    pub merges_each_write: bool,
    /// Small writes fill a log of sectors; whenever it is full, a merge unit is completed.
    pub logs_sectors: bool,
    /// The log of small writes maps pages of 16 KiB: less of one than that reads the rest.
    pub keeps_pages: bool,
    /// The host's largest command. Unit: KiB.
    pub command_kib: u32,
    /// It maps whole allocation units, of which a few are open; absent: it maps pages.
    pub segment: Option<Segment>,
}

/// Two measured times that differ by less than this share may be in the other order on the card.
const ALIKE: f64 = 0.1;

impl Firmware {
    /// The one that a search begins with: a page-mapped card of one channel whose log takes writes of up to 8 KiB.
    pub(crate) const FIRST: Self = Self {
        threshold_kib: 8,
        read_ahead_always: false,
        page_kib: PAGES_KIB[0],
        channels: 1,
        merges_each_write: false,
        logs_sectors: false,
        keeps_pages: false,
        command_kib: COMMANDS_KIB[0],
        segment: None,
    };

    /// What is programmed at once. Unit: KiB.
    pub(crate) fn stripe_kib(&self) -> f64 {
        f64::from(self.channels * PLANES * self.page_kib)
    }

    /// Random writes of 16 KiB merge, on cards without a small mapping unit: megabytes each time.
    pub(crate) fn merges_allocation_units(&self) -> bool {
        self.threshold_kib < 16
    }
}

/// The firmwares that are tried.
pub(crate) fn firmwares() -> Vec<Firmware> {
    let each = |threshold_kib| {
        [false, true].map(|read_ahead_always| Firmware { threshold_kib, read_ahead_always, ..Firmware::FIRST })
    };
    [8, 64].into_iter().flat_map(each).collect()
}

/// The firmwares that the cells leave open.
pub(crate) fn plausible(cells: &[Cell]) -> Vec<Firmware> {
    let ratio = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a / b);
    let random = ratio(time(cells, Column::RandomWrite, 16), time(cells, Column::Rewrite, 16));
    let first = ratio(time(cells, Column::Write, 1), time(cells, Column::Write, 4));
    let known = random.is_some() || first.is_some();
    let collapses = random.is_some_and(|ratio| ratio > 8.0) || first.is_some_and(|ratio| ratio > 2.0);
    // A log of which each write costs more, or a merge of little: the search decides.
    let known = known && (collapses || random.is_none_or(|ratio| ratio < 2.0));
    let fits = |firmware: &Firmware| !known || (firmware.threshold_kib == 8) == collapses;
    // Their time is in proportion to their size, although each is smaller than a mapping unit.
    let grows = |column| ratio(time(cells, column, 2), time(cells, column, 1)).is_some_and(|ratio| ratio > 1.4);
    let logs_sectors = |threshold_kib: u32| threshold_kib == 8 && (grows(Column::RandomWrite) || grows(Column::Write));
    // Those of less than a page of the log take longer than those of one, although the bus is quicker. Folds and noise
    // can bring both close together on another card: the search decides.
    let reads_rest = ratio(time(cells, Column::RandomWrite, 4), time(cells, Column::RandomWrite, 16));
    let keeps_pages = |threshold_kib: u32| match reads_rest.filter(|_| threshold_kib > 8) {
        Some(ratio) if ratio > 1.0 + ALIKE => vec![true],
        Some(ratio) if ratio > 1.0 - ALIKE => vec![false, true],
        _ => vec![false],
    };
    let with = |one: Firmware| {
        let one = Firmware { logs_sectors: logs_sectors(one.threshold_kib), ..one };
        keeps_pages(one.threshold_kib).into_iter().map(move |keeps_pages| Firmware { keeps_pages, ..one })
    };
    firmwares().into_iter().filter(fits).flat_map(with).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::Measured;

    /// Of the nine published cards, those whose random writes of 4 KiB take longer than those of 16 KiB.
    #[test]
    fn two_cards_keep_pages_in_their_log() {
        let keeps = |reference: emmc_workload::reference::Reference| {
            let name = reference.name.clone();
            let measured = Measured::of(&reference.result()).ok()?;
            plausible(&measured.cells).iter().any(|firmware| firmware.keeps_pages).then_some(name)
        };
        let names: Vec<_> = emmc_workload::reference::references().into_iter().filter_map(keeps).collect();
        assert_eq!(names, ["nine-cards-sandisk-extreme-pro-a2-64gb", "nine-cards-sandisk-extreme-plus-a2-64gb"]);
    }

    /// Both forms of the log are tried where the two times differ by less than 10 %.
    #[test]
    fn the_search_decides_if_small_and_large_random_writes_take_alike() {
        let keeps = |us: f64| {
            let small = Cell { column: Column::RandomWrite, kib: 4, us };
            let others = [Column::RandomWrite, Column::Rewrite].map(|column| Cell { column, kib: 16, us: 1000.0 });
            let mut found: Vec<bool> =
                plausible(&[&[small][..], &others].concat()).iter().map(|firmware| firmware.keeps_pages).collect();
            found.dedup();
            found
        };
        assert_eq!([keeps(850.0), keeps(1150.0)], [[false], [true]]);
        assert!([950.0, 1046.0].into_iter().all(|us| [true, false].iter().all(|one| keeps(us).contains(one))));
    }
}
