//! RPMB: the replay protected memory block, accessed by authenticated frames of 512 bytes.
//!
//! The key is programmed once and never readable. A write requires the right MAC and counter; reads return the host's
//! nonce. Data is in flash before the result reports it. Key, counter and the write in progress are in the controller's
//! own store: a write that a power cut interrupts is completed at the next power-up, so counter and data, 8 KiB too,
//! are both old or both new. Absent on purpose: what secure write protection holds
//! (`secure_write_protect`), and timing, which is the data path's.
//!
//! Source: JESD84-B51 clause 6.6.22; mmc-utils and OP-TEE as hosts.

mod config;
#[cfg(test)]
mod tests;

use emmc_regs::rpmb::{DATA_BYTES, FRAME_BYTES, Frame, Request, RpmbResult, is_authentic, mac};
use emmc_units::Instant;
use serde::{Deserialize, Serialize};

use crate::device::StorageError;

/// Frames of a write: 256 bytes, 512 bytes, and with EN_RPMB_REL_WR 8 KiB.
const WRITE_FRAMES: [usize; 2] = [1, 2];
const LARGE_WRITE_FRAMES: usize = 32;

/// Storage of RPMB's data.
pub(crate) trait RpmbStore {
    /// Sectors of the area.
    fn sectors(&self) -> u64;

    /// Reads whole sectors.
    fn read(&mut self, lba: u64, out: &mut [u8]) -> Result<(), StorageError>;

    /// Writes whole sectors; returns when they are in flash. A power cut before may leave some of them.
    fn write(&mut self, lba: u64, data: &[u8]) -> Result<Instant, StorageError>;

    /// Whether secure write protection is on; absent if the card does not have it.
    fn secure_wp(&self) -> Option<bool>;

    /// Switches it, which survives power.
    fn set_secure_wp(&mut self, is_on: bool);
}

/// The response to the next read of the area.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
enum Answer {
    /// No request.
    #[default]
    Nothing,
    /// A frame that is ready.
    Frame(Box<Frame>),
    /// Data from this half sector (256 bytes) on, under this nonce.
    Data { address: u16, nonce: [u8; 16] },
}

/// Key and write in progress, as they survive power. The order is that of the saved form: `None` and `Some` of a key
/// were its first two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Persistent {
    /// No key is programmed.
    #[default]
    Empty,
    /// A key is.
    Key([u8; 32]),
    /// A power cut has interrupted a write.
    Interrupted {
        /// The key.
        key: [u8; 32],
        /// The write's first sector, and the bytes of all.
        first: u64,
        /// Whole sectors.
        sectors: Vec<u8>,
    },
}

/// A write that may not be in flash yet.
#[derive(Clone, Debug)]
struct Writing {
    first: u64,
    sectors: Vec<u8>,
    /// When it is in flash; `None`: a cut came before.
    done: Option<Instant>,
}

/// The block: key, counter and a write in progress survive power, the response does not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rpmb {
    key: Option<[u8; 32]>,
    counter: u32,
    writing: Option<Writing>,
    /// SECURE_WP_MASK: write protection may be changed although secure write protection is on.
    allows_wp_changes: bool,
    /// The result register, which [`Request::ReadResult`] returns.
    result: Option<Box<Frame>>,
    answer: Answer,
}

impl Rpmb {
    /// Power was cycled or the card reset.
    pub(crate) fn forget(&mut self) {
        (self.result, self.answer, self.allows_wp_changes) = (None, Answer::Nothing, false);
    }

    /// SECURE_WP_MASK.
    pub(crate) fn allows_wp_changes(&self) -> bool {
        self.allows_wp_changes
    }

    /// Whether a key is programmed.
    pub(crate) fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// What survives power besides the counter, as if operations in progress were done. No host ever reads the key.
    pub(crate) fn persistent(&self) -> Persistent {
        let interrupted = self.writing.as_ref().filter(|writing| writing.done.is_none());
        match (self.key, interrupted) {
            (None, _) => Persistent::Empty,
            (Some(key), None) => Persistent::Key(key),
            (Some(key), Some(writing)) => {
                Persistent::Interrupted { key, first: writing.first, sectors: writing.sectors.clone() }
            }
        }
    }

    /// Restores the persistent state.
    pub(crate) fn restore(&mut self, persistent: Persistent, counter: u32) {
        *self = Self { counter, ..Self::default() };
        match persistent {
            Persistent::Empty => {}
            Persistent::Key(key) => self.key = Some(key),
            Persistent::Interrupted { key, first, sectors } => {
                self.key = Some(key);
                self.writing = Some(Writing { first, sectors, done: None });
            }
        }
    }

    /// Power was lost at `now`: a write that was not in flash yet is to be completed, and counts when it is.
    pub(crate) fn power_off(&mut self, now: Instant) {
        let Some(writing) = &mut self.writing else { return };
        match writing.done {
            Some(done) if done <= now => self.writing = None,
            Some(_) => {
                writing.done = None;
                self.counter -= 1;
            }
            None => {}
        }
    }

