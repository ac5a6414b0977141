//! A machine as seen from outside of the thread that serves it: its time while it runs, and why it was disconnected.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What is known of the last machine.
#[derive(Debug, Default)]
pub struct Watch {
    now_ns: AtomicU64,
    access_ns: AtomicU64,
    complaints: Mutex<Vec<String>>,
}

impl Watch {
    /// The machine's time when it last talked with clock or card, since its start. Unit: ns.
    pub fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    /// The machine's time of its last access to the card. Unit: ns.
    pub fn access_ns(&self) -> u64 {
        self.access_ns.load(Ordering::Relaxed)
    }

    /// Why the server disconnected the machine, and what of its record is not complete, in words.
    pub fn complaints(&self) -> Vec<String> {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn see(&self, now_ns: u64, access_ns: u64) {
        self.access_ns.store(access_ns, Ordering::Relaxed);
        self.now_ns.store(now_ns, Ordering::Relaxed);
    }

    pub(super) fn complain(&self, complaint: String) {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner).push(complaint);
    }
}
