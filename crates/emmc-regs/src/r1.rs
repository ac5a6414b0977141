//! R1: the 32 status bits in the response to most commands.
//!
//! eMMC and SD share the word and most bits. Absent on purpose: what a host should do about them.

use std::fmt;

use crate::row::{FieldValue, RegisterField};
use crate::{CardKind, Persistence};

/// The card status, as R1 and R1b carry it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct R1(pub u32);

/// The card's state when it received the command: CURRENT_STATE, bits 12:9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// Reset, not yet identified.
    Idle = 0,
    /// Powered up, waiting for identification.
    Ready = 1,
    /// Identified, waiting for an address.
    Ident = 2,
    /// Stand-by: has an address and is not selected.
    Stby = 3,
    /// Transfer: selected, waiting for a command.
    Tran = 4,
    /// Sending data.
    Data = 5,
    /// Receiving data.
    Rcv = 6,
    /// Programming.
    Prg = 7,
    /// Disconnected: programming while not selected.
    Dis = 8,
    /// Bus test, of eMMC only.
    Btst = 9,
    /// Sleep, of eMMC only.
    Slp = 10,
}

impl State {
    const ALL: [Self; 11] = [
        Self::Idle,
        Self::Ready,
        Self::Ident,
        Self::Stby,
        Self::Tran,
        Self::Data,
        Self::Rcv,
        Self::Prg,
        Self::Dis,
        Self::Btst,
        Self::Slp,
    ];

    /// The state that a code stands for; 11 to 15 are reserved.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The code in bits 12:9.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The standard's short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Ready => "ready",
            Self::Ident => "ident",
            Self::Stby => "stby",
            Self::Tran => "tran",
            Self::Data => "data",
            Self::Rcv => "rcv",
            Self::Prg => "prg",
            Self::Dis => "dis",
            Self::Btst => "btst",
            Self::Slp => "slp",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Whether a bit of the card status is an error or a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusKind {
    /// Something went wrong.
    Error,
    /// A state.
    Status,
}

/// One bit of the card status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusBit {
    /// Its number.
    pub bit: u8,
    /// The standard's name.
    pub name: &'static str,
    /// Error or status.
    pub kind: StatusKind,
}

impl StatusBit {
    const fn error(bit: u8, name: &'static str) -> Self {
        Self { bit, name, kind: StatusKind::Error }
    }

    const fn status(bit: u8, name: &'static str) -> Self {
        Self { bit, name, kind: StatusKind::Status }
    }

    /// The bit as a mask.
    pub fn mask(self) -> u32 {
        1u32.checked_shl(u32::from(self.bit)).unwrap_or(0)
    }
}

/// Bits of the card status of eMMC, but for CURRENT_STATE.
///
/// Source: JESD84-B51 clause 6.13; Linux `include/linux/mmc/mmc.h`.
const EMMC: [StatusBit; 22] = [
    StatusBit::error(31, "ADDRESS_OUT_OF_RANGE"),
    StatusBit::error(30, "ADDRESS_MISALIGN"),
    StatusBit::error(29, "BLOCK_LEN_ERROR"),
    StatusBit::error(28, "ERASE_SEQ_ERROR"),
    StatusBit::error(27, "ERASE_PARAM"),
    StatusBit::error(26, "WP_VIOLATION"),
    StatusBit::status(25, "DEVICE_IS_LOCKED"),
    StatusBit::error(24, "LOCK_UNLOCK_FAILED"),
    StatusBit::error(23, "COM_CRC_ERROR"),
    StatusBit::error(22, "ILLEGAL_COMMAND"),
    StatusBit::error(21, "DEVICE_ECC_FAILED"),
    StatusBit::error(20, "CC_ERROR"),
    StatusBit::error(19, "ERROR"),
    StatusBit::error(18, "UNDERRUN"),
    StatusBit::error(17, "OVERRUN"),
    StatusBit::error(16, "CID_CSD_OVERWRITE"),
    StatusBit::error(15, "WP_ERASE_SKIP"),
    StatusBit::status(13, "ERASE_RESET"),
    StatusBit::status(8, "READY_FOR_DATA"),
    StatusBit::error(7, "SWITCH_ERROR"),
    StatusBit::status(6, "EXCEPTION_EVENT"),
    StatusBit::status(5, "APP_CMD"),
];

