//! Firmware and kernels identify an eMMC, each with its own sequence of commands.
//!
//! The sequences differ in how they poll CMD1, which of them ask for an SD card first, the address they assign, and
//! the order of CMD6, CMD7 and CMD8. Each is played on a card that is ready at once and on one that powers up
//! meanwhile, in sector and in byte mode, and ends with a read of sector 0.
//!
//! Source: the public sources of U-Boot (`drivers/mmc/mmc.c`), EDK2 (`SdMmcPciHcDxe`), SeaBIOS (`src/hw/sdcard.c`),
//! Linux (`drivers/mmc/core`), barebox (`drivers/mci`) and Zephyr (`subsys/sd`), 2024 to 2026.

use std::path::PathBuf;

use emmc_card::card::{Card, DataStatus};
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::Profile;
use emmc_regs::CardKind;
use emmc_regs::command::Response;
use emmc_regs::r1::{R1, State};
use emmc_units::{Instant, Nanos};

/// The ready bit of an OCR.
const READY: u32 = 1 << 31;
/// Sector mode, as the host offers it.
const SECTORS: u32 = 1 << 30;
/// 2.7 V to 3.6 V.
const HIGH_VOLTAGE: u32 = 0x00ff_8000;
/// 1.8 V.
const LOW_VOLTAGE: u32 = 0x80;
/// CMD6: BUS_WIDTH, 8 lines.
const WIDTH_8: u32 = 0x03b7_0200;
/// CMD6: HS_TIMING, High Speed.
const HIGH_SPEED: u32 = 0x03b9_0100;

/// A card and the clock of its host.
struct Bus {
    card: Card,
    now: Instant,
    rca: u32,
}

/// Why a sequence failed.
type Fault = String;

impl Bus {
    fn new(profile: &str, ready: bool) -> Self {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/scripts/profiles/{profile}.toml"));
        let text = std::fs::read_to_string(path).expect("the profile is there");
        let profile = Profile::from_toml(&text).expect("a valid profile");
        let options = DeviceOptions { keep: StoredContent::Data, seed: 1 };
        let mut card = Card::new(profile, options).expect("a card");
        let mut now = Instant::START;
        if !ready {
            card.power_off(now);
            now = now + Nanos::from_millis(1);
            card.power_on(now).expect("power");
        } else {
            now = now + Nanos::from_millis(1000);
        }
        Self { card, now, rca: 1 }
    }

    fn wait(&mut self, time: Nanos) {
        self.now = self.now + time;
        self.card.handle_timeout(self.now);
    }

    /// Sends a command; the response, if there is one.
    fn send(&mut self, index: u8, argument: u32) -> Option<Response> {
        self.wait(Nanos::from_micros(50));
        let reply = self.card.handle_command(index, argument, self.now);
        if let Some(busy) = reply.busy_until {
            self.now = self.now.max(busy);
            self.card.handle_timeout(self.now);
        }
        (reply.response != Response::None).then_some(reply.response)
    }

    /// A command that must be answered; its first word.
    fn must(&mut self, index: u8, argument: u32) -> Result<u32, Fault> {
        let response = self.send(index, argument).ok_or_else(|| format!("CMD{index}: no answer"))?;
        if let Response::R1(r1) | Response::R1b(r1) = response {
            let errors: Vec<&str> = r1.errors(CardKind::Emmc).map(|bit| bit.name).collect();
            if !errors.is_empty() {
                return Err(format!("CMD{index}: {}", errors.join(" ")));
            }
        }
        Ok(response.words()[0])
    }

    /// Commands of SD and SDIO, none of which an eMMC answers.
    fn must_be_silent(&mut self, commands: &[(u8, u32)]) -> Result<(), Fault> {
        for &(index, argument) in commands {
            if self.send(index, argument).is_some() {
                return Err(format!("CMD{index} {argument:#x} is answered"));
            }
        }
        Ok(())
    }

    fn reset(&mut self) {
        self.card.handle_command(0, 0, self.now);
        self.wait(Nanos::from_millis(2));
    }

    /// CMD1 with one argument until the card is ready: its OCR.
    fn poll(&mut self, argument: u32, step: Nanos, most: u32) -> Result<u32, Fault> {
        for _ in 0..most {
            let ocr = self.must(1, argument)?;
            if ocr & READY != 0 {
                return Ok(ocr);
            }
            self.wait(step);
        }
        Err("CMD1: never ready".into())
    }

    /// CMD2, CMD3, CMD9 and CMD7.
    fn select(&mut self, rca: u32) -> Result<(), Fault> {
        self.address(rca)?;
        self.must(7, rca << 16)?;
        Ok(())
    }

