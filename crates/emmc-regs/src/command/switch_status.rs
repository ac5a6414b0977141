//! The status that an SD card answers CMD6 with: 64 bytes, the highest bit first.
//!
//! Source: SD physical layer simplified specification, clause 4.3.10.4.

use crate::layout::{BitField, number};

/// The largest current of the selected functions, in mA; 0 where one cannot be selected.
pub const MAXIMUM_CURRENT: &BitField = &number(511, 496, "mA").named("MAXIMUM_CURRENT");

/// The functions that each group offers, one bit a function; the first group first.
pub const SUPPORT: [&BitField; 6] = [&support(0), &support(1), &support(2), &support(3), &support(4), &support(5)];

/// The function that each group has, or would have; the first group first.
pub const SELECTION: [&BitField; 6] =
    [&selection(0), &selection(1), &selection(2), &selection(3), &selection(4), &selection(5)];

const fn support(group: u16) -> BitField {
    number(415 + 16 * group, 400 + 16 * group, "").named("SUPPORT")
}

const fn selection(group: u16) -> BitField {
    number(379 + 4 * group, 376 + 4 * group, "").named("SELECTION")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_follow_each_other_without_a_gap() {
        let downwards =
            [MAXIMUM_CURRENT].into_iter().chain(SUPPORT.into_iter().rev()).chain(SELECTION.into_iter().rev());
        let mut status = [0; 64];
        let fields: Vec<&BitField> = downwards.collect();
        crate::layout::assert_orderly(512, &fields);
        fields.iter().for_each(|field| field.set(&mut status, u64::MAX));
        assert!(status[..17].iter().all(|byte| *byte == 0xff) && status[17..].iter().all(|byte| *byte == 0));
    }
}
