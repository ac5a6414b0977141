#![no_main]
//! Any 512 bytes with any mask of known bits: decode, rows, anomalies.

use emmc_regs::ext_csd::ExtCsd;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: (&[u8], bool)| {
    let (data, masked) = data;
    let mut bytes = [0; 512];
    let mut mask = [0xff; 512];
    bytes.iter_mut().zip(data).for_each(|(to, from)| *to = *from);
    if masked {
        mask.iter_mut().zip(data.iter().skip(512)).for_each(|(to, from)| *to = *from);
    }
    let ext_csd = ExtCsd::with_mask(bytes, mask);
    let (_, anomalies) = ext_csd.decode();
    anomalies.iter().for_each(|anomaly| drop(anomaly.to_string()));
    let width: usize = ext_csd.rows(true).map(|row| usize::from(row.width)).sum();
    assert!(width <= 512);
});
