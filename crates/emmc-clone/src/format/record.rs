//! Records: what lies at a place of an area, in ascending order; what no record names was not allocated.

use sha2::{Digest, Sha256};

use super::{AreaShape, FormatError, PIECE_BYTES_MAX, STORED_BYTES_MAX};

/// Unit: bytes.
pub const RECORD_BYTES: usize = 64;
const MAGIC: &[u8; 4] = b"PIEC";
const KIND_DATA: u8 = 1;
const KIND_FILL: u8 = 2;
const KIND_END: u8 = 3;
const SUM_AT: usize = 28;

/// How content is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// As it is.
    Plain,
    /// One frame of zstd.
    Zstd,
}

/// What a record says about its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The stored bytes that follow the record.
    Data {
        /// How they are stored.
        coding: Coding,
        /// How many follow. Unit: bytes.
        stored_bytes: u32,
        /// SHA-256 of the content.
        sha256: [u8; 32],
    },
    /// This byte all over.
    Fill(u8),
    /// Nothing follows; `offset_bytes` is the number of records before it, `bytes` that of all their content.
    End {
        /// SHA-256 of all records before it.
        sha256: [u8; 32],
    },
}

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The number of its area.
    pub area: u8,
    /// Where it lies in the area. Unit: bytes.
    pub offset_bytes: u64,
    /// How much. Unit: bytes.
    pub bytes: u64,
    /// What.
    pub content: Content,
}

impl Record {
    /// As bytes.
    pub fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut out = [0; RECORD_BYTES];
        out[..4].copy_from_slice(MAGIC);
        let (kind, coding, byte, stored, sha256) = match self.content {
            Content::Data { coding, stored_bytes, sha256 } => {
                (KIND_DATA, u8::from(coding == Coding::Zstd), 0, stored_bytes, sha256)
            }
            Content::Fill(byte) => (KIND_FILL, 0, byte, 0, [0; 32]),
            Content::End { sha256 } => (KIND_END, 0, 0, 0, sha256),
        };
        out[4..8].copy_from_slice(&[kind, self.area, coding, byte]);
        out[8..16].copy_from_slice(&self.offset_bytes.to_le_bytes());
        out[16..24].copy_from_slice(&self.bytes.to_le_bytes());
        out[24..28].copy_from_slice(&stored.to_le_bytes());
        out[32..].copy_from_slice(&sha256);
        let sum = crc32fast::hash(&out);
        out[SUM_AT..SUM_AT + 4].copy_from_slice(&sum.to_le_bytes());
        out
    }

    /// From bytes at a place in the file.
    ///
    /// Errors: damaged.
    pub fn parse(bytes: &[u8; RECORD_BYTES], at: u64) -> Result<Self, FormatError> {
        let damaged = |what: &str| FormatError::damaged(at, format!("a record {what}"));
        let mut plain = *bytes;
        plain[SUM_AT..SUM_AT + 4].fill(0);
        if bytes[..4] != MAGIC[..] || crc32fast::hash(&plain).to_le_bytes() != bytes[SUM_AT..SUM_AT + 4] {
            return Err(damaged("differs from its checksum"));
        }
        let wide = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(number)
        };
        let [kind, area, coding, byte] = [bytes[4], bytes[5], bytes[6], bytes[7]];
        let stored_bytes = (wide(24) & 0xffff_ffff) as u32;
        let mut sha256 = [0; 32];
        sha256.copy_from_slice(&bytes[32..]);
        let content = match (kind, coding) {
            (KIND_DATA, 0 | 1) => {
                let coding = if coding == 1 { Coding::Zstd } else { Coding::Plain };
                Content::Data { coding, stored_bytes, sha256 }
            }
            (KIND_FILL, 0) => Content::Fill(byte),
            (KIND_END, 0) => Content::End { sha256 },
            _ => return Err(damaged("of an unknown kind")),
        };
        Ok(Self { area, offset_bytes: wide(8), bytes: wide(16), content })
    }
}

/// The records of a file so far: their order, their sums, the end that fits them.
#[derive(Clone, Debug)]
pub struct Sequence {
    sizes: Vec<(u64, u32)>,
    hash: Sha256,
    records: u64,
    content_bytes: u64,
    /// The first place that the next record may have.
    next: (u8, u64),
}

impl Sequence {
    /// Before the first record of a clone of these areas.
    pub fn new(areas: &[AreaShape]) -> Self {
        let sizes = areas.iter().map(|area| (area.size_bytes, area.sector_bytes)).collect();
        Self { sizes, hash: Sha256::new(), records: 0, content_bytes: 0, next: (0, 0) }
    }

