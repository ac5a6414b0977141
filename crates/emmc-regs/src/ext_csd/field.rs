//! What one row of the EXT_CSD table says.

use std::fmt;
use std::ops::{Index, IndexMut};

use super::EXT_CSD_BYTES;
use crate::Persistence;

/// How a register may be written, as JESD84 abbreviates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// `R`: read only.
    R,
    /// `R/W`: readable, written once in the life of the part.
    W1,
    /// `R/W/E`: readable, written any number of times, kept over power cycles.
    RWE,
    /// `R/W/C_P`: readable, written once between power cycles or hardware resets, which clear it.
    RWCp,
    /// `R/W/E_P`: readable, written any number of times, cleared by power cycle, hardware reset and CMD0.
    RWEp,
    /// `W/E_P`: as `R/W/E_P`, but reads have no meaning.
    WEp,
    /// Not assigned by the standard.
    Reserved,
    /// Left to the vendor.
    Vendor,
}

impl Access {
    /// The standard's abbreviation.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::R => "R",
            Self::W1 => "R/W",
            Self::RWE => "R/W/E",
            Self::RWCp => "R/W/C_P",
            Self::RWEp => "R/W/E_P",
            Self::WEp => "W/E_P",
            Self::Reserved => "-",
            Self::Vendor => "vendor",
        }
    }
}

impl From<Access> for Persistence {
    fn from(access: Access) -> Self {
        match access {
            Access::W1 => Self::OneTime,
            // What a host cannot write is a property of the part; the fields that report a state say so themselves.
            Access::R | Access::RWE => Self::Kept,
            Access::RWCp => Self::UntilPowerCycle,
            Access::RWEp | Access::WEp => Self::UntilReset,
            Access::Reserved | Access::Vendor => Self::NotSpecified,
        }
    }
}

/// What a careless write to a register would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Danger {
    /// The whole register is one-time programmable.
    OneTime,
    /// Some of its bits are.
    OneTimePart,
    /// A write starts something.
    Action,
    /// A write destroys data.
    Destructive,
    /// Its meaning is the vendor's.
    Vendor,
}

impl Danger {
    /// One word for tables and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OneTime => "one-time",
            Self::OneTimePart => "one-time-part",
            Self::Action => "action",
            Self::Destructive => "destructive",
            Self::Vendor => "vendor",
        }
    }
}

/// How a raw number becomes a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A code, flags or a plain number.
    None,
    /// raw x step, in the named unit.
    Linear(u64, &'static str),
    /// (raw + 1) x step, in the named unit.
    PlusOne(u64, &'static str),
    /// step x 2^(raw - bias); raw below the bias, or above `raw_max`, is not defined.
    Exp2 {
        /// The quantity at raw = bias.
        step: u64,
        /// Name of the unit.
        unit: &'static str,
        /// Raw value of the smallest defined quantity.
        bias: u8,
        /// Largest raw value that the standard defines.
        raw_max: u8,
    },
    /// raw x HC_WP_GRP_SIZE x HC_ERASE_GRP_SIZE x 512 KiB.
    WpGroups,
    /// raw x HC_ERASE_GRP_SIZE x 512 KiB.
    EraseGroups,
    /// Sectors where the part is sector addressed, bytes otherwise.
    StartAddress,
    /// Sectors of DATA_SECTOR_SIZE.
    DataSectors,
    /// raw x ERASE_TIMEOUT_MULT x 300 ms.
    SecureTimeout,
    /// Tenths of the estimated life, 1 to 0xA; 0xB is past its end.
    LifeBand,
    /// Two four-bit codes of maximum current.
    PowerClass,
}

/// A named group of bits inside a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// Highest bit, counted inside the field.
    pub hi: u8,
    /// Lowest bit.
    pub lo: u8,
    /// The standard's name.
    pub name: &'static str,
    /// What its values mean, where the name does not say it.
    pub note: &'static str,
    /// Access type, where it differs from the field's.
    pub access: Option<Access>,
    /// How long a value lasts and the source of that, where it does not follow from the access type.
    pub persistence: Option<(Persistence, &'static str)>,
}

impl Bits {
    /// The bits as a mask over the field.
    pub const fn mask(&self) -> u64 {
        let width = (self.hi - self.lo + 1) as u32;
        (u64::MAX >> (64 - width)) << self.lo
    }

    pub(super) const fn persists(mut self, persistence: Persistence, source: &'static str) -> Self {
        self.persistence = Some((persistence, source));
        self
    }
}

/// One register of the EXT_CSD: the row that drives decoding, text, JSON, diff, plan and the virtual card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The standard's name; `RESERVED` where it gives none.
    pub name: &'static str,
    /// First byte, 0 to 511.
    pub offset: u16,
    /// Bytes, least significant first.
    pub width: u16,
    /// Access types; more than one where the bits differ.
    pub access: &'static [Access],
    /// EXT_CSD_REV that brought it (a revision more or less: the public sources disagree).
    pub since_rev: u8,
    /// How raw becomes a quantity.
    pub unit: Unit,
    /// Named bits.
    pub bits: &'static [Bits],
    /// Named values.
    pub values: &'static [(u64, &'static str)],
    /// What a careless write would do.
    pub danger: Option<Danger>,
    /// How long a value lasts and the source of that, where it does not follow from the access type.
    pub persistence: Option<(Persistence, &'static str)>,
    /// A description, if the name does not explain it.
    pub what: &'static str,
    /// Where offset, width and meaning were checked.
    pub source: &'static str,
}

