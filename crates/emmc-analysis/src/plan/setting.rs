//! Bits of a register and their wanted value, and their form on a command line: `RST_n_FUNCTION=1`,
//! `BKOPS_EN.AUTO_EN=1`, `155=1`.

use std::fmt;
use std::str::FromStr;

use emmc_regs::ext_csd::{Field, field_at, field_named};

/// Bits of one byte that are to have a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) offset: u16,
    pub(super) mask: u8,
    /// The bits in their places.
    pub(super) value: u8,
    /// Needed during the change only.
    pub(super) passing: bool,
    pub(super) purpose: &'static str,
}

impl Wanted {
    /// Named bits of a field of one byte; `None` if the field has no such bits or they do not hold the value.
    pub(super) fn bits(field: &'static Field, name: &str, value: u8, purpose: &'static str) -> Option<Self> {
        let bits = field.bits.iter().find(|bits| bits.name == name)?;
        let mask = u8::try_from(bits.mask()).ok()?;
        let placed = u8::try_from(u64::from(value) << bits.lo).ok()?;
        let fits = field.width == 1 && placed & !mask == 0;
        fits.then_some(Self { offset: field.offset, mask, value: placed, passing: false, purpose })
    }

    pub(super) fn passing(self) -> Self {
        Self { passing: true, ..self }
    }
}

/// A field or its bits and the number that they are to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    offset: u16,
    field: &'static Field,
    bits: Option<&'static str>,
    mask: u64,
    shift: u8,
    value: u64,
}

/// Why an assignment was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssignmentError {
    /// Another form.
    #[error("{0:?}: expected REGISTER=VALUE or REGISTER.BITS=VALUE, e.g. BKOPS_EN.AUTO_EN=1")]
    Form(String),
    /// No such register.
    #[error("{0:?}: EXT_CSD has no register of this name or number (0 to 511)")]
    Register(String),
    /// No such bits.
    #[error("{register}: has no bits {bits:?}; it has {known}")]
    Bits {
        /// The register.
        register: String,
        /// The bits as given.
        bits: String,
        /// Those that it has.
        known: String,
    },
    /// A number that does not fit.
    #[error("{register}: {value:#x} does not fit; the largest value is {most:#x}")]
    Value {
        /// The register.
        register: String,
        /// The number.
        value: u64,
        /// The largest.
        most: u64,
    },
}

impl Assignment {
    /// The bytes that it sets.
    pub(super) fn wanted(&self) -> impl Iterator<Item = Wanted> + use<> {
        let Self { offset, mask, shift, value, field, bits } = *self;
        let width = if bits.is_none() && offset == field.offset { field.width.min(8) } else { 1 };
        let (mask, value) = (mask << shift, value << shift);
        (0..width).map(move |index| Wanted {
            offset: offset + index,
            mask: (mask >> (8 * index)) as u8,
            value: (value >> (8 * index)) as u8,
            passing: false,
            purpose: "as requested",
        })
    }

    /// The register.
    pub fn field(&self) -> &'static Field {
        self.field
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if digits.chars().all(|digit| digit.is_ascii_hexdigit()) => u64::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None if text.chars().all(|digit| digit.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}

impl FromStr for Assignment {
    type Err = AssignmentError;

    fn from_str(text: &str) -> Result<Self, AssignmentError> {
        let form = || AssignmentError::Form(text.into());
        let (name, value) = text.split_once('=').ok_or_else(form)?;
        let value = number(value.trim()).ok_or_else(form)?;
        let (name, bits) = name.trim().split_once('.').map_or((name.trim(), None), |(name, bits)| (name, Some(bits)));
        let unknown = || AssignmentError::Register(name.into());
        let (offset, field, is_byte) = match number(name) {
            Some(number) => {
                let offset = u16::try_from(number).map_err(|_| unknown())?;
                (offset, field_at(offset).ok_or_else(unknown)?, true)
            }
            None => field_named(name).map(|field| (field.offset, field, false)).ok_or_else(unknown)?,
        };
        let register = if is_byte { format!("byte {offset}") } else { field.to_string() };
        let whole =
            if is_byte || field.is_array() { 0xff } else { u64::MAX >> (64 - 8 * u32::from(field.width.min(8))) };
        let mut assignment = Self { offset, field, bits: None, mask: whole, shift: 0, value };
        if is_byte && (field.width > 1 || field.is_reserved()) {
            assignment.bits = Some("");
        }
        if let Some(wanted) = bits {
            let known = || field.bits.iter().map(|bits| bits.name).collect::<Vec<_>>().join(", ");
            let error = || AssignmentError::Bits { register: register.clone(), bits: wanted.into(), known: known() };
            let found = field.bits.iter().find(|bits| bits.name.eq_ignore_ascii_case(wanted)).ok_or_else(error)?;
            assignment.bits = Some(found.name).filter(|_| field.width == 1);
            (assignment.mask, assignment.shift) = (found.mask() >> found.lo, found.lo);
        }
        if value & !assignment.mask != 0 {
            return Err(AssignmentError::Value { register, value, most: assignment.mask });
        }
        Ok(assignment)
    }
}

impl fmt::Display for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bits {
            Some("") => write!(f, "{}={:#x}", self.offset, self.value),
            Some(bits) => write!(f, "{}.{bits}={:#x}", self.field.name, self.value),
            None => write!(f, "{}={:#x}", self.field.name, self.value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Vec<(u16, u8, u8)> {
        let assignment: Assignment = text.parse().unwrap();
        assignment.wanted().map(|wanted| (wanted.offset, wanted.mask, wanted.value)).collect()
    }

    #[test]
    fn registers_bits_and_numbers_are_understood() {
        assert_eq!(bytes("RST_n_FUNCTION=1"), [(162, 0xff, 1)]);
        assert_eq!(bytes("rst_n_function.rst_n_enable=2"), [(162, 3, 2)]);
        assert_eq!(bytes("BKOPS_EN.AUTO_EN=1"), [(163, 2, 2)]);
        assert_eq!(bytes("PARTITION_CONFIG.BOOT_PARTITION_ENABLE=0x7"), [(179, 0x38, 0x38)]);
        assert_eq!(bytes("155=1"), [(155, 0xff, 1)]);
        assert_eq!(bytes("137=255"), [(137, 0xff, 0xff)]);
        assert_eq!(bytes("ENH_SIZE_MULT=0x3ab"), [(140, 0xff, 0xab), (141, 0xff, 3), (142, 0xff, 0)]);
        assert_eq!(bytes("EXT_PARTITIONS_ATTRIBUTE.EXT_3=2"), [(52, 0, 0), (53, 0xf, 2)]);
        assert_eq!(bytes("400=1"), [(400, 0xff, 1)]);
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        for text in [
            "",
            "=",
            "RST_n_FUNCTION",
            "RST_n_FUNCTION=",
            "RST_n_FUNCTION=-1",
            "162=on",
            "162=0x",
            "162=0xg",
            "NO_SUCH=1",
            "512=1",
            "70000=1",
            "BKOPS_EN.NO=1",
            "BKOPS_EN.AUTO_EN=2",
            "162=256",
            "RST_n_FUNCTION=0x100",
        ] {
            assert!(text.parse::<Assignment>().is_err(), "{text:?}");
        }
    }
}