    /// Takes the next record, which is at a place in the file. Returns whether it is the end.
    ///
    /// Errors: out of order, outside its area, an end that does not fit.
    pub fn take(&mut self, record: &Record, at: u64) -> Result<bool, FormatError> {
        let damaged = |what: &str| Err(FormatError::damaged(at, format!("a record {what}")));
        if let Content::End { sha256 } = record.content {
            let Record { offset_bytes, bytes, .. } = *record;
            let is_whole = sha256 == self.sum() && (offset_bytes, bytes) == (self.records, self.content_bytes);
            return if is_whole { Ok(true) } else { damaged("of the end that does not fit those before it") };
        }
        let Some((size, sector)) = self.sizes.get(usize::from(record.area)) else {
            return damaged("of an area that the header does not have");
        };
        let end = record.offset_bytes.checked_add(record.bytes).filter(|end| end <= size);
        let is_sectors =
            record.bytes > 0 && record.offset_bytes % u64::from(*sector) == 0 && record.bytes % u64::from(*sector) == 0;
        let Some(end) = end.filter(|_| is_sectors) else { return damaged("that lies outside its area") };
        if (record.area, record.offset_bytes) < self.next {
            return damaged("that does not follow the one before it");
        }
        if let Content::Data { stored_bytes, coding, .. } = record.content {
            let is_plain = coding == Coding::Plain && u64::from(stored_bytes) != record.bytes;
            if record.bytes > u64::from(PIECE_BYTES_MAX) || stored_bytes > STORED_BYTES_MAX || is_plain {
                return damaged("with more content than a record may have");
            }
        }
        self.next = (record.area, end);
        self.hash.update(record.encode());
        self.records += 1;
        self.content_bytes += record.bytes;
        Ok(false)
    }

    /// The record that ends the file.
    pub fn end(&self) -> Record {
        let content = Content::End { sha256: self.sum() };
        Record { area: 0, offset_bytes: self.records, bytes: self.content_bytes, content }
    }

    /// The first place that the next record may have: area and offset.
    pub fn next(&self) -> (u8, u64) {
        self.next
    }

    /// The number of records so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    fn sum(&self) -> [u8; 32] {
        self.hash.clone().finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn areas() -> Vec<AreaShape> {
        let area =
            |name: &str| AreaShape { name: name.into(), size_bytes: 1 << 20, sector_bytes: 512, parts: Vec::new() };
        vec![area("user"), area("boot0")]
    }

    fn fill(area: u8, offset_bytes: u64, bytes: u64) -> Record {
        Record { area, offset_bytes, bytes, content: Content::Fill(0xff) }
    }

    #[test]
    fn a_record_survives_its_bytes_and_no_bit_of_it_can_change() {
        let content = Content::Data { coding: Coding::Zstd, stored_bytes: 77, sha256: [9; 32] };
        for record in [Record { area: 3, offset_bytes: 1 << 40, bytes: 4096, content }, fill(1, 512, 1024)] {
            let bytes = record.encode();
            assert_eq!(Record::parse(&bytes, 0), Ok(record));
            for bit in 0..RECORD_BYTES * 8 {
                let mut other = bytes;
                other[bit / 8] ^= 1 << (bit % 8);
                assert!(matches!(Record::parse(&other, 5), Err(FormatError::Damaged { at: 5, .. })), "bit {bit}");
            }
        }
    }

    #[test]
    fn records_ascend_and_the_end_counts_them() {
        let mut sequence = Sequence::new(&areas());
        for record in [fill(0, 0, 512), fill(0, 4096, 512), fill(1, 0, 1 << 20)] {
            assert_eq!(sequence.take(&record, 0), Ok(false));
        }
        let end = sequence.end();
        assert_eq!(sequence.clone().take(&end, 0), Ok(true));
        for wrong in [fill(1, 0, 512), fill(2, 0, 512), fill(1, 1 << 20, 512), fill(1, u64::MAX - 511, 512)] {
            assert!(sequence.clone().take(&wrong, 0).is_err(), "{wrong:?}");
        }
        // The same end without one of the records.
        let mut shorter = Sequence::new(&areas());
        for record in [fill(0, 0, 512), fill(1, 0, 1 << 20)] {
            shorter.take(&record, 0).unwrap();
        }
        let error = shorter.take(&end, 700).unwrap_err().to_string();
        assert!(error.starts_with("damaged at byte 700: a record of the end"), "{error}");
    }
}
