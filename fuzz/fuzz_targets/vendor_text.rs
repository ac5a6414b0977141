#![no_main]
//! Any bytes as the output of emmcparm and of sdmon.

use emmc_analysis::maker_health::{parse_emmcparm, parse_sdmon};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = parse_emmcparm(data).map(|health| serde_json::to_string(&health).expect("vendor health serialises"));
    for run in parse_sdmon(data) {
        let _ = run.map(|health| serde_json::to_string(&health).expect("vendor health serialises"));
    }
});
