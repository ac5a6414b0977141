//! blktrace's binary, version 1 (7 in its magic): records of 48 bytes, each followed by its data.
//!
//! A file of one processor, `blkparse -d`'s dump, or concatenated files of all processors. Source:
//! `include/uapi/linux/blktrace_api.h`. Version 2 (8 in its magic) is refused by name.

use emmc_port::BlockOp;
use emmc_units::Nanos;

use super::{Event, Kind, Trace, TraceRequest, range, requests};
use crate::import::ImportError;

const RECORD_BYTES: usize = 48;
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;

/// Byte order.
#[derive(Clone, Copy)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let four = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        match self {
            Self::Little => u32::from_le_bytes(four),
            Self::Big => u32::from_be_bytes(four),
        }
    }

    fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let [first, second] = [at, at + 4].map(|at| u64::from(self.u32(bytes, at)));
        match self {
            Self::Little => first | second << 32,
            Self::Big => first << 32 | second,
        }
    }
}

/// The file's byte order, if it is blktrace's.
pub(super) fn order(bytes: &[u8]) -> Option<ByteOrder> {
    let begin = bytes.get(..4)?;
    [ByteOrder::Little, ByteOrder::Big].into_iter().find(|order| order.u32(begin, 0) & !0xff == MAGIC)
}

pub(super) fn read(name: &str, bytes: &[u8], order: ByteOrder) -> Result<Trace, ImportError> {
    let (mut events, mut at, mut number) = (Vec::new(), 0, 0);
    while at < bytes.len() {
        number += 1;
        let wrong = |reason: String| ImportError::Unknown {
            name: name.into(),
            reason: format!("record {number} at byte {at}: {reason}"),
            expected: "a record of blktrace, version 7, whole".into(),
        };
        let record =
            bytes.get(at..at + RECORD_BYTES).ok_or_else(|| wrong(format!("{} bytes are left", bytes.len() - at)))?;
        let magic = order.u32(record, 0);
        if magic != MAGIC | VERSION {
            return Err(wrong(format!("it begins with {magic:#010x}")));
        }
        let last = [record[46], record[47]];
        let data = usize::from(match order {
            ByteOrder::Little => u16::from_le_bytes(last),
            ByteOrder::Big => u16::from_be_bytes(last),
        });
        if data > bytes.len() - at - RECORD_BYTES {
            return Err(wrong(format!("{data} bytes of data are announced")));
        }
        let sector = order.u64(record, 16);
        if let Some(event) = event(record, order) {
            events.push(event.ok_or_else(|| wrong(format!("sector {sector} is past 2^64 bytes")))?);
        }
        at += RECORD_BYTES + data;
    }
    let mut notes = Vec::new();
    let requests = requests(events, &mut notes);
    Ok(Trace { form: "blktrace".into(), requests, notes })
}

/// Nothing if the record is not relevant; an inner nothing if its range is invalid.
fn event(record: &[u8], order: ByteOrder) -> Option<Option<Event>> {
    let action = order.u32(record, 28);
    // Bit 8 of the low half says that the data contains a control group.
    let kind = match action & 0xff {
        1 => Kind::Queued,
        6 => Kind::Requeued,
        7 => Kind::Issued,
        _ => return None,
    };
    let category = |bit: u32| action >> 16 & 1 << bit != 0;
    let (write, flush, passed, notify, discard, fua) =
        (category(1), category(2), category(9), category(10), category(13), category(15));
    if passed || notify {
        return None;
    }
    let op = match (discard, write) {
        (true, _) => BlockOp::Trim,
        (_, true) => BlockOp::Write,
        _ => BlockOp::Read,
    };
    let at = Nanos(order.u64(record, 8));
    let bytes = u64::from(order.u32(record, 24));
    let (sector, sectors) = if bytes == 0 { (0, 0) } else { (order.u64(record, 16), bytes.div_ceil(512)) };
    let request = |(offset_bytes, bytes)| TraceRequest { at, op, offset_bytes, bytes, through: fua && write, discard };
    Some(range(sector, sectors).map(|range| Event { at, kind, request: request(range), flush }))
}
