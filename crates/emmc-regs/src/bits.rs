//! Bit ranges by the standard's numbers: bit 0 is the last bit that the card sends.
//!
//! CID and CSD have 128 bits, SCR 64, SSR 512; all travel with the highest bit first, so a register's first byte holds
//! its highest bits. Absent on purpose: EXT_CSD, which the standard numbers by bytes, the lowest first.

/// Bits `hi` down to `lo` of a register as an unsigned number.
///
/// Bits past the register read as 0, a range the wrong way round is 0, and of more than 64 bits the lowest 64 count.
pub(crate) fn bits(register: &[u8], hi: u16, lo: u16) -> u64 {
    let last = hi.min(lo.saturating_add(63));
    (lo..=last).rev().fold(0, |number, bit| number << 1 | u64::from(bit_is_set(register, bit)))
}

/// Writes `value` into bits `hi` down to `lo` of a register; what lies outside the range or the register is dropped.
pub(crate) fn set_bits(register: &mut [u8], hi: u16, lo: u16, value: u64) {
    for bit in lo..=hi.min(lo.saturating_add(63)) {
        let (index, mask) = position(register.len(), bit);
        if let Some(byte) = index.and_then(|index| register.get_mut(index)) {
            let set = value >> (bit - lo) & 1 == 1;
            *byte = if set { *byte | mask } else { *byte & !mask };
        }
    }
}

fn bit_is_set(register: &[u8], bit: u16) -> bool {
    let (index, mask) = position(register.len(), bit);
    index.and_then(|index| register.get(index)).is_some_and(|byte| byte & mask != 0)
}

/// The byte that holds a bit, if the register is that long, and the bit's mask in it.
fn position(length: usize, bit: u16) -> (Option<usize>, u8) {
    (length.checked_sub(1 + usize::from(bit / 8)), 1 << (bit % 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_use_the_bit_numbers_of_the_standard() {
        let cid = [0x15, 0x01, 0x00, 0x4d, 0x38, 0x47, 0x31, 0x47, 0x43, 0x03, 0xdc, 0x0d, 0xb0, 0x61, 0x50, 0x6f];
        for (hi, lo, expected) in [
            (127, 120, 0x15),
            (119, 104, 0x0100),
            (113, 112, 1),
            (103, 56, 0x4d38_4731_4743),
            (47, 16, 0xdc0d_b061),
            (15, 12, 5),
            (7, 1, 0x37),
            (0, 0, 1),
            (127, 64, 0x1501_004d_3847_3147),
        ] {
            assert_eq!(bits(&cid, hi, lo), expected, "{hi}:{lo}");
        }
    }

    #[test]
    fn impossible_ranges_saturate() {
        let register = [0xff; 8];
        assert_eq!(bits(&register, 3, 4), 0);
        assert_eq!(bits(&register, 71, 60), 0xf);
        assert_eq!(bits(&register, 511, 0), u64::MAX);
        assert_eq!(bits(&register, u16::MAX, u16::MAX), 0);
        assert_eq!(bits(&[], 7, 0), 0);
    }

    #[test]
    fn a_set_range_reads_back_and_other_bits_are_unchanged() {
        for (hi, lo) in [(511, 510), (447, 440), (431, 428), (423, 408), (377, 368), (63, 0), (0, 0)] {
            let mut register = [0x5a; 64];
            let mut rest = register;
            set_bits(&mut register, hi, lo, 0x1234_5678_9abc_def5);
            let width = hi - lo + 1;
            let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
            assert_eq!(bits(&register, hi, lo), 0x1234_5678_9abc_def5 & mask, "{hi}:{lo}");
            set_bits(&mut rest, hi, lo, 0);
            set_bits(&mut register, hi, lo, 0);
            assert_eq!(register, rest);
        }
        set_bits(&mut [0; 2], 20, 14, u64::MAX);
    }
}
