#![no_main]
//! Any text after the heading of `mmc extcsd read`, of either tool that prints it.

use emmc_port::saved;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: (bool, &[u8])| {
    let (upstream, body) = data;
    let head: &[u8] = if upstream {
        b"  Extended CSD rev 1.8 (MMC 5.1)\nSector Count [SEC_COUNT: 0x00e90000]\n"
    } else {
        b"Device life time estimation type B [DEVICE_LIFE_TIME_EST_TYP_B: 0x01]\n i.e. 0% - 10% device life time used\n"
    };
    if let Err(error) = saved::read("fuzz", &[head, body].concat()) {
        assert!(!error.to_string().contains('\n'));
    }
});
