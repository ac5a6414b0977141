//! The 512 bytes of a frame.
//!
//! Shape: 196 bytes of stuffing, key or MAC (32), data (256), nonce (16), write counter (4), address (2), block count
//! (2), result (2), request or response (2); numbers with the highest byte first.

use super::{Request, RpmbResult};

/// Bytes of a frame.
pub const FRAME_BYTES: usize = 512;
/// Bytes of data in a frame: the block that addresses and counts refer to.
pub const DATA_BYTES: usize = 256;
/// The start of the part that the MAC covers; it ends with the frame.
pub(super) const AUTHENTICATED_FROM: usize = DATA;

const KEY: usize = 196;
const DATA: usize = 228;
const NONCE: usize = 484;
const COUNTER: usize = 500;
const ADDRESS: usize = 504;
const COUNT: usize = 506;
const RESULT: usize = 508;
const REQUEST: usize = 510;

/// A frame, as a window over its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame([u8; FRAME_BYTES]);

/// Without key, MAC and data.
impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Frame(request {:#06x}, result {:#06x})", self.request(), self.number(RESULT))
    }
}

impl Default for Frame {
    fn default() -> Self {
        Self([0; FRAME_BYTES])
    }
}

impl Frame {
    /// A frame from its bytes; missing bytes at the end are 0.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut frame = Self::default();
        let length = bytes.len().min(FRAME_BYTES);
        frame.0[..length].copy_from_slice(&bytes[..length]);
        frame
    }

    /// A request of the host without anything else.
    pub fn asking(request: Request) -> Self {
        let mut frame = Self::default();
        frame.set(REQUEST, &(request as u16).to_be_bytes());
        frame
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8; FRAME_BYTES] {
        &self.0
    }

    fn number(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.0[at], self.0[at + 1]])
    }

    fn part<const BYTES: usize>(&self, at: usize) -> [u8; BYTES] {
        let mut part = [0; BYTES];
        part.copy_from_slice(&self.0[at..at + BYTES]);
        part
    }

    fn set(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Request or response type.
    pub fn request(&self) -> u16 {
        self.number(REQUEST)
    }

    /// What came of the request.
    pub fn result(&self) -> RpmbResult {
        RpmbResult(self.number(RESULT))
    }

    /// The key to program, or the MAC.
    pub fn key(&self) -> [u8; 32] {
        self.part(KEY)
    }

    /// The host's nonce.
    pub fn nonce(&self) -> [u8; 16] {
        self.part(NONCE)
    }

    /// The write counter.
    pub fn counter(&self) -> u32 {
        u32::from_be_bytes(self.part(COUNTER))
    }

    /// The first block of [`DATA_BYTES`].
    pub fn address(&self) -> u16 {
        self.number(ADDRESS)
    }

    /// How many frames belong together.
    pub fn count(&self) -> u16 {
        self.number(COUNT)
    }

    /// The data.
    pub fn data(&self) -> &[u8] {
        &self.0[DATA..DATA + DATA_BYTES]
    }

    /// Makes it a response with a result; the response type is the request's in the upper byte.
    pub fn set_response(&mut self, request: u16, result: RpmbResult) {
        self.set(REQUEST, &(request << 8).to_be_bytes());
        self.set(RESULT, &result.0.to_be_bytes());
    }

    /// Puts data in: its first [`DATA_BYTES`].
    pub fn set_data(&mut self, data: &[u8]) {
        let length = data.len().min(DATA_BYTES);
        self.set(DATA, &data[..length]);
    }

    /// Puts the host's nonce in.
    pub fn set_nonce(&mut self, nonce: &[u8; 16]) {
        self.set(NONCE, nonce);
    }

    /// Puts the write counter in.
    pub fn set_counter(&mut self, counter: u32) {
        self.set(COUNTER, &counter.to_be_bytes());
    }

    /// Puts the first block in.
    pub fn set_address(&mut self, address: u16) {
        self.set(ADDRESS, &address.to_be_bytes());
    }

    /// Puts the number of frames in.
    pub fn set_count(&mut self, count: u16) {
        self.set(COUNT, &count.to_be_bytes());
    }

    /// Puts the MAC in, or the key to program.
    pub fn sign(&mut self, mac: &[u8; 32]) {
        self.set(KEY, mac);
    }
}
