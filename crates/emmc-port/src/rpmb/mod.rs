//! A card's RPMB as a host uses it: the requests that may be sent, and what their replies prove.
//!
//! What changes the card ([`RpmbCommand::program_key`], [`RpmbCommand::write`]) exists only with a [`Consent`] that
//! covers it. A reply is believed only as far as it is checked: its type, its result, and what ties it to its request
//! (nonce, address, count, counter); with a key its MAC too. Absent on purpose: system calls (`emmc-linux`), random
//! numbers (the caller passes each nonce), and the card's side (`emmc-card`).

mod exchange;
mod key;
#[cfg(test)]
mod tests;

use emmc_regs::ext_csd::{ExtCsd, reg};
use emmc_regs::rpmb::{ConfigByte, DATA_BYTES, Frame, Request, mac};

pub use exchange::{RpmbError, counter, program_key, protection, read, set_protection, write};
pub use key::{KeyError, RpmbKey};

use crate::{Consent, NotAgreed, PortError};

/// Number of blocks in one read: 16 KiB of frames, less than any host controller's limit.
pub const READ_BLOCKS_MAX: u16 = 32;

/// Frames that may be sent, and how many answer them.
#[derive(Clone, Debug)]
pub struct RpmbCommand {
    request: Request,
    frames: Vec<Frame>,
    answer_frames: u16,
}

impl RpmbCommand {
    fn asking(request: Request, nonce: [u8; 16]) -> Self {
        let mut frame = Frame::asking(request);
        frame.set_nonce(&nonce);
        Self { request, frames: vec![frame], answer_frames: 1 }
    }

    /// Asks for the write counter.
    pub fn counter(nonce: [u8; 16]) -> Self {
        Self::asking(Request::ReadCounter, nonce)
    }

    /// Asks for blocks.
    pub fn read(address: u16, count: u16, nonce: [u8; 16]) -> Self {
        let mut command = Self::asking(Request::Read, nonce);
        command.frames[0].set_address(address);
        command.answer_frames = count;
        command
    }

    /// Programs the key, which is possible once in the card's life.
    ///
    /// Errors: nobody agreed to what cannot be reverted.
    pub fn program_key(key: &RpmbKey, consent: Consent) -> Result<Self, NotAgreed> {
        if !consent.is_permanent() {
            return Err(NotAgreed::to("programming the key"));
        }
        let mut frame = Frame::asking(Request::ProgramKey);
        frame.sign(key.bytes());
        Ok(Self { request: Request::ProgramKey, frames: vec![frame], answer_frames: 1 })
    }

    /// Writes whole blocks from an address on, under the write counter as just read.
    ///
    /// Shape: `data` is 1, 2 or 32 blocks of [`DATA_BYTES`].
    /// Errors: nobody agreed to the loss of content.
    pub fn write(key: &RpmbKey, counter: u32, address: u16, data: &[u8], consent: Consent) -> Result<Self, NotAgreed> {
        if !consent.covers_content() {
            return Err(NotAgreed::to("writing to the RPMB"));
        }
        let blocks = data.chunks_exact(DATA_BYTES);
        let count = blocks.len() as u16;
        let mut frames: Vec<Frame> = blocks
            .map(|block| {
                let mut frame = Frame::asking(Request::Write);
                frame.set_address(address);
                frame.set_counter(counter);
                frame.set_count(count);
                frame.set_data(block);
                frame
            })
            .collect();
        let proof = mac(key.bytes(), &frames);
        if let Some(last) = frames.last_mut() {
            last.sign(&proof);
        }
        Ok(Self { request: Request::Write, frames, answer_frames: 1 })
    }

    /// Asks for the device configuration.
    pub fn read_config(nonce: [u8; 16]) -> Self {
        Self::asking(Request::ReadConfig, nonce)
    }

    /// Writes a byte of the device configuration under the write counter as just read. Whoever has the key can write it
    /// back, so that nobody has to agree to a loss.
    pub fn write_config(key: &RpmbKey, counter: u32, byte: ConfigByte, value: bool) -> Self {
        let mut frame = Frame::asking(Request::WriteConfig);
        frame.set_address(byte as u16);
        frame.set_counter(counter);
        frame.set_count(1);
        frame.set_data(&ConfigByte::data(value));
        let proof = mac(key.bytes(), std::slice::from_ref(&frame));
        frame.sign(&proof);
        Self { request: Request::WriteConfig, frames: vec![frame], answer_frames: 1 }
    }

    /// What it asks for.
    pub const fn request(&self) -> Request {
        self.request
    }

    /// What is sent by CMD25.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Whether it changes the card: CMD23 then asks for a reliable write, and the result has to be asked for by
    /// [`RpmbCommand::result_request`].
    pub const fn changes_card(&self) -> bool {
        matches!(self.request, Request::ProgramKey | Request::Write | Request::WriteConfig)
    }

    /// What is sent after it, by another CMD25, to be told what came of it.
    pub fn result_request(&self) -> Option<Frame> {
        self.changes_card().then(|| Frame::asking(Request::ReadResult))
    }

    /// Number of frames that CMD18 then reads.
    pub const fn answer_frames(&self) -> u16 {
        self.answer_frames
    }
}

/// A card whose RPMB takes requests.
pub trait RpmbPort {
    /// Sends the frames, asks for the result if the card does not answer by itself, and returns what it answers.
    ///
    /// Errors: refused, no answer.
    fn exchange(&mut self, command: &RpmbCommand) -> Result<Vec<Frame>, PortError>;
}

/// Whether a card has secure write protection: SECURE_WP_SUPPORT.
///
/// Source: JESD84-B51 7.4 (SECURE_WP_INFO).
pub fn has_secure_write_protection(ext_csd: &ExtCsd) -> bool {
    ext_csd.raw(reg::SECURE_WP_INFO).is_some_and(|info| info & 1 == 1)
}

/// What a card's registers say of its RPMB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RpmbShape {
    /// Blocks of [`DATA_BYTES`].
    pub blocks: u32,
    /// Writes of two blocks.
    pub pairs: bool,
    /// Writes of 32 blocks (EN_RPMB_REL_WR).
    pub large: bool,
}

impl RpmbShape {
    /// Of an EXT_CSD; absent if RPMB_SIZE_MULT is not known, or zero: there is none.
    ///
    /// Source: JESD84-B51 7.4.68 (128 KiB a unit), 7.4.75 (EN_RPMB_REL_WR), 7.4.46 (REL_WR_SEC_C).
    pub fn of(ext_csd: &ExtCsd) -> Option<Self> {
        let units = ext_csd.raw(reg::RPMB_SIZE_MULT).filter(|units| *units > 0)? as u32;
        let large = ext_csd.raw(reg::WR_REL_PARAM).is_some_and(|param| param & 1 << 4 != 0);
        let pairs = ext_csd.raw(reg::REL_WR_SEC_C).is_some_and(|sectors| sectors > 0);
        Some(Self { blocks: units * ((128 << 10) / DATA_BYTES as u32), pairs, large })
    }

    /// How many blocks the next write may have: the most that the card takes, at a multiple of that.
    pub fn chunk(self, address: u32, left: u32) -> u32 {
        let fits = |blocks: u32| left >= blocks && address % blocks == 0;
        match self {
            Self { large: true, .. } if fits(32) => 32,
            Self { pairs: true, .. } if fits(2) => 2,
            _ => 1,
        }
    }
}
