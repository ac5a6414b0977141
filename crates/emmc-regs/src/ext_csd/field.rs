//! What one row of the EXT_CSD table says.

use std::fmt;

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
    /// `W/E_P`: as `R/W/E_P`, but reading it tells nothing.
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
}

impl Bits {
    /// The bits as a mask over the field.
    pub const fn mask(&self) -> u64 {
        let width = (self.hi - self.lo + 1) as u32;
        (u64::MAX >> (64 - width)) << self.lo
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
    /// What it is, where the name does not say it.
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
        what,
        source: "",
    }
}

pub(super) const fn bit(hi: u8, lo: u8, name: &'static str, note: &'static str, access: Option<Access>) -> Bits {
    Bits { hi, lo, name, note, access }
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

    pub(super) const fn source(mut self, source: &'static str) -> Self {
        self.source = source;
        self
    }

    /// Whether the standard leaves these bytes unassigned.
    pub const fn is_reserved(&self) -> bool {
        matches!(self.access, [Access::Reserved])
    }

    /// Whether the field is a row of independent bytes rather than one number.
    pub const fn is_array(&self) -> bool {
        self.width > 8 || (self.is_reserved() && self.width > 1)
    }

    /// The access types as the standard writes them: `R/W & R/W/E`.
    pub fn access_text(&self) -> String {
        self.access.iter().map(|access| access.as_str()).collect::<Vec<_>>().join(" & ")
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
