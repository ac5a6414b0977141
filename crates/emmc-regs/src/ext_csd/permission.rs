//! Whether CMD6 may write a byte: what the field table says of each changed bit.
//!
//! The rules that a value alone can break are here: reach, access type, revision, reserved bits, named values, bits
//! that are programmed already. Absent on purpose: rules between registers (`emmc-analysis`), and sending
//! (`emmc-linux`).

use std::fmt;

use super::{Access, Danger, Field, field_at, reg};
use crate::Persistence;

/// The last byte that CMD6 reaches: its index has 8 bits, and from 192 on the register has properties.
pub const WRITABLE_LAST: u16 = 191;

/// Why a byte must not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forbidden {
    /// CMD6 does not reach it.
    OutOfReach {
        /// The byte.
        offset: u16,
    },
    /// Bits that change are read-only, reserved or the vendor's.
    NotWritable {
        /// The byte.
        offset: u16,
        /// Bits that may not change.
        bits: u8,
        /// Their access type.
        access: Access,
    },
    /// Writing it starts something instead of keeping a value.
    Action {
        /// The byte.
        offset: u16,
    },
    /// The part's revision has no such register.
    TooNew {
        /// The byte.
        offset: u16,
        /// The part's EXT_CSD_REV.
        rev: u8,
    },
    /// The standard assigns no meaning to the value.
    NoSuchValue {
        /// The byte.
        offset: u16,
        /// The value.
        value: u8,
    },
    /// One-time bits that are programmed already.
    Programmed {
        /// The byte.
        offset: u16,
        /// Those bits.
        bits: u8,
    },
    /// Bits that are written once per power cycle, and are set.
    SetThisCycle {
        /// The byte.
        offset: u16,
        /// Those bits.
        bits: u8,
    },
}

/// A write of one byte that the field table allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteWrite {
    offset: u8,
    old: u8,
    new: u8,
    one_time: u8,
    field: &'static Field,
}

impl ByteWrite {
    /// Byte `offset`, which holds `old`, is to hold `new` on a part of this EXT_CSD_REV.
    ///
    /// Errors: the first rule that a changed bit breaks.
    pub fn new(offset: u16, old: u8, new: u8, rev: u8) -> Result<Self, Forbidden> {
        let reachable = u8::try_from(offset).ok().filter(|_| offset <= WRITABLE_LAST);
        let (Some(byte), Some(field)) = (reachable, field_at(offset)) else {
            return Err(Forbidden::OutOfReach { offset });
        };
        let index = offset - field.offset;
        if field.is_reserved() || matches!(field.access, [Access::R | Access::Vendor]) {
            return Err(Forbidden::NotWritable { offset, bits: old ^ new, access: field.access[0] });
        }
        if matches!(field.danger, Some(Danger::Action | Danger::Destructive)) {
            return Err(Forbidden::Action { offset });
        }
        if field.is_newer_than(rev) {
            return Err(Forbidden::TooNew { offset, rev });
        }
        let mut one_time = 0;
        for bit in (0..8).filter(|bit| (old ^ new) >> bit & 1 == 1) {
            let bits = group(field, index, bit);
            match field.access_of_bit(index, bit) {
                access @ (Access::R | Access::Reserved | Access::Vendor) => {
                    return Err(Forbidden::NotWritable { offset, bits: 1 << bit, access });
                }
                // What a part drops at a power cycle is not programmed until it is committed.
                Access::W1 if field.persistence_of_bit(index, bit) == Persistence::OneTimeOnceCommitted => {
                    one_time |= bits;
                }
                Access::W1 if old & bits != 0 => return Err(Forbidden::Programmed { offset, bits }),
                Access::W1 => one_time |= bits,
                Access::RWCp if old & bits != 0 => return Err(Forbidden::SetThisCycle { offset, bits }),
                Access::RWE | Access::RWCp | Access::RWEp | Access::WEp => {}
            }
        }
        if !field.has_meaning(index, new) {
            return Err(Forbidden::NoSuchValue { offset, value: new });
        }
        Ok(Self { offset: byte, old, new, one_time, field })
    }

    /// The byte.
    pub fn offset(&self) -> u8 {
        self.offset
    }

    /// What it must hold before.
    pub fn old(&self) -> u8 {
        self.old
    }

    /// What it is to hold.
    pub fn new_value(&self) -> u8 {
        self.new
    }

    /// Changed bits that can never be written again, together with the bits of their groups.
    pub fn one_time(&self) -> u8 {
        self.one_time
    }

    /// Whether a set bit makes protection of the next groups permanent (USER_WP).
    pub fn makes_permanent(&self) -> bool {
        let permanent = || reg::USER_WP.bits.iter().find(|bits| bits.name == "US_PERM_WP_EN").map(|bits| bits.mask());
        self.field == reg::USER_WP && permanent().is_some_and(|mask| u64::from(self.new) & mask != 0)
    }

    /// The field that it belongs to.
    pub fn field(&self) -> &'static Field {
        self.field
    }
}

