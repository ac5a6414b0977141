//! blktrace's binary files, version 1 (7 in their magic): records of 48 bytes, each followed by its data.
//!
//! A file of one processor, `blkparse -d`'s dump, or concatenated files. Source:
//! `include/uapi/linux/blktrace_api.h`. Version 2 (8 in its magic) is reported and not read.

use std::collections::HashMap;
use std::io::Read;

use emmc_units::Nanos;

use crate::event::{Action, BlockEvent, Event, Flags, Op, What, first_part, is_place};
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
    sequences: Sequences,
    known: Known,
}

/// What recent actions meant: a recording has few of them.
type Known = [Meaning; 128];

/// What an action means.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Meaning {
    /// All bits of it.
    bits: u32,
    kind: Kind,
    action: Action,
    op: Op,
    flags: Flags,
    /// All bits if the record's error is of use.
    errors: u16,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unused,
    Plain,
    /// A flush is a read if it has bytes.
    Flush,
    /// Its data is of use.
    Split,
}

impl Meaning {
    const NONE: Self =
        Self { bits: 0, kind: Kind::Unused, action: Action::Plug, op: Op::Other, flags: Flags(0), errors: 0 };

    #[cold]
    fn of(bits: u32) -> Self {
        let has = |bit: u32| bits >> 16 >> bit & 1 != 0;
        let action = ACTIONS.get((bits & 0xff) as usize).copied().flatten().filter(|_| !has(PASSED));
        let Some(action) = action else { return Self { bits, ..Self::NONE } };
        let op = match (has(DISCARD), has(WRITE), has(FLUSH)) {
            (true, ..) => Op::Discard,
            (_, true, _) => Op::Write,
            (.., true) => Op::Flush,
            _ => Op::Read,
        };
        let flags = [
            (FLUSH, Flags::PREFLUSH),
            (FUA, Flags::FUA),
            (SYNC, Flags::SYNC),
            (META, Flags::META),
            (AHEAD, Flags::AHEAD),
        ];
        let flags = flags.into_iter().filter(|(bit, _)| has(*bit)).fold(0, |all, (_, flag)| all | flag.0);
        let kind = match (action, op) {
            (Action::Split, _) => Kind::Split,
            (_, Op::Flush) => Kind::Flush,
            _ => Kind::Plain,
        };
        let errors = if action == Action::Complete { u16::MAX } else { 0 };
        Self { bits, kind, action, op, flags: Flags(flags), errors }
    }
}

/// Last sequence number and time for a device on a processor.
struct Sequences {
    all: HashMap<u64, (u32, Nanos), Mixer>,
    /// Of the last record, which is not in the table.
    last: (u64, u32, Nanos),
}

