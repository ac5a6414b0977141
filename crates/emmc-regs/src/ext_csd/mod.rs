//! EXT_CSD: the 512 bytes with the properties, the configuration and the wear of an eMMC.
//!
//! One table (`fields`) covers every byte once; decoding, text, JSON, comparison, planning and the virtual card all
//! read it. A part that breaks the standard is data: `decode` returns an [`Anomaly`], never an error. Absent on
//! purpose: reading the bytes from anywhere, and advice.

mod anomaly;
mod contradiction;
mod device_info;
mod field;
mod permission;
#[cfg(test)]
mod persistence_tests;
mod plausibility;
pub mod reg;
mod row;
mod table_low;
mod table_modes;
mod table_properties;

use std::fmt;

pub use anomaly::Anomaly;
pub use device_info::{BootConfig, DeviceInfo, HwPartition, LifeTime, PreEol, bus_modes, mmc_version, rst_n_name};
pub use field::{Access, Bits, Danger, Field, Offset, Unit};
pub use permission::{ByteWrite, Forbidden, WRITABLE_LAST};
pub use row::Row;

/// Bytes in the register.
pub const EXT_CSD_BYTES: usize = 512;

/// Every field, in order of offset; the fields cover bytes 0..=511 once.
pub fn fields() -> impl Iterator<Item = &'static Field> {
    table_low::TABLE.iter().chain(&table_modes::TABLE).chain(&table_properties::TABLE)
}

/// The field that holds byte `offset`, or `None` beyond the register's end.
pub fn field_at(offset: u16) -> Option<&'static Field> {
    let table: &'static [Field] = match offset {
        0..=127 => &table_low::TABLE,
        128..=191 => &table_modes::TABLE,
        192..=511 => &table_properties::TABLE,
        _ => return None,
    };
    table.get(table.partition_point(|field| field.offset <= offset).checked_sub(1)?)
}

/// The field of that name, in any case; an element of an array (`CONTEXT_CONF[37]`) names its field.
pub fn field_named(name: &str) -> Option<&'static Field> {
    let stem = name.split('[').next().unwrap_or(name);
    fields().find(|field| !field.is_reserved() && field.name.eq_ignore_ascii_case(stem))
}

/// A window over the register, of which some bits may be unknown.
///
/// A card and a binary dump give all 4096 bits; text from another tool gives those that it printed.
///
/// Shape: 512 bytes and as many bytes of mask, a set mask bit meaning a known bit.
#[derive(Clone, PartialEq, Eq)]
pub struct ExtCsd {
    bytes: [u8; EXT_CSD_BYTES],
    known: [u8; EXT_CSD_BYTES],
}

impl ExtCsd {
    /// A register of which every bit is known.
    pub const fn from_bytes(bytes: [u8; EXT_CSD_BYTES]) -> Self {
        Self { bytes, known: [0xff; EXT_CSD_BYTES] }
    }

    /// A register with a mask of its known bits; unknown bits are read as zero.
    pub fn with_mask(mut bytes: [u8; EXT_CSD_BYTES], known: [u8; EXT_CSD_BYTES]) -> Self {
        for (byte, known) in bytes.iter_mut().zip(&known) {
            *byte &= known;
        }
        Self { bytes, known }
    }

    /// A register without any known byte yet.
    pub const fn unknown() -> Self {
        Self { bytes: [0; EXT_CSD_BYTES], known: [0; EXT_CSD_BYTES] }
    }

    /// The bytes, unknown bits as zero.
    pub const fn bytes(&self) -> &[u8; EXT_CSD_BYTES] {
        &self.bytes
    }

    /// The mask of known bits.
    pub const fn mask(&self) -> &[u8; EXT_CSD_BYTES] {
        &self.known
    }

    /// Whether every bit is known.
    pub fn is_complete(&self) -> bool {
        self.known.iter().all(|&mask| mask == 0xff)
    }

    /// How many bytes are known in every bit.
    pub fn known_bytes(&self) -> usize {
        self.known.iter().filter(|&&mask| mask == 0xff).count()
    }

    /// Byte `offset`, if all of it is known.
    pub fn byte(&self, offset: impl Offset) -> Option<u8> {
        let index = usize::from(offset.offset());
        (*self.known.get(index)? == 0xff).then(|| self.bytes[index])
    }

    /// Bits `mask` of byte `offset`, if all of them are known.
    pub fn bits(&self, offset: impl Offset, mask: u8) -> Option<u8> {
        let index = usize::from(offset.offset());
        (*self.known.get(index)? & mask == mask).then(|| self.bytes[index] & mask)
    }

    /// Whether bit `bit` of byte `offset` is set, if it is known.
    pub fn bit(&self, offset: impl Offset, bit: u8) -> Option<bool> {
        let mask = 1u8.checked_shl(u32::from(bit))?;
        self.bits(offset, mask).map(|value| value != 0)
    }

