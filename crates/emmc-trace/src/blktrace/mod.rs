//! blktrace's binary files, version 1 (7 in their magic): records of 48 bytes, each followed by its data.
//!
//! A file of one processor, `blkparse -d`'s dump, or concatenated files. Source:
//! `include/uapi/linux/blktrace_api.h`. Version 2 (8 in its magic) is reported and not read.

mod record;
mod sequences;

use std::io::Read;

use self::record::{Known, Meaning, Record};
use self::sequences::Sequences;
use crate::notes::Batch;
use crate::source::EventSource;
use crate::window::Window;

const RECORD_BYTES: usize = 48;
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;
/// Records in a batch.
const BATCH: usize = 1024;
/// Pairs of device and processor whose sequence numbers are followed.
const SEQUENCES_MAX: usize = 4096;

/// Byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    Little,
    Big,
}

/// The byte order, if these bytes begin a record of any version.
pub(crate) fn order(bytes: &[u8]) -> Option<ByteOrder> {
    let begin = [*bytes.first()?, *bytes.get(1)?, *bytes.get(2)?, *bytes.get(3)?];
    if u32::from_le_bytes(begin) & !0xff == MAGIC {
        Some(ByteOrder::Little)
    } else if u32::from_be_bytes(begin) & !0xff == MAGIC {
        Some(ByteOrder::Big)
    } else {
        None
    }
}

/// A binary file of blktrace.
pub struct Blktrace<R> {
    window: Window<R>,
    order: Option<ByteOrder>,
    records: u64,
    sequences: Sequences,
    known: Known,
}

impl<R: Read> Blktrace<R> {
    /// From the first record.
    pub fn new(from: R) -> Self {
        let sequences = Sequences::default();
        Self { window: Window::new(from), order: None, records: 0, sequences, known: [Meaning::NONE; 128] }
    }

    /// Goes to the next magic, at most to the end of what is buffered.
    fn skip(&mut self, batch: &mut Batch, found: String) {
        let at = self.window.offset();
        let expected = "a whole record of blktrace, version 7";
        batch.notes.damage(at, 0, format!("record {}: {found}", self.records + 1), expected);
        let order = self.order;
        let bytes = self.window.peek(RECORD_BYTES, &mut batch.notes);
        let begins = |at: &usize| {
            let magic = self::order(&bytes[*at..]);
            magic.is_some() && (order.is_none() || magic == order)
        };
        let to = (1..bytes.len()).find(begins).unwrap_or(bytes.len());
        self.window.consume(to);
    }

    /// Reads the whole and valid records of little-endian order that are buffered, at most this many.
    fn run(&mut self, batch: &mut Batch, most: usize) -> usize {
        let bytes = self.window.peek(RECORD_BYTES, &mut batch.notes);
        let (mut rest, mut count) = (bytes, 0);
        loop {
            let plain = self.sequences.run(&self.known, &rest[..rest.len().min((most - count) * RECORD_BYTES)], batch);
            rest = &rest[plain * RECORD_BYTES..];
            count += plain;
            let Some((record, data)) = rest.split_first_chunk::<RECORD_BYTES>() else { break };
            if count == most {
                break;
            }
            let record = Record::new::<false>(record);
            let Some(after) = data.get(usize::from(record.data)..) else { break };
            if !record.is_valid() {
                break;
            }
            record.give(data, &mut self.sequences, &mut self.known, batch);
            rest = after;
            count += 1;
        }
        let read = bytes.len() - rest.len();
        self.window.consume(read);
        self.records += count as u64;
        count
    }
}

impl<R: Read> EventSource for Blktrace<R> {
    fn fill(&mut self, batch: &mut Batch) -> bool {
        let mut left = BATCH;
        batch.events.reserve(BATCH);
        while left > 0 {
            if self.order == Some(ByteOrder::Little) {
                left -= self.run(batch, left);
                if left == 0 {
                    break;
                }
            }
            // One record, with all that may be wrong.
            left -= 1;
            let bytes = self.window.peek(RECORD_BYTES, &mut batch.notes);
            if bytes.is_empty() {
                return false;
            }
            let Some(record) = bytes.first_chunk::<RECORD_BYTES>() else {
                let left = bytes.len();
                self.skip(batch, format!("{left} bytes are left"));
                continue;
            };
            let order = match self.order {
                Some(order) => order,
                None => {
                    let found = order(record);
                    self.order = found;
                    found.unwrap_or(ByteOrder::Little)
                }
            };
            let record =
                if order == ByteOrder::Little { Record::new::<false>(record) } else { Record::new::<true>(record) };
            if record.magic != MAGIC | VERSION {
                let found = format!("it begins with {:#010x}", record.magic);
                self.skip(batch, found);
                continue;
            }
            let whole = RECORD_BYTES + usize::from(record.data);
            let bytes = self.window.peek(whole, &mut batch.notes);
            let Some(data) = bytes.get(RECORD_BYTES..whole) else {
                self.skip(batch, format!("{} bytes of data are announced", record.data));
                continue;
            };
            if !record.is_valid() {
                let found = format!("sector {} is past 2^64 bytes", record.sector);
                self.skip(batch, found);
                continue;
            }
            record.give(data, &mut self.sequences, &mut self.known, batch);
            self.window.consume(whole);
            self.records += 1;
        }
        true
    }
}
