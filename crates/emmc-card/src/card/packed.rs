//! Packed commands: several writes or reads in one transfer, described by a header.
//!
//! A packed write is CMD23 (packed), CMD25 and the header followed by the data; a packed read is CMD23 (packed, one
//! block), CMD25 with the header, then CMD23 (packed) and CMD18. The header's entries are the arguments of the CMD23
//! and of the CMD25 or CMD18 that each would have been on its own. Absent on purpose: the transfer of each entry
//! (`transfer`).
//!
//! Source: JESD84-B51 clause 6.6.29 and PACKED_COMMAND_STATUS, PACKED_FAILURE_INDEX; Linux's `mmc_blk_packed_hdr`.

use emmc_regs::command::SetBlockCount;
use emmc_regs::ext_csd::{EXT_CSD_BYTES, reg};

const VERSION: u8 = 1;
const READ: u8 = 1;
const WRITE: u8 = 2;
const ENTRY_BYTES: usize = 8;

/// PACKED_COMMAND_STATUS: something failed.
const ERROR: u8 = 1;
/// PACKED_COMMAND_STATUS: PACKED_FAILURE_INDEX is valid.
const INDEXED_ERROR: u8 = 2;

/// One command of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The argument of its CMD23.
    pub(crate) count: SetBlockCount,
    /// The argument of its CMD25 or CMD18.
    pub(crate) address: u32,
}

/// A packed command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    /// From the card to the host.
    pub(crate) read: bool,
    /// In the order of the data.
    pub(crate) entries: Vec<Entry>,
}

impl Packed {
    /// Reads a header.
    ///
    /// Errors: another version or direction, no entries or more than the card takes, an entry without blocks.
    pub(crate) fn parse(ext_csd: &[u8; EXT_CSD_BYTES], header: &[u8]) -> Option<Self> {
        let [version, direction, count, _, ..] = *header else { return None };
        let (read, most) = match direction {
            READ => (true, ext_csd[reg::MAX_PACKED_READS]),
            WRITE => (false, ext_csd[reg::MAX_PACKED_WRITES]),
            _ => return None,
        };
        if version != VERSION || count == 0 || count > most {
            return None;
        }
        let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let entry = |bytes: &[u8]| Entry { count: SetBlockCount::decode(word(bytes)), address: word(&bytes[4..]) };
        let entries: Vec<Entry> =
            header.chunks_exact(ENTRY_BYTES).skip(1).take(usize::from(count)).map(entry).collect();
        let whole = entries.len() == usize::from(count) && entries.iter().all(|entry| entry.count.blocks > 0);
        whole.then_some(Self { read, entries })
    }

    /// Blocks of all entries together.
    pub(crate) fn blocks(&self) -> u32 {
        self.entries.iter().map(|entry| u32::from(entry.count.blocks)).sum()
    }
}

/// A packed command starts: clears the status of the previous one.
pub(crate) fn begin(ext_csd: &mut [u8; EXT_CSD_BYTES]) {
    (ext_csd[reg::PACKED_COMMAND_STATUS], ext_csd[reg::PACKED_FAILURE_INDEX]) = (0, 0);
}

/// A packed command failed, at an entry (counted from 0) or as a whole.
pub(crate) fn fail(ext_csd: &mut [u8; EXT_CSD_BYTES], entry: Option<usize>) {
    match entry.and_then(|entry| u8::try_from(entry + 1).ok()) {
        Some(number) => {
            (ext_csd[reg::PACKED_COMMAND_STATUS], ext_csd[reg::PACKED_FAILURE_INDEX]) = (ERROR | INDEXED_ERROR, number)
        }
        None => (ext_csd[reg::PACKED_COMMAND_STATUS], ext_csd[reg::PACKED_FAILURE_INDEX]) = (ERROR, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part() -> [u8; EXT_CSD_BYTES] {
        let mut ext_csd = [0; EXT_CSD_BYTES];
        (ext_csd[reg::MAX_PACKED_WRITES], ext_csd[reg::MAX_PACKED_READS]) = (63, 2);
        ext_csd
    }

    /// A header as Linux writes it: little-endian words.
    fn header(direction: u8, entries: &[(u32, u32)]) -> Vec<u8> {
        let mut bytes = vec![0; 512];
        bytes[..4].copy_from_slice(&[VERSION, direction, entries.len() as u8, 0]);
        for (at, (count, address)) in (8..).step_by(8).zip(entries) {
            bytes[at..at + 4].copy_from_slice(&count.to_le_bytes());
            bytes[at + 4..at + 8].copy_from_slice(&address.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn a_header_of_linux_is_read() {
        let packed = Packed::parse(&part(), &header(WRITE, &[(0x8000_0008, 0x1000), (0x0000_0010, 0x2000)])).unwrap();
        assert!(!packed.read);
        assert_eq!(packed.blocks(), 24);
        assert_eq!((packed.entries[0].count.reliable_write, packed.entries[0].address), (true, 0x1000));
        assert_eq!((packed.entries[1].count.blocks, packed.entries[1].address), (16, 0x2000));
        assert!(Packed::parse(&part(), &header(READ, &[(1, 0), (1, 8)])).unwrap().read);
        assert_eq!(Packed::parse(&part(), &header(WRITE, &[(1, 0); 63])).unwrap().blocks(), 63);
    }

    #[test]
    fn an_invalid_header_is_refused() {
        let good = header(WRITE, &[(1, 0)]);
        for (at, value) in [(0, 0), (0, 2), (1, 0), (1, 3), (2, 0), (2, 64)] {
            let mut bytes = good.clone();
            bytes[at] = value;
            assert_eq!(Packed::parse(&part(), &bytes), None, "byte {at} = {value}");
        }
        assert_eq!(
            Packed::parse(&part(), &header(READ, &[(1, 0), (1, 8), (1, 16)])),
            None,
            "more than MAX_PACKED_READS"
        );
        assert_eq!(Packed::parse(&part(), &header(WRITE, &[(1, 0), (0, 8)])), None, "an entry without blocks");
        assert_eq!(Packed::parse(&part(), &good[..10]), None);
        assert_eq!(Packed::parse(&[0; EXT_CSD_BYTES], &good), None, "a card without packed commands");
    }

    #[test]
    fn failures_are_numbered_from_one() {
        let mut ext_csd = part();
        fail(&mut ext_csd, Some(0));
        assert_eq!((ext_csd[reg::PACKED_COMMAND_STATUS], ext_csd[reg::PACKED_FAILURE_INDEX]), (3, 1));
        fail(&mut ext_csd, None);
        assert_eq!((ext_csd[reg::PACKED_COMMAND_STATUS], ext_csd[reg::PACKED_FAILURE_INDEX]), (1, 0));
        begin(&mut ext_csd);
        assert_eq!((ext_csd[reg::PACKED_COMMAND_STATUS], ext_csd[reg::PACKED_FAILURE_INDEX]), (0, 0));
    }
}
