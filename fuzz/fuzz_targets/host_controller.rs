#![no_main]
//! Software that writes random values to the registers of the host controller and the queueing engine, and to the lists
//! in memory that these point to, with a whole card behind them.
//!
//! Nothing panics or loops forever, and afterwards the function still works: after a reset and a power cycle of the
//! card, a driver reads the card's register by a list.

#[path = "host_controller/driver.rs"]
mod driver;

use driver::Driver;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

/// Steps of one run.
const STEPS: usize = 300;

/// One thing that software does, or time.
fn step(driver: &mut Driver, input: &mut Unstructured) -> Result<()> {
    // Registers with effects, more often than others.
    const HOT: [u16; 16] =
        [0x00, 0x04, 0x08, 0x0c, 0x0e, 0x20, 0x28, 0x2c, 0x2e, 0x2f, 0x34, 0x3e, 0x50, 0x58, 0x5c, 0x29];
    const ENGINE: [u16; 12] = [0x08, 0x0c, 0x10, 0x14, 0x18, 0x1c, 0x20, 0x24, 0x28, 0x2c, 0x38, 0x40];
    match input.arbitrary::<u8>()? % 16 {
        0..=2 => driver.write(usize::from(*input.choose(&HOT)?), *input.choose(&[1, 2, 4, 8])?, input.arbitrary()?),
        3..=4 => {
            let register = 0x200 + usize::from(*input.choose(&ENGINE)?);
            driver.write(register, *input.choose(&[1, 4, 8])?, input.arbitrary()?);
        }
        5 => driver.write(input.int_in_range(0..=0xfff)?, *input.choose(&[1, 2, 4, 8])?, input.arbitrary()?),
        6 => driver.read(input.int_in_range(0..=0xfff)?, *input.choose(&[1, 2, 4, 8])?),
        7..=8 => {
            let index = *input.choose(&[0, 1, 2, 3, 5, 6, 7, 8, 12, 13, 17, 18, 21, 23, 24, 25, 35, 38, 46, 48])?;
            driver.issue(index, input.arbitrary()?, input.arbitrary()?, input.arbitrary()?);
        }
        9 => {
            // Data by commands, with a list that is right, or by the other movers.
            let (blocks, mode) = (input.int_in_range(0..=64)?, input.arbitrary()?);
            driver.transfer(input.arbitrary()?, input.int_in_range(0..=0x2000)?, blocks, mode);
        }
        10..=11 => {
            let at = u64::from(input.int_in_range(0..=0xff8u16)?);
            driver.fill(at, &input.arbitrary::<u64>()?.to_le_bytes());
        }
        12 => {
            let slot = input.int_in_range(0..=31)?;
            driver.task(slot, input.arbitrary()?, input.int_in_range(0..=0x2000)?, input.int_in_range(0..=40)?);
            driver.write(0x228, 4, 1 << slot);
        }
        13 => driver.pass(input.int_in_range(0..=10_000_000)?),
        14 => driver.next(),
        _ => match input.arbitrary::<u8>()? % 8 {
            0 => driver.cut_power(),
            1 => driver.give_power(),
            2 => driver.reset(),
            3 => driver.write_config(input.int_in_range(0..=0xff8)?, input.arbitrary()?),
            4 => driver.bring_up(),
            _ => driver.next(),
        },
    }
    Ok(())
}

fuzz_target!(|data: &[u8]| {
    let mut input = Unstructured::new(data);
    let Ok(identity) = input.arbitrary::<u8>() else { return };
    let mut driver = Driver::new(identity);
    for _ in 0..STEPS {
        if input.is_empty() || step(&mut driver, &mut input).is_err() {
            break;
        }
    }
    driver.must_still_work();
});
