//! The controller as a driver sees it, with a whole card.

use emmc_units::Nanos;

use crate::pci::Identity;
use crate::pci::rig::{AUTO_CMD12, AUTO_CMD23, COUNTED, DATA, DMA, MULTIPLE, NONE, R1, R1B, R2, READ, Rig, pattern};

const COMMAND_TIMEOUT: u32 = 1 << 16;
const DATA_TIMEOUT: u32 = 1 << 20;
const DATA_CRC: u32 = 1 << 21;
const AUTO_CMD: u32 = 1 << 24;
const ADMA: u32 = 1 << 25;
const LIST: u64 = 0x1000;

fn rig() -> Rig {
    Rig::ready(Identity::Gl9763eWithoutQueue)
}

/// Writes or reads `blocks` at `lba` with a list at `LIST` for the data at `at`.
fn transfer(rig: &mut Rig, read: bool, lba: u32, blocks: u16, at: u32) -> Result<[u32; 4], u32> {
    rig.prepare(blocks, LIST);
    rig.descriptor(LIST, 4, true, blocks * 512, at);
    rig.write(0x00, 4, blocks.into());
    let direction = if read { READ } else { 0 };
    rig.command(if read { 18 } else { 25 }, lba, R1 | DATA, DMA | COUNTED | MULTIPLE | AUTO_CMD23 | direction)
}

#[test]
fn identification_stores_the_responses_in_their_registers() {
    let mut rig = Rig::new(Identity::Gl9763eWithoutQueue);
    rig.identify();
    let status = rig.command(13, 0x1_0000, R1, 0).unwrap()[0];
    assert_eq!(status, 0x900, "in tran, ready");
    rig.command(7, 0, NONE, 0).unwrap();
    let cid = rig.command(10, 0x1_0000, R2, 0).unwrap();
    // The manufacturer's number is bits 127:120 of the register: bits 119:112 of the answer.
    assert_eq!(cid[3] >> 16, u32::from(rig.card.device().profile().identity.manufacturer_id));
}

#[test]
fn data_is_transferred_by_adma() {
    let mut rig = rig();
    let data = pattern(16 * 512, 7);
    rig.fill(0x10_0000, &data);
    transfer(&mut rig, false, 100, 16, 0x10_0000).unwrap();
    // In pieces of odd sizes, with a link.
    rig.prepare(16, LIST);
    rig.descriptor(LIST, 4, false, 1000, 0x20_0000);
    rig.descriptor(LIST + 8, 6, false, 0, 0x2000);
    rig.descriptor(0x2000, 4, true, 7192, 0x30_0000);
    rig.write(0x00, 4, 16);
    let answer = rig.command(18, 100, R1 | DATA, DMA | COUNTED | MULTIPLE | AUTO_CMD23 | READ).unwrap();
    assert_eq!(answer[0], 0x900);
    assert_eq!([rig.take(0x20_0000, 1000), rig.take(0x30_0000, 7192)].concat(), data);
    assert_eq!(rig.take(0x20_0000 + 1000, 24), [0; 24], "nothing beyond");
}

#[test]
fn data_is_transferred_by_pio() {
    let mut rig = rig();
    let data = pattern(2 * 512, 9);
    rig.write(0x04, 4, 0x2_0200);
    rig.write(0x28, 1, 0x20);
    rig.issue(23, 2, R1, 0);
    assert_eq!(rig.interrupt(), 1);
    rig.issue(25, 8, R1 | DATA, COUNTED | MULTIPLE);
    for block in data.chunks(512) {
        while rig.interrupt() & 0x10 == 0 {}
        assert_ne!(rig.read(0x24, 4) & 1 << 10, 0, "room in the buffer");
        for word in block.chunks(4) {
            rig.write(0x20, 4, u32::from_le_bytes(word.try_into().unwrap()).into());
        }
    }
    assert_eq!(rig.interrupt(), 2);
    rig.write(0x04, 4, 0x2_0200);
    rig.issue(18, 8, R1 | DATA, COUNTED | MULTIPLE | READ | AUTO_CMD12);
    let mut back = Vec::new();
    for _ in 0..2 {
        while rig.interrupt() & 0x20 == 0 {}
        for _ in 0..256 {
            back.extend_from_slice(&(rig.read(0x20, 2) as u16).to_le_bytes());
        }
        assert_eq!(rig.read(0x20, 4), 0, "nothing more is there yet");
    }
    assert_eq!((rig.interrupt(), back), (2, data));
}

#[test]
fn sdma_stops_at_buffer_boundaries() {
    let mut rig = rig();
    let data = pattern(24 * 512, 3);
    // 12 KiB from 2 KiB before a boundary of 4 KiB: crosses three of them.
    rig.fill(0x10_0800, &data);
    for (command, mode, at) in [(25, 0, 0x10_0800u32), (18, READ, 0x20_0a00)] {
        rig.write(0x28, 1, 0x20);
        rig.write(0x04, 4, 24 << 16 | 0x0200);
        rig.issue(23, 24, R1, 0);
        assert_eq!(rig.interrupt(), 1);
        rig.write(0x00, 4, at.into());
        rig.issue(command, 0, R1 | DATA, DMA | COUNTED | MULTIPLE | mode);
        let mut stops = 0;
        loop {
            let status = rig.interrupt();
            assert_eq!(status & 0xffff_8000, 0, "{status:#x}");
            if status & 2 != 0 {
                break;
            }
            if status & 8 != 0 {
                stops += 1;
                let next = rig.read(0x00, 4);
                assert_eq!(next % 4096, 0);
                rig.write(0x00, 4, next);
            }
        }
        assert_eq!(stops, 3, "CMD{command}");
    }
    assert_eq!(rig.take(0x20_0a00, data.len()), data);
}