impl<R: Read> Blktrace<R> {
    /// From the first record.
    pub fn new(from: R) -> Self {
        let sequences = Sequences { all: HashMap::default(), last: (u64::MAX, 0, Nanos::ZERO) };
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
        while count < most {
            let Some((record, data)) = rest.split_first_chunk::<RECORD_BYTES>() else { break };
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

impl Sequences {
    /// Reports records that were dropped before this one.
    #[inline(always)]
    fn follow(&mut self, batch: &mut Batch, record: &Record) {
        let (number, at) = (record.sequence, record.time);
        let key = u64::from(record.device) << 32 | u64::from(record.cpu);
        let (last_key, last, _) = self.last;
        if key != last_key || number != last.wrapping_add(1) {
            self.jump(batch, (key, number, at));
        }
        self.last = (key, number, at);
    }

    /// Another device or processor, or a number that does not follow.
    #[cold]
    fn jump(&mut self, batch: &mut Batch, (key, number, at): (u64, u32, Nanos)) {
        let (last_key, last, before) = self.last;
        let known = if key == last_key {
            Some((last, before))
        } else {
            if last_key != u64::MAX && self.all.len() < SEQUENCES_MAX {
                self.all.insert(last_key, (last, before));
            }
            self.all.get(&key).copied()
        };
        if let Some((last, before)) = known {
            let dropped = number.wrapping_sub(last).wrapping_sub(1);
            // A number that goes back is another recording in the same file, or a file that is not in order.
            if dropped != 0 && dropped < 1 << 30 && before <= at {
                batch.lost((before, at), Some(u64::from(dropped)), key as u32);
            }
        }
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

/// The fixed part of a record.
#[derive(Clone, Copy)]
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

/// Bits of an action's upper half: `BLK_TC_*`.
const WRITE: u32 = 1;
const FLUSH: u32 = 2;
const SYNC: u32 = 3;
const PASSED: u32 = 9;
const NOTE: u32 = 10;
const AHEAD: u32 = 11;
const META: u32 = 12;
const DISCARD: u32 = 13;
const FUA: u32 = 15;

/// By the low byte of an action: `__BLK_TA_*`.
const ACTIONS: [Option<Action>; 16] = [
    None,
    Some(Action::Queue),
    Some(Action::BackMerge),
    Some(Action::FrontMerge),
    Some(Action::GetRequest),
    Some(Action::Sleep),
    Some(Action::Requeue),
    Some(Action::Issue),
    Some(Action::Complete),
    Some(Action::Plug),
    Some(Action::Unplug),
    Some(Action::Unplug),
    Some(Action::Insert),
    Some(Action::Split),
    None,
    Some(Action::Remap),
];

impl Record {
    #[inline(always)]
    fn new<const BIG: bool>(record: &[u8; RECORD_BYTES]) -> Self {
        let u32_at = |at: usize| {
            let four = [record[at], record[at + 1], record[at + 2], record[at + 3]];
            if BIG { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
        };
        let u64_at = |at: usize| {
            let [first, second] = [u32_at(at), u32_at(at + 4)].map(u64::from);
            if BIG { first << 32 | second } else { first | second << 32 }
        };
        let last = u32_at(44);
        let halves = [last as u16, (last >> 16) as u16];
        let [error, data] = if BIG { [halves[1], halves[0]] } else { halves };
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

    #[inline(always)]
    fn has(self, bit: u32) -> bool {
        self.action >> 16 >> bit & 1 != 0
    }

    /// Its version, and its place.
    #[inline(always)]
    fn is_valid(&self) -> bool {
        self.magic == MAGIC | VERSION && (is_place(self.sector, self.sectors()) || self.has(NOTE))
    }

    /// Puts its event, or what else it says, into the batch.
    #[inline(always)]
    fn give(&self, data: &[u8], sequences: &mut Sequences, known: &mut Known, batch: &mut Batch) {
        // The low bits, and those of read, write, flush and sync.
        let meaning = &mut known[((self.action ^ self.action >> 13) & 127) as usize];
        if meaning.bits != self.action {
            if self.has(NOTE) {
                let data = data.get(..usize::from(self.data)).unwrap_or_default();
                return note(self.action, self.pid, data, batch);
            }
            *meaning = Meaning::of(self.action);
        }
        let Meaning { kind, action, mut op, flags, errors, .. } = *meaning;
        sequences.follow(batch, self);
        let mut other = u32::from(self.error & errors);
        if kind != Kind::Plain {
            match kind {
                Kind::Flush if self.bytes != 0 => op = Op::Read,
                Kind::Split => {
                    let data = data.get(..usize::from(self.data)).unwrap_or_default();
                    other = split(self.action, self.sector, data);
                }
                Kind::Unused => {
                    batch.notes.unused += 1;
                    return;
                }
                _ => {}
            }
        }
        let (device, sector, sectors) = (self.device, self.sector, self.sectors());
        let block = BlockEvent { action, op, flags, device, sector, sectors, other };
        batch.events.push(Event { at: self.time, pid: self.pid, cpu: self.cpu, what: What::Block(block) });
    }

    #[inline(always)]
    fn sectors(self) -> u32 {
        self.bytes.div_ceil(512)
    }
}

/// The name of a thread.
#[cold]
fn note(action: u32, pid: u32, data: &[u8], batch: &mut Batch) {
    if action & 0xff == 0 {
        batch.notes.names.set(pid, data);
    }
}

/// The sectors of a split's first part.
#[cold]
fn split(action: u32, sector: u64, data: &[u8]) -> u32 {
    // Bit 8 of the low half says that the data begins with a control group of 8 bytes. The remainder of a split is
    // big-endian in every file.
    let data = if action & 1 << 8 == 0 { data } else { data.get(8..).unwrap_or_default() };
    data.first_chunk::<8>().map_or(0, |rest| first_part(sector, u64::from_be_bytes(*rest)))
}
