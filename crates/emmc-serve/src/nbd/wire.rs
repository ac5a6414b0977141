//! Requests and replies of the transmission phase as bytes. Pure: neither sockets nor blocks.
//!
//! Source: the NBD protocol, <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>, "Transmission
//! phase". Absent on purpose: extended headers, which only matter beyond requests of 4 GiB.

use super::buffer::Buffer;

/// The first bytes of a request.
const REQUEST_MAGIC: u32 = 0x2560_9513;
/// The first bytes of a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// The first bytes of a chunk of a structured reply.
pub const CHUNK_MAGIC: u32 = 0x668e_33ef;
/// A request without its payload. Unit: bytes.
pub const REQUEST_BYTES: usize = 28;
/// A simple reply without data. Unit: bytes.
pub const SIMPLE_REPLY_BYTES: usize = 16;
/// A chunk without its payload. Unit: bytes.
pub const CHUNK_BYTES: usize = 20;
/// What comes before the data in a data chunk: chunk header and offset. Unit: bytes.
pub const DATA_CHUNK_BYTES: usize = CHUNK_BYTES + 8;
/// A chunk for a hole. Unit: bytes.
pub const HOLE_CHUNK_BYTES: usize = CHUNK_BYTES + 12;

/// Bypass the volatile cache.
pub const FLAG_FUA: u16 = 1 << 0;
/// Zeros must be allocated.
pub const FLAG_NO_HOLE: u16 = 1 << 1;
/// A read is answered in one chunk.
pub const FLAG_DF: u16 = 1 << 2;
/// One descriptor is enough.
pub const FLAG_REQ_ONE: u16 = 1 << 3;
/// Zeros fast or not at all.
pub const FLAG_FAST_ZERO: u16 = 1 << 4;

/// The last chunk of a reply.
const CHUNK_DONE: u16 = 1;
/// Not allocated.
pub const STATE_HOLE: u32 = 1;
/// It reads as zeros.
pub const STATE_ZERO: u32 = 2;
/// The number that this server gives the context `base:allocation`.
pub const ALLOCATION_ID: u32 = 1;

const CHUNK_OFFSET_DATA: u16 = 1;
const CHUNK_OFFSET_HOLE: u16 = 2;
const CHUNK_BLOCK_STATUS: u16 = 5;
const CHUNK_ERROR: u16 = (1 << 15) + 1;

/// The request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in the protocol")]
pub enum Command {
    Read,
    Write,
    Disconnect,
    Flush,
    Trim,
    Cache,
    WriteZeroes,
    BlockStatus,
    /// One that this server does not know.
    Other(u16),
}

impl Command {
    /// From its number.
    pub fn from_number(number: u16) -> Self {
        match number {
            0 => Self::Read,
            1 => Self::Write,
            2 => Self::Disconnect,
            3 => Self::Flush,
            4 => Self::Trim,
            5 => Self::Cache,
            6 => Self::WriteZeroes,
            7 => Self::BlockStatus,
            other => Self::Other(other),
        }
    }

    /// Its number.
    pub fn number(self) -> u16 {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Disconnect => 2,
            Self::Flush => 3,
            Self::Trim => 4,
            Self::Cache => 5,
            Self::WriteZeroes => 6,
            Self::BlockStatus => 7,
            Self::Other(number) => number,
        }
    }

    /// The flags that are allowed with it. FUA is allowed with all: some clients set it everywhere.
    pub fn flags(self) -> u16 {
        FLAG_FUA
            | match self {
                Self::Read => FLAG_DF,
                Self::WriteZeroes => FLAG_NO_HOLE | FLAG_FAST_ZERO,
                Self::BlockStatus => FLAG_REQ_ONE,
                _ => 0,
            }
    }
}

/// A request; the data of a write follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// `FLAG_…`.
    pub flags: u16,
    /// The request.
    pub command: Command,
    /// The client's identifier of the request.
    pub cookie: u64,
    /// Unit: bytes.
    pub offset: u64,
    /// Unit: bytes.
    pub length: u32,
}

/// Not the start of a request: the stream is out of sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a request begins with 0x{found:08x}; expected 0x{REQUEST_MAGIC:08x}")]
pub struct BadMagic {
    /// The bytes found instead.
    pub found: u32,
}

impl Request {
    /// From bytes.
    ///
    /// Errors: not the start of a request.
    pub fn decode(bytes: &[u8; REQUEST_BYTES]) -> Result<Self, BadMagic> {
        let [m0, m1, m2, m3, f0, f1, c0, c1, k0, k1, k2, k3, k4, k5, k6, k7, rest @ ..] = *bytes;
        let [o0, o1, o2, o3, o4, o5, o6, o7, l0, l1, l2, l3] = rest;
        let found = u32::from_be_bytes([m0, m1, m2, m3]);
        if found != REQUEST_MAGIC {
            return Err(BadMagic { found });
        }
        Ok(Self {
            flags: u16::from_be_bytes([f0, f1]),
            command: Command::from_number(u16::from_be_bytes([c0, c1])),
            cookie: u64::from_be_bytes([k0, k1, k2, k3, k4, k5, k6, k7]),
            offset: u64::from_be_bytes([o0, o1, o2, o3, o4, o5, o6, o7]),
            length: u32::from_be_bytes([l0, l1, l2, l3]),
        })
    }