/// The bits of a byte that are written together with one of them.
fn group(field: &'static Field, index: u16, bit: u8) -> u8 {
    field.bits_of_byte(index).map(|(mask, _)| mask).find(|mask| mask >> bit & 1 == 1).unwrap_or(0xff)
}

impl Field {
    /// Whether the standard assigns a meaning to a value of byte `index`, where it names all of them; they are those of
    /// the lowest bits.
    pub(super) fn has_meaning(&self, index: u16, value: u8) -> bool {
        let lowest = self.bits_of_byte(index).map(|(mask, _)| mask).min().unwrap_or(0xff);
        let code = (value & lowest) >> lowest.trailing_zeros();
        self.values.is_empty() || self.values.iter().any(|(known, _)| *known == u64::from(code))
    }
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |offset: u16| match field_at(offset) {
            Some(field) if field.is_reserved() => format!("byte {offset}"),
            Some(field) => format!("{}[{offset}]", field.name),
            None => format!("byte {offset}"),
        };
        match *self {
            Self::OutOfReach { offset } => {
                write!(f, "{}: CMD6 writes bytes 0 to {WRITABLE_LAST} only", name(offset))
            }
            Self::NotWritable { offset, bits, access: Access::Reserved } => {
                write!(f, "{}: bits {bits:#04x} are reserved", name(offset))
            }
            Self::NotWritable { offset, bits, access: Access::Vendor } => {
                write!(f, "{}: bits {bits:#04x} are the vendor's", name(offset))
            }
            Self::NotWritable { offset, .. } => write!(f, "{} is read-only", name(offset)),
            Self::Action { offset } => write!(f, "{}: a write starts an action, it is no setting", name(offset)),
            Self::TooNew { offset, rev } => write!(f, "{} does not exist at EXT_CSD_REV {rev}", name(offset)),
            Self::NoSuchValue { offset, value } => write!(f, "{}: {value:#04x} has no meaning", name(offset)),
            Self::Programmed { offset, bits } => {
                write!(f, "{}: bits {bits:#04x} are one-time and programmed already", name(offset))
            }
            Self::SetThisCycle { offset, bits } => {
                write!(f, "{}: bits {bits:#04x} change once per power cycle and are set", name(offset))
            }
        }
    }
}

impl std::error::Error for Forbidden {}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(offset: u16, old: u8, new: u8) -> Result<u8, Forbidden> {
        ByteWrite::new(offset, old, new, 8).map(|write| write.one_time())
    }

    #[test]
    fn only_writable_bits_change() {
        for offset in [0, 26, 135, 160, 174] {
            assert!(matches!(write(offset, 0, 1), Err(Forbidden::NotWritable { .. })), "{offset}");
        }
        // mmc-utils wraps 400 to 144.
        for offset in [192, 212, 255, 256, 400, 511, 512, u16::MAX] {
            assert_eq!(write(offset, 0, 1), Err(Forbidden::OutOfReach { offset }), "{offset}");
        }
        for offset in [29, 30, 32, 164, 165] {
            assert_eq!(write(offset, 0, 1), Err(Forbidden::Action { offset }), "{offset}");
        }
        assert!(matches!(write(33, 0, 2), Err(Forbidden::NotWritable { bits: 2, .. })));
        assert!(matches!(write(16, 0, 1), Err(Forbidden::NotWritable { access: Access::R, .. })));
        assert_eq!(write(100, 0, 1), Err(Forbidden::NotWritable { offset: 100, bits: 1, access: Access::Vendor }));
        assert_eq!(ByteWrite::new(33, 0, 1, 5), Err(Forbidden::TooNew { offset: 33, rev: 5 }));
    }

    #[test]
    fn bits_are_programmed_once() {
        assert_eq!(write(162, 0, 1), Ok(3));
        assert_eq!(write(162, 1, 2), Err(Forbidden::Programmed { offset: 162, bits: 3 }));
        assert_eq!(write(162, 1, 1), Ok(0), "nothing changes");
        assert_eq!(write(162, 0, 3), Err(Forbidden::NoSuchValue { offset: 162, value: 3 }));
        assert_eq!((write(163, 0, 1), write(163, 1, 3), write(163, 3, 1)), (Ok(1), Ok(0), Ok(0)));
        assert_eq!(write(163, 1, 0), Err(Forbidden::Programmed { offset: 163, bits: 1 }));
        assert_eq!((write(140, 0, 7), write(140, 7, 8), write(167, 0x1f, 0)), (Ok(0xff), Ok(0xff), Ok(0x1f)));
        assert_eq!((write(173, 0, 1), write(173, 0, 4)), (Ok(0), Ok(4)));
        assert_eq!(write(173, 1, 0), Err(Forbidden::SetThisCycle { offset: 173, bits: 1 }));
    }

    #[test]
    fn permanent_protection_of_the_next_groups_is_seen() {
        let permanent = |new| ByteWrite::new(171, 0, new, 8).unwrap().makes_permanent();
        assert_eq!((permanent(1), permanent(4), permanent(5), permanent(0)), (false, true, true, false));
    }
}
