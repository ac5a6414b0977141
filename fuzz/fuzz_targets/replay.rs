#![no_main]
//! Any bytes as recorded requests: in order of time, none empty, none beyond 2^64 bytes.

use emmc_port::BlockOp;
use emmc_workload::trace::read;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let trace = match read("fuzz", data) {
        Ok(trace) => trace,
        Err(error) => return drop(error.to_string()),
    };
    assert!(trace.requests.windows(2).all(|pair| pair[0].at <= pair[1].at));
    for request in &trace.requests {
        assert!(request.offset_bytes.checked_add(request.bytes).is_some());
        assert!(request.bytes > 0 || request.op == BlockOp::Flush, "{request:?}");
    }
});
