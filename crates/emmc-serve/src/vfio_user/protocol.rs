//! Messages of vfio-user as bytes: requests and replies.
//!
//! Source: vfio-user protocol specification 0.9; Linux `include/uapi/linux/vfio.h` for the structures that it carries.

use crate::guest_memory::RangeError;

/// Unit: bytes.
pub(super) const HEADER_BYTES: usize = 16;
/// The longest message that is read: a region access of [`TRANSFER_MAX`] with its headers. Unit: bytes.
pub(super) const MESSAGE_MAX: usize = TRANSFER_MAX + 64;
/// The longest region access. Unit: bytes.
pub(super) const TRANSFER_MAX: usize = 64 << 10;
/// The server's capabilities.
pub(super) const CAPABILITIES: &[u8] =
    b"{\"capabilities\":{\"max_msg_fds\":8,\"max_data_xfer_size\":65536,\"write_multiple\":true}}\0";

/// Command numbers.
pub(super) mod command {
    pub(in crate::vfio_user) const VERSION: u16 = 1;
    pub(in crate::vfio_user) const DMA_MAP: u16 = 2;
    pub(in crate::vfio_user) const DMA_UNMAP: u16 = 3;
    pub(in crate::vfio_user) const DEVICE_INFO: u16 = 4;
    pub(in crate::vfio_user) const REGION_INFO: u16 = 5;
    pub(in crate::vfio_user) const IRQ_INFO: u16 = 7;
    pub(in crate::vfio_user) const SET_IRQS: u16 = 8;
    pub(in crate::vfio_user) const REGION_READ: u16 = 9;
    pub(in crate::vfio_user) const REGION_WRITE: u16 = 10;
    pub(in crate::vfio_user) const RESET: u16 = 13;
    pub(in crate::vfio_user) const WRITE_MULTIPLE: u16 = 15;
}

const TYPE: u32 = 0xf;
const REPLY: u32 = 1;
const NO_REPLY: u32 = 1 << 4;
const ERROR: u32 = 1 << 5;

/// Errors as sent to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Errno {
    /// It overlaps an existing one.
    Exists = 17,
    /// Invalid request.
    Invalid = 22,
    /// There are too many.
    NoSpace = 28,
    /// Not supported by the server.
    NotSupported = 95,
}

impl From<RangeError> for Errno {
    fn from(error: RangeError) -> Self {
        match error {
            RangeError::Exists => Self::Exists,
            RangeError::Invalid => Self::Invalid,
            RangeError::NoSpace => Self::NoSpace,
            RangeError::NotSupported => Self::NotSupported,
        }
    }
}

/// The header of every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) id: u16,
    pub(super) command: u16,
    /// Header included. Unit: bytes.
    pub(super) size: usize,
    flags: u32,
}

impl Header {
    /// Shape: at least the header's bytes.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        let (id, command, size, flags) = (fields.u16()?, fields.u16()?, fields.u32()?, fields.u32()?);
        Some(Self { id, command, size: size as usize, flags })
    }

    /// Whether it is a command of a valid length; else the stream cannot be trusted any more.
    pub(super) fn is_sound(&self) -> bool {
        self.flags & TYPE == 0 && (HEADER_BYTES..=MESSAGE_MAX).contains(&self.size)
    }

    /// Whether the client expects a reply.
    pub(super) fn wants_reply(&self) -> bool {
        self.flags & NO_REPLY == 0
    }
}

/// Reads consecutive numbers, as long as there are enough bytes.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}

