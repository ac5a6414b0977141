#![no_main]
//! Any bytes as ftrace's text.

mod trace_text;

use emmc_trace::Ftrace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| trace_text::check(Ftrace::new(data), data.len()));
