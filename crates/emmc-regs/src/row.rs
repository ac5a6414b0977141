//! One decoded register field as a row: the common form for text, JSON and comparison.
//!
//! Every register decodes to a list of these, so that printing and comparing need no knowledge of registers. Absent on
//! purpose: access types and dangers, which only EXT_CSD has (`ext_csd`), and any formatting of units.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

use crate::Persistence;

/// What a field's bits mean.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum FieldValue {
    /// A whole number in the row's unit.
    Number(u64),
    /// A number in the row's unit that may have a fraction.
    Real(f64),
    /// A name or a sentence.
    Text(Cow<'static, str>),
    /// The names of the bits that are set.
    Flags(Vec<Cow<'static, str>>),
    /// The card does not report it, or reports a reserved value: JSON null.
    Undefined,
}

impl FieldValue {
    /// Text that needs no allocation when it is a constant.
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Text(text.into())
    }

    /// The names of the set bits of `raw`, in the order given; a set bit without a name becomes `bit N`.
    pub fn flags(raw: u64, names: &[(u8, &'static str)]) -> Self {
        let mut set: Vec<Cow<'static, str>> =
            names.iter().filter(|(bit, _)| has_bit(raw, *bit)).map(|(_, name)| Cow::Borrowed(*name)).collect();
        let nameless = (0..64).filter(|&bit| has_bit(raw, bit) && !names.iter().any(|(named, _)| *named == bit));
        set.extend(nameless.map(|bit| Cow::Owned(format!("bit {bit}"))));
        Self::Flags(set)
    }
}

fn has_bit(raw: u64, bit: u8) -> bool {
    raw.checked_shr(u32::from(bit)).is_some_and(|rest| rest & 1 == 1)
}

impl From<u64> for FieldValue {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl<T: Into<FieldValue>> From<Option<T>> for FieldValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Undefined, Into::into)
    }
}

impl From<&'static str> for FieldValue {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for FieldValue {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Real(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
            Self::Flags(flags) if flags.is_empty() => f.write_str("none"),
            Self::Flags(flags) => f.write_str(&flags.join(", ")),
            Self::Undefined => f.write_str("undefined"),
        }
    }
}

/// One field of one register: its place, its bits, and their meaning.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RegisterField {
    /// The register's name, as the standard spells it: `CID`, `CSD`, `EXT_CSD`.
    pub register: &'static str,
    /// The field's name, as the standard spells it.
    pub name: &'static str,
    /// The number of the field's lowest bit; in EXT_CSD, where the standard numbers bytes, of its lowest byte.
    pub offset: u16,
    /// How many bits the field has.
    pub width_bits: u16,
    /// The bits as an unsigned number; a field wider than 64 bits keeps its lowest 64.
    pub raw: u64,
    /// What the bits mean.
    pub value: FieldValue,
    /// The unit of `value`: `B`, `Hz`, `ns`, ..., empty when it has none.
    pub unit: &'static str,
    /// Its persistence.
    #[serde(skip)]
    pub persistence: Persistence,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_name_known_bits_and_count_unknown_ones() {
        let value = FieldValue::flags(0b1101, &[(0, "ZERO"), (1, "ONE"), (3, "THREE")]);
        assert_eq!(value.to_string(), "ZERO, THREE, bit 2");
        assert_eq!(FieldValue::flags(0, &[(0, "ZERO")]).to_string(), "none");
        assert_eq!(FieldValue::flags(1 << 63, &[(64, "NONE")]).to_string(), "bit 63");
    }

    #[test]
    fn an_absent_value_is_undefined_and_not_zero() {
        assert_eq!(FieldValue::from(None::<u64>), FieldValue::Undefined);
        assert_eq!(FieldValue::from(Some(0)), FieldValue::Number(0));
    }
}
