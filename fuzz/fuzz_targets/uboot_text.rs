#![no_main]
//! Any text after the first lines of U-Boot's `mmc info` and `mmc reg read extcsd all`.

use emmc_port::saved;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: (bool, &[u8])| {
    let (info, body) = data;
    let head: &[u8] = if info {
        b"=> mmc info\nDevice: FSL_SDHC\nManufacturer ID: 13\nOEM: 14e\nName: S0J56 \nMMC version 5.1\n"
    } else {
        b"=> mmc reg read extcsd all\nEXT_CSD:\n000:  00 00 00 00 00 00 00 00 00 00\n"
    };
    if let Err(error) = saved::read("fuzz", &[head, body].concat()) {
        assert!(!error.to_string().contains('\n'));
    }
});
