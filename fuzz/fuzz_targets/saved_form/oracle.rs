//! What holds for every saved form.

use emmc_port::{Snapshot, saved};

/// Reads `head` and `body` as one source: an error is one line, and a card's snapshot is a source.
pub fn read(head: &[u8], body: &[u8]) {
    match saved::read("fuzz", &[head, body].concat()) {
        Ok(card) => {
            let snapshot = serde_json::to_string(&Snapshot::from(&card)).expect("a snapshot serialises");
            saved::read("fuzz", snapshot.as_bytes()).expect("a snapshot is a source");
        }
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
}
