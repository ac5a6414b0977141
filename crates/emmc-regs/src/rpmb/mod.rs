//! RPMB: the frames in which the replay protected memory block is written and read, for the card and for the host.
//!
//! Absent on purpose: the commands that carry them, and what either side does with them (`emmc-card`, `emmc-port`).
//!
//! Source: JESD84-B51 clause 6.6.22; mmc-utils, U-Boot and OP-TEE as hosts.

mod config;
mod frame;
#[cfg(test)]
mod tests;

use std::fmt;

use hmac::{Hmac, Mac};
use sha2::Sha256;

pub use config::{ConfigByte, SecureWriteProtection};
pub use frame::{DATA_BYTES, FRAME_BYTES, Frame};

/// Blocks that an address of 16 bits can name; a larger RPMB is not addressable.
pub const BLOCKS_MAX: u32 = 1 << 16;

/// What a host can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Request {
    /// Programs the key: once in the card's life.
    ProgramKey = 1,
    /// Reads the write counter.
    ReadCounter = 2,
    /// Writes blocks.
    Write = 3,
    /// Reads blocks.
    Read = 4,
    /// Asks for the result of the last write.
    ReadResult = 5,
    /// Writes a byte of the device configuration.
    WriteConfig = 6,
    /// Reads the device configuration.
    ReadConfig = 7,
}

impl Request {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::ProgramKey,
        Self::ReadCounter,
        Self::Write,
        Self::Read,
        Self::ReadResult,
        Self::WriteConfig,
        Self::ReadConfig,
    ];

    /// The request with this code.
    pub fn of(code: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|request| *request as u16 == code)
    }

    /// The type of the response to it.
    pub const fn response(self) -> u16 {
        (self as u16) << 8
    }
}

/// What came of a request: a code, and whether the write counter has reached its maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RpmbResult(pub u16);

impl RpmbResult {
    /// Done.
    pub const OK: Self = Self(0);
    /// A request that is not understood, or of another size.
    pub const GENERAL_FAILURE: Self = Self(1);
    /// Another key.
    pub const AUTHENTICATION_FAILURE: Self = Self(2);
    /// Another write counter: a replay.
    pub const COUNTER_FAILURE: Self = Self(3);
    /// Behind the end.
    pub const ADDRESS_FAILURE: Self = Self(4);
    /// Not written; for a key: there is one.
    pub const WRITE_FAILURE: Self = Self(5);
    /// Unreadable.
    pub const READ_FAILURE: Self = Self(6);
    /// No key is programmed.
    pub const NO_KEY: Self = Self(7);

    const EXPIRED: u16 = 0x80;

    /// Without the state of the counter.
    pub const fn code(self) -> Self {
        Self(self.0 & !Self::EXPIRED)
    }

    /// Whether the write counter has reached its maximum: the card takes no more writes.
    pub const fn is_expired(self) -> bool {
        self.0 & Self::EXPIRED != 0
    }

    /// The same, with the counter at its maximum.
    pub const fn with_expired_counter(self) -> Self {
        Self(self.0 | Self::EXPIRED)
    }
}

impl fmt::Display for RpmbResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.code() {
            Self::OK => "done",
            Self::GENERAL_FAILURE => "general failure",
            Self::AUTHENTICATION_FAILURE => "authentication failure: it has another key",
            Self::COUNTER_FAILURE => "counter failure: its write counter has another value",
            Self::ADDRESS_FAILURE => "address failure: outside of the RPMB",
            Self::WRITE_FAILURE => "write failure",
            Self::READ_FAILURE => "read failure",
            Self::NO_KEY => "no key is programmed",
            _ => "a result that the standard does not have",
        };
        write!(f, "{text} (result {:#06x})", self.0)?;
        if self.is_expired() { write!(f, "; its write counter has expired") } else { Ok(()) }
    }
}

/// The MAC over the authenticated part of all frames, the last one's own MAC excluded.
pub fn mac(key: &[u8; 32], frames: &[Frame]) -> [u8; 32] {
    let mut mac = keyed(key);
    for frame in frames {
        mac.update(&frame.bytes()[frame::AUTHENTICATED_FROM..]);
    }
    mac.finalize().into_bytes().into()
}

/// Whether the last frame has the MAC of all; the comparison takes the same time for every MAC.
pub fn is_authentic(key: &[u8; 32], frames: &[Frame]) -> bool {
    let Some(last) = frames.last() else { return false };
    let mut mac = keyed(key);
    for frame in frames {
        mac.update(&frame.bytes()[frame::AUTHENTICATED_FROM..]);
    }
    mac.verify_slice(&last.key()).is_ok()
}

fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}