/// A client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request<'a> {
    Version { major: u16, minor: u16 },
    DmaMap { flags: u32, offset: u64, address: u64, size: u64 },
    DmaUnmap { flags: u32, address: u64, size: u64 },
    DeviceInfo,
    RegionInfo { index: u32 },
    IrqInfo { index: u32 },
    SetIrqs { flags: u32, index: u32, start: u32, count: u32, data: &'a [u8] },
    RegionRead { offset: u64, region: u32, count: u32 },
    RegionWrite { offset: u64, region: u32, data: &'a [u8] },
    Reset,
    WriteMultiple { writes: &'a [u8] },
}

/// One of several writes in a message: offset, region, length, eight bytes.
pub(super) const WRITE_BYTES: usize = 24;

impl<'a> Request<'a> {
    /// Parses the part after a header.
    ///
    /// Errors: an unknown command; too few bytes, or lengths that contradict the header.
    pub(super) fn parse(command: u16, payload: &'a [u8]) -> Result<Self, Errno> {
        // The commands in between are for memory that is accessed by messages, mapped registers, migration.
        if !matches!(command, 1..=5 | 7..=10 | 13 | 15) {
            return Err(Errno::NotSupported);
        }
        Self::fields(command, payload).ok_or(Errno::Invalid)
    }

    fn fields(command: u16, payload: &'a [u8]) -> Option<Self> {
        let mut f = Fields(payload);
        Some(match command {
            command::VERSION => Self::Version { major: f.u16()?, minor: f.u16()? },
            command::DMA_MAP => {
                f.u32()?;
                Self::DmaMap { flags: f.u32()?, offset: f.u64()?, address: f.u64()?, size: f.u64()? }
            }
            command::DMA_UNMAP => {
                f.u32()?;
                Self::DmaUnmap { flags: f.u32()?, address: f.u64()?, size: f.u64()? }
            }
            command::DEVICE_INFO => {
                f.u32()?;
                Self::DeviceInfo
            }
            command::REGION_INFO | command::IRQ_INFO => {
                f.u64()?;
                let index = f.u32()?;
                if command == command::IRQ_INFO { Self::IrqInfo { index } } else { Self::RegionInfo { index } }
            }
            command::SET_IRQS => {
                f.u32()?;
                Self::SetIrqs { flags: f.u32()?, index: f.u32()?, start: f.u32()?, count: f.u32()?, data: f.0 }
            }
            command::REGION_READ => Self::RegionRead { offset: f.u64()?, region: f.u32()?, count: f.u32()? },
            command::REGION_WRITE => {
                let (offset, region, count) = (f.u64()?, f.u32()?, f.u32()?);
                Self::RegionWrite { offset, region, data: Some(f.0).filter(|data| data.len() == count as usize)? }
            }
            command::RESET => Self::Reset,
            command::WRITE_MULTIPLE => {
                let count = usize::try_from(f.u64()?).ok()?;
                Self::WriteMultiple { writes: Some(f.0).filter(|w| Some(w.len()) == count.checked_mul(WRITE_BYTES))? }
            }
            _ => return None,
        })
    }

    /// One of the writes of [`Request::WriteMultiple`].
    pub(super) fn one_write(bytes: &'a [u8]) -> Option<Self> {
        let mut f = Fields(bytes);
        let (offset, region, count) = (f.u64()?, f.u32()?, f.u32()?);
        Some(Self::RegionWrite { offset, region, data: f.0.get(..count as usize)? })
    }
}

/// Appends a reply to the output; `fill` adds the part after the header.
pub(super) fn reply(out: &mut Vec<u8>, header: &Header, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    put_header(out, header, REPLY, 0);
    fill(out);
    let size = (out.len() - start) as u32;
    out[start + 4..start + 8].copy_from_slice(&size.to_le_bytes());
}

/// Appends an error reply.
pub(super) fn reply_error(out: &mut Vec<u8>, header: &Header, error: Errno) {
    put_header(out, header, REPLY | ERROR, error as u32);
}

fn put_header(out: &mut Vec<u8>, header: &Header, flags: u32, error: u32) {
    out.extend_from_slice(&header.id.to_le_bytes());
    out.extend_from_slice(&header.command.to_le_bytes());
    for word in [HEADER_BYTES as u32, flags, error] {
        out.extend_from_slice(&word.to_le_bytes());
    }
}

/// Appends 32-bit numbers.
pub(super) fn put_u32(out: &mut Vec<u8>, words: &[u32]) {
    words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

/// Appends 64-bit numbers.
pub(super) fn put_u64(out: &mut Vec<u8>, words: &[u64]) {
    words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_lengths_are_refused() {
        assert_eq!(Request::parse(99, &[]), Err(Errno::NotSupported));
        for command in [1, 2, 3, 4, 5, 7, 8, 9, 10, 15] {
            assert_eq!(Request::parse(command, &[0; 3]), Err(Errno::Invalid), "{command}");
        }
        let mut write = [0; 20];
        write[12] = 4;
        let data: &[u8] = &[0; 4];
        assert_eq!(Request::parse(10, &write), Ok(Request::RegionWrite { offset: 0, region: 0, data }));
        assert_eq!(Request::parse(10, &write[..19]), Err(Errno::Invalid));
        assert_eq!(Request::parse(15, &[0xff; 32]), Err(Errno::Invalid));
    }

    #[test]
    fn a_reply_repeats_number_and_command() {
        let header = Header::parse(&[7, 0, 9, 0, 16, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        assert!(header.is_sound() && !header.wants_reply());
        let mut out = Vec::new();
        reply(&mut out, &header, |out| put_u32(out, &[5]));
        assert_eq!(out, [7, 0, 9, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0]);
        out.clear();
        reply_error(&mut out, &header, Errno::Invalid);
        assert_eq!(out, [7, 0, 9, 0, 16, 0, 0, 0, 0x21, 0, 0, 0, 22, 0, 0, 0]);
    }

    #[test]
    fn a_reply_or_an_error_is_not_a_valid_command() {
        for (size, flags) in [(15u32, 0u32), (MESSAGE_MAX as u32 + 1, 0), (16, 1)] {
            let mut bytes = [0; 16];
            bytes[4..8].copy_from_slice(&size.to_le_bytes());
            bytes[8..12].copy_from_slice(&flags.to_le_bytes());
            assert!(!Header::parse(&bytes).unwrap().is_sound(), "{size} {flags}");
        }
        assert_eq!(Header::parse(&[0; 11]), None);
    }
}
