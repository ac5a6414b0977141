//! The engine as a driver sees it, with a whole card.

use crate::pci::Identity;
use crate::pci::rig::{DATA, DMA, R1, R1B, READ, Rig, pattern};

const CQ: usize = 0x200;
const LIST: u64 = 0x1_0000;
const TRANSFERS: u64 = 0x2_0000;

/// A card in queue mode, an engine that is on, its interrupts enabled.
fn rig() -> Rig {
    let mut rig = Rig::ready(Identity::Gl9763e);
    rig.switch(0x030f_0100);
    for (register, value) in
        [(0x20, LIST), (0x24, 0), (0x44, 1), (0x40, 0x7_0001), (0x14, 0x1f), (0x18, 0x1f), (0x08, 0x1101)]
    {
        rig.write(CQ + register, 4, value);
    }
    rig
}

/// Puts a task of one segment into a slot. `flags` are bits of the task descriptor beyond the usual.
fn put(rig: &Rig, slot: u64, read: bool, flags: u64, lba: u32, blocks: u16, at: u64) {
    let task = 0x2f | flags | u64::from(read) << 12 | u64::from(blocks) << 16 | u64::from(lba) << 32;
    let (at_task, at_transfer) = (LIST + slot * 32, TRANSFERS + slot * 64);
    rig.fill(at_task, &task.to_le_bytes());
    rig.fill(at_task + 16, &0x31u32.to_le_bytes());
    rig.fill(at_task + 20, &at_transfer.to_le_bytes());
    let bytes = (u32::from(blocks) * 512) << 16;
    rig.fill(at_transfer, &(0x23 | bytes).to_le_bytes());
    rig.fill(at_transfer + 4, &at.to_le_bytes());
}

/// Puts a direct command; `answer` is its kind: 2, or 3 with busy.
fn put_direct(rig: &Rig, index: u8, argument: u32, answer: u64) {
    let task = 0x402f | u64::from(index) << 16 | answer << 23 | u64::from(argument) << 32;
    rig.fill(LIST + 31 * 32, &task.to_le_bytes());
}

/// Waits for the engine's interrupt; returns its status and the finished slots, and clears both.
fn ended(rig: &mut Rig) -> (u32, u32) {
    while !rig.function.interrupt() {
        assert!(rig.next(), "nothing more happens");
    }
    assert_eq!(rig.read(0x30, 4) & 0x4000, 0x4000);
    let status = rig.read(CQ + 0x10, 4);
    rig.write(CQ + 0x10, 4, status);
    let slots = rig.read(CQ + 0x2c, 4);
    rig.write(CQ + 0x2c, 4, slots);
    assert_eq!(rig.read(0x30, 4), 0, "the interrupt is a level of the engine's");
    (status as u32, slots as u32)
}

/// Waits until all of `slots` have ended.
fn all_end(rig: &mut Rig, mut slots: u32) {
    while slots != 0 {
        let (status, done) = ended(rig);
        assert_eq!((status, done & !slots), (2, 0), "{slots:#x}");
        slots &= !done;
    }
}

#[test]
fn thirty_one_tasks_run_concurrently() {
    let mut rig = rig();
    for slot in 0..31u64 {
        rig.fill(0x10_0000 + slot * 4096, &pattern(4096, slot as u8));
        put(&rig, slot, false, 0, 1000 + slot as u32 * 8, 8, 0x10_0000 + slot * 4096);
    }
    rig.write(CQ + 0x28, 4, 0x7fff_ffff);
    assert_eq!(rig.read(CQ + 0x28, 4), 0x7fff_ffff);
    all_end(&mut rig, 0x7fff_ffff);
    assert_eq!((rig.read(CQ + 0x28, 4), rig.read(CQ + 0x34, 4)), (0, 0));
    for slot in 0..31u64 {
        put(&rig, slot, true, 0, 1000 + slot as u32 * 8, 8, 0x40_0000 + slot * 4096);
    }
    rig.write(CQ + 0x28, 4, 0x7fff_ffff);
    all_end(&mut rig, 0x7fff_ffff);
    for slot in 0..31u64 {
        assert_eq!(rig.take(0x40_0000 + slot * 4096, 4096), pattern(4096, slot as u8), "{slot}");
    }
}

#[test]
fn a_barrier_delays_later_tasks() {
    let mut rig = rig();
    put(&rig, 0, false, 0, 0, 64, 0x10_0000);
    put(&rig, 1, false, 0, 64, 64, 0x10_0000);
    put_direct(&rig, 6, 0x0320_0100, 3);
    put(&rig, 2, true, 0, 0, 8, 0x20_0000);
    for slot in [0, 1, 31, 2] {
        rig.write(CQ + 0x28, 4, 1 << slot);
    }
    let mut order = Vec::new();
    while order.len() < 4 {
        let (_, slots) = ended(&mut rig);
        order.extend((0..32).filter(|slot| slots >> slot & 1 == 1));
    }
    assert_eq!(order, [0, 1, 31, 2]);
    assert_eq!(rig.read(CQ + 0x48, 4) & 0x1e00, 4 << 9, "the flush came in tran");
}

