#![no_main]
//! A host that sends a card anything, in and out of order, with data, time, resets and power cuts.
//!
//! After every step: a response has the form of its command, states fit the kind of card, time advances, one-time bits
//! stay, wear only grows, RPMB's key and counter only advance; and the layers below are consistent.

#[path = "card_commands/actions.rs"]
mod actions;
#[path = "card_commands/oracle.rs"]
mod oracle;
#[path = "card_commands/sequences.rs"]
mod sequences;

use actions::Host;
use libfuzzer_sys::fuzz_target;

/// Steps of one run: enough to reach deep states, few enough to be fast.
const STEPS: usize = 200;

fuzz_target!(|data: &[u8]| {
    let mut input = libfuzzer_sys::arbitrary::Unstructured::new(data);
    let Ok(mut host) = Host::new(&mut input) else { return };
    for _ in 0..STEPS {
        if input.is_empty() || host.step(&mut input).is_err() {
            break;
        }
    }
    host.finish();
});
