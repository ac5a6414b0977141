//! The layout of CID, CSD, OCR, SCR and SD status: one row a field, which is also the field's name in code.
//!
//! `layout!` makes of each row a constant (`csd::mmc::C_SIZE`) and the table that printing and comparing go through, so
//! a new field costs one row. Absent on purpose: EXT_CSD, which the standard numbers by bytes (`ext_csd::reg`).

use std::ops::Range;

use crate::Persistence;
use crate::bits::{bits, set_bits};
use crate::row::{FieldValue, RegisterField};

/// A field of a register: its bits and their meaning.
#[derive(Clone, Copy, Debug)]
pub struct BitField {
    name: &'static str,
    hi: u16,
    lo: u16,
    unit: &'static str,
    meaning: Meaning,
    persistence: Persistence,
    versions: &'static [u64],
}

/// How the bits of a field become a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meaning {
    /// They are a number.
    Number,
    /// By the field's own bits.
    Of(fn(u64) -> FieldValue),
    /// By the field's own bytes.
    Bytes(fn(&[u8]) -> FieldValue),
    /// By other fields of the register too.
    Within(fn(&[u8]) -> FieldValue),
}

impl BitField {
    /// The field as an unsigned number.
    pub fn get(&self, register: &[u8]) -> u64 {
        bits(register, self.hi, self.lo)
    }

    /// Whether any bit of the field is set.
    pub fn is_set(&self, register: &[u8]) -> bool {
        self.get(register) != 0
    }

    /// Writes the field; bits of `value` past its width are dropped.
    pub fn set(&self, register: &mut [u8], value: u64) {
        set_bits(register, self.hi, self.lo, value);
    }

    /// The field as the card sends it; empty where it does not begin and end with whole bytes.
    pub fn bytes<'a>(&self, register: &'a [u8]) -> &'a [u8] {
        self.byte_range(register.len()).and_then(|range| register.get(range)).unwrap_or_default()
    }

    fn byte_range(&self, length: usize) -> Option<Range<usize>> {
        let is_whole = self.lo % 8 == 0 && (self.hi + 1) % 8 == 0;
        let from_end = |bit: u16| length.checked_sub(usize::from(bit / 8));
        Some(from_end(self.hi + 1)?..from_end(self.lo)?).filter(|_| is_whole)
    }

    /// The mask of the field in a register of 32 bits.
    pub(crate) const fn mask(&self) -> u32 {
        self.placed(u32::MAX)
    }

    /// `value` at the place of the field in a register of 32 bits.
    pub(crate) const fn placed(&self, value: u32) -> u32 {
        let width = self.hi - self.lo + 1;
        let kept = if width >= 32 { value } else { value & ((1 << width) - 1) };
        kept << self.lo
    }

    /// Its name, as the standard spells it.
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether a register of this version has the field.
    pub(crate) fn is_in_version(&self, version: u64) -> bool {
        self.versions.is_empty() || self.versions.contains(&version)
    }

    /// The same field with another persistence than over power cycles.
    pub(crate) const fn persists(mut self, persistence: Persistence) -> Self {
        self.persistence = persistence;
        self
    }

    /// The same field in these versions of the register only.
    pub(crate) const fn in_versions(mut self, versions: &'static [u64]) -> Self {
        self.versions = versions;
        self
    }

    /// The standard's name, where a constant cannot have it because other versions have a field of that name.
    pub(crate) const fn spelled(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// The name of the constant, unless the standard spells it otherwise.
    pub(crate) const fn named(mut self, name: &'static str) -> Self {
        if self.name.is_empty() {
            self.name = name;
        }
        self
    }
}

