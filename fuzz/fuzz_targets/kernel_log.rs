#![no_main]
//! Any text after the lines in which Linux detects a card.

#[path = "saved_form/oracle.rs"]
mod oracle;

use libfuzzer_sys::fuzz_target;

const HEADS: [&[u8]; 2] = [
    b"mmc0: new HS400 MMC card at address 0001\nmmcblk0: mmc0:0001 BJNB4R 29.1 GiB\n",
    b"[  286.140413] mmc0: new high speed SDHC card at address 0007\n",
];

fuzz_target!(|data: (u8, &[u8])| {
    let (choice, body) = data;
    oracle::read(HEADS[usize::from(choice) % HEADS.len()], body);
});
