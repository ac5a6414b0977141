//! Parts that differ in their form from another one.

use emmc_regs::CardKind;

use super::{Firmware, PARAMETERS, Part, index};
use crate::least_squares::Reach;

/// What no longer bounds large reads takes this share of its time.
const FASTER: f64 = 0.75;
/// The time of a channel over that of the bus where two are as fast as the bus, with some of it left.
const SLOW_CHANNEL: f64 = 1.7;
/// What is left at least of the firmware's time of a write behind larger pages.
const LEAST: f64 = 0.3;
/// Folding that hardly shows. Unit: %.
const LITTLE_DEBT: f64 = 3.0;

impl Part {
    /// The same where every read starts a read-ahead.
    pub(crate) fn reading_ahead_always(mut self) -> Self {
        self.firmware.read_ahead_always = true;
        self
    }

    /// The same that reads as another one: its pages, its read-ahead, and all parameters that reads show. Its small
    /// writes take as long as before: with other pages a card that answers after the program waits for more or less.
    pub(crate) fn reading_as(&self, other: &Self) -> Self {
        let mut part = self.clone();
        if self.kind != CardKind::Sd {
            let [own, others] = [self, other].map(|part| part.firmware.stripe_kib());
            let log = self.values[index::LOG];
            let whole = |index: usize| self.values[index] + log * own;
            // A program of larger pages that leaves the firmware too little would be that of another log.
            let longest = |index: usize| (whole(index) - LEAST * self.values[index]) / others;
            let log = log.min(longest(index::WRITE)).min(longest(index::SMALL));
            part.values[index::LOG] = log;
            for index in [index::WRITE, index::SMALL] {
                part.values[index] = whole(index) - log * others;
            }
        }
        part.firmware.page_kib = other.firmware.page_kib;
        part.firmware.channels = other.firmware.channels;
        part.firmware.read_ahead_always = other.firmware.read_ahead_always;
        for ((value, other), parameter) in part.values.iter_mut().zip(&other.values).zip(&PARAMETERS) {
            if parameter.reach != Reach::Unmarked {
                *value = *other;
            }
        }
        part.within_bounds()
    }

    /// The same with other pages.
    pub(crate) fn with_pages(mut self, kib: u32) -> Self {
        self.firmware.page_kib = kib;
        self
    }

    /// The same with a log as large as the file, within the bounds: every row folds it. A log that no row fills has no
    /// slope.
    pub(crate) fn with_log_of(mut self, file_bytes: u64) -> Self {
        self.values[index::LOG_SIZE] = file_bytes as f64 / f64::from(1 << 20);
        self.within_bounds()
    }

    /// The same with a log of `times` the size, within the bounds.
    pub(crate) fn with_log_times(mut self, times: f64) -> Self {
        self.values[index::LOG_SIZE] *= times;
        self.within_bounds()
    }

    /// The same behind a host whose largest command is another one.
    pub(crate) fn with_commands(mut self, kib: u32) -> Self {
        self.firmware.command_kib = kib;
        self
    }

    /// The same with a unit that each write completes, and little debt: either explains slow writes beyond the small
    /// ones.
    fn merging_each_write(mut self) -> Self {
        self.firmware.merges_each_write = true;
        self.values[index::DEBT] = self.values[index::DEBT].min(LITTLE_DEBT);
        self
    }

    /// The same with one thing of its firmware changed each: the read-ahead, what a write completes, and what goes to
    /// the log if that is among `firmwares`.
    pub(crate) fn other_firmwares(&self, firmwares: &[Firmware]) -> Vec<Self> {
        let own = self.firmware;
        let mut forms = vec![Firmware { read_ahead_always: !own.read_ahead_always, ..own }];
        // Not from a log of sectors to another log: a parameter has another meaning there.
        let other = |one: &&Firmware| one.threshold_kib != own.threshold_kib && one.logs_sectors == own.logs_sectors;
        let other = firmwares.iter().find(other);
        forms.extend(other.map(|one| Firmware { threshold_kib: one.threshold_kib, ..own }));
        let mut parts: Vec<Self> = forms.into_iter().map(|firmware| Self { firmware, ..self.clone() }).collect();
        if !own.merges_each_write {
            parts.push(self.clone().merging_each_write());
        }
        parts
    }

