//! OCR: the supply voltages a card takes, how it is addressed, and whether it has finished powering up.
//!
//! Linux's sysfs prints the window it chose and not the card's answer, so there the other bits are usually 0.

use std::fmt;

use crate::CardKind;
use crate::Persistence::NotSpecified;
use crate::layout::{self, layout, of};
use crate::row::{FieldValue, RegisterField};

/// The operation conditions register, as R3 and the arguments of CMD1 and ACMD41 carry it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ocr(pub u32);

/// ACCESS_MODE of sector addresses.
const SECTOR: u32 = 2;

/// How a card counts addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessMode {
    /// Bytes, up to 2 GiB.
    Byte,
    /// Sectors of 512 bytes.
    Sector,
}

impl Ocr {
    /// 1.70 V to 1.95 V, of eMMC only.
    pub const VDD_170_195: Self = Self(emmc::VDD_170_195.mask());
    /// 2.7 V to 3.6 V, all nine windows.
    pub const VDD_27_36: Self = Self(emmc::VDD_27_36.mask());
    /// Every supply window of eMMC.
    pub const EMMC_WINDOWS: Self = Self(emmc::VDD_27_36.mask() | emmc::VDD_20_26.mask() | emmc::VDD_170_195.mask());
    /// eMMC: the host or the card uses sector addresses.
    pub const SECTOR_MODE: Self = Self(emmc::ACCESS_MODE.placed(SECTOR));
    /// SD: high capacity (CCS in the answer, HCS in the question).
    pub const CCS: Self = Self(sd::CCS.mask());
    /// SD: switching to 1.8 V is accepted (S18A in the answer) or asked for (S18R).
    pub const S18A: Self = Self(sd::S18A.mask());
    /// The card has finished powering up; the standards call the opposite busy.
    pub const POWERED_UP: Self = Self(emmc::BUSY.mask());

    /// Whether every bit of `other` is set here.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits of both.
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the card has finished powering up.
    pub fn powered_up(self) -> bool {
        self.contains(Self::POWERED_UP)
    }

    /// How the card is addressed, or `None` for a reserved code.
    pub fn access_mode(self, kind: CardKind) -> Option<AccessMode> {
        match (kind, emmc::ACCESS_MODE.get(&self.0.to_be_bytes())) {
            (CardKind::Emmc, 0) => Some(AccessMode::Byte),
            (CardKind::Emmc, 2) => Some(AccessMode::Sector),
            (CardKind::Emmc, _) => None,
            (CardKind::Sd, _) if self.contains(Self::CCS) => Some(AccessMode::Sector),
            (CardKind::Sd, _) => Some(AccessMode::Byte),
        }
    }

    /// Every field, for printing and comparing.
    pub fn fields(self, kind: CardKind) -> Vec<RegisterField> {
        let table = match kind {
            CardKind::Emmc => emmc::FIELDS,
            CardKind::Sd => sd::FIELDS,
        };
        layout::rows("OCR", &self.0.to_be_bytes(), table)
    }
}

impl fmt::Display for Ocr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:08x}", self.0)
    }
}

/// The fields of an eMMC's OCR.
///
/// Source: JESD84-B51 clause 7.1; Linux `include/linux/mmc/host.h` for the windows.
pub mod emmc {
    use super::*;

    layout! {
        BUSY = of(31, 31, "", power_up).persists(NotSpecified);
        ACCESS_MODE = of(30, 29, "", |raw| match raw {
            0 => "byte".into(),
            2 => "sector".into(),
            _ => FieldValue::Undefined,
        });
        VDD_27_36 = of(23, 15, "", |raw| FieldValue::flags(raw, &HIGH_WINDOWS));
        VDD_20_26 = of(14, 8, "", |raw| FieldValue::flags(raw, &MIDDLE_WINDOWS));
        VDD_170_195 = of(7, 7, "", yes_no);
    }
}

/// The fields of an SD card's OCR.
///
/// Source: SD physical layer simplified specification, clause 5.1.
pub mod sd {
    use super::*;