pub(super) const fn field(
    name: &'static str,
    offset: u16,
    width: u16,
    access: &'static [Access],
    since_rev: u8,
    what: &'static str,
) -> Field {
    Field {
        name,
        offset,
        width,
        access,
        since_rev,
        unit: Unit::None,
        bits: &[],
        values: &[],
        danger: None,
        persistence: None,
        what,
        source: "",
    }
}

pub(super) const fn bit(hi: u8, lo: u8, name: &'static str, note: &'static str, access: Option<Access>) -> Bits {
    Bits { hi, lo, name, note, access, persistence: None }
}

/// Where a byte is: its number, or the field that begins there.
pub trait Offset: Copy {
    /// The byte's number, 0 to 511.
    fn offset(self) -> u16;
}

impl Offset for u16 {
    fn offset(self) -> u16 {
        self
    }
}

impl Offset for &Field {
    fn offset(self) -> u16 {
        self.offset
    }
}

/// `bytes[reg::BKOPS_EN]`: the first byte of a field.
impl Index<&Field> for [u8; EXT_CSD_BYTES] {
    type Output = u8;

    fn index(&self, field: &Field) -> &u8 {
        &self[field.index()]
    }
}

impl IndexMut<&Field> for [u8; EXT_CSD_BYTES] {
    fn index_mut(&mut self, field: &Field) -> &mut u8 {
        &mut self[field.index()]
    }
}

impl Field {
    /// The numbers of its bytes.
    pub const fn bytes(&self) -> std::ops::Range<u16> {
        self.offset..self.offset + self.width
    }

    /// Where it is in an array of the register's bytes.
    pub const fn range(&self) -> std::ops::Range<usize> {
        self.offset as usize..self.offset as usize + self.width as usize
    }

    /// Its first byte in an array of the register's bytes.
    pub const fn index(&self) -> usize {
        self.offset as usize
    }

    pub(super) const fn unit(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    pub(super) const fn bits(mut self, bits: &'static [Bits]) -> Self {
        self.bits = bits;
        self
    }

    pub(super) const fn values(mut self, values: &'static [(u64, &'static str)]) -> Self {
        self.values = values;
        self
    }

    pub(super) const fn danger(mut self, danger: Danger) -> Self {
        self.danger = Some(danger);
        self
    }

    pub(super) const fn persists(mut self, persistence: Persistence, source: &'static str) -> Self {
        self.persistence = Some((persistence, source));
        self
    }

    pub(super) const fn source(mut self, source: &'static str) -> Self {
        self.source = source;
        self
    }

    /// Whether the standard leaves these bytes unassigned.
    pub const fn is_reserved(&self) -> bool {
        matches!(self.access, [Access::Reserved])
    }

    /// Whether a part of that EXT_CSD_REV has no such field; vendor bytes belong to no revision.
    pub fn is_newer_than(&self, rev: u8) -> bool {
        self.since_rev > rev && !self.is_reserved() && !matches!(self.access, [Access::Vendor])
    }

    /// Whether the field is a row of independent bytes rather than one number.
    pub const fn is_array(&self) -> bool {
        self.width > 8 || (self.is_reserved() && self.width > 1)
    }

    /// The access types as the standard writes them: `R/W & R/W/E`.
    pub fn access_text(&self) -> String {
        self.access.iter().map(|access| access.as_str()).collect::<Vec<_>>().join(" & ")
    }

    /// The groups of named bits of byte `index` inside the field, as masks over that byte.
    pub fn bits_of_byte(&self, index: u16) -> impl Iterator<Item = (u8, &'static Bits)> + use<> {
        // Elements of an array have the same bits each.
        let shift = if self.is_array() { 0 } else { 8 * u32::from(index) };
        let byte_mask = move |bits: &Bits| bits.mask().checked_shr(shift).unwrap_or(0) as u8;
        self.bits.iter().map(move |bits| (byte_mask(bits), bits)).filter(|(mask, _)| *mask != 0)
    }

    /// Access type of bit `bit` of byte `index` inside the field.
    ///
    /// A bit without a name in a field of named bits is reserved.
    pub fn access_of_bit(&self, index: u16, bit: u8) -> Access {
        let access = self.access[0];
        match self.bits_of_byte(index).find(|(mask, _)| mask >> bit & 1 == 1) {
            Some((_, bits)) => bits.access.unwrap_or(access),
            None if self.bits.is_empty() => access,
            None => Access::Reserved,
        }
    }

    /// How long a value of bit `bit` of byte `index` inside the field lasts.
    pub fn persistence_of_bit(&self, index: u16, bit: u8) -> Persistence {
        let access = self.access_of_bit(index, bit);
        let named = self.bits_of_byte(index).find(|(mask, _)| mask >> bit & 1 == 1);
        let stated = named.and_then(|(_, bits)| bits.persistence).or(self.persistence);
        match (access, stated) {
            (Access::Reserved, _) | (_, None) => access.into(),
            (_, Some((persistence, _))) => persistence,
        }
    }

    /// Bits of byte `index` inside the field that are programmable only once.
    pub fn one_time_mask(&self, index: u16) -> u8 {
        let whole = if matches!(self.access, [Access::W1]) { 0xff } else { 0 };
        let named =
            self.bits.iter().filter(|bits| bits.access == Some(Access::W1)).fold(0, |mask, bits| mask | bits.mask());
        whole | (named >> (u32::from(index) * 8).min(63)) as u8
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.width {
            1 => write!(f, "{}[{}]", self.name, self.offset),
            width => write!(f, "{}[{}:{}]", self.name, self.offset + width - 1, self.offset),
        }
    }
}
