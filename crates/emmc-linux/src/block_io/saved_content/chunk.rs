//! The pieces of saved content, each with its checksum.

use crc::{CRC_32_ISO_HDLC, Crc, Table};

/// Size of one read or write. Unit: bytes.
pub(super) const CHUNK_BYTES: u64 = 1 << 20;

static CRC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);

/// Source: ISO-HDLC, as in Ethernet and gzip.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    CRC.checksum(bytes)
}

/// A piece of the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// On the target. Unit: bytes.
    pub(super) at: u64,
    /// At most [`CHUNK_BYTES`]. Unit: bytes.
    pub(super) length: u32,
    pub(super) checksum: u32,
}

impl Chunk {
    /// Shape of a chunk in a file: three little-endian numbers.
    pub(super) const BYTES: usize = 16;

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.at.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.length.to_le_bytes());
        bytes[12..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Self { at: u64::from(word(4)) << 32 | u64::from(word(0)), length: word(8), checksum: word(12) }
    }

    /// The byte after it.
    pub(super) fn end(self) -> u64 {
        self.at.saturating_add(u64::from(self.length))
    }
}

/// Ranges cut into chunks, without checksums yet.
pub(super) fn chunks(parts: &[[u64; 2]]) -> Vec<Chunk> {
    let pieces = parts.iter().flat_map(|[from, to]| {
        let to = *to;
        (*from..to).step_by(CHUNK_BYTES as usize).map(move |at| Chunk {
            at,
            length: (to - at).min(CHUNK_BYTES) as u32,
            checksum: 0,
        })
    });
    pieces.collect()
}

/// Unit: bytes.
pub(super) fn total(chunks: &[Chunk]) -> u64 {
    chunks.iter().map(|chunk| u64::from(chunk.length)).sum()
}

/// The ranges of chunks in order, adjacent ones joined.
pub(super) fn parts(chunks: &[Chunk]) -> Vec<[u64; 2]> {
    let mut parts: Vec<[u64; 2]> = Vec::new();
    for chunk in chunks {
        match parts.last_mut().filter(|last| last[1] == chunk.at) {
            Some(last) => last[1] = chunk.end(),
            None => parts.push([chunk.at, chunk.end()]),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_become_chunks_and_chunks_ranges() {
        let ranges = [[4096, 8192], [1 << 20, (3 << 20) + 512]];
        let cut = chunks(&ranges);
        assert_eq!(cut.iter().map(|chunk| chunk.length).collect::<Vec<_>>(), [4096, 1 << 20, 1 << 20, 512]);
        assert_eq!(parts(&cut), ranges);
        assert_eq!(total(&cut), 4096 + (2 << 20) + 512);
        for chunk in cut {
            let chunk = Chunk { checksum: 0x1234_5678, at: chunk.at | 5 << 40, ..chunk };
            assert_eq!(Chunk::from_bytes(&chunk.to_bytes()), chunk);
        }
    }
}
