//! A card that takes changes of its configuration, and the only commands that it takes: approved ones.
//!
//! [`Approved`] is made from a write that the field table allows, and a [`Consent`] that covers it; nothing else can be
//! sent. Absent on purpose: which changes make sense (`emmc-analysis`), and the system calls (`emmc-linux`).

use emmc_regs::ext_csd::{ByteWrite, EXT_CSD_BYTES, reg};

/// What the user agreed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consent {
    permanent: bool,
}

/// The serial number that was given is not that of the card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the card's serial number is {expected}, not {given:?}")]
pub struct OtherSerial {
    /// The card's.
    pub expected: String,
    /// What was given.
    pub given: String,
}

impl Consent {
    /// To changes that can be reverted.
    pub const REVERSIBLE: Self = Self { permanent: false };

    /// To changes that cannot be reverted: `given` is the card's serial number, hexadecimal as sysfs prints it.
    ///
    /// Errors: another number, or none.
    pub fn permanent(given: &str, serial: u32) -> Result<Self, OtherSerial> {
        let digits = given.trim();
        let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")).unwrap_or(digits);
        let is_plain = !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_hexdigit());
        match u32::from_str_radix(digits, 16) {
            Ok(number) if is_plain && number == serial => Ok(Self { permanent: true }),
            _ => Err(OtherSerial { expected: serial_text(serial), given: given.trim().into() }),
        }
    }

    /// Whether it covers changes that cannot be reverted.
    pub const fn is_permanent(self) -> bool {
        self.permanent
    }
}

/// A serial number as sysfs prints it.
pub fn serial_text(serial: u32) -> String {
    format!("{serial:#010x}")
}

/// A change that nobody agreed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} cannot be reverted, and nobody agreed to that")]
pub struct NotAgreed {
    what: &'static str,
}

/// A command that may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Approved {
    opcode: u8,
    argument: u32,
}

impl Approved {
    /// CMD6 with a byte that the field table allows.
    ///
    /// Errors: it changes one-time bits, or makes protection permanent, without consent to that.
    pub fn write(write: &ByteWrite, consent: Consent) -> Result<Self, NotAgreed> {
        let is_permanent = write.one_time() != 0 || write.makes_permanent();
        if is_permanent && !consent.permanent {
            return Err(NotAgreed { what: write.field().name });
        }
        let switch = emmc_regs::command::Switch {
            access: emmc_regs::command::SwitchAccess::WriteByte,
            index: write.offset(),
            value: write.new_value(),
            cmd_set: 0,
        };
        Ok(Self { opcode: 6, argument: switch.encode() })
    }

    /// CMD28: protects the group at an address, in the way that USER_WP of `ext_csd`, as just read, says.
    ///
    /// Errors: the protection would be permanent, without consent to that.
    pub fn protect_group(address: u32, ext_csd: &[u8; EXT_CSD_BYTES], consent: Consent) -> Result<Self, NotAgreed> {
        let same = ext_csd[reg::USER_WP];
        let is_permanent =
            ByteWrite::new(reg::USER_WP.offset, same, same, u8::MAX).map_or(true, |write| write.makes_permanent());
        if is_permanent && !consent.permanent {
            return Err(NotAgreed { what: "protection of a group" });
        }
        Ok(Self { opcode: 28, argument: address })
    }

    /// CMD29: ends the temporary protection of the group at an address.
    pub const fn free_group(address: u32) -> Self {
        Self { opcode: 29, argument: address }
    }

    /// The command's index.
    pub const fn opcode(self) -> u8 {
        self.opcode
    }

    /// Its argument.
    pub const fn argument(self) -> u32 {
        self.argument
    }
}

/// Why a command had no effect, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// The card refused it: nothing has changed.
    #[error("the card refused CMD{opcode}: {status}")]
    Refused {
        /// The command.
        opcode: u8,
        /// The error bits of its status.
        status: String,
    },
    /// No answer: power is lost, the card is gone, the kernel refuses. Whether it had an effect is not known.
    #[error("CMD{opcode}: {reason}")]
    Lost {
        /// The command.
        opcode: u8,
        /// Why.
        reason: String,
    },
}

/// A card whose configuration can be changed.
pub trait CommandPort {
    /// CMD8.
    ///
    /// Errors: no answer.
    fn ext_csd(&mut self) -> Result<[u8; EXT_CSD_BYTES], PortError>;

    /// CMD31: the kinds of protection of 32 groups from an address on, two bits each, the first in the lowest.
    ///
    /// Errors: refused, no answer.
    fn protection(&mut self, address: u32) -> Result<u64, PortError>;

    /// Sends it, and returns when the card is ready again without an error bit.
    ///
    /// Errors: refused, no answer.
    fn send(&mut self, command: Approved) -> Result<(), PortError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permanent_changes_need_the_serial_number() {
        let once = ByteWrite::new(reg::RST_n_FUNCTION.offset, 0, 1, 8).unwrap();
        assert!(Approved::write(&once, Consent::REVERSIBLE).is_err());
        let consent = Consent::permanent("0x0000abcd", 0xabcd).unwrap();
        assert_eq!(Approved::write(&once, consent).unwrap().argument(), 0x03a2_0100);
        for given in ["ABCD", "0xabcd", " 0000abcd\n"] {
            assert!(Consent::permanent(given, 0xabcd).is_ok(), "{given:?}");
        }
        for given in ["", "0x", "43981", "+abcd", "yes", "0xabce"] {
            assert!(Consent::permanent(given, 0xabcd).is_err(), "{given:?}");
        }
    }

    #[test]
    fn protection_of_groups_is_permanent_as_user_wp_says() {
        let mut ext_csd = [0; EXT_CSD_BYTES];
        assert!(Approved::protect_group(0, &ext_csd, Consent::REVERSIBLE).is_ok());
        ext_csd[reg::USER_WP] = 4;
        assert!(Approved::protect_group(0, &ext_csd, Consent::REVERSIBLE).is_err());
        let arms = ByteWrite::new(reg::USER_WP.offset, 0, 4, 8).unwrap();
        assert!(Approved::write(&arms, Consent::REVERSIBLE).is_err());
    }
}