/// Bits of the card status of SD, but for CURRENT_STATE.
///
/// Source: SD physical layer simplified specification, clause 4.10.1.
const SD: [StatusBit; 21] = [
    StatusBit::error(31, "OUT_OF_RANGE"),
    StatusBit::error(30, "ADDRESS_ERROR"),
    StatusBit::error(29, "BLOCK_LEN_ERROR"),
    StatusBit::error(28, "ERASE_SEQ_ERROR"),
    StatusBit::error(27, "ERASE_PARAM"),
    StatusBit::error(26, "WP_VIOLATION"),
    StatusBit::status(25, "CARD_IS_LOCKED"),
    StatusBit::error(24, "LOCK_UNLOCK_FAILED"),
    StatusBit::error(23, "COM_CRC_ERROR"),
    StatusBit::error(22, "ILLEGAL_COMMAND"),
    StatusBit::error(21, "CARD_ECC_FAILED"),
    StatusBit::error(20, "CC_ERROR"),
    StatusBit::error(19, "ERROR"),
    StatusBit::error(16, "CSD_OVERWRITE"),
    StatusBit::error(15, "WP_ERASE_SKIP"),
    StatusBit::status(14, "CARD_ECC_DISABLED"),
    StatusBit::status(13, "ERASE_RESET"),
    StatusBit::status(8, "READY_FOR_DATA"),
    StatusBit::status(6, "FX_EVENT"),
    StatusBit::status(5, "APP_CMD"),
    StatusBit::error(3, "AKE_SEQ_ERROR"),
];

impl R1 {
    /// The address was beyond the end.
    pub const OUT_OF_RANGE: Self = Self(1 << 31);
    /// The address does not fit the block length, or the access mode.
    pub const ADDRESS_ERROR: Self = Self(1 << 30);
    /// The block length is not allowed.
    pub const BLOCK_LEN_ERROR: Self = Self(1 << 29);
    /// Erase commands came in the wrong order.
    pub const ERASE_SEQ_ERROR: Self = Self(1 << 28);
    /// The groups to erase were wrong.
    pub const ERASE_PARAM: Self = Self(1 << 27);
    /// A protected block was to be written.
    pub const WP_VIOLATION: Self = Self(1 << 26);
    /// The card is locked by a password.
    pub const IS_LOCKED: Self = Self(1 << 25);
    /// Locking or unlocking failed.
    pub const LOCK_UNLOCK_FAILED: Self = Self(1 << 24);
    /// The checksum of the previous command was wrong.
    pub const COM_CRC_ERROR: Self = Self(1 << 23);
    /// The previous command was not legal in its state.
    pub const ILLEGAL_COMMAND: Self = Self(1 << 22);
    /// The data could not be corrected.
    pub const ECC_FAILED: Self = Self(1 << 21);
    /// An error inside the card, not caused by the host.
    pub const CC_ERROR: Self = Self(1 << 20);
    /// An error inside the card, caused by the command's execution.
    pub const ERROR: Self = Self(1 << 19);
    /// CID or CSD was to be overwritten against the rules.
    pub const CID_CSD_OVERWRITE: Self = Self(1 << 16);
    /// Protected blocks were left out of an erase.
    pub const WP_ERASE_SKIP: Self = Self(1 << 15);
    /// An erase sequence was cleared by another command.
    pub const ERASE_RESET: Self = Self(1 << 13);
    /// The card's buffer is free.
    pub const READY_FOR_DATA: Self = Self(1 << 8);
    /// The mode did not change as CMD6 requested.
    pub const SWITCH_ERROR: Self = Self(1 << 7);
    /// An exception is described in EXT_CSD's EXCEPTION_EVENTS_STATUS.
    pub const EXCEPTION_EVENT: Self = Self(1 << 6);
    /// The card expects an application-specific command.
    pub const APP_CMD: Self = Self(1 << 5);

    const STATE_LO: u32 = 9;
    const STATE_MASK: u32 = 0xf << Self::STATE_LO;

    /// A status without flags, in this state.
    pub fn in_state(state: State) -> Self {
        Self(u32::from(state.code()) << Self::STATE_LO)
    }

    /// The bits of both; both should name the same state.
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether every bit of `other` is set here.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// CURRENT_STATE, or `None` for a reserved code.
    pub fn state(self) -> Option<State> {
        State::from_code(self.state_code())
    }

    fn state_code(self) -> u8 {
        ((self.0 & Self::STATE_MASK) >> Self::STATE_LO) as u8
    }

