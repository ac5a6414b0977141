//! The real mmc-utils and this project decode the same bytes; a difference is a known error of mmc-utils.
//!
//! Skips with a message if there is no `mmc` or no C compiler.

mod ext_csd;
mod ids;

use crate::shim;
use std::collections::BTreeMap;
use std::process::Command;

/// A difference that is mmc-utils' fault: in which field, in which case, and why.
///
/// Versions differ, so an entry allows a difference and does not demand it.
struct Mistake<T: ?Sized> {
    field: &'static str,
    applies: fn(&T) -> bool,
    reason: &'static str,
}

/// Whether there is an `mmc` to compare with.
fn mmc_is_there() -> bool {
    // Without arguments it prints its usage.
    match Command::new("mmc").output() {
        Ok(_) => true,
        Err(error) => {
            shim::skip(&format!("no mmc-utils (mmc: {error}); Debian: apt install mmc-utils"));
            false
        }
    }
}

/// Bytes that look random and are the same in every run.
///
/// Source: Steele, Lea, Flood: Fast splittable pseudorandom number generators (SplitMix64).
struct Bytes(u64);

impl Bytes {
    fn next(&mut self) -> u8 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) as u8
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.next())
    }
}

/// The result of a comparison.
#[derive(Default)]
struct Outcome {
    compared: usize,
    excused: BTreeMap<&'static str, usize>,
    wrong: Vec<String>,
}

impl Outcome {
    fn count(&mut self, same: bool, excuse: Option<&'static str>, difference: impl FnOnce() -> String) {
        self.compared += 1;
        match excuse {
            _ if same => {}
            Some(reason) => *self.excused.entry(reason).or_default() += 1,
            None => self.wrong.push(difference()),
        }
    }

    /// Fails if fewer fields were compared, or a difference is not a known one.
    fn check(&self, compared_min: usize) {
        println!("{} fields compared", self.compared);
        for (reason, count) in &self.excused {
            println!("{count} differences because mmc-utils {reason}");
        }
        assert!(self.wrong.is_empty(), "{} unknown differences:\n{}", self.wrong.len(), self.wrong.join("\n"));
        assert!(self.compared >= compared_min, "only {} fields compared, expected {compared_min}", self.compared);
    }
}
