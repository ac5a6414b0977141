use crate::Persistence;
use crate::bits::bits;
use crate::row::{FieldValue, RegisterField};

/// One line of a register's layout table.
pub(crate) struct BitField {
    /// The standard's name.
    pub(crate) name: &'static str,
    /// The highest bit.
    pub(crate) hi: u16,
    /// The lowest bit.
    pub(crate) lo: u16,
    /// The unit of the decoded value.
    pub(crate) unit: &'static str,
    /// How the bits are read.
    pub(crate) meaning: Meaning,
    /// Its persistence.
    pub(crate) persistence: Persistence,
}

impl BitField {
    /// The same field with another persistence than over power cycles.
    pub(crate) const fn persists(mut self, persistence: Persistence) -> Self {
        self.persistence = persistence;
        self
    }
}

/// How the bits of a field become a value.
pub(crate) enum Meaning {
    /// They are a number.
    Number,
    /// By the field's own bits.
    Of(fn(u64) -> FieldValue),
    /// By other fields of the register too.
    Within(fn(&[u8]) -> FieldValue),
}

/// A plain number.
pub(crate) const fn number(name: &'static str, hi: u16, lo: u16, unit: &'static str) -> BitField {
    BitField { name, hi, lo, unit, meaning: Meaning::Number, persistence: Persistence::Kept }
}

/// A field with a meaning of its own.
pub(crate) const fn of(
    name: &'static str,
    hi: u16,
    lo: u16,
    unit: &'static str,
    value: fn(u64) -> FieldValue,
) -> BitField {
    BitField { name, hi, lo, unit, meaning: Meaning::Of(value), persistence: Persistence::Kept }
}

/// A field whose meaning depends on other fields.
pub(crate) const fn within(name: &'static str, hi: u16, lo: u16, value: fn(&[u8]) -> FieldValue) -> BitField {
    BitField { name, hi, lo, unit: "", meaning: Meaning::Within(value), persistence: Persistence::Kept }
}

/// The rows of a register, in the order of its table.
pub(crate) fn rows(register: &'static str, bytes: &[u8], layout: &[BitField]) -> Vec<RegisterField> {
    layout.iter().map(|field| row(register, bytes, field)).collect()
}

fn row(register: &'static str, bytes: &[u8], field: &BitField) -> RegisterField {
    let raw = bits(bytes, field.hi, field.lo);
    let value = match field.meaning {
        Meaning::Number => FieldValue::Number(raw),
        Meaning::Of(value) => value(raw),
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
pub(crate) fn assert_orderly(width_bits: u16, layout: &[BitField]) {
    let mut above = width_bits;
    for field in layout {
        assert!(field.lo <= field.hi && field.hi < above, "{} {}:{} below {above}", field.name, field.hi, field.lo);
        above = field.lo;
    }
}