    /// The bits that a kind of card defines, from the highest.
    pub fn defined(kind: CardKind) -> &'static [StatusBit] {
        match kind {
            CardKind::Emmc => &EMMC,
            CardKind::Sd => &SD,
        }
    }

    /// The defined bits that are set, from the highest.
    pub fn flags(self, kind: CardKind) -> impl Iterator<Item = &'static StatusBit> {
        Self::defined(kind).iter().filter(move |bit| self.0 & bit.mask() != 0)
    }

    /// The errors among the bits that are set.
    pub fn errors(self, kind: CardKind) -> impl Iterator<Item = &'static StatusBit> {
        self.flags(kind).filter(|bit| bit.kind == StatusKind::Error)
    }

    /// State and flags in words: `tran READY_FOR_DATA`.
    pub fn describe(self, kind: CardKind) -> String {
        let state = self.state().map_or_else(|| format!("state {}", self.state_code()), |state| state.to_string());
        self.flags(kind).fold(state, |text, bit| text + " " + bit.name)
    }

    /// Every field, for printing and comparing.
    pub fn fields(self, kind: CardKind) -> Vec<RegisterField> {
        let row = |name, offset, width_bits, raw, value| RegisterField {
            register: "R1",
            name,
            offset,
            width_bits,
            raw,
            value,
            unit: "",
            persistence: Persistence::NotSpecified,
        };
        let flag = |bit: &StatusBit| {
            let raw = u64::from(self.0 & bit.mask() != 0);
            row(bit.name, u16::from(bit.bit), 1, raw, FieldValue::Number(raw))
        };
        let mut fields: Vec<_> = Self::defined(kind).iter().map(flag).collect();
        let state = self.state().map_or(FieldValue::Undefined, |state| state.name().into());
        let below_state = fields.partition_point(|field| field.offset > 12);
        fields.insert(below_state, row("CURRENT_STATE", 9, 4, u64::from(self.state_code()), state));
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_an_idle_emmc_is_decoded() {
        // CMD13 of a Samsung BJNB4R: 0x00000900.
        let r1 = R1(0x0000_0900);
        assert_eq!((r1.state(), r1.contains(R1::READY_FOR_DATA)), (Some(State::Tran), true));
        assert_eq!(r1.describe(CardKind::Emmc), "tran READY_FOR_DATA");
        assert_eq!(r1.errors(CardKind::Emmc).count(), 0);
        assert_eq!(R1::in_state(State::Tran).with(R1::READY_FOR_DATA), r1);
    }

    #[test]
    fn errors_are_distinguished_from_status() {
        let r1 = R1::in_state(State::Prg).with(R1::SWITCH_ERROR).with(R1::EXCEPTION_EVENT).with(R1::OUT_OF_RANGE);
        assert_eq!(r1.describe(CardKind::Emmc), "prg ADDRESS_OUT_OF_RANGE SWITCH_ERROR EXCEPTION_EVENT");
        let errors: Vec<_> = r1.errors(CardKind::Emmc).map(|bit| bit.name).collect();
        assert_eq!(errors, ["ADDRESS_OUT_OF_RANGE", "SWITCH_ERROR"]);
        assert_eq!(r1.describe(CardKind::Sd), "prg OUT_OF_RANGE FX_EVENT");
        assert_eq!(R1(0x1e00).describe(CardKind::Emmc), "state 15");
    }

    #[test]
    fn states_and_codes_round_trip() {
        for code in 0..=255 {
            let state = State::from_code(code);
            assert_eq!(state.map(State::code), (code <= 10).then_some(code));
            assert_eq!(state.and_then(|state| R1::in_state(state).state()), state);
        }
    }

    #[test]
    fn rows_are_sorted_and_fit_the_word() {
        for kind in [CardKind::Emmc, CardKind::Sd] {
            let fields = R1(u32::MAX).fields(kind);
            assert!(fields.windows(2).all(|pair| pair[0].offset >= pair[1].offset + pair[1].width_bits));
            assert!(fields.iter().all(|field| field.offset + field.width_bits <= 32 && field.raw > 0));
            assert_eq!(fields.iter().filter(|field| field.value == FieldValue::Undefined).count(), 1);
        }
        let fields = R1(0x900).fields(CardKind::Emmc);
        let state = fields.iter().find(|field| field.name == "CURRENT_STATE").unwrap();
        assert_eq!((state.raw, &state.value), (4, &FieldValue::Text("tran".into())));
    }
}