/// Defines a register's fields, the highest bits first: a constant for each, and `FIELDS` with all of them.
macro_rules! layout {
    ($($(#[$doc:meta])* $name:ident = $field:expr;)*) => {
        $(
            #[doc = concat!("The row of ", stringify!($name), ".")]
            $(#[$doc])*
            pub const $name: &$crate::layout::BitField = &$field.named(stringify!($name));
        )*

        /// Every field, the highest bits first.
        pub(crate) const FIELDS: &[&$crate::layout::BitField] = &[$($name),*];
    };
}
pub(crate) use layout;

const fn field(hi: u16, lo: u16, unit: &'static str, meaning: Meaning) -> BitField {
    BitField { name: "", hi, lo, unit, meaning, persistence: Persistence::Kept, versions: &[] }
}

/// A plain number.
pub(crate) const fn number(hi: u16, lo: u16, unit: &'static str) -> BitField {
    field(hi, lo, unit, Meaning::Number)
}

/// One bit as a number.
pub(crate) const fn bit(place: u16) -> BitField {
    number(place, place, "")
}

/// A field with a meaning of its own.
pub(crate) const fn of(hi: u16, lo: u16, unit: &'static str, value: fn(u64) -> FieldValue) -> BitField {
    field(hi, lo, unit, Meaning::Of(value))
}

/// A field whose meaning is in its bytes.
pub(crate) const fn bytes(hi: u16, lo: u16, value: fn(&[u8]) -> FieldValue) -> BitField {
    field(hi, lo, "", Meaning::Bytes(value))
}

/// A field whose meaning depends on other fields.
pub(crate) const fn within(hi: u16, lo: u16, value: fn(&[u8]) -> FieldValue) -> BitField {
    field(hi, lo, "", Meaning::Within(value))
}

/// The rows of a register, in the order of its table.
pub(crate) fn rows<'a>(
    register: &'static str,
    bytes: &[u8],
    fields: impl IntoIterator<Item = &'a &'static BitField>,
) -> Vec<RegisterField> {
    fields.into_iter().map(|field| row(register, bytes, field)).collect()
}

fn row(register: &'static str, bytes: &[u8], field: &BitField) -> RegisterField {
    let raw = field.get(bytes);
    let value = match field.meaning {
        Meaning::Number => FieldValue::Number(raw),
        Meaning::Of(value) => value(raw),
        Meaning::Bytes(value) => value(field.bytes(bytes)),
        Meaning::Within(value) => value(bytes),
    };
    RegisterField {
        register,
        name: field.name,
        offset: field.lo,
        width_bits: field.hi - field.lo + 1,
        raw,
        value,
        unit: field.unit,
        persistence: field.persistence,
    }
}

/// Asserts that a table's fields go downwards, do not overlap and fit the register.
#[cfg(test)]
pub(crate) fn assert_orderly<'a>(width_bits: u16, fields: impl IntoIterator<Item = &'a &'static BitField>) {
    let mut above = width_bits;
    for field in fields {
        assert!(!field.name.is_empty() && field.lo <= field.hi && field.hi < above, "{field:?} below {above}");
        above = field.lo;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_reads_and_writes_its_own_bits_only() {
        let nibble = number(11, 8, "");
        let mut register = [0x12, 0x34, 0x56, 0x78];
        assert_eq!(nibble.get(&register), 6);
        nibble.set(&mut register, 0xfa);
        assert_eq!(register, [0x12, 0x34, 0x5a, 0x78]);
        assert!(nibble.is_set(&register) && !bit(0).is_set(&register));
    }

    #[test]
    fn only_whole_bytes_are_bytes() {
        let register = [0x12, 0x34, 0x56, 0x78];
        assert_eq!(number(23, 8, "").bytes(&register), [0x34, 0x56]);
        assert_eq!(number(31, 24, "").bytes(&register), [0x12]);
        for field in [number(22, 8, ""), number(23, 9, ""), number(39, 32, "")] {
            assert_eq!(field.bytes(&register), [0; 0], "{field:?}");
        }
    }

    #[test]
    fn a_value_is_placed_in_a_word() {
        assert_eq!((number(30, 29, "").placed(2), number(30, 29, "").placed(7)), (2 << 29, 3 << 29));
        assert_eq!((number(23, 15, "").mask(), number(31, 0, "").mask()), (0x00ff_8000, u32::MAX));
    }

    #[test]
    fn the_standards_spelling_goes_before_the_constants() {
        assert_eq!(bit(0).spelled("C_SIZE").named("C_SIZE_V2").name, "C_SIZE");
        assert_eq!(bit(0).named("COPY").name, "COPY");
        assert!(bit(0).is_in_version(3) && !bit(0).in_versions(&[0, 1]).is_in_version(3));
    }
}
