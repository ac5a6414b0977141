//! blktrace's binary files, version 1 (7 in their magic): records of 48 bytes, each followed by its data.
//!
//! A file of one processor, `blkparse -d`'s dump, or concatenated files. Source:
//! `include/uapi/linux/blktrace_api.h`. Version 2 (8 in its magic) is reported and not read.

use std::collections::HashMap;
use std::io::Read;

use emmc_units::Nanos;

use crate::event::{Action, BlockEvent, Event, Flags, Op, What, is_place};
use crate::notes::{Batch, Mixer};
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
    /// Last sequence number and time for a device on a processor.
    sequences: HashMap<u64, (u32, Nanos), Mixer>,
    last: (u64, u32, Nanos),
}

impl<R: Read> Blktrace<R> {
    /// From the first record.
    pub fn new(from: R) -> Self {
        let last = (u64::MAX, 0, Nanos::ZERO);
        Self { window: Window::new(from), order: None, records: 0, sequences: HashMap::default(), last }
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

    /// Reports records that were dropped before this one.
    #[inline]
    fn follow(&mut self, batch: &mut Batch, (device, cpu): (u32, u32), number: u32, at: Nanos) {
        let key = u64::from(device) << 32 | u64::from(cpu);
        let (last_key, last, before) = self.last;
        let known = if key == last_key {
            Some((last, before))
        } else {
            if last_key != u64::MAX && self.sequences.len() < SEQUENCES_MAX {
                self.sequences.insert(last_key, (last, before));
            }
            self.sequences.get(&key).copied()
        };
        if let Some((last, before)) = known {
            let dropped = number.wrapping_sub(last).wrapping_sub(1);
            // A number that goes back is another recording in the same file, or a file that is not in order.
            if dropped != 0 && dropped < 1 << 30 && before <= at {
                batch.lost((before, at), Some(u64::from(dropped)), cpu);
            }
        }
        self.last = (key, number, at);
    }
}

impl<R: Read> EventSource for Blktrace<R> {
    fn fill(&mut self, batch: &mut Batch) -> bool {
        for _ in 0..BATCH {
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
            let record = Record::new(record, order);
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
            if !is_place(record.sector, record.bytes.div_ceil(512)) && !record.is_note() {
                let found = format!("sector {} is past 2^64 bytes", record.sector);
                self.skip(batch, found);
                continue;
            }
            let event = record.event(data, batch);
            self.window.consume(whole);
            self.records += 1;
            match event {
                Some(event) => {
                    self.follow(batch, (record.device, event.cpu), record.sequence, event.at);
                    batch.events.push(event);
                }
                None if record.is_note() => {}
                None => {
                    batch.notes.unused += 1;
                    self.follow(batch, (record.device, record.cpu), record.sequence, record.time);
                }
            }
        }
        true
    }
}

/// The fixed part of a record.
struct Record {
    magic: u32,
    sequence: u32,
    time: Nanos,
    sector: u64,
    bytes: u32,
    action: u32,
    pid: u32,
    device: u32,
    cpu: u32,
    error: u16,
    data: u16,
}

/// Bits of an action's upper half.
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const SYNC: u32 = 1 << 3;
const PASSED: u32 = 1 << 9;
const NOTE: u32 = 1 << 10;
const AHEAD: u32 = 1 << 11;
const META: u32 = 1 << 12;
const DISCARD: u32 = 1 << 13;
const FUA: u32 = 1 << 15;

impl Record {
    #[inline]
    fn new(record: &[u8; RECORD_BYTES], order: ByteOrder) -> Self {
        let u32_at = |at: usize| {
            let four = [record[at], record[at + 1], record[at + 2], record[at + 3]];
            if order == ByteOrder::Little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) }
        };
        let u64_at = |at: usize| {
            let [first, second] = [u32_at(at), u32_at(at + 4)].map(u64::from);
            if order == ByteOrder::Little { first | second << 32 } else { first << 32 | second }
        };
        let last = u32_at(44);
        let halves = [last as u16, (last >> 16) as u16];
        let [error, data] = if order == ByteOrder::Little { halves } else { [halves[1], halves[0]] };
        Self {
            magic: u32_at(0),
            sequence: u32_at(4),
            time: Nanos(u64_at(8)),
            sector: u64_at(16),
            bytes: u32_at(24),
            action: u32_at(28),
            pid: u32_at(32),
            device: u32_at(36),
            cpu: u32_at(40),
            error,
            data,
        }
    }

    fn is_note(&self) -> bool {
        self.action >> 16 & NOTE != 0
    }

    /// `None` if the record is of no use here.
    #[inline]
    fn event(&self, data: &[u8], batch: &mut Batch) -> Option<Event> {
        let has = |bit: u32| self.action >> 16 & bit != 0;
        if self.is_note() {
            // The name of a thread.
            if self.action & 0xff == 0 {
                batch.notes.names.set(self.pid, data);
            }
            return None;
        }
        if has(PASSED) {
            return None;
        }
        // Bit 8 of the low half says that the data begins with a control group of 8 bytes.
        let data = if self.action & 1 << 8 == 0 { data } else { data.get(8..).unwrap_or_default() };
        let action = match self.action & 0xff {
            1 => Action::Queue,
            2 => Action::BackMerge,
            3 => Action::FrontMerge,
            4 => Action::GetRequest,
            5 => Action::Sleep,
            6 => Action::Requeue,
            7 => Action::Issue,
            8 => Action::Complete,
            9 => Action::Plug,
            10 | 11 => Action::Unplug,
            12 => Action::Insert,
            13 => Action::Split,
            15 => Action::Remap,
            _ => return None,
        };
        let op = match (has(DISCARD), has(WRITE)) {
            (true, _) => Op::Discard,
            (_, true) => Op::Write,
            (false, false) if has(FLUSH) && self.bytes == 0 => Op::Flush,
            _ => Op::Read,
        };
        let bits = [(FLUSH, Flags::PREFLUSH), (FUA, Flags::FUA), (SYNC, Flags::SYNC), (META, Flags::META)];
        let mut flags = bits.into_iter().filter(|(bit, _)| has(*bit)).fold(0, |all, (_, flag)| all | flag.0);
        if has(AHEAD) {
            flags |= Flags::AHEAD.0;
        }
        // The remainder of a split is big-endian in every file.
        let other = match (action, data.first_chunk::<8>()) {
            (Action::Split, Some(sector)) => u64::from_be_bytes(*sector),
            (Action::Complete, _) => u64::from(self.error),
            _ => 0,
        };
        Some(Event {
            at: self.time,
            pid: self.pid,
            cpu: self.cpu,
            what: What::Block(BlockEvent {
                action,
                op,
                flags: Flags(flags),
                device: self.device,
                sector: self.sector,
                sectors: self.bytes.div_ceil(512),
                other,
            }),
        })
    }
}
