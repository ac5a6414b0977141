#![no_main]
//! Any bytes as every family's reply, asked for or recognised.

use emmc_analysis::maker_health::{Family, decode_reply};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: (u8, Option<u32>, &[u8])| {
    let (choice, argument, reply) = data;
    let family = Family::all().nth(usize::from(choice));
    match decode_reply(family, argument, reply) {
        Ok(health) => drop(serde_json::to_string(&health).expect("vendor health serialises")),
        Err(refusal) => drop(refusal.to_string()),
    }
});
