//! A card that takes changes of its configuration, and the only commands that it takes: approved ones.
//!
//! [`Approved`] is made from a write that the field table allows, and a [`Consent`] that covers it; nothing else can be
//! sent. Absent on purpose: which changes make sense (`emmc-analysis`), and the system calls (`emmc-linux`).

use emmc_regs::command::{Erase, Switch, SwitchAccess};
use emmc_regs::ext_csd::{ByteWrite, EXT_CSD_BYTES, reg};

/// What the user agreed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consent {
    permanent: bool,
    content: bool,
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
    pub const REVERSIBLE: Self = Self { permanent: false, content: false };

    /// To the loss of content, and to changes that can be reverted.
    pub const CONTENT_LOST: Self = Self { permanent: false, content: true };

    /// To changes that cannot be reverted: `given` is the card's serial number, hexadecimal as sysfs prints it.
    ///
    /// Errors: another number, or none.
    pub fn permanent(given: &str, serial: u32) -> Result<Self, OtherSerial> {
        let digits = given.trim();
        let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")).unwrap_or(digits);
        let is_plain = !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_hexdigit());
        match u32::from_str_radix(digits, 16) {
            Ok(number) if is_plain && number == serial => Ok(Self { permanent: true, content: false }),
            _ => Err(OtherSerial { expected: serial_text(serial), given: given.trim().into() }),
        }
    }

    /// Whether it covers changes that cannot be reverted.
    pub const fn is_permanent(self) -> bool {
        self.permanent
    }

    /// Whether it covers the loss of content.
    pub const fn covers_content(self) -> bool {
        self.content
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

impl NotAgreed {
    /// Nobody agreed to this.
    pub(crate) const fn to(what: &'static str) -> Self {
        Self { what }
    }
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
        Ok(Self::switch(write.offset(), write.new_value()))
    }

    fn switch(index: u8, value: u8) -> Self {
        let switch = Switch { access: SwitchAccess::WriteByte, index, value, cmd_set: 0 };
        Self { opcode: 6, argument: switch.encode() }
    }

    /// CMD6 of SANITIZE_START: the card removes what is unmapped from its flash.
    ///
    /// Errors: nobody agreed to the loss of content.
    pub fn sanitize(consent: Consent) -> Result<Self, NotAgreed> {
        match consent.content {
            true => Ok(Self::switch(reg::SANITIZE_START.offset as u8, 1)),
            false => Err(NotAgreed { what: reg::SANITIZE_START.name }),
        }
    }

    /// CMD6 of MODE_CONFIG: what is written to FFU_ARG from now on is firmware.
    ///
    /// Errors: nobody agreed to what cannot be reverted.
    pub fn firmware_mode(consent: Consent) -> Result<Self, NotAgreed> {
        match consent.permanent {
            true => Ok(Self::switch(reg::MODE_CONFIG.offset as u8, 1)),
            false => Err(NotAgreed { what: "a firmware update" }),
        }
    }

    /// CMD6 of MODE_CONFIG: reads and writes are ordinary ones again.
    pub fn normal_mode() -> Self {
        Self::switch(reg::MODE_CONFIG.offset as u8, 0)
    }

    /// CMD6 of MODE_OPERATION_CODES: the card installs the firmware that was downloaded.
    ///
    /// Errors: nobody agreed to what cannot be reverted.
    pub fn install_firmware(consent: Consent) -> Result<Self, NotAgreed> {
        match consent.permanent {
            true => Ok(Self::switch(reg::MODE_OPERATION_CODES.offset as u8, 1)),
            false => Err(NotAgreed { what: "a firmware update" }),
        }
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

/// A range that may be erased: CMD35, CMD36 and CMD38, with nothing between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApprovedErase {
    first: u32,
    last: u32,
    kind: Erase,
    timeout_ms: u32,
}

impl ApprovedErase {
    /// From the first address to the last, in the card's own unit; `timeout_ms`: the most that the card may take by its
    /// registers.
    ///
    /// Errors: nobody agreed to the loss of content.
    pub fn new(kind: Erase, [first, last]: [u32; 2], timeout_ms: u32, consent: Consent) -> Result<Self, NotAgreed> {
        match consent.content {
            true => Ok(Self { first, last, kind, timeout_ms }),
            false => Err(NotAgreed { what: "erasing" }),
        }
    }

    /// The commands in order: index and argument.
    pub fn commands(self) -> [(u8, u32); 3] {
        [(35, self.first), (36, self.last), (38, self.kind.encode())]
    }

    /// The most that the last command may take. Unit: ms.
    pub const fn timeout_ms(self) -> u32 {
        self.timeout_ms
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

    /// Sends the three commands, with no other between them, and returns when the card is ready again without an error
    /// bit.
    ///
    /// Errors: refused, no answer.
    fn erase(&mut self, command: ApprovedErase) -> Result<(), PortError>;
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
    fn content_is_erased_with_consent_to_its_loss_only() {
        let permanent = Consent::permanent("1", 1).unwrap();
        for consent in [Consent::REVERSIBLE, permanent] {
            assert!(ApprovedErase::new(Erase::Trim, [0, 7], 300, consent).is_err());
            assert!(Approved::sanitize(consent).is_err());
        }
        let erase = ApprovedErase::new(Erase::SecureErase, [8, 15], 300, Consent::CONTENT_LOST).unwrap();
        assert_eq!(erase.commands(), [(35, 8), (36, 15), (38, 0x8000_0000)]);
        let sanitize = Approved::sanitize(Consent::CONTENT_LOST).unwrap();
        assert_eq!((sanitize.opcode(), sanitize.argument()), (6, 0x03a5_0100));
        // Consent to a loss of content is none to what is permanent.
        let once = ByteWrite::new(reg::RST_n_FUNCTION.offset, 0, 1, 8).unwrap();
        assert!(Approved::write(&once, Consent::CONTENT_LOST).is_err());
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
