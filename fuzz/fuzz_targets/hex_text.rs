#![no_main]
//! Any text after the start of EXT_CSD as digits, in words of one to four bytes, with and without addresses.

#[path = "saved_form/oracle.rs"]
mod oracle;

use libfuzzer_sys::fuzz_target;

const HEADS: [&[u8]; 5] = [
    b"0000000000000000000000000000000000000000000000000000000000000000",
    b"0000000: 0000 0000 0000 0000 0000 0000 0000 0000  ................\n",
    b"00000000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n",
    b"0x00000000 0x00000000 0x00000000\n",
    b"# cat /sys/kernel/debug/mmc0/mmc0:0001/ext_csd\n",
];

fuzz_target!(|data: (u8, &[u8])| {
    let (choice, body) = data;
    oracle::read(HEADS[usize::from(choice) % HEADS.len()], body);
});
