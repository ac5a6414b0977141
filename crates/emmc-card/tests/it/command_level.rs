//! Costs of commands above the device: none for counted transfers, small ones for open-ended transfers.

use emmc_card::card::{Card, DataStatus};
use emmc_card::device::{Area, Device, DeviceOptions, WriteFlags};
use emmc_card::nand::StoredContent;
use emmc_card::profile::{Profile, shipped};
use emmc_regs::command::Response;
use emmc_regs::r1::State;
use emmc_units::{Instant, Nanos};

const OPTIONS: DeviceOptions = DeviceOptions { keep: StoredContent::Nothing, seed: 1 };

fn profile() -> Profile {
    shipped::named("generic-8g").expect("a shipped profile")
}

/// A card in `tran` at HS400, as Linux leaves it, and the time.
fn ready_card() -> (Card, Instant) {
    let mut card = Card::new(profile(), OPTIONS).expect("a card");
    let mut now = Instant(1_000_000_000);
    let switches = [0x03b9_0100, 0x03b7_0600, 0x03b9_0300];
    let identify = [(0, 0), (1, 0x40ff_8080), (1, 0x40ff_8080), (2, 0), (3, 0x1_0000), (7, 0x1_0000)];
    for (index, argument) in identify.into_iter().chain(switches.map(|argument| (6, argument))) {
        card.handle_command(index, argument, now);
        now = now + Nanos::from_millis(10);
    }
    assert_eq!(card.state(now), Some(State::Tran));
    assert_eq!(card.device().bus().mode(), card.device().profile().controller.bus());
    (card, now)
}

/// A device without commands, at the same instant.
fn ready_device() -> Device {
    Device::new(profile(), OPTIONS).expect("a device")
}

/// Sends a counted write without pause between blocks; returns the time of the card.
fn write(card: &mut Card, lba: u32, blocks: u32, now: Instant) -> Nanos {
    assert!(matches!(card.handle_command(23, blocks, now).response, Response::R1(_)));
    assert!(card.handle_command(25, lba, now).data.is_some());
    for left in (0..blocks).rev() {
        let status = card.handle_data(&[0; 512], now);
        match status {
            DataStatus::Accepted { busy_until: Some(until) } if left == 0 => return until.since(now),
            DataStatus::Accepted { busy_until: None } if left > 0 => {}
            other => panic!("block {left} from the end: {other:?}"),
        }
    }
    unreachable!("the last block returned")
}

/// Reads blocks as fast as possible; returns the time.
fn read(card: &mut Card, lba: u32, blocks: u32, counted: bool, now: Instant) -> Nanos {
    if counted {
        card.handle_command(23, blocks, now);
    }
    card.handle_command(18, lba, now);
    let mut at = now;
    for _ in 0..blocks {
        at = card.poll_data(at).expect("a block").at;
    }
    if !counted {
        card.handle_command(12, 0, at);
    }
    assert_eq!(card.state(at), Some(State::Tran));
    at.since(now)
}

#[test]
fn counted_transfers_take_the_device_time() {
    let (mut card, mut now) = ready_card();
    let mut device = ready_device();
    for (lba, blocks) in [(0, 8), (8, 256), (264, 1), (1024, 1024), (0, 8)] {
        now = now + Nanos::from_secs(1);
        let area = Area::User;
        let direct = device.write(area, lba.into(), blocks, WriteFlags::default(), None, now).expect("written").done;
        assert_eq!(write(&mut card, lba, blocks, now), direct.since(now), "write of {blocks} at {lba}");
        now = now + Nanos::from_secs(1);
        let direct = device.read(area, lba.into(), blocks, None, now).expect("read").transferred;
        assert_eq!(read(&mut card, lba, blocks, true, now), direct.since(now), "read of {blocks} at {lba}");
    }
    assert_eq!(card.device().stats(), device.stats());
}

#[test]
fn open_ended_reads_cost_little_more() {
    let (mut card, mut now) = ready_card();
    write(&mut card, 0, 4104, now);
    for (blocks, most) in [(8, 1.0), (64, 1.6), (1024, 1.3), (4096, 1.1)] {
        now = now + Nanos::from_secs(1);
        let counted = read(&mut card, 0, blocks, true, now).as_micros_f64();
        now = now + Nanos::from_secs(1);
        // Another page comes into the page register, as before the first read.
        read(&mut card, 4096, 8, true, now);
        now = now + Nanos::from_secs(1);
        let open = read(&mut card, 0, blocks, false, now).as_micros_f64();
        let ratio = open / counted;
        assert!((0.98..=most + 0.02).contains(&ratio), "{blocks} blocks: {open} us open-ended, {counted} us counted");
    }
}

/// Sectors that were never written: reading them needs no flash, only firmware and bus.
const UNMAPPED: u32 = 0x10_0000;

#[test]
fn a_read_after_hpi_does_not_wait_for_the_whole_write() {
    let (mut card, mut now) = ready_card();
    // HPI_MGMT.
    card.handle_command(6, 0x03a1_0100, now);
    now = now + Nanos::from_secs(1);
    let idle = read(&mut card, UNMAPPED, 8, true, now);
    now = now + Nanos::from_secs(1);
    assert!(matches!(card.handle_command(23, 8192, now).response, Response::R1(_)));
    assert!(card.handle_command(25, 0, now).data.is_some());
    let mut arrived = now;
    let end = (0..8192).find_map(|_| match card.handle_data(&[0; 512], arrived) {
        DataStatus::Accepted { busy_until } => {
            arrived = arrived + Nanos::from_micros(1);
            busy_until
        }
        other => panic!("{other:?}"),
    });
    let end = end.expect("the last block starts the busy signal");
    card.handle_command(13, 0x1_0001, arrived);
    // OUT_OF_INTERRUPT_TIME is 100 ms; the card needs a tenth of it.
    let ended = arrived + Nanos::from_millis(10);
    assert!(end > ended + Nanos::from_millis(5), "the write is long: {}", end.since(ended).as_micros_f64());
    assert_eq!(card.state(ended), Some(State::Tran));
    assert_eq!(read(&mut card, UNMAPPED, 8, true, ended), idle);
}

#[test]
fn a_read_after_power_loss_does_not_wait_for_the_write_before_it() {
    let mut device = ready_device();
    let read = |device: &mut Device, now| {
        device.read(Area::User, UNMAPPED.into(), 8, None, now).expect("read").transferred.since(now)
    };
    let idle = read(&mut device, Instant::START);
    let now = Instant::START + Nanos::from_secs(1);
    let end = device.write(Area::User, 0, 64 << 11, WriteFlags::default(), None, now).expect("written").done;
    device.power_off(now + Nanos::from_millis(1));
    let ready = device.power_on(now + Nanos::from_millis(2)).expect("recovered");
    assert!(ready < end, "the write would still hold the data lines");
    assert_eq!(read(&mut device, ready), idle);
}
