//! flashbench's reproducible random order: a shift register's.

/// Feedback of registers with full period, from 8 bits on.
const FEEDBACK: [u64; 13] =
    [0xb8, 0x110, 0x240, 0x500, 0xe08, 0x1c80, 0x3802, 0x6000, 0xd008, 0x12000, 0x20400, 0x72000, 0x90000];

/// Most items that can be ordered.
pub(super) const PLACES_MAX: u64 = 1 << 20;

/// The numbers below `count`, 0 first, the others in the order of a shift register of at least eight bits; values that
/// are too large are skipped. At most [`PLACES_MAX`].
pub(super) fn scattered(count: u64) -> Vec<u64> {
    let bits = (64 - count.saturating_sub(1).leading_zeros()).max(8) as usize;
    let feedback = FEEDBACK[(bits - 8).min(FEEDBACK.len() - 1)];
    let mut register = 1u64;
    let mut order = vec![0];
    for _ in 1..1u64 << bits.min(20) {
        register = register >> 1 ^ if register & 1 == 1 { feedback } else { 0 };
        if register < count {
            order.push(register);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_occurs_once() {
        for count in [1, 2, 7, 8, 255, 256, 257, 1000, 4096, 65_536, 100_000, PLACES_MAX] {
            let order = scattered(count);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(0..count), "{count}: {} places", order.len());
        }
    }
}
