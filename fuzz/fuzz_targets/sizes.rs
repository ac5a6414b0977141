#![no_main]
//! Any text as a size, and as the arguments of a plan.

use emmc_analysis::hwpart::{EnhRequest, GpArgument, WrRelArgument};
use emmc_units::Size;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(size) = text.parse::<Size>() {
        drop(size.to_string());
    }
    let _ = text.parse::<EnhRequest>();
    let _ = text.parse::<GpArgument>();
    let _ = text.parse::<WrRelArgument>();
});