#[test]
fn an_open_ended_transfer_is_stopped_by_the_controller() {
    let mut rig = rig();
    rig.prepare(8, LIST);
    rig.descriptor(LIST, 4, true, 4096, 0x10_0000);
    let answer = rig.command(18, 0, R1 | DATA, DMA | COUNTED | MULTIPLE | READ | AUTO_CMD12).unwrap();
    assert_eq!(answer[3] & 0x1e00, 5 << 9, "CMD12 came in data");
    assert_eq!(rig.command(13, 0x1_0000, R1, 0).unwrap()[0], 0x900);
}

#[test]
fn the_busy_time_of_an_automatic_stop_is_accounted_apart() {
    let of = |auto: u16| {
        let mut rig = rig();
        rig.function = rig.function.with_accounts();
        rig.prepare(8, LIST);
        rig.descriptor(LIST, 4, true, 4096, 0x10_0000);
        if auto == AUTO_CMD23 {
            rig.write(0x00, 4, 8);
        }
        rig.command(25, 0, R1 | DATA, DMA | COUNTED | MULTIPLE | auto).unwrap();
        let accounts = rig.function.take_accounts();
        assert_eq!(accounts.iter().map(|account| account.command).collect::<Vec<_>>(), [25]);
        accounts[0]
    };
    let stopped = of(AUTO_CMD12);
    let at = stopped.stopped.expect("CMD12 was sent");
    assert!(stopped.crossed <= at && at < stopped.done, "{stopped:?}");
    assert_eq!(of(AUTO_CMD23).stopped, None);
}

#[test]
fn busy_is_a_line_level_and_ends_with_transfer_complete() {
    let mut rig = rig();
    rig.issue(6, 0x0320_0100, R1B, 0);
    assert_eq!(rig.interrupt(), 1, "the answer comes first");
    assert_eq!(rig.read(0x24, 4) & (1 << 20 | 2), 2, "DAT0 is low, the lines are taken");
    assert_eq!(rig.interrupt(), 2);
    assert_eq!(rig.read(0x24, 4) & (1 << 20 | 2), 1 << 20);
}

/// The base clock of 200 MHz, a quarter of it, and the clock for identification.
#[test]
fn the_controllers_clock_is_the_cards() {
    let mut rig = rig();
    let mut command_ns = |divider: u64| {
        rig.write(0x2c, 2, divider << 8 | 5);
        rig.command(13, 0x1_0000, R1, 0).unwrap();
        rig.card.device().bus().command().0
    };
    let [full, quarter, identification] = [command_ns(0), command_ns(2), command_ns(250)];
    assert_eq!(command_ns(0), full);
    let mode_hz = rig.card.device().bus().mode().clock_hz();
    let times = |hz: u64| full as f64 * mode_hz.min(200_000_000) as f64 / hz.min(mode_hz) as f64;
    for (found, hz) in [(quarter, 50_000_000), (identification, 400_000)] {
        assert!((found as f64 / times(hz) - 1.0).abs() < 0.01, "{found} ns at {hz} Hz, {full} at full speed");
    }
}

#[test]
fn a_missing_response_ends_in_a_timeout() {
    let mut rig = rig();
    assert_eq!(rig.command(13, 0x7_0000, R1, 0), Err(0x8000 | COMMAND_TIMEOUT), "another card's address");
    rig.write(0x2c, 2, 0);
    assert_eq!(rig.command(13, 0x1_0000, R1, 0), Err(0x8000 | COMMAND_TIMEOUT), "no clock");
    rig.write(0x2c, 2, 5);
    assert_eq!(rig.command(13, 0x1_0000, R1, 0).unwrap()[0] & 0x1e00, 4 << 9);
    assert_eq!(rig.command(13, 0x1_0000, R2, 0), Err(0x8000 | 1 << 18), "a short answer in place of a long one");
}

#[test]
fn missing_data_ends_in_a_data_timeout() {
    let mut rig = rig();
    rig.write(0x2e, 1, 0);
    rig.prepare(1, LIST);
    rig.descriptor(LIST, 4, true, 512, 0x10_0000);
    let begin = rig.now;
    // CMD13 has no data, even if software expects some.
    assert_eq!(rig.command(13, 0x1_0000, R1 | DATA, DMA | READ), Err(0x8000 | DATA_TIMEOUT | 1));
    let waited = rig.now.since(begin);
    assert!((163_840..200_000).contains(&waited.0), "{waited}");
    assert_eq!(rig.read(0x24, 4) & 3, 0, "no transfer is in progress");
}

