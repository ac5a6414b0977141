#![no_main]
//! Any bytes as ftrace's text: events come in the order of time, and damage has a place within the input.

use emmc_trace::{Merge, Ftrace};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut merge = Merge::new(vec![Ftrace::new(data)]);
    let mut last = emmc_units::Nanos::ZERO;
    merge.run(|event| {
        assert!(last <= event.at, "{event:?}");
        last = event.at;
    });
    assert!(merge.notes().damage.iter().all(|damage| damage.offset <= data.len() as u64));
});
