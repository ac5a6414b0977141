#![no_main]
//! Any text after the first lines of `lsblk`, `lsblk -J`, `fdisk -l` and `df`.

#[path = "saved_form/oracle.rs"]
mod oracle;

use libfuzzer_sys::fuzz_target;

const HEADS: [&[u8]; 4] = [
    b"NAME MAJ:MIN RM SIZE RO TYPE MOUNTPOINT\nmmcblk0 179:0 0 31268536320 0 disk\n",
    br#"{"blockdevices":[{"name":"mmcblk0","size":31268536320,"type":"disk","children":["#,
    b"Disk /dev/mmcblk0: 3850 MB, 3850371072 bytes\n",
    b"Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/mmcblk0p2 3615352 488560 2923428 14% /\n",
];

fuzz_target!(|data: (u8, &[u8])| {
    let (choice, body) = data;
    oracle::read(HEADS[usize::from(choice) % HEADS.len()], body);
});
