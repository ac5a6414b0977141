#![no_main]
//! Any text as a profile: an error in words, or a profile that reads back.

use emmc_card::profile::Profile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Profile::from_toml(text) {
        Ok(profile) => assert!(!profile.name.contains('\0')),
        Err(refusal) => drop(refusal.to_string()),
    }
});