    /// The same speed of large reads, but the flash bounds it if the bus does here, or the other way round: the slope
    /// of reads does not say which.
    pub(crate) fn bound_otherwise(mut self) -> Self {
        let [bus, channel] = [index::BUS, index::CHANNEL].map(|index| self.values[index]);
        let flash = self.flash_read();
        if flash > bus {
            self.values[index::BUS] = flash;
            self.values[index::CHANNEL] = FASTER * channel;
        } else {
            self.values[index::CHANNEL] = channel + (bus - flash) * f64::from(self.firmware.channels);
            self.values[index::BUS] = FASTER * bus;
        }
        self.within_bounds()
    }

    /// What the flash takes for each KiB of a large read: tR for each page, as the templates do not read both planes at
    /// once, and the channel. Unit: microseconds.
    fn flash_read(&self) -> f64 {
        let of_a_channel = self.values[index::SENSE] / f64::from(self.firmware.page_kib) + self.values[index::CHANNEL];
        of_a_channel / f64::from(self.firmware.channels)
    }

    /// The same with two channels, each of which is slower than the bus, but not both together: the first pages of a
    /// read come late.
    pub(crate) fn with_slow_channels(mut self) -> Self {
        self.firmware.channels = 2;
        self.values[index::CHANNEL] = SLOW_CHANNEL * self.values[index::BUS];
        self.within_bounds()
    }