    layout! {
        BUSY = of(31, 31, "", power_up).persists(NotSpecified);
        CCS = of(30, 30, "", |raw| if raw == 1 { "sector".into() } else { "byte".into() });
        UHS_II = of(29, 29, "", yes_no);
        CO2T = of(27, 27, "", yes_no);
        S18A = of(24, 24, "", yes_no).persists(NotSpecified);
        VDD_27_36 = of(23, 15, "", |raw| FieldValue::flags(raw, &HIGH_WINDOWS));
        LOW_VOLTAGE = of(7, 7, "", yes_no);
    }
}

const HIGH_WINDOWS: [(u8, &str); 9] = [
    (0, "2.7-2.8 V"),
    (1, "2.8-2.9 V"),
    (2, "2.9-3.0 V"),
    (3, "3.0-3.1 V"),
    (4, "3.1-3.2 V"),
    (5, "3.2-3.3 V"),
    (6, "3.3-3.4 V"),
    (7, "3.4-3.5 V"),
    (8, "3.5-3.6 V"),
];

const MIDDLE_WINDOWS: [(u8, &str); 7] = [
    (0, "2.0-2.1 V"),
    (1, "2.1-2.2 V"),
    (2, "2.2-2.3 V"),
    (3, "2.3-2.4 V"),
    (4, "2.4-2.5 V"),
    (5, "2.5-2.6 V"),
    (6, "2.6-2.7 V"),
];

fn power_up(raw: u64) -> FieldValue {
    if raw == 1 { "powered up".into() } else { "busy".into() }
}

fn yes_no(raw: u64) -> FieldValue {
    if raw == 1 { "yes".into() } else { "no".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(ocr: Ocr, kind: CardKind, name: &str) -> String {
        ocr.fields(kind).iter().find(|field| field.name == name).unwrap().value.to_string()
    }

    #[test]
    fn the_ocr_of_a_sector_addressed_emmc_is_decoded() {
        let ocr = Ocr(0xc0ff_8080);
        assert!(ocr.powered_up());
        assert_eq!(ocr.access_mode(CardKind::Emmc), Some(AccessMode::Sector));
        assert_eq!(value(ocr, CardKind::Emmc, "BUSY"), "powered up");
        assert_eq!(value(ocr, CardKind::Emmc, "ACCESS_MODE"), "sector");
        assert_eq!(value(ocr, CardKind::Emmc, "VDD_170_195"), "yes");
        assert_eq!(value(ocr, CardKind::Emmc, "VDD_20_26"), "none");
        assert_eq!(value(ocr, CardKind::Emmc, "VDD_27_36").matches(" V").count(), 9);
        let built = Ocr::POWERED_UP.with(Ocr::SECTOR_MODE).with(Ocr::VDD_27_36).with(Ocr::VDD_170_195);
        assert_eq!((built, built.to_string().as_str()), (ocr, "0xc0ff8080"));
    }

    #[test]
    fn sysfs_prints_the_voltage_window_only() {
        // A SanDisk SN512 under Linux: the window 3.3 V to 3.4 V, without the card's own bits.
        let ocr = Ocr(0x0020_0000);
        assert_eq!(value(ocr, CardKind::Sd, "VDD_27_36"), "3.3-3.4 V");
        assert_eq!((ocr.powered_up(), ocr.access_mode(CardKind::Sd)), (false, Some(AccessMode::Byte)));
    }

    #[test]
    fn sd_has_its_own_ocr_bits() {
        let ocr = Ocr(0xc1ff_8000);
        assert_eq!(ocr.access_mode(CardKind::Sd), Some(AccessMode::Sector));
        assert_eq!(value(ocr, CardKind::Sd, "S18A"), "yes");
        assert_eq!(value(ocr, CardKind::Sd, "UHS_II"), "no");
        assert_eq!(Ocr(3 << 29).access_mode(CardKind::Emmc), None);
        assert_eq!(value(Ocr(1 << 29), CardKind::Emmc, "ACCESS_MODE"), "undefined");
        layout::assert_orderly(32, emmc::FIELDS);
        layout::assert_orderly(32, sd::FIELDS);
    }
}