#[test]
fn a_wrong_bus_width_corrupts_the_data() {
    let mut rig = rig();
    for (width, timing) in [(0x12u64, 5u64), (0x30, 3)] {
        rig.prepare(1, LIST);
        rig.descriptor(LIST, 4, true, 512, 0x10_0000);
        rig.write(0x28, 1, width);
        rig.write(0x3e, 2, timing);
        let failed = rig.command(8, 0, R1 | DATA, DMA | READ);
        assert_eq!(failed.map_err(|status| status & DATA_CRC), Err(DATA_CRC), "{width:#x} {timing}");
        rig.write(0x2f, 1, 6);
        rig.issue(12, 0, 0xdb, 0);
        while rig.interrupt() & 2 == 0 {}
    }
    rig.write(0x3e, 2, 5);
    rig.prepare(1, LIST);
    rig.command(8, 0, R1 | DATA, DMA | READ).unwrap();
    assert_eq!(rig.take(0x10_0000 + 192, 1), [8], "EXT_CSD_REV");
}

#[test]
fn invalid_descriptor_lists_are_reported() {
    let mut rig = rig();
    for (bytes, address, code) in [(512, 0xf000_0000, 3), (256, 0x10_0000, 7), (0, 0, 1)] {
        rig.prepare(1, LIST);
        if bytes > 0 {
            rig.descriptor(LIST, 4, true, bytes, address);
        } else {
            rig.fill(LIST, &[0; 8]);
        }
        let failed = rig.command(17, 0, R1 | DATA, DMA | READ);
        assert_eq!(failed.map_err(|status| status & ADMA), Err(ADMA));
        assert_eq!(rig.read(0x54, 1), code);
        rig.write(0x2f, 1, 6);
    }
    transfer(&mut rig, true, 0, 8, 0x10_0000).unwrap();
}

#[test]
fn errors_can_be_forced() {
    let mut rig = rig();
    rig.write(0x50, 4, 0x0031_0002);
    let status = rig.interrupt();
    assert_eq!(status, 0x8000 | 0x31 << 16 | AUTO_CMD);
    assert_eq!((rig.read(0x3c, 2), rig.read(0x50, 4)), (2, 0));
    rig.write(0x34, 4, 0);
    rig.write(0x52, 2, 0xffff);
    assert_eq!(rig.read(0x30, 4), 0, "what is not enabled does not show");
}

#[test]
fn controller_resets_do_not_reset_the_card() {
    let mut rig = rig();
    rig.write(0x04, 4, 0x2_0200);
    rig.issue(18, 0, R1 | DATA, MULTIPLE | READ);
    rig.interrupt();
    assert_eq!(rig.read(0x24, 4) & 2, 2);
    rig.write(0x2f, 1, 4);
    assert_eq!((rig.read(0x24, 4) & 2, rig.read(0x2f, 1), rig.read(0x06, 2)), (0, 0, 2));
    rig.write(0x2f, 1, 1);
    assert_eq!((rig.read(0x06, 2), rig.read(0x34, 4), rig.read(0x29, 1)), (0, 0, 0));
    assert_ne!(rig.read(0x40, 8), 0, "what it can do stays");
    rig.set_up();
    rig.issue(12, 0, 0xdb, 0);
    while rig.interrupt() & 2 == 0 {}
    assert_eq!(rig.command(13, 0x1_0000, R1, 0).unwrap()[0], 0x900, "still selected");
}

#[test]
fn tuning_completes() {
    let mut rig = Rig::new(Identity::Generic);
    rig.command(0, 0, NONE, 0).unwrap();
    rig.identify();
    rig.switch(0x03b9_0100);
    rig.switch(0x03b7_0200);
    rig.switch(0x03b9_0200);
    rig.write(0x28, 1, 0x20);
    rig.write(0x3e, 2, 0x43);
    rig.write(0x04, 2, 128);
    let mut blocks = 0;
    while rig.read(0x3e, 2) & 0x40 != 0 {
        rig.issue(21, 0, R1 | DATA, READ);
        assert_eq!(rig.interrupt(), 0x20, "only the buffer interrupt is raised");
        blocks += 1;
    }
    assert_eq!((rig.read(0x3e, 2) & 0xc0, blocks), (0x80, 4));
}

#[test]
fn a_power_cut_is_no_success() {
    let mut rig = rig();
    rig.fill(0x10_0000, &pattern(4096, 1));
    rig.prepare(8, LIST);
    rig.descriptor(LIST, 4, true, 4096, 0x10_0000);
    rig.write(0x00, 4, 8);
    rig.issue(25, 0, R1 | DATA, DMA | COUNTED | MULTIPLE | AUTO_CMD23);
    rig.card.power_off(rig.now + Nanos(1000));
    let mut status = 0;
    while status & 0xffff_0002 == 0 {
        status |= rig.interrupt();
    }
    assert_eq!(status & (DATA_TIMEOUT | 2), DATA_TIMEOUT);
    assert_eq!(rig.command(13, 0x1_0000, R1, 0), Err(0x8000 | COMMAND_TIMEOUT));
}
