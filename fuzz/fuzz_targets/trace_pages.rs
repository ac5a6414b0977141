#![no_main]
//! Any bytes as pages of the ring buffer, with the formats of a real kernel or with any text as formats.

use std::sync::Arc;

use emmc_trace::{Formats, Merge, Pages};
use libfuzzer_sys::fuzz_target;

const REAL: &[u8] = include_bytes!("../../testdata/traces/formats_6.18.txt");

fuzz_target!(|data: (&[u8], Option<&[u8]>)| {
    let (pages, formats) = data;
    let formats = Arc::new(Formats::new(formats.unwrap_or(REAL)));
    let mut merge = Merge::new(vec![Pages::new(pages, 0, formats)]);
    let mut last = emmc_units::Nanos::ZERO;
    merge.run(|event| {
        assert!(last <= event.at, "{event:?}");
        last = event.at;
    });
    drop(merge.notes());
});
