#![no_main]
//! Any text after the first lines of `mmc cid read`, `mmc csd read`, labelled registers and `sd_partition`.

#[path = "saved_form/oracle.rs"]
mod oracle;

use libfuzzer_sys::fuzz_target;

const HEADS: [&[u8]; 5] = [
    b"type: 'MMC'\nmanufacturer: 'Samsung/SanDisk/LG' ' '\nproduct: 'M8G1GC' 0.3\n",
    b"manufacturer: 'Delkin/Phison' 'PH'\nproduct: 'SD16G' 3.0\n",
    b"cid: 1501004d384731474303dc0db061506f\ncsd: ",
    b"cid: 275048534431364730da89b82900fb61\nscr: ",
    b"EXT_CSD registers to be set:\n",
];

fuzz_target!(|data: (u8, &[u8])| {
    let (choice, body) = data;
    oracle::read(HEADS[usize::from(choice) % HEADS.len()], body);
});
