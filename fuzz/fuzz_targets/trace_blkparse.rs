#![no_main]
//! Any bytes as blkparse's text.

mod trace_text;

use emmc_trace::Blkparse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| trace_text::check(Blkparse::new(data), data.len()));
