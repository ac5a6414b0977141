//! One record, and what its action means.

use emmc_units::Nanos;

use super::sequences::Sequences;
use super::{MAGIC, RECORD_BYTES, VERSION};
use crate::event::{Action, BlockEvent, Event, Flags, Op, What, first_part, is_place};
use crate::notes::Batch;

/// What recent actions meant: a recording has few of them.
pub(super) type Known = [Meaning; 128];

/// What an action means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Meaning {
    /// All bits of it.
    pub(super) bits: u32,
    pub(super) kind: Kind,
    pub(super) action: Action,
    pub(super) op: Op,
    pub(super) flags: Flags,
    /// All bits if the record's error is of use.
    pub(super) errors: u16,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Unused,
    /// A flush is a read if it has bytes.
    Flush,
    /// Its data is of use.
    Split,
}

impl Meaning {
    pub(super) const NONE: Self =
        Self { bits: 0, kind: Kind::Unused, action: Action::Plug, op: Op::Other, flags: Flags(0), errors: 0 };

    /// The low bits, and those of read, write, flush and sync.
    #[inline(always)]
    pub(super) fn place(action: u32) -> usize {
        ((action ^ action >> 13) & 127) as usize
    }

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

/// The fixed part of a record.
#[derive(Clone, Copy)]
pub(super) struct Record {
    pub(super) magic: u32,
    pub(super) sequence: u32,
    pub(super) time: Nanos,
    pub(super) sector: u64,
    bytes: u32,
    action: u32,
    pid: u32,
    pub(super) device: u32,
    pub(super) cpu: u32,
    error: u16,
    pub(super) data: u16,
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

/// Four bytes of a little-endian record.
#[inline(always)]
pub(super) fn word(record: &[u8; RECORD_BYTES], at: usize) -> u32 {
    record[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Eight of them.
#[inline(always)]
pub(super) fn eight(record: &[u8; RECORD_BYTES], at: usize) -> u64 {
    record[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

impl Record {
    #[inline(always)]
    pub(super) fn new<const BIG: bool>(record: &[u8; RECORD_BYTES]) -> Self {
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
    pub(super) fn is_valid(&self) -> bool {
        self.magic == MAGIC | VERSION && (is_place(self.sector, self.sectors()) || self.has(NOTE))
    }

    /// Puts its event, or what else it says, into the batch.
    #[inline(always)]
    pub(super) fn give(&self, data: &[u8], sequences: &mut Sequences, known: &mut Known, batch: &mut Batch) {
        let meaning = &mut known[Meaning::place(self.action)];
        if meaning.bits != self.action {
            if self.has(NOTE) {
                let data = data.get(..usize::from(self.data)).unwrap_or_default();
                return note(self.action, self.pid, data, batch);
            }
            *meaning = Meaning::of(self.action);
        }
        let meaning = *meaning;
        sequences.follow(batch, self);
        let mut event = self.event(&meaning);
        if let What::Block(block) = &mut event.what {
            match meaning.kind {
                Kind::Plain => {}
                Kind::Flush if self.bytes != 0 => block.op = Op::Read,
                Kind::Flush => {}
                Kind::Split => {
                    let data = data.get(..usize::from(self.data)).unwrap_or_default();
                    block.other = split(self.action, self.sector, data);
                }
                Kind::Unused => {
                    batch.notes.unused += 1;
                    return;
                }
            }
        }
        batch.events.push(event);
    }

    #[inline(always)]
    fn event(&self, meaning: &Meaning) -> Event {
        let Meaning { action, op, flags, errors, .. } = *meaning;
        let (device, sector, sectors, other) =
            (self.device, self.sector, self.sectors(), u32::from(self.error & errors));
        let block = BlockEvent { action, op, flags, device, sector, sectors, other };
        Event { at: self.time, pid: self.pid, cpu: self.cpu, what: What::Block(block) }
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
