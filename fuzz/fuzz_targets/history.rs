#![no_main]
//! Any text as a history of wear, and the forecast from it.

use emmc_analysis::health::{ForecastOptions, forecast, parse_history};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match parse_history("fuzz", text) {
        Ok(points) => drop(forecast(&points, &ForecastOptions::default())),
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
});