    /// As bytes.
    pub fn encode(&self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.command.number().to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
        bytes[24..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }
}

/// Why a request is refused or failed, as the protocol numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in the protocol")]
pub enum Errno {
    Eperm = 1,
    Eio = 5,
    Enomem = 12,
    Einval = 22,
    Enospc = 28,
    Enotsup = 95,
    Eshutdown = 108,
}

/// A simple reply: success if there is no error.
pub fn simple_reply(cookie: u64, error: Option<Errno>) -> [u8; SIMPLE_REPLY_BYTES] {
    let mut bytes = [0; SIMPLE_REPLY_BYTES];
    bytes[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    bytes[4..8].copy_from_slice(&error.map_or(0, |error| error as u32).to_be_bytes());
    bytes[8..].copy_from_slice(&cookie.to_be_bytes());
    bytes
}

fn chunk(cookie: u64, kind: u16, done: bool, length: u32) -> [u8; CHUNK_BYTES] {
    let mut bytes = [0; CHUNK_BYTES];
    bytes[..4].copy_from_slice(&CHUNK_MAGIC.to_be_bytes());
    bytes[4..6].copy_from_slice(&(if done { CHUNK_DONE } else { 0 }).to_be_bytes());
    bytes[6..8].copy_from_slice(&kind.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// The header before `length` bytes of data read at `offset`.
pub fn data_chunk(cookie: u64, done: bool, offset: u64, length: u32) -> [u8; DATA_CHUNK_BYTES] {
    let mut bytes = [0; DATA_CHUNK_BYTES];
    bytes[..CHUNK_BYTES].copy_from_slice(&chunk(cookie, CHUNK_OFFSET_DATA, done, length + 8));
    bytes[CHUNK_BYTES..].copy_from_slice(&offset.to_be_bytes());
    bytes
}

/// A chunk for `length` zeros at `offset`.
pub fn hole_chunk(cookie: u64, done: bool, offset: u64, length: u32) -> [u8; HOLE_CHUNK_BYTES] {
    let mut bytes = [0; HOLE_CHUNK_BYTES];
    bytes[..CHUNK_BYTES].copy_from_slice(&chunk(cookie, CHUNK_OFFSET_HOLE, done, 12));
    bytes[CHUNK_BYTES..CHUNK_BYTES + 8].copy_from_slice(&offset.to_be_bytes());
    bytes[CHUNK_BYTES + 8..].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// An error with a message.
pub fn error_chunk(out: &mut Buffer, cookie: u64, error: Errno, message: &str) {
    let message = &message.as_bytes()[..message.len().min(1024)];
    out.put(&chunk(cookie, CHUNK_ERROR, true, 6 + message.len() as u32));
    out.put(&(error as u32).to_be_bytes());
    out.put(&(message.len() as u16).to_be_bytes());
    out.put(message);
}

/// Block status in the context `base:allocation`: lengths and states from the request's offset on.
pub fn status_chunk(out: &mut Buffer, cookie: u64, extents: &[(u32, u32)]) {
    out.put(&chunk(cookie, CHUNK_BLOCK_STATUS, true, 4 + 8 * extents.len() as u32));
    out.put(&ALLOCATION_ID.to_be_bytes());
    for (length, state) in extents {
        out.put(&length.to_be_bytes());
        out.put(&state.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_round_trip() {
        let bytes: [u8; REQUEST_BYTES] =
            [0x25, 0x60, 0x95, 0x13, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 16, 0];
        let request = Request::decode(&bytes).unwrap();
        let expected = Request {
            flags: FLAG_FUA,
            command: Command::WriteZeroes,
            cookie: 0x0102_0304_0506_0708,
            offset: (1 << 32) + 512,
            length: 4096,
        };
        assert_eq!(request, expected);
        assert_eq!(request.encode(), bytes);
        let mut wrong = bytes;
        wrong[0] = 0x26;
        assert_eq!(Request::decode(&wrong), Err(BadMagic { found: 0x2660_9513 }));
    }

    #[test]
    fn commands_have_the_numbers_of_the_protocol() {
        for number in 0..20 {
            assert_eq!(Command::from_number(number).number(), number);
        }
    }

    #[test]
    fn replies() {
        assert_eq!(simple_reply(7, Some(Errno::Einval)), [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 22, 0, 0, 0, 0, 0, 0, 0, 7]);
        let data = data_chunk(7, true, 512, 1024);
        assert_eq!(data[..8], [0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 1]);
        assert_eq!(data[16..], [0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 2, 0]);
        let hole = hole_chunk(7, false, 512, 1024);
        assert_eq!(hole[4..8], [0, 0, 0, 2]);
        assert_eq!(hole[16..], [0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 4, 0]);
        let mut out = Buffer::default();
        error_chunk(&mut out, 7, Errno::Eio, "no");
        assert_eq!(out.bytes()[4..8], [0, 1, 0x80, 1]);
        assert_eq!(out.bytes()[16..], [0, 0, 0, 8, 0, 0, 0, 5, 0, 2, b'n', b'o']);
        out.clear();
        status_chunk(&mut out, 7, &[(512, STATE_HOLE | STATE_ZERO)]);
        assert_eq!(out.bytes()[16..], [0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 3]);
    }
}
