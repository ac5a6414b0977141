//! Two parts of a board vendor are enhanced completely, by U-Boot's commands: capacity, speed and life afterwards.

use emmc_card::card::Card;
use emmc_card::device::{Area, DeviceOptions, WriteFlags};
use emmc_card::nand::{CellMode, StoredContent};
use emmc_card::profile::shipped;
use emmc_units::{Instant, Nanos};

const REQUEST_SECTORS: u32 = 1024;

/// BUS_WIDTH: eight lines, at one rate or both edges.
const SDR8: u8 = 2;
const DDR8: u8 = 6;

struct Board {
    card: Card,
    now: Instant,
    bus_width: u8,
}

impl Board {
    fn new(name: &str, bus_width: u8) -> Self {
        let profile = shipped::named(name).unwrap();
        let card = Card::new(profile, DeviceOptions { keep: StoredContent::Nothing, seed: 1 }).unwrap();
        let mut board = Self { card, now: Instant::START, bus_width };
        board.identify();
        board
    }

    fn command(&mut self, index: u8, argument: u32) {
        self.card.handle_command(index, argument, self.now);
        self.now = self.now + Nanos::from_millis(500);
        self.card.handle_timeout(self.now);
    }

    fn identify(&mut self) {
        for (index, argument) in [(0, 0), (1, 0x40ff_8080), (1, 0x40ff_8080), (2, 0), (3, 1 << 16), (7, 1 << 16)] {
            self.command(index, argument);
        }
        assert_eq!(self.card.state(self.now).map(|state| state.name()), Some("tran"));
        // 52 MHz.
        self.switch(185, 1);
        self.switch(183, self.bus_width);
    }

    /// CMD6, write byte.
    fn switch(&mut self, index: u8, value: u8) {
        self.command(6, 0x0300_0000 | u32::from(index) << 16 | u32::from(value) << 8);
    }

    fn enhance_all(&mut self) {
        let groups = self.card.device().profile().areas.enhanced_groups_max.to_le_bytes();
        self.switch(175, 1);
        for (index, byte) in (140..143).zip(groups) {
            self.switch(index, byte);
        }
        self.switch(156, 1);
        self.switch(155, 1);
        self.card.power_off(self.now);
        self.now = self.now + Nanos::from_secs(1);
        self.now = self.card.power_on(self.now).unwrap();
        self.identify();
    }

    fn sec_count(&mut self) -> u32 {
        let ext_csd = self.card.registers().ext_csd;
        u32::from_le_bytes([ext_csd[212], ext_csd[213], ext_csd[214], ext_csd[215]])
    }

    /// Sequential writes, as dd issues them. Unit: MB/s.
    fn write(&mut self, requests: u32) -> f64 {
        let start = self.now;
        for index in 0..requests {
            let lba = u64::from(index * REQUEST_SECTORS);
            let device = self.card.device_mut();
            let done = device.write(Area::User, lba, REQUEST_SECTORS, WriteFlags::default(), None, self.now);
            self.now = done.unwrap().done;
        }
        f64::from(requests * REQUEST_SECTORS) * 512.0 / self.now.since(start).as_micros_f64()
    }
}

#[test]
fn the_t30_part_is_half_as_large_and_twice_as_fast() {
    let mut board = Board::new("colibri-t30-4g", SDR8);
    assert_eq!(board.sec_count(), 7_471_104);
    let before = board.write(512);
    board.enhance_all();
    assert_eq!(board.sec_count(), 3_735_552);
    let after = board.write(512);
    // dd wrote 9.3 MB/s before and 19.7 after.
    assert!((before / 9.3 - 1.0).abs() < 0.05 && (after / 19.7 - 1.0).abs() < 0.05, "{before:.1} -> {after:.1} MB/s");
    let device = board.card.device();
    let blocks = device.nand().blocks();
    assert!(blocks.iter().filter(|block| block.next_page > 0).all(|block| block.mode == CellMode::Pslc));
    device.audit().unwrap();
}

#[test]
fn the_imx8qm_part_has_939_groups() {
    let mut board = Board::new("apalis-imx8qm-16g", DDR8);
    assert_eq!(board.sec_count(), 31_080_448);
    let (blocks, before) = (board.card.device().nand().blocks().len(), board.write(256));
    board.enhance_all();
    assert_eq!(board.sec_count(), 15_384_576);
    assert_eq!(board.card.device().nand().blocks().len(), blocks);
    let after = board.write(256);
    // The bus carries hardly more than this.
    assert!(after > 1.25 * before, "{before:.1} -> {after:.1} MB/s");
    // Ten times the cycles of the same blocks, at half the capacity: five times the volume.
    let nand = &board.card.device().profile().nand;
    assert_eq!(nand.slc.as_ref().unwrap().endurance, 10 * nand.native.endurance);
    board.card.device().audit().unwrap();
}
