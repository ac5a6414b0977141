#![no_main]
//! Any text as an order on the control socket: one that is understood is written as it was read.

use emmc_serve::control::Order;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(order) = serde_json::from_str::<Order>(text) {
        let written = serde_json::to_string(&order).expect("an order serialises");
        let again: Order = serde_json::from_str(&written).expect("a written order is read");
        assert_eq!(again, order);
    }
});