    /// CMD2, CMD3, CMD9.
    fn address(&mut self, rca: u32) -> Result<(), Fault> {
        self.rca = rca;
        self.must(2, 0)?;
        self.must(3, rca << 16)?;
        self.must(9, rca << 16)?;
        Ok(())
    }

    /// CMD8: EXT_CSD.
    fn ext_csd(&mut self) -> Result<Vec<u8>, Fault> {
        self.must(8, 0)?;
        self.block("CMD8")
    }

    /// CMD17 of sector 0.
    fn sector(&mut self) -> Result<Vec<u8>, Fault> {
        self.must(17, 0)?;
        self.block("CMD17")
    }

    fn block(&mut self, of: &str) -> Result<Vec<u8>, Fault> {
        let block = self.card.poll_data(self.now).ok_or_else(|| format!("{of}: no data"))?;
        self.now = self.now.max(block.at);
        Ok(block.bytes)
    }

    /// CMD6, then CMD13 until the card is back in `tran`.
    fn switch(&mut self, argument: u32) -> Result<(), Fault> {
        self.must(6, argument)?;
        for _ in 0..100 {
            let r1 = R1(self.must(13, self.rca << 16)?);
            if r1.contains(R1::READY_FOR_DATA) && r1.state() == Some(State::Tran) {
                return Ok(());
            }
            self.wait(Nanos::from_millis(1));
        }
        Err(format!("CMD6 {argument:08x}: still busy"))
    }
}

/// U-Boot: SD first, then a query and CMD1 in one loop that ends at the first ready bit.
fn u_boot(bus: &mut Bus) -> Result<(), Fault> {
    bus.reset();
    bus.must_be_silent(&[(8, 0x1aa), (55, 0)])?;
    bus.reset();
    let mut argument = 0;
    for round in 0.. {
        let ocr = bus.must(1, argument)?;
        argument = SECTORS | (HIGH_VOLTAGE | LOW_VOLTAGE) & ocr | ocr & (3 << 29);
        if ocr & READY != 0 {
            break;
        }
        if round == 10_000 {
            return Err("CMD1: one second".into());
        }
        bus.wait(Nanos::from_micros(100));
    }
    bus.select(1)?;
    bus.ext_csd()?;
    bus.switch(HIGH_SPEED)?;
    bus.switch(WIDTH_8)?;
    bus.ext_csd().map(|_| ())
}

/// EDK2: a query, then CMD1 with its answer; the query's ready bit would end it too.
fn edk2(bus: &mut Bus) -> Result<(), Fault> {
    bus.reset();
    let mut ocr = bus.must(1, 0)?;
    for _ in 0..100 {
        if ocr & READY != 0 {
            break;
        }
        ocr = bus.must(1, ocr | SECTORS)?;
        bus.wait(Nanos::from_millis(10));
    }
    bus.select(1)?;
    bus.ext_csd()?;
    bus.switch(WIDTH_8)?;
    bus.switch(HIGH_SPEED)
}

/// SeaBIOS: SD's CMD8 and ACMD41 are tried, a query, then one voltage bit; no CMD6, and CMD8 only of newer parts.
fn sea_bios(bus: &mut Bus) -> Result<(), Fault> {
    bus.reset();
    bus.must_be_silent(&[(8, 0x1aa), (55, 0)])?;
    let ocr = bus.must(1, 0)?;
    let voltage = [20, 18, 7].map(|bit| 1 << bit).into_iter().find(|bit| ocr & bit != 0).ok_or("no voltage")?;
    bus.poll(SECTORS | voltage, Nanos::from_millis(5), 200)?;
    bus.select(1)?;
    bus.ext_csd().map(|_| ())
}

/// Linux: SDIO, SD, then a query that it repeats with the answer; then CMD0 and CMD1 again.
fn linux(bus: &mut Bus) -> Result<(), Fault> {
    bus.must_be_silent(&[(52, 0xc00), (52, 0x8000_0c08)])?;
    bus.reset();
    bus.must_be_silent(&[(8, 0x1aa), (5, 0), (5, 0), (55, 0), (55, 0), (55, 0), (55, 0)])?;
    let (mut argument, mut ocr) = (0, 0);
    for _ in 0..100 {
        ocr = bus.must(1, argument)?;
        if ocr & READY != 0 {
            break;
        }
        argument = ocr | SECTORS;
        bus.wait(Nanos::from_millis(10));
    }
    let wanted = ocr & (HIGH_VOLTAGE | LOW_VOLTAGE) | SECTORS;
    bus.reset();
    bus.poll(wanted, Nanos::from_millis(10), 100)?;
    bus.select(1)?;
    bus.ext_csd()?;
    bus.switch(0x03af_0100)?;
    bus.switch(HIGH_SPEED)?;
    bus.switch(WIDTH_8)?;
    bus.ext_csd().map(|_| ())
}

