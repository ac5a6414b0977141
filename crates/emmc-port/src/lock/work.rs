//! What a user wants of the lock, as requests one after the other: it stops at the first surprise.
//!
//! LOCK_UNLOCK_FAILED has several causes. Those that the status before rules out are not named.

use emmc_regs::CardKind;
use emmc_regs::r1::R1;

use super::{LockCommand, LockPort, Password};
use crate::{Consent, NotAgreed, PortError};

/// What the user wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// A password, or another one; the card is locked with it, which proves it, and unlocked again unless `lock`.
    Set {
        /// The one before.
        old: Option<Password>,
        /// The one from now on.
        new: Password,
        /// The card stays locked.
        lock: bool,
    },
    /// No password any more.
    Clear(Password),
    /// Locked.
    Lock(Password),
    /// Unlocked until the next power-up.
    Unlock(Password),
    /// Erased, without the password.
    ForceErase,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// As wanted.
    Done,
    /// It was so already; nothing was sent.
    Already,
    /// As asked, between two requests.
    Stopped,
    /// The card refused a request.
    Refused(String),
    /// The card is not as expected.
    Surprise(String),
    /// It does not answer. Whether the last request had an effect is not known.
    Lost(String),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worked {
    /// How it ended.
    pub ended: Ended,
    /// Whether the card was locked before; absent if it does not answer.
    pub was_locked: Option<bool>,
    /// Whether it is locked now.
    pub is_locked: Option<bool>,
    /// Requests that the card took.
    pub taken: usize,
    /// Whether the card has the new password; absent if that is not known, or no password was to be set.
    pub is_set: Option<bool>,
}

/// Carries an order out. `watch` is called before each request; it returns whether to go on.
pub fn carry_out(port: &mut dyn LockPort, order: &Order, consent: Consent, watch: &mut dyn FnMut() -> bool) -> Worked {
    let mut worked = Worked { ended: Ended::Done, was_locked: None, is_locked: None, taken: 0, is_set: None };
    let ended = Run { port, order, consent, watch, worked: &mut worked }.all();
    worked.ended = ended.unwrap_or_else(|ended| ended);
    worked
}

struct Run<'a> {
    port: &'a mut dyn LockPort,
    order: &'a Order,
    consent: Consent,
    watch: &'a mut dyn FnMut() -> bool,
    worked: &'a mut Worked,
}

impl From<PortError> for Ended {
    fn from(error: PortError) -> Self {
        match error {
            PortError::Refused { .. } => Self::Refused(error.to_string()),
            PortError::Lost { .. } => Self::Lost(error.to_string()),
        }
    }
}

impl From<NotAgreed> for Ended {
    fn from(error: NotAgreed) -> Self {
        Self::Refused(error.to_string())
    }
}

impl Run<'_> {
    fn all(&mut self) -> Result<Ended, Ended> {
        // This also reads what an earlier command has left.
        let was_locked = self.port.status()?.contains(R1::IS_LOCKED);
        (self.worked.was_locked, self.worked.is_locked) = (Some(was_locked), Some(was_locked));
        let order = self.order;
        match order {
            Order::Set { old, new, lock } => {
                if was_locked && old.is_none() {
                    return Err(Ended::Refused("the card is locked, so it has a password, which is needed".into()));
                }
                self.set(old.as_ref(), new)?;
                let is_locked = self.worked.is_locked == Some(true);
                match *lock {
                    true if !is_locked => self.send(&LockCommand::lock(new), Some(true))?,
                    false if is_locked => self.send(&LockCommand::unlock(new), Some(false))?,
                    _ => {}
                }
            }
            Order::Clear(password) => self.send(&LockCommand::clear(password), Some(false))?,
            Order::Lock(_) if was_locked => return Ok(Ended::Already),
            Order::Lock(password) => self.send(&LockCommand::lock(password), Some(true))?,
            Order::Unlock(_) if !was_locked => return Ok(Ended::Already),
            Order::Unlock(password) => self.send(&LockCommand::unlock(password), Some(false))?,
            Order::ForceErase if !was_locked => {
                return Err(Ended::Refused("the card is not locked: `erase` erases it".into()));
            }
            Order::ForceErase => self.send(&LockCommand::force_erase(self.consent)?, Some(false))?,
        }
        Ok(Ended::Done)
    }

    /// Sets a password, and changes the lock with it, which proves it.
    fn set(&mut self, old: Option<&Password>, new: &Password) -> Result<(), Ended> {
        let command = LockCommand::set(old, new, self.consent)?;
        self.worked.is_set = Some(false);
        let sent = self.send(&command, None);
        if matches!(sent, Ok(()) | Err(Ended::Lost(_) | Ended::Surprise(_))) {
            self.worked.is_set = None;
        }
        sent?;
        match self.worked.is_locked {
            Some(true) => self.send(&LockCommand::unlock(new), Some(false))?,
            _ => self.send(&LockCommand::lock(new), Some(true))?,
        }
        self.worked.is_set = Some(true);
        Ok(())
    }

    /// Sends a request after which the card is locked, or not, or as it likes.
    fn send(&mut self, command: &LockCommand, locks: Option<bool>) -> Result<(), Ended> {
        if !(self.watch)() {
            return Err(Ended::Stopped);
        }
        let before = self.worked.is_locked;
        self.worked.is_locked = None;
        let answer = self.port.lock(command)?;
        let is_locked = answer.status.contains(R1::IS_LOCKED);
        self.worked.is_locked = Some(is_locked);
        if answer.status.contains(R1::LOCK_UNLOCK_FAILED) {
            return Err(Ended::Refused(self.causes(before == Some(true)).into()));
        }
        let others: Vec<&str> = answer.status.errors(CardKind::Emmc).map(|bit| bit.name).collect();
        if !others.is_empty() {
            return Err(Ended::Surprise(format!("the card reports {}", others.join(" "))));
        }
        // A change of the lock as wanted proves that the card took it, whatever the host saw.
        if let Some(doubt) = answer.doubt.filter(|_| before == Some(is_locked) || locks != Some(is_locked)) {
            return Err(Ended::Lost(doubt));
        }
        if let Some(locks) = locks.filter(|locks| *locks != is_locked) {
            let [is, expected] = [is_locked, locks].map(|locked| if locked { "locked" } else { "unlocked" });
            return Err(Ended::Surprise(format!("the card is {is}, and not {expected}")));
        }
        self.worked.taken += 1;
        Ok(())
    }

    /// What LOCK_UNLOCK_FAILED can mean here.
    fn causes(&self, was_locked: bool) -> &'static str {
        match self.order {
            Order::Set { .. } if self.worked.taken > 0 => "the card took the new password, and now refuses it",
            Order::Set { old: None, .. } => "the card has a password already, which is needed too",
            Order::Set { .. } if was_locked => "the old password is not the card's",
            Order::Set { .. } => "the old password is not the card's, or the card has none",
            Order::ForceErase => {
                "the card is write-protected for ever, has groups whose protection cannot be removed, or its secure \
                 write protection holds"
            }
            Order::Clear(_) | Order::Unlock(_) if was_locked => "the password is not the card's",
            Order::Clear(_) | Order::Lock(_) | Order::Unlock(_) => {
                "the password is not the card's, or the card has none"
            }
        }
    }
}