    /// Power is back: completes an interrupted write.
    ///
    /// Errors: power lost again. A part that takes no more writes keeps the old counter.
    pub(crate) fn complete(&mut self, store: &mut dyn RpmbStore) -> Result<(), StorageError> {
        let Some(writing) = self.writing.take() else { return Ok(()) };
        match store.write(writing.first, &writing.sectors) {
            Ok(done) => {
                self.counter += 1;
                self.writing = Some(Writing { done: Some(done), ..writing });
            }
            Err(error) if error.is_power_loss() => {
                self.writing = Some(writing);
                return Err(error);
            }
            Err(_) => {}
        }
        Ok(())
    }

    /// Successful writes so far.
    pub(crate) fn counter(&self) -> u32 {
        self.counter
    }

    /// CMD25: takes request frames. `reliable` is bit 31 of CMD23; `large` is EN_RPMB_REL_WR.
    ///
    /// Shape: `frames` is a multiple of 512 bytes, at least one frame.
    /// Errors: power lost; every other error is in the result.
    pub(crate) fn receive(
        &mut self,
        frames: &[u8],
        reliable: bool,
        large: bool,
        store: &mut dyn RpmbStore,
    ) -> Result<(), StorageError> {
        let frames: Vec<Frame> = frames.chunks_exact(FRAME_BYTES).map(Frame::from_bytes).collect();
        let Some(first) = frames.first() else { return Ok(()) };
        self.answer = Answer::Nothing;
        match Request::of(first.request()) {
            Some(Request::ProgramKey) => self.result = Some(self.program_key(&frames, reliable)),
            Some(Request::Write) => self.result = Some(self.write(&frames, reliable, large, store)?),
            Some(Request::ReadCounter) => self.answer = Answer::Frame(self.counter_frame(&frames)),
            Some(Request::Read) if frames.len() == 1 => {
                self.answer = Answer::Data { address: first.address(), nonce: first.nonce() };
            }
            Some(Request::ReadResult) if frames.len() == 1 => self.answer = self.result_answer(),
            Some(Request::WriteConfig) => self.result = Some(self.write_config(&frames, reliable, store)),
            Some(Request::ReadConfig) => self.answer = Answer::Frame(self.config_frame(&frames, store)),
            _ => {
                let frame = self.reply(first.request(), RpmbResult::GENERAL_FAILURE);
                self.answer = Answer::Frame(Box::new(frame));
            }
        }
        Ok(())
    }

    /// CMD18: the frames that answer the last request.
    ///
    /// Errors: power lost; an unreadable sector is in the result.
    pub(crate) fn answer(&mut self, frames: u16, store: &mut dyn RpmbStore) -> Result<Vec<u8>, StorageError> {
        let mut out = match std::mem::take(&mut self.answer) {
            Answer::Nothing => self.reply(0, RpmbResult::GENERAL_FAILURE).bytes().to_vec(),
            Answer::Frame(frame) => frame.bytes().to_vec(),
            Answer::Data { address, nonce } => return self.read(address, nonce, frames, store),
        };
        out.resize(usize::from(frames) * FRAME_BYTES, 0);
        Ok(out)
    }

    /// A frame of the answer to a request, without a MAC.
    fn reply(&self, request: u16, result: RpmbResult) -> Frame {
        let result = if self.counter == u32::MAX { result.with_expired_counter() } else { result };
        let mut frame = Frame::default();
        frame.set_response(request, result);
        frame
    }

    fn result_answer(&mut self) -> Answer {
        match self.result.take() {
            Some(frame) => Answer::Frame(frame),
            None => Answer::Frame(Box::new(self.reply(Request::ReadResult as u16, RpmbResult::GENERAL_FAILURE))),
        }
    }

    fn program_key(&mut self, frames: &[Frame], reliable: bool) -> Box<Frame> {
        let result = if frames.len() != 1 || !reliable {
            RpmbResult::GENERAL_FAILURE
        } else if self.key.is_some() {
            RpmbResult::WRITE_FAILURE
        } else {
            self.key = Some(frames[0].key());
            RpmbResult::OK
        };
        Box::new(self.reply(Request::ProgramKey as u16, result))
    }

    fn counter_frame(&self, frames: &[Frame]) -> Box<Frame> {
        let Some(key) = &self.key else { return Box::new(self.reply(Request::ReadCounter as u16, RpmbResult::NO_KEY)) };
        let result = if frames.len() == 1 { RpmbResult::OK } else { RpmbResult::GENERAL_FAILURE };
        let mut frame = self.reply(Request::ReadCounter as u16, result);
        frame.set_counter(self.counter);
        frame.set_nonce(&frames[0].nonce());
        frame.sign(&mac(key, std::slice::from_ref(&frame)));
        Box::new(frame)
    }

