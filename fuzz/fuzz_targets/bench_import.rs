#![no_main]
//! Any bytes as a result saved by another tool; a result that is read can be serialised and read again.

use emmc_workload::import::{SavedResult, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let saved = match read("fuzz", data) {
        Ok(saved) => saved,
        Err(error) => return drop(error.to_string()),
    };
    for cell in saved.outcomes.iter().flat_map(|outcome| &outcome.measurements) {
        assert!(cell.mb_per_s >= 0.0, "{cell:?}");
    }
    let text = serde_json::to_string(&saved).expect("a result serialises");
    drop(serde_json::from_str::<SavedResult>(&text));
});
