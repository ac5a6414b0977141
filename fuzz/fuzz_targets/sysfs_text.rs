#![no_main]
//! Any text after the first line of `grep -r`, `head *`, `cat life_time` and `udevadm info`.

#[path = "saved_form/oracle.rs"]
mod oracle;

use libfuzzer_sys::fuzz_target;

const HEADS: [&[u8]; 5] = [
    b"/sys/block/mmcblk0/device/name:BJNB4R\n",
    b"==> name <==\nBJNB4R\n\n==> life_time <==\n",
    b"0x01 0x",
    b"looking at device '/devices/platform/mmc_host/mmc0/mmc0:0001':\n    KERNEL==\"mmc0:0001\"\n",
    b"P: /devices/platform/mmc_host/mmc0/mmc0:0001/block/mmcblk0\nE: DEVNAME=/dev/mmcblk0\n",
];

fuzz_target!(|data: (u8, &[u8])| {
    let (choice, body) = data;
    oracle::read(HEADS[usize::from(choice) % HEADS.len()], body);
});