#[test]
fn a_halt_waits_for_data_and_a_clear_for_the_halt() {
    let mut rig = rig();
    put(&rig, 0, true, 0, 0, 128, 0x10_0000);
    put(&rig, 1, true, 0, 128, 128, 0x10_0000);
    rig.write(CQ + 0x28, 4, 3);
    while rig.read(CQ + 0x34, 4) != 2 {
        assert!(rig.next());
    }
    rig.write(CQ + 0x0c, 4, 0x101);
    assert_eq!(rig.read(CQ + 0x0c, 4), 0, "data is in transfer");
    let (status, slots) = ended(&mut rig);
    assert_eq!((status, slots, rig.read(CQ + 0x0c, 4)), (3, 1, 1));
    assert_eq!(rig.read(CQ + 0x28, 4), 2, "the other waits");
    rig.write(CQ + 0x0c, 4, 0x101);
    assert_eq!(ended(&mut rig), (8, 0));
    assert_eq!(rig.read(CQ + 0x28, 4), 0);
    // The task is still in the card's queue: software drops it by CMD48, then the engine continues.
    rig.command(48, 1, R1B, 0).unwrap();
    rig.write(CQ + 0x0c, 4, 0);
    put(&rig, 1, true, 0, 0, 8, 0x10_0000);
    rig.write(CQ + 0x28, 4, 2);
    all_end(&mut rig, 2);
}

#[test]
fn a_refused_task_stops_the_engine() {
    let mut rig = rig();
    put(&rig, 5, true, 0, 0xffff_fff0, 8, 0x10_0000);
    put(&rig, 6, true, 0, 0, 8, 0x10_0000);
    rig.write(CQ + 0x28, 4, 0x60);
    let (status, slots) = ended(&mut rig);
    assert_eq!((status, slots), (4, 0), "a response error");
    assert_eq!(rig.read(CQ + 0x54, 4), 0x8000 | 5 << 8 | 45);
    assert_eq!(rig.read(CQ + 0x58, 4), 45);
    assert_eq!(rig.read(CQ + 0x5c, 4) >> 31, 1, "out of range");
    // As Linux recovers: halt, ask, drop all, clear, go on.
    rig.write(CQ + 0x0c, 4, 1);
    assert_eq!(ended(&mut rig), (1, 0));
    rig.command(48, 1, R1B, 0).unwrap();
    rig.write(CQ + 0x0c, 4, 0x101);
    assert_eq!(ended(&mut rig), (8, 0));
    rig.write(CQ + 0x0c, 4, 0);
    rig.write(CQ + 0x28, 4, 0x40);
    all_end(&mut rig, 0x40);
}

#[test]
fn invalid_guest_memory_is_a_controller_error() {
    let mut rig = rig();
    put(&rig, 3, true, 0, 0, 8, 0xffff_0000);
    rig.write(CQ + 0x28, 4, 8);
    assert_eq!(rig.interrupt() & 0xffff_0000, 1 << 25);
    assert_eq!(rig.read(CQ + 0x54, 4), 1 << 31 | 3 << 24 | 46 << 16);
    let mut rig = super::tests::rig();
    rig.write(CQ + 0x28, 4, 1);
    assert_eq!(rig.interrupt() & 0xffff_0000, 1 << 25, "a descriptor that is not valid");
}

#[test]
fn a_power_cut_is_no_success() {
    let mut rig = rig();
    put(&rig, 0, false, 0, 0, 8, 0x10_0000);
    rig.write(CQ + 0x28, 4, 1);
    while rig.read(CQ + 0x34, 4) != 0 || rig.read(0x24, 4) & 1 << 20 != 0 {
        assert!(rig.next());
    }
    rig.card.power_off(rig.now);
    assert_eq!(rig.interrupt() & 0xffff_0000, 1 << 20);
    assert_eq!(rig.read(CQ + 0x2c, 4), 0);
}

#[test]
fn interrupts_are_sent_at_their_count() {
    let mut rig = rig();
    rig.write(CQ + 0x1c, 4, 1 << 31 | 1 << 15 | 3 << 8);
    for slot in 0..3 {
        put(&rig, slot, true, 0, 8 * slot as u32, 8, 0x10_0000);
        let at = LIST + slot * 32;
        let first = rig.take(at, 1)[0];
        rig.fill(at, &[first & !4]);
    }
    rig.write(CQ + 0x28, 4, 7);
    assert_eq!(ended(&mut rig), (2, 7));
}

#[test]
fn a_disabled_engine_drops_tasks_and_ignores_doorbells() {
    let mut rig = rig();
    put(&rig, 0, true, 0, 0, 8, 0x10_0000);
    rig.write(CQ + 0x08, 4, 0x1100);
    rig.write(CQ + 0x28, 4, 1);
    assert_eq!(rig.read(CQ + 0x28, 4), 0);
    // Queue mode off again: transfers by commands work.
    rig.switch(0x030f_0000);
    rig.prepare(1, 0x1000);
    rig.descriptor(0x1000, 4, true, 512, 0x10_0000);
    rig.command(8, 0, R1 | DATA, DMA | READ).unwrap();
    rig.write(0x2f, 1, 1);
    assert_eq!(rig.read(CQ + 0x20, 4), 0, "a reset of all is one of the engine");
}

#[test]
fn the_firmware_works_on_a_queued_write_while_others_are_transferred() {
    // generic-8g: 80 us of firmware for a write, 11 us of bus for 4 KiB, commands of 0.56 us.
    let mut rig = rig();
    rig.switch(0x0321_0100);
    let flushed = rig.now;
    for slot in 0..8u64 {
        put(&rig, slot, false, 0, slot as u32 * 8, 8, 0x10_0000);
    }
    rig.write(CQ + 0x28, 4, 0xff);
    let mut ends = Vec::new();
    while ends.len() < 8 {
        let (_, slots) = ended(&mut rig);
        ends.extend((0..slots.count_ones()).map(|_| rig.now));
    }
    let mean_us = ends[7].since(ends[0]).as_micros_f64() / 7.0;
    assert!((79.0..85.0).contains(&mean_us), "{mean_us} us a write, the first after {:?}", ends[0].since(flushed));
}
