#![no_main]
//! Any bytes as the kernel's sums of writes into files, looked at twice: what was added is no more than there is.

use emmc_trace::Sums;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (first, second) = data.split_at(data.len() / 2);
    let (first, second) = (Sums::new(first), Sums::new(second));
    let added = second.since(&first);
    assert!(added.hits <= second.hits && added.dropped <= second.dropped);
    let found = Sums::who(&[first, added]);
    assert!(found.files.len() <= data.len() && found.threads.len() <= data.len());
});
