//! Compressed pages of `trace.dat` version 7, unpacked chunk by chunk.

use std::io::{self, Error, ErrorKind, Read};

use crate::storage::Part;

/// Largest chunk, unpacked. trace-cmd uses 10 pages.
const CHUNK_BYTES_MAX: usize = 16 << 20;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Zlib,
    Zstd,
}

impl Compression {
    /// Exactly this many bytes.
    ///
    /// Errors: the data is no such compression, or has another size.
    pub(crate) fn unpack(self, packed: &[u8], bytes: usize) -> Result<Vec<u8>, String> {
        let plain = match self {
            Self::Zlib => miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(packed, bytes)
                .map_err(|error| format!("no zlib data: {error}"))?,
            Self::Zstd => {
                let mut packed = packed;
                let decoder = ruzstd::decoding::StreamingDecoder::new(&mut packed);
                let decoder = decoder.map_err(|error| format!("no zstd data: {error}"))?;
                let mut plain = Vec::new();
                let read = decoder.take(bytes as u64 + 1).read_to_end(&mut plain);
                read.map_err(|error| format!("no zstd data: {error}"))?;
                plain
            }
        };
        if plain.len() == bytes { Ok(plain) } else { Err(format!("{} bytes instead of {bytes}", plain.len())) }
    }
}

/// The pages of a processor, unpacked.
pub(crate) struct Chunks {
    from: Part,
    compression: Compression,
    big: bool,
    left: Option<u32>,
    plain: Vec<u8>,
    next: usize,
}

impl Chunks {
    pub(crate) fn new(from: Part, compression: Compression, big: bool) -> Self {
        Self { from, compression, big, left: None, plain: Vec::new(), next: 0 }
    }

    fn u32(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.from.read_exact(&mut bytes)?;
        Ok(if self.big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }
}

impl Read for Chunks {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.next == self.plain.len() {
            let left = match self.left {
                Some(left) => left,
                None => self.u32()?,
            };
            if left == 0 {
                self.left = Some(0);
                return Ok(0);
            }
            let (packed, bytes) = (self.u32()? as usize, self.u32()? as usize);
            if bytes > CHUNK_BYTES_MAX || packed > 2 * CHUNK_BYTES_MAX {
                return Err(Error::new(ErrorKind::InvalidData, format!("a chunk of {bytes} bytes")));
            }
            let packed = self.from.take_bytes(packed)?;
            self.plain =
                self.compression.unpack(&packed, bytes).map_err(|why| Error::new(ErrorKind::InvalidData, why))?;
            (self.next, self.left) = (0, Some(left - 1));
        }
        let count = into.len().min(self.plain.len() - self.next);
        into[..count].copy_from_slice(&self.plain[self.next..self.next + count]);
        self.next += count;
        Ok(count)
    }
}