    fn within_bounds(mut self) -> Self {
        for (value, parameter) in self.values.iter_mut().zip(&PARAMETERS) {
            *value = value.clamp(parameter.low, parameter.high);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use emmc_card::profile::MeasuringHost;
    use emmc_regs::CardKind;

    use super::*;
    use crate::cell::{Cell, Column, time};
    use crate::known::Known;
    use crate::measured::Measured;
    use crate::part::firmwares;
    use crate::simulate::{Plan, simulate};

    fn part() -> Part {
        let cells = Column::IOZONE.map(|column| Cell { column, kib: 4, us: 100.0 });
        Part::start(CardKind::Sd, firmwares()[0], false, (&cells, &Known::default()))
    }

    /// What bounds large reads changes sides, twice back again; how fast they are does not.
    #[test]
    fn the_bus_or_the_flash_bounds_reads() {
        let mut bus = part();
        (bus.values[index::BUS], bus.values[index::SENSE], bus.values[index::CHANNEL]) = (10.0, 64.0, 3.0);
        let by_flash = bus.clone().bound_otherwise();
        assert!((by_flash.flash_read() - 10.0).abs() < 1e-9 && by_flash.values[index::BUS] < 10.0, "{by_flash:?}");
        let by_bus = by_flash.bound_otherwise();
        assert!((by_bus.values[index::BUS] - 10.0).abs() < 1e-9 && by_bus.flash_read() < 10.0, "{by_bus:?}");
    }

    /// Two channels, each slower than the bus, are faster together: large reads take as long as before, a first page
    /// longer. Writes take as long as with one.
    #[test]
    fn slow_channels_delay_the_first_page() {
        let mut one = part().with_pages(8);
        (one.values[index::BUS], one.values[index::SENSE], one.values[index::CHANNEL]) = (20.0, 30.0, 3.0);
        (one.values[index::PROGRAM], one.values[index::LOG]) = (60.0, 10.0);
        let two = one.clone().with_slow_channels();
        assert!(two.flash_read() < two.values[index::BUS], "{two:?}");
        let profile = two.profile().unwrap();
        assert_eq!((profile.nand.channels, profile.nand.dies), (2, 2));
        assert_eq!(Part::of(&profile).unwrap().firmware.channels, 2);
        let measured = |part: &Part| {
            let cell = |column, kib| Cell { column, kib, us: 1.0 };
            let cells = [16, 1024].into_iter().flat_map(|kib| Column::IOZONE.map(|column| cell(column, kib)));
            let measured = Measured { cells: cells.collect(), file_bytes: 8 << 20, ..Measured::default() };
            simulate(&part.profile().unwrap(), &Plan { measured, is_search: false }).unwrap()
        };
        let (one, two) = (measured(&one), measured(&two));
        let times = |column, kib| time(&two, column, kib).unwrap() / time(&one, column, kib).unwrap();
        // 16 KiB are on one channel, which needs 1.7 times as long as the bus: 544 us in place of 320.
        let longer = [&two, &one].map(|cells| time(cells, Column::RandomRead, 16).unwrap());
        assert!(longer[0] - longer[1] > 200.0, "{longer:?}");
        assert!((times(Column::Read, 1024) - 1.0).abs() < 0.05, "{}", times(Column::Read, 1024));
        assert!((times(Column::Rewrite, 1024) - 1.0).abs() < 0.05, "{}", times(Column::Rewrite, 1024));
    }

    #[test]
    fn each_other_firmware_differs_in_one_thing_that_the_cells_leave_open() {
        let own = part();
        let found = own.other_firmwares(&firmwares());
        let changes = |other: &Firmware| {
            let own = own.firmware;
            usize::from(own.threshold_kib != other.threshold_kib)
                + usize::from(own.read_ahead_always != other.read_ahead_always)
                + usize::from(own.merges_each_write != other.merges_each_write)
        };
        assert_eq!(found.iter().map(|part| changes(&part.firmware)).collect::<Vec<_>>(), [1, 1, 1]);
        assert_eq!(own.other_firmwares(&[own.firmware]).len(), 2, "the cells say what goes to the log");
        let mut sectors = own.clone();
        sectors.firmware.logs_sectors = true;
        assert_eq!(sectors.other_firmwares(&firmwares()).len(), 2, "a log of sectors is no other log");
    }

    /// A log that is too small, or too large, for the virtual card stays within the bounds.
    #[test]
    fn a_log_of_another_size_is_within_the_bounds() {
        let mut own = part();
        own.values[index::LOG_SIZE] = 100.0;
        let log = |times: f64| own.clone().with_log_times(times).values[index::LOG_SIZE];
        let bounds = &PARAMETERS[index::LOG_SIZE];
        assert_eq!([0.3, 3.0].map(log), [30.0, 300.0]);
        assert_eq!([1e-9, 1e9].map(log), [bounds.low, bounds.high]);
    }

    #[test]
    fn the_largest_command_is_the_hosts() {
        let part = part();
        assert_eq!(part.profile().unwrap().host.unwrap().command_kib, 512);
        let other = part.with_commands(1024).profile().unwrap();
        assert_eq!(other.host.unwrap().command_kib, 1024);
        assert_eq!(Part::of(&other).unwrap().firmware.command_kib, 1024);
        let host = MeasuringHost { command_kib: 2048, ..MeasuringHost::default() };
        let known = self::part().knowing(&Known { host: Some(host), ..Known::default() });
        assert_eq!((known.firmware.command_kib, known.profile().unwrap().host), (2048, Some(host)));
    }

    /// What reads show comes from the other part, everything else stays.
    #[test]
    fn a_part_reads_as_another_one() {
        let own = part();
        let mut other = own.clone().with_pages(4).reading_ahead_always();
        other.values.iter_mut().for_each(|value| *value *= 1.5);
        let found = own.reading_as(&other);
        assert_eq!((found.firmware.page_kib, found.firmware.read_ahead_always), (4, true));
        assert_eq!(found.values[index::SENSE], other.values[index::SENSE]);
        assert_eq!(found.values[index::READ], other.values[index::READ]);
        assert_eq!(found.values[index::WRITE], own.values[index::WRITE]);
    }

    /// 16 KiB less of the log are programmed before the answer; an SD card answers from its buffer.
    #[test]
    fn small_writes_take_as_long_with_other_pages() {
        let mut own = Part { kind: CardKind::Emmc, ..part() };
        (own.values[index::LOG], own.values[index::SMALL], own.values[index::WRITE]) = (8.0, 100.0, 300.0);
        let halved = own.reading_as(&own.clone().with_pages(8));
        assert_eq!(halved.values[index::SMALL], 228.0);
        assert_eq!(halved.values[index::WRITE], own.values[index::WRITE] + 128.0);
        assert_eq!(halved.reading_as(&own).values[index::SMALL], 100.0);
        let doubled = own.reading_as(&own.clone().with_pages(32));
        let whole = doubled.values[index::SMALL] + 64.0 * doubled.values[index::LOG];
        assert!((doubled.values[index::SMALL] - 30.0).abs() < 1e-9 && (whole - 356.0).abs() < 1e-9, "{doubled:?}");
        let card = Part { kind: CardKind::Sd, ..own };
        assert_eq!(card.reading_as(&card.clone().with_pages(8)).values[index::SMALL], 100.0);
    }
}