    /// Checks and performs a write; returns the result frame.
    fn write(
        &mut self,
        frames: &[Frame],
        reliable: bool,
        large: bool,
        store: &mut dyn RpmbStore,
    ) -> Result<Box<Frame>, StorageError> {
        let Some(key) = self.key else { return Ok(Box::new(self.reply(Request::Write as u16, RpmbResult::NO_KEY))) };
        let last = &frames[frames.len() - 1];
        let address = frames[0].address();
        let count_allowed = WRITE_FRAMES.contains(&frames.len()) || large && frames.len() == LARGE_WRITE_FRAMES;
        let well_formed = frames.iter().all(|frame| {
            (frame.request(), frame.address(), frame.counter()) == (Request::Write as u16, address, last.counter())
                && usize::from(frame.count()) == frames.len()
        });
        let beyond = (usize::from(address) + frames.len()) as u64 > 2 * store.sectors();
        let result = if !reliable || !count_allowed || !well_formed {
            RpmbResult::GENERAL_FAILURE
        } else if self.counter == u32::MAX {
            RpmbResult::WRITE_FAILURE
        } else if beyond {
            RpmbResult::ADDRESS_FAILURE
        } else if !is_authentic(&key, frames) {
            RpmbResult::AUTHENTICATION_FAILURE
        } else if last.counter() != self.counter {
            RpmbResult::COUNTER_FAILURE
        } else {
            match self.store_data(address, frames, store) {
                Ok(()) => RpmbResult::OK,
                Err(error) if error.is_power_loss() => return Err(error),
                Err(_) => RpmbResult::WRITE_FAILURE,
            }
        };
        let mut frame = self.reply(Request::Write as u16, result);
        frame.set_counter(self.counter);
        frame.set_address(address);
        frame.sign(&mac(&key, std::slice::from_ref(&frame)));
        Ok(Box::new(frame))
    }

    /// Merges half sectors into whole sectors, and writes those.
    fn store_data(&mut self, address: u16, frames: &[Frame], store: &mut dyn RpmbStore) -> Result<(), StorageError> {
        let (first, last) = (u64::from(address) / 2, (u64::from(address) + frames.len() as u64 - 1) / 2);
        let mut sectors = vec![0; (last - first + 1) as usize * 512];
        if address % 2 == 1 || frames.len() % 2 == 1 {
            store.read(first, &mut sectors)?;
        }
        let start = usize::from(address % 2) * DATA_BYTES;
        for (half, frame) in sectors[start..].chunks_exact_mut(DATA_BYTES).zip(frames) {
            half.copy_from_slice(frame.data());
        }
        match store.write(first, &sectors) {
            Ok(done) => {
                self.counter += 1;
                self.writing = Some(Writing { first, sectors, done: Some(done) });
                Ok(())
            }
            Err(error) => {
                let is_cut = error.is_power_loss();
                self.writing = is_cut.then_some(Writing { first, sectors, done: None });
                Err(error)
            }
        }
    }

    /// The answer to an authenticated read.
    fn read(
        &self,
        address: u16,
        nonce: [u8; 16],
        count: u16,
        store: &mut dyn RpmbStore,
    ) -> Result<Vec<u8>, StorageError> {
        let frames = usize::from(count);
        let mut data = vec![0; frames * DATA_BYTES];
        let result = if self.key.is_none() {
            RpmbResult::NO_KEY
        } else if u64::from(address) + u64::from(count) > 2 * store.sectors() {
            RpmbResult::ADDRESS_FAILURE
        } else {
            match load_data(address, &mut data, store) {
                Ok(()) => RpmbResult::OK,
                Err(error) if error.is_power_loss() => return Err(error),
                Err(_) => RpmbResult::READ_FAILURE,
            }
        };
        let mut answer: Vec<Frame> = data
            .chunks_exact(DATA_BYTES)
            .map(|data| {
                let mut frame = self.reply(Request::Read as u16, result);
                frame.set_data(data);
                frame.set_nonce(&nonce);
                frame.set_address(address);
                frame.set_count(count);
                frame
            })
            .collect();
        if let Some(key) = &self.key {
            let proof = mac(key, &answer);
            if let Some(last) = answer.last_mut() {
                last.sign(&proof);
            }
        }
        Ok(answer.iter().flat_map(|frame| *frame.bytes()).collect())
    }
}

fn load_data(address: u16, out: &mut [u8], store: &mut dyn RpmbStore) -> Result<(), StorageError> {
    let start = usize::from(address % 2) * DATA_BYTES;
    let mut sectors = vec![0; (start + out.len()).div_ceil(512) * 512];
    store.read(u64::from(address) / 2, &mut sectors)?;
    out.copy_from_slice(&sectors[start..start + out.len()]);
    Ok(())
}
