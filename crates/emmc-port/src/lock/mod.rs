//! The password of a card (CMD42) as a host uses it: what the registers say, the requests that may be sent, and what
//! their answers prove.
//!
//! A request that sets a password or erases by force exists only with a [`Consent`] that covers it. Absent on purpose:
//! system calls (`emmc-linux`), and the card's side (`emmc-card`).
//!
//! Source: JESD84-B51 clause 6.6.20 (lock and unlock) and its data structure.

mod password;
#[cfg(test)]
mod tests;
mod work;

use emmc_regs::CardKind;
use emmc_regs::csd::Csd;
use emmc_regs::ext_csd::{ExtCsd, reg};
use emmc_regs::r1::R1;

use crate::{Consent, NotAgreed, PortError};

pub use password::{Password, PasswordError};
pub use work::{Ended, Order, Worked, carry_out};

/// Bytes of the one block of CMD42. The rest behind the passwords is zero, which cards allow, and at double data rate
/// there is no shorter block.
pub const BLOCK_BYTES: usize = 512;
/// The standard's limit for a forced erase. Unit: ms.
const FORCE_ERASE_MS: u32 = 180_000;

const SET_PWD: u8 = 1;
const CLR_PWD: u8 = 2;
const LOCK_UNLOCK: u8 = 4;
const ERASE: u8 = 8;

/// What a card's registers say of passwords. A value is absent if its bytes are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockRegisters {
    /// Command class 7 in the CSD.
    pub supported: Option<bool>,
    /// USER_WP.PERM_PSWD_DIS: no password can be set, for ever.
    pub disabled: Option<bool>,
}

impl LockRegisters {
    /// Of the two registers, as far as they are known.
    pub fn of(csd: Option<&[u8; 16]>, ext_csd: Option<&ExtCsd>) -> Self {
        Self {
            supported: csd.map(|csd| Csd::new(CardKind::Emmc, *csd).has_class(7)),
            disabled: ext_csd.and_then(|ext_csd| ext_csd.bit(reg::USER_WP, 7)),
        }
    }
}

/// The data of CMD42 that may be sent.
#[derive(Clone, PartialEq, Eq)]
pub struct LockCommand {
    block: [u8; BLOCK_BYTES],
}

impl LockCommand {
    /// Sets a password, or replaces the old one. Whether a locked card stays locked is the card's choice.
    ///
    /// Errors: nobody agreed: without the password the card's content is lost.
    pub fn set(old: Option<&Password>, new: &Password, consent: Consent) -> Result<Self, NotAgreed> {
        if !consent.is_permanent() {
            return Err(NotAgreed::to("a password that is lost"));
        }
        Ok(Self::with(SET_PWD, &[old.map_or(&[][..], Password::bytes), new.bytes()]))
    }

    /// Removes the password, which also unlocks.
    pub fn clear(password: &Password) -> Self {
        Self::with(CLR_PWD, &[password.bytes()])
    }

    /// Locks the card.
    pub fn lock(password: &Password) -> Self {
        Self::with(LOCK_UNLOCK, &[password.bytes()])
    }

    /// Unlocks the card until the next power-up.
    pub fn unlock(password: &Password) -> Self {
        Self::with(0, &[password.bytes()])
    }

    /// Erases the user area and the general purpose partitions of a locked card, and removes the password.
    ///
    /// Errors: nobody agreed to the loss of content.
    pub fn force_erase(consent: Consent) -> Result<Self, NotAgreed> {
        match consent.covers_content() {
            true => Ok(Self::with(ERASE, &[])),
            false => Err(NotAgreed::to("a forced erase")),
        }
    }

    fn with(mode: u8, passwords: &[&[u8]]) -> Self {
        let mut block = [0; BLOCK_BYTES];
        block[0] = mode;
        let mut at = 2;
        for password in passwords {
            block[at..at + password.len()].copy_from_slice(password);
            at += password.len();
        }
        block[1] = (at - 2) as u8;
        Self { block }
    }

    /// What the card gets.
    pub const fn block(&self) -> &[u8; BLOCK_BYTES] {
        &self.block
    }

    /// The most that it may take; zero: the host's own limit. Unit: ms.
    pub const fn timeout_ms(&self) -> u32 {
        if self.block[0] == ERASE { FORCE_ERASE_MS } else { 0 }
    }
}

impl std::fmt::Debug for LockCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LockCommand({:#04x}, secret)", self.block[0])
    }
}

impl Drop for LockCommand {
    fn drop(&mut self) {
        self.block = [0; BLOCK_BYTES];
        std::hint::black_box(&self.block);
    }
}

/// What the card's status says after CMD42.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockAnswer {
    /// The first status after it, when the card is ready again.
    pub status: R1,
    /// The host did not see the command succeed: a time limit, an error on the lines.
    pub doubt: Option<String>,
}

/// A card that takes CMD42.
pub trait LockPort {
    /// CMD13.
    ///
    /// Errors: no answer.
    fn status(&mut self) -> Result<R1, PortError>;

    /// Sends CMD42 with its block, and returns when the card is ready again, with all error bits since.
    ///
    /// Errors: no answer; a host that may not send it.
    fn lock(&mut self, command: &LockCommand) -> Result<LockAnswer, PortError>;
}