    /// A little-endian number of `width` bytes, 1 to 8, if all of it is known.
    pub fn uint(&self, offset: u16, width: u16) -> Option<u64> {
        let (start, end) = (usize::from(offset), usize::from(offset) + usize::from(width.min(8)));
        if !self.known.get(start..end)?.iter().all(|&mask| mask == 0xff) {
            return None;
        }
        Some(self.bytes[start..end].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    /// The raw number in a field, if all of it is known and it is at most eight bytes wide.
    pub fn raw(&self, field: &Field) -> Option<u64> {
        if field.width <= 8 { self.uint(field.offset, field.width) } else { None }
    }

    /// Writes a little-endian number of `width` bytes and marks it known; bytes past the register's end are dropped.
    pub fn set_uint(&mut self, offset: u16, width: u16, value: u64) {
        for index in 0..width.min(8) {
            self.set_bits(offset.saturating_add(index), 0xff, (value >> (8 * index)) as u8);
        }
    }

    /// Writes the number in a field of at most eight bytes and marks it known.
    pub fn set_raw(&mut self, field: &Field, value: u64) {
        self.set_uint(field.offset, field.width, value);
    }

    /// Writes bits `mask` of byte `offset` and marks them known; a byte past the register's end is dropped.
    pub fn set_bits(&mut self, offset: impl Offset, mask: u8, value: u8) {
        let index = usize::from(offset.offset());
        if let (Some(byte), Some(known)) = (self.bytes.get_mut(index), self.known.get_mut(index)) {
            *byte = *byte & !mask | value & mask;
            *known |= mask;
        }
    }

    /// The configuration and health in typed form, and everything that breaks the standard.
    pub fn decode(&self) -> (DeviceInfo, Vec<Anomaly>) {
        let info = DeviceInfo::new(self);
        let anomalies = anomaly::find(self, &info);
        (info, anomalies)
    }

    /// Values at odds with other fields, which a faithful copy of one part does not have.
    pub fn contradictions(&self) -> Vec<Anomaly> {
        contradiction::find(self, &DeviceInfo::new(self))
    }

    /// Every known field as a row; `reserved` adds the bytes that the standard leaves unassigned.
    pub fn rows(&self, reserved: bool) -> impl Iterator<Item = Row> + '_ {
        row::rows(self, reserved)
    }
}

impl fmt::Debug for ExtCsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExtCsd({} of {EXT_CSD_BYTES} bytes known, rev {:?})", self.known_bytes(), self.byte(192))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_covers_every_byte_once_and_is_sorted() {
        let mut next = 0;
        for field in fields() {
            assert_eq!(field.offset, next, "{field}");
            assert!(field.width > 0, "{field}");
            next += field.width;
        }
        assert_eq!(usize::from(next), EXT_CSD_BYTES);
        for offset in 0..512 {
            let field = field_at(offset).unwrap();
            assert!(field.offset <= offset && offset < field.offset + field.width, "{offset} in {field}");
        }
        assert_eq!(field_at(512), None);
    }

    #[test]
    fn every_row_has_a_source_and_bits_that_fit() {
        for field in fields() {
            assert_eq!(field.source.is_empty(), field.is_reserved(), "{field}");
            for bits in field.bits {
                assert!(bits.hi >= bits.lo && u16::from(bits.hi) < 8 * field.width.min(8), "{field} {}", bits.name);
            }
            let named = field.bits.iter().fold(0u64, |seen, bits| {
                assert_eq!(seen & bits.mask(), 0, "{field}: {} overlaps", bits.name);
                seen | bits.mask()
            });
            for (value, name) in field.values {
                assert!(field.bits.is_empty() || value & !named == 0, "{field}: {name} outside the named bits");
            }
        }
    }

    #[test]
    fn every_one_time_register_is_marked_dangerous() {
        for field in fields() {
            // BARRIER_CTRL is R/W in the public sources, which for this register alone does not mean one-time.
            let one_time = (0..field.width.min(8)).any(|index| field.one_time_mask(index) != 0);
            let marked = matches!(field.danger, Some(Danger::OneTime | Danger::OneTimePart));
            assert_eq!(one_time && field.name != "BARRIER_CTRL", marked, "{field} {}", field.access_text());
        }
    }

    #[test]
    fn unknown_bits_stay_unknown() {
        let mut ext_csd = ExtCsd::unknown();
        assert_eq!(ext_csd.uint(212, 4), None);
        ext_csd.set_uint(212, 4, 0x00e9_0000);
        ext_csd.set_bits(156, 1, 1);
        assert_eq!(ext_csd.uint(212, 4), Some(0x00e9_0000));
        assert_eq!(ext_csd.bytes()[212..216], [0, 0, 0xe9, 0]);
        assert_eq!((ext_csd.bit(156, 0), ext_csd.bit(156, 1), ext_csd.byte(156)), (Some(true), None, None));
        assert_eq!((ext_csd.bit(156, 9), ext_csd.byte(512), ext_csd.uint(510, 4)), (None, None, None));
        assert_eq!(ext_csd.known_bytes(), 4);
        ext_csd.set_uint(510, 4, u64::MAX);
        assert_eq!(ext_csd.known_bytes(), 6);
    }

    #[test]
    fn fields_are_found_by_name_in_any_case() {
        assert_eq!(field_named("sec_count").map(|field| field.offset), Some(212));
        assert_eq!(field_named("CONTEXT_CONF[40]").map(|field| field.offset), Some(37));
        assert_eq!(field_named("RESERVED"), None);
    }
}
