//! RPMB: the replay protected memory block, accessed by authenticated frames of 512 bytes.
//!
//! The key is programmed once and never readable. A write requires the right MAC and counter; reads return the host's
//! nonce. Data is in flash before the result reports it. Key, counter and the write in progress are in the controller's
//! own store: a write that a power cut interrupts is completed at the next power-up, so counter and data, 8 KiB too,
//! are both old or both new. Absent on purpose: the authenticated device configuration
//! (requests 6 and 7 answer "general failure"), because no profile announces secure write protection; and timing, which
//! is the data path's.
//!
//! Source: JESD84-B51 clause 6.6.22; mmc-utils and OP-TEE as hosts.

mod frame;
#[cfg(test)]
mod tests;

use emmc_units::Instant;
use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use frame::{AUTHENTICATED_FROM, DATA_BYTES};
pub(crate) use frame::{FRAME_BYTES, Frame};

use crate::device::StorageError;

/// Requests.
const PROGRAM_KEY: u16 = 1;
const READ_COUNTER: u16 = 2;
const WRITE: u16 = 3;
const READ: u16 = 4;
const READ_RESULT: u16 = 5;

/// Results.
const OK: u16 = 0;
const GENERAL_FAILURE: u16 = 1;
const AUTHENTICATION_FAILURE: u16 = 2;
const COUNTER_FAILURE: u16 = 3;
const ADDRESS_FAILURE: u16 = 4;
const WRITE_FAILURE: u16 = 5;
const READ_FAILURE: u16 = 6;
const NO_KEY: u16 = 7;
/// Added to any result once the counter has reached its maximum.
const COUNTER_EXPIRED: u16 = 0x80;

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
    /// The result register, which READ_RESULT returns.
    result: Option<Box<Frame>>,
    answer: Answer,
}

impl Rpmb {
    /// Power was cycled or the card reset.
    pub(crate) fn forget(&mut self) {
        (self.result, self.answer) = (None, Answer::Nothing);
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

    /// Sets the counter, for tests of its maximum.
    #[cfg(test)]
    fn set_counter(&mut self, counter: u32) {
        self.counter = counter;
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
        match first.request() {
            PROGRAM_KEY => self.result = Some(self.program_key(&frames, reliable)),
            WRITE => self.result = Some(self.write(&frames, reliable, large, store)?),
            READ_COUNTER => self.answer = Answer::Frame(self.counter_frame(&frames)),
            READ if frames.len() == 1 => {
                self.answer = Answer::Data { address: first.address(), nonce: first.nonce() };
            }
            READ_RESULT if frames.len() == 1 => self.answer = self.result_answer(),
            other => {
                let frame = self.reply(other, GENERAL_FAILURE);
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
            Answer::Nothing => self.reply(0, GENERAL_FAILURE).bytes().to_vec(),
            Answer::Frame(frame) => frame.bytes().to_vec(),
            Answer::Data { address, nonce } => return self.read(address, nonce, frames, store),
        };
        out.resize(usize::from(frames) * FRAME_BYTES, 0);
        Ok(out)
    }

    /// A frame of the answer to a request, without a MAC.
    fn reply(&self, request: u16, result: u16) -> Frame {
        let expired = if self.counter == u32::MAX { COUNTER_EXPIRED } else { 0 };
        let mut frame = Frame::default();
        frame.set_response(request, result | expired);
        frame
    }

    fn result_answer(&mut self) -> Answer {
        match self.result.take() {
            Some(frame) => Answer::Frame(frame),
            None => Answer::Frame(Box::new(self.reply(READ_RESULT, GENERAL_FAILURE))),
        }
    }

    fn program_key(&mut self, frames: &[Frame], reliable: bool) -> Box<Frame> {
        let result = if frames.len() != 1 || !reliable {
            GENERAL_FAILURE
        } else if self.key.is_some() {
            WRITE_FAILURE
        } else {
            self.key = Some(frames[0].key());
            OK
        };
        Box::new(self.reply(PROGRAM_KEY, result))
    }

    fn counter_frame(&self, frames: &[Frame]) -> Box<Frame> {
        let Some(key) = &self.key else { return Box::new(self.reply(READ_COUNTER, NO_KEY)) };
        let result = if frames.len() == 1 { OK } else { GENERAL_FAILURE };
        let mut frame = self.reply(READ_COUNTER, result);
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
        let Some(key) = self.key else { return Ok(Box::new(self.reply(WRITE, NO_KEY))) };
        let last = &frames[frames.len() - 1];
        let address = frames[0].address();
        let count_allowed = WRITE_FRAMES.contains(&frames.len()) || large && frames.len() == LARGE_WRITE_FRAMES;
        let well_formed = frames.iter().all(|frame| {
            (frame.request(), frame.address(), frame.counter()) == (WRITE, address, last.counter())
                && usize::from(frame.count()) == frames.len()
        });
        let beyond = (usize::from(address) + frames.len()) as u64 > 2 * store.sectors();
        let result = if !reliable || !count_allowed || !well_formed {
            GENERAL_FAILURE
        } else if self.counter == u32::MAX {
            WRITE_FAILURE
        } else if beyond {
            ADDRESS_FAILURE
        } else if mac(&key, frames) != last.key() {
            AUTHENTICATION_FAILURE
        } else if last.counter() != self.counter {
            COUNTER_FAILURE
        } else {
            match self.store_data(address, frames, store) {
                Ok(()) => OK,
                Err(error) if error.is_power_loss() => return Err(error),
                Err(_) => WRITE_FAILURE,
            }
        };
        let mut frame = self.reply(WRITE, result);
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
            NO_KEY
        } else if u64::from(address) + u64::from(count) > 2 * store.sectors() {
            ADDRESS_FAILURE
        } else {
            match load_data(address, &mut data, store) {
                Ok(()) => OK,
                Err(error) if error.is_power_loss() => return Err(error),
                Err(_) => READ_FAILURE,
            }
        };
        let mut answer: Vec<Frame> = data
            .chunks_exact(DATA_BYTES)
            .map(|data| {
                let mut frame = self.reply(READ, result);
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

/// The MAC over the authenticated part of all frames.
fn mac(key: &[u8; 32], frames: &[Frame]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    for frame in frames {
        mac.update(&frame.bytes()[AUTHENTICATED_FROM..]);
    }
    mac.finalize().into_bytes().into()
}

fn load_data(address: u16, out: &mut [u8], store: &mut dyn RpmbStore) -> Result<(), StorageError> {
    let start = usize::from(address % 2) * DATA_BYTES;
    let mut sectors = vec![0; (start + out.len()).div_ceil(512) * 512];
    store.read(u64::from(address) / 2, &mut sectors)?;
    out.copy_from_slice(&sectors[start..start + out.len()]);
    Ok(())
}
