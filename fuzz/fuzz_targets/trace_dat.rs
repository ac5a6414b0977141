#![no_main]
//! Any bytes as a file of trace-cmd, or as any other recording that is recognised by its content.

use std::sync::Arc;

use emmc_trace::{Input, open};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let input = Input { name: "fuzz".into(), storage: Arc::new(data.to_vec()) };
    match open(vec![input]) {
        Ok(mut recording) => {
            recording.events.run(|_| {});
            drop(recording.events.notes());
        }
        Err(error) => drop(error.to_string()),
    }
});
