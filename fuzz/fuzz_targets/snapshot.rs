#![no_main]
//! Any JSON as a snapshot; one that is read comes back the same.

use emmc_port::{Snapshot, saved};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = [b"{\"schema\":\"emmclab.snapshot/1\",".as_slice(), data].concat();
    let Ok(card) = saved::read("fuzz", &text) else { return };
    let once = serde_json::to_string(&Snapshot::from(&card)).expect("a snapshot serialises");
    let again = saved::read("fuzz", once.as_bytes()).expect("a snapshot is a source");
    assert_eq!(serde_json::to_string(&Snapshot::from(&again)).expect("a snapshot serialises"), once);
});
