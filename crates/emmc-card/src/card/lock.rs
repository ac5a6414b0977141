//! The password lock: CMD42.
//!
//! Absent on purpose: the commands that a locked card refuses (`dispatch`).
//!
//! Source: JESD84-B51, lock/unlock data structure; the same on SD.

use emmc_regs::ext_csd::reg;
use emmc_regs::r1::R1;
use emmc_units::{Instant, Nanos};

use super::transfer::Purpose;
use super::{Card, Reply};
use crate::device::{Area, StorageError};
use crate::ftl::TrimKind;

/// Duration of storing a password.
///
/// Assumed: about one page program.
const STORE: Nanos = Nanos::from_micros(500);
/// The longest password.
const PASSWORD_BYTES: usize = 16;

const SET_PWD: u8 = 1;
const CLR_PWD: u8 = 2;
const LOCK_UNLOCK: u8 = 4;
const ERASE: u8 = 8;

/// The password, and whether the card is locked by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lock {
    password: Vec<u8>,
    locked: bool,
}

/// A well-formed request of CMD42.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order<'a> {
    /// Sets the password, replacing `old` if there is one, and optionally locks.
    Set {
        passwords: &'a [u8],
        lock: bool,
    },
    Clear {
        password: &'a [u8],
    },
    Lock {
        password: &'a [u8],
    },
    Unlock {
        password: &'a [u8],
    },
    ForceErase,
}

impl Lock {
    /// Whether the card is locked.
    pub(crate) fn is_locked(&self) -> bool {
        self.locked
    }

    /// The password; empty: there is none.
    pub(crate) fn password(&self) -> &[u8] {
        &self.password
    }

    /// Restores the password, as found at power-up.
    pub(crate) fn set_password(&mut self, password: Vec<u8>) {
        self.password = password;
        self.reset();
    }

    /// Power or reset: a card with a password comes up locked.
    pub(crate) fn reset(&mut self) {
        self.locked = !self.password.is_empty();
    }

    /// Performs a request; `false`: LOCK_UNLOCK_FAILED.
    fn apply(&mut self, order: Order) -> bool {
        let own = self.password.as_slice();
        match order {
            Order::Set { passwords, lock } => {
                // The old password, if there is one, precedes the new one.
                let Some(new) = passwords.strip_prefix(own) else { return false };
                if new.is_empty() || new.len() > PASSWORD_BYTES {
                    return false;
                }
                self.password = new.to_vec();
                self.locked = lock;
                true
            }
            Order::Clear { password } if !own.is_empty() && password == own => {
                *self = Self::default();
                true
            }
            Order::Lock { password } if !self.locked && !own.is_empty() && password == own => {
                self.locked = true;
                true
            }
            Order::Unlock { password } if self.locked && password == own => {
                self.locked = false;
                true
            }
            Order::ForceErase if self.locked => {
                *self = Self::default();
                true
            }
            _ => false,
        }
    }
}

/// Parses the data of CMD42; absent: malformed.
fn order(bytes: &[u8]) -> Option<Order<'_>> {
    let (&mode, rest) = bytes.split_first()?;
    if mode & ERASE != 0 {
        return (mode & 0xf == ERASE).then_some(Order::ForceErase);
    }
    let (&length, rest) = rest.split_first()?;
    let password = rest.get(..usize::from(length))?;
    match mode & 7 {
        SET_PWD => Some(Order::Set { passwords: password, lock: false }),
        5 => Some(Order::Set { passwords: password, lock: true }),
        CLR_PWD => Some(Order::Clear { password }),
        LOCK_UNLOCK => Some(Order::Lock { password }),
        0 => Some(Order::Unlock { password }),
        _ => None,
    }
}

impl Card {
    /// CMD42.
    pub(super) fn lock_unlock(&mut self, now: Instant) -> Reply {
        self.collect_one(Purpose::Lock, self.block_len as usize, now)
    }

    /// The data of CMD42 has arrived.
    pub(super) fn use_lock_data(&mut self, bytes: &[u8], now: Instant) -> Instant {
        let order = order(bytes).filter(|_| !self.password_is_disabled());
        match order {
            // The card stays locked until nothing is left: a power cut on the way must not open it.
            Some(Order::ForceErase) if self.lock.is_locked() && self.takes_force_erase() => {
                let erased = self.erase_everything(now);
                if erased.is_ok() {
                    self.lock.apply(Order::ForceErase);
                }
                self.done_or_failed(erased, now)
            }
            Some(order) if order != Order::ForceErase && self.lock.apply(order) => now + STORE,
            _ => {
                self.status.raise(R1::LOCK_UNLOCK_FAILED);
                now
            }
        }
    }

    /// USER_WP.PERM_PSWD_DIS: the password is permanently disabled.
    fn password_is_disabled(&self) -> bool {
        self.is_emmc() && self.ext_csd_byte(reg::USER_WP) >> 7 == 1
    }

    /// Force erase is refused on a permanently write-protected card, on one with groups that CMD29 cannot clear, and
    /// while secure write protection holds.
    fn takes_force_erase(&self) -> bool {
        !self.holds_write_protection() && !self.csd().perm_write_protect() && !self.features.protect.lasts()
    }

    /// The user area and general purpose partitions read as erased.
    fn erase_everything(&mut self, now: Instant) -> Result<Instant, StorageError> {
        self.features.protect.forget();
        let mut done = now;
        for area in self.device.areas() {
            if matches!(area, Area::User | Area::Gp(_)) {
                let sectors = self.device.sectors(area);
                done = self.device.trim(area, 0, sectors, TrimKind::Trim, done)?.done;
            }
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(lock: &mut Lock, mode: u8, password: &[u8]) -> bool {
        let mut bytes = vec![mode, password.len() as u8];
        bytes.extend_from_slice(password);
        bytes.resize(512, 0);
        order(&bytes).is_some_and(|order| lock.apply(order))
    }

    #[test]
    fn a_password_is_set_changed_used_and_cleared() {
        let mut lock = Lock::default();
        assert!(!say(&mut lock, LOCK_UNLOCK, b""), "there is no password to lock with");
        assert!(say(&mut lock, SET_PWD, b"one"));
        assert!(!lock.is_locked());
        assert!(!say(&mut lock, SET_PWD, b"two"), "the old password is missing");
        assert!(say(&mut lock, SET_PWD | LOCK_UNLOCK, b"onetwo"));
        assert!(lock.is_locked());
        assert!(!say(&mut lock, 0, b"one"));
        assert!(say(&mut lock, 0, b"two"));
        assert!(!say(&mut lock, 0, b"two"), "it is unlocked already");
        lock.reset();
        assert!(lock.is_locked(), "a card with a password comes up locked");
        assert!(say(&mut lock, CLR_PWD, b"two"));
        lock.reset();
        assert!(!lock.is_locked());
    }

    #[test]
    fn malformed_data_fails() {
        let mut lock = Lock::default();
        assert!(!say(&mut lock, SET_PWD | CLR_PWD, b"one"));
        assert!(!say(&mut lock, SET_PWD, b"seventeen letters"), "16 bytes are the most");
        assert!(!say(&mut lock, SET_PWD, b""));
        assert_eq!(order(&[1, 200, 0, 0]), None);
        assert_eq!(order(&[]), None);
        assert!(!say(&mut lock, ERASE, b""), "only a locked card is erased by force");
    }
}