/// barebox: SD and SDIO first, CMD0 again, the host's windows at once, address 2.
fn barebox(bus: &mut Bus) -> Result<(), Fault> {
    bus.reset();
    bus.must_be_silent(&[(8, 0x1aa), (5, 0), (55, 0)])?;
    bus.reset();
    bus.poll(SECTORS | HIGH_VOLTAGE, Nanos::from_millis(1), 1000)?;
    bus.select(2)?;
    bus.ext_csd()?;
    bus.switch(WIDTH_8)
}

/// Zephyr: 1.8 V and 2.7 V to 3.6 V at once; the bus width is set before EXT_CSD is read.
fn zephyr(bus: &mut Bus) -> Result<(), Fault> {
    bus.reset();
    bus.poll(SECTORS | HIGH_VOLTAGE | LOW_VOLTAGE, Nanos::from_millis(10), 100)?;
    bus.select(2)?;
    bus.switch(WIDTH_8)?;
    bus.ext_csd().map(|_| ())
}

type Sequence = fn(&mut Bus) -> Result<(), Fault>;
const SEQUENCES: [(&str, Sequence); 6] = [
    ("U-Boot", u_boot),
    ("EDK2", edk2),
    ("SeaBIOS", sea_bios),
    ("Linux", linux),
    ("barebox", barebox),
    ("Zephyr", zephyr),
];

#[test]
fn every_firmware_identifies_the_card_and_reads_sector_0() {
    for (name, identify) in SEQUENCES {
        for profile in ["sector", "byte"] {
            for ready in [true, false] {
                let mut bus = Bus::new(profile, ready);
                let found = identify(&mut bus).and_then(|()| bus.sector());
                assert_eq!(found.as_deref(), Ok(&[0; 512][..]), "{name}, {profile}, ready at once: {ready}");
            }
        }
    }
}

/// One firmware hands the card to the next: U-Boot to Linux, SeaBIOS to Linux, each to each.
#[test]
fn every_firmware_takes_the_card_over_from_every_other() {
    for (first, before) in SEQUENCES {
        for (second, after) in SEQUENCES {
            let mut bus = Bus::new("sector", false);
            let content = [0x5a; 512];
            let run = |bus: &mut Bus| -> Result<Vec<u8>, Fault> {
                before(bus)?;
                bus.must(24, 0)?;
                let DataStatus::Accepted { busy_until } = bus.card.handle_data(&content, bus.now) else {
                    return Err("CMD24: the block is not accepted".into());
                };
                bus.now = busy_until.unwrap_or(bus.now).max(bus.now);
                after(bus)?;
                bus.sector()
            };
            assert_eq!(run(&mut bus).as_deref(), Ok(&content[..]), "{first}, then {second}");
        }
    }
}

/// A ROM, a boot loader and a kernel, one after the other.
#[test]
fn three_rounds_of_identification_keep_the_card_usable() {
    for (rom, first) in SEQUENCES {
        for (loader, second) in SEQUENCES {
            for (kernel, third) in SEQUENCES {
                let mut bus = Bus::new("sector", false);
                let found = first(&mut bus)
                    .and_then(|()| second(&mut bus))
                    .and_then(|()| third(&mut bus))
                    .and_then(|()| bus.sector());
                assert_eq!(found.as_deref(), Ok(&[0; 512][..]), "{rom}, {loader}, {kernel}");
            }
        }
    }
}

/// CMD0 while the card still powers up, after any number of CMD1 and of queries: the next firmware starts over.
#[test]
fn a_reset_in_the_middle_of_the_power_up_starts_over() {
    for (name, identify) in SEQUENCES {
        for argument in [0, SECTORS | HIGH_VOLTAGE, SECTORS | LOW_VOLTAGE, 0x40ff_8080] {
            for polls in [1, 2, 5] {
                let mut bus = Bus::new("sector", false);
                bus.reset();
                for _ in 0..polls {
                    let ocr = bus.must(1, argument).expect("CMD1 is answered");
                    assert_eq!(ocr & READY, 0, "{name}: the card is still powering up");
                }
                let found = identify(&mut bus).and_then(|()| bus.sector());
                assert_eq!(found.as_deref(), Ok(&[0; 512][..]), "{name} after {polls} of CMD1 {argument:#x}");
            }
        }
    }
}
