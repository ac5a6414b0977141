//! Requests with the check of their replies.

use emmc_regs::rpmb::{ConfigByte, DATA_BYTES, Frame, RpmbResult, SecureWriteProtection, is_authentic};

use super::{RpmbCommand, RpmbKey, RpmbPort};
use crate::{Consent, NotAgreed, PortError};

/// Why a request failed, or its reply is not believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RpmbError {
    /// Nothing was sent.
    #[error(transparent)]
    NotAgreed(#[from] NotAgreed),
    /// Refused, or no answer.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The card did not do it.
    #[error("{0}")]
    Result(RpmbResult),
    /// The reply is to another request.
    #[error("the reply has type {found:#06x}, expected {expected:#06x}")]
    Response {
        /// Of the request.
        expected: u16,
        /// Of the reply.
        found: u16,
    },
    /// Another number of frames.
    #[error("the reply has {found} frames, expected {expected}")]
    Count {
        /// As asked for.
        expected: u16,
        /// In the reply.
        found: usize,
    },
    /// Another key signed it, or it was tampered with.
    #[error("the MAC of the reply is wrong: the card has another key, or the reply was tampered with")]
    Mac,
    /// A reply to an earlier request.
    #[error("the reply has another nonce than the request: it is a replay")]
    Nonce,
    /// A reply about other blocks.
    #[error("the reply is about block {found}, expected {expected}")]
    Address {
        /// As asked for.
        expected: u16,
        /// In the reply.
        found: u16,
    },
    /// The write did not count as one.
    #[error("the reply has write counter {found}, expected {expected}: it is a replay, or another host writes")]
    Counter {
        /// One more than before.
        expected: u32,
        /// In the reply.
        found: u32,
    },
}

impl RpmbError {
    /// Whether the card was asked to change something, and nothing is known of what came of it.
    pub fn is_unknown(&self) -> bool {
        !matches!(self, Self::NotAgreed(_) | Self::Result(_) | Self::Port(PortError::Refused { .. }))
    }
}

/// Sends a command, and checks what every reply must have: the number of frames, the type, and a good result.
fn exchange(port: &mut dyn RpmbPort, command: &RpmbCommand) -> Result<Vec<Frame>, RpmbError> {
    let frames = port.exchange(command)?;
    if frames.is_empty() || frames.len() != usize::from(command.answer_frames()) {
        return Err(RpmbError::Count { expected: command.answer_frames(), found: frames.len() });
    }
    let expected = command.request().response();
    for frame in &frames {
        if frame.request() != expected {
            return Err(RpmbError::Response { expected, found: frame.request() });
        }
        if frame.result().code() != RpmbResult::OK {
            return Err(RpmbError::Result(frame.result()));
        }
    }
    Ok(frames)
}

fn authenticate(key: Option<&RpmbKey>, frames: &[Frame]) -> Result<(), RpmbError> {
    match key {
        Some(key) if !is_authentic(key.bytes(), frames) => Err(RpmbError::Mac),
        _ => Ok(()),
    }
}

fn answers(frames: &[Frame], nonce: [u8; 16]) -> Result<(), RpmbError> {
    if frames.iter().all(|frame| frame.nonce() == nonce) { Ok(()) } else { Err(RpmbError::Nonce) }
}

/// Reads the write counter; with a key the reply is authenticated.
///
/// Errors: no key is programmed ([`RpmbResult::NO_KEY`]); not authentic; no answer.
pub fn counter(port: &mut dyn RpmbPort, key: Option<&RpmbKey>, nonce: [u8; 16]) -> Result<u32, RpmbError> {
    let frames = exchange(port, &RpmbCommand::counter(nonce))?;
    authenticate(key, &frames)?;
    answers(&frames, nonce)?;
    Ok(frames[0].counter())
}

/// Reads blocks; with a key they are authenticated.
///
/// Shape: `count` blocks of [`DATA_BYTES`], at least one.
/// Errors: no key is programmed; outside; not authentic; no answer.
pub fn read(
    port: &mut dyn RpmbPort,
    key: Option<&RpmbKey>,
    [address, count]: [u16; 2],
    nonce: [u8; 16],
) -> Result<Vec<u8>, RpmbError> {
    let frames = exchange(port, &RpmbCommand::read(address, count, nonce))?;
    authenticate(key, &frames)?;
    answers(&frames, nonce)?;
    for frame in &frames {
        if frame.address() != address {
            return Err(RpmbError::Address { expected: address, found: frame.address() });
        }
        if frame.count() != count {
            return Err(RpmbError::Count { expected: count, found: frame.count().into() });
        }
    }
    let mut data = Vec::with_capacity(frames.len() * DATA_BYTES);
    frames.iter().for_each(|frame| data.extend_from_slice(frame.data()));
    Ok(data)
}

/// Programs the key.
///
/// Errors: not agreed to; there is one ([`RpmbResult::WRITE_FAILURE`]); no answer.
pub fn program_key(port: &mut dyn RpmbPort, key: &RpmbKey, consent: Consent) -> Result<(), RpmbError> {
    exchange(port, &RpmbCommand::program_key(key, consent)?)?;
    Ok(())
}

/// Writes blocks under the counter as just read; returns the counter after it.
///
/// Shape: `data` is 1, 2 or 32 blocks.
/// Errors: not agreed to; the card's result; a result that is not authentic; no answer.
pub fn write(
    port: &mut dyn RpmbPort,
    key: &RpmbKey,
    counter: u32,
    (address, data): (u16, &[u8]),
    consent: Consent,
) -> Result<u32, RpmbError> {
    let frames = exchange(port, &RpmbCommand::write(key, counter, address, data, consent)?)?;
    authenticate(Some(key), &frames)?;
    let reply = &frames[0];
    if reply.address() != address {
        return Err(RpmbError::Address { expected: address, found: reply.address() });
    }
    let expected = counter.wrapping_add(1);
    if reply.counter() != expected {
        return Err(RpmbError::Counter { expected, found: reply.counter() });
    }
    Ok(expected)
}

/// Reads the state of secure write protection; with a key the reply is authenticated.
///
/// Errors: no key is programmed; a card without it ([`RpmbResult::GENERAL_FAILURE`]); not authentic; no answer.
pub fn protection(
    port: &mut dyn RpmbPort,
    key: Option<&RpmbKey>,
    nonce: [u8; 16],
) -> Result<SecureWriteProtection, RpmbError> {
    let frames = exchange(port, &RpmbCommand::read_config(nonce))?;
    authenticate(key, &frames)?;
    answers(&frames, nonce)?;
    Ok(SecureWriteProtection::from_data(frames[0].data()))
}

/// Changes a byte of the device configuration under the counter as just read. What proves the change is
/// [`protection`], read afterwards with a new nonce: of the reply's counter and address only mmc-utils is known, which
/// does not look at them.
///
/// Errors: the card's result; a result that is not authentic; no answer.
pub fn set_protection(
    port: &mut dyn RpmbPort,
    key: &RpmbKey,
    counter: u32,
    byte: ConfigByte,
    value: bool,
) -> Result<(), RpmbError> {
    let frames = exchange(port, &RpmbCommand::write_config(key, counter, byte, value))?;
    authenticate(Some(key), &frames)
}
