#![no_main]
//! Any JSON as a snapshot; one that is read comes back the same, but for where it came from.

use emmc_port::{CardData, Snapshot, saved};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = [b"{\"schema\":\"emmclab.snapshot/1\",".as_slice(), data].concat();
    let Ok(card) = saved::read("fuzz", &text) else { return };
    let written = |card: &CardData| serde_json::to_string(&Snapshot::from(card)).expect("a snapshot serialises");
    let mut again = saved::read("fuzz", written(&card).as_bytes()).expect("a snapshot is a source");
    again.origins.clone_from(&card.origins);
    assert_eq!(written(&again), written(&card));
});
