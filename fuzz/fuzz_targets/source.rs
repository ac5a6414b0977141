#![no_main]
//! Any bytes as a source, and everything that is computed from what they turn out to be.

use emmc_analysis::comparison::compare;
use emmc_analysis::registers::Registers;
use emmc_analysis::{maker_health, study};
use emmc_port::{Snapshot, saved};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let card = match saved::read("fuzz", data) {
        Ok(card) => card,
        Err(error) => return drop(error.to_string()),
    };
    let shown = Registers::new(&card, true);
    drop(serde_json::to_string(&shown).expect("registers serialise"));
    assert!(compare(&card, &card).differences.is_empty());
    maker_health::from_card(&card).iter().for_each(|report| drop(serde_json::to_string(report)));
    let study = study::study(&card, &study::StudyOptions::default());
    drop(serde_json::to_string(&study).expect("a study serialises"));
    let again = serde_json::to_string(&Snapshot::from(&card)).expect("a snapshot serialises");
    saved::read("fuzz", again.as_bytes()).expect("a snapshot is a source");
});
