#![no_main]
//! Any bytes as a binary file of blktrace.

mod trace_text;

use emmc_trace::Blktrace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| trace_text::check(Blktrace::new(data), data.len()));
