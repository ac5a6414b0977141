#![no_main]
//! Any bytes as a file of trace-cmd, or as any other recording that is recognised by its content.

use std::sync::Arc;

use emmc_trace::{Input, analyse, open};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let input = Input { name: "fuzz".into(), storage: Arc::new(data.to_vec()) };
    match open(vec![input]) {
        Ok(recording) => drop(analyse(recording, None)),
        Err(error) => drop(error.to_string()),
    }
});
