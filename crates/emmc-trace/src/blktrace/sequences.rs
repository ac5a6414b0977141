//! Sequence numbers of records, and runs of records that follow each other.

use std::collections::HashMap;

use emmc_units::Nanos;

use super::record::{Known, Meaning, Record, eight, word};
use super::{MAGIC, RECORD_BYTES, SEQUENCES_MAX, VERSION};
use crate::event::{BlockEvent, Event, What};
use crate::notes::{Batch, Mixer};

/// Last sequence number and time for a device on a processor.
pub(super) struct Sequences {
    all: HashMap<u64, (u32, Nanos), Mixer>,
    /// Of the last record, which is not in the table.
    last: (u64, u32, Nanos),
}

impl Default for Sequences {
    fn default() -> Self {
        Self { all: HashMap::default(), last: (u64::MAX, 0, Nanos::ZERO) }
    }
}

impl Sequences {
    /// Reads records up to the first one that has data, does not follow the one before, or has an action that is not
    /// plain or was not seen before: nearly all have and do none of these. How many it read.
    #[inline]
    pub(super) fn run(&mut self, known: &Known, bytes: &[u8], batch: &mut Batch) -> usize {
        let (key, mut number, mut at) = self.last;
        // Device and processor as they are in a record.
        let key_bytes = key.rotate_left(32);
        let before = batch.events.len();
        for record in bytes.chunks_exact(RECORD_BYTES) {
            let record: &[u8; RECORD_BYTES] = record.try_into().expect("a chunk of this size");
            let (begin, sector, device_cpu) = (eight(record, 0), eight(record, 16), eight(record, 36));
            let (action, last) = (word(record, 28), word(record, 44));
            let meaning = &known[Meaning::place(action)];
            let expected = u64::from(MAGIC | VERSION) | u64::from(number.wrapping_add(1)) << 32;
            let differs = begin ^ expected
                | device_cpu ^ key_bytes
                | u64::from(action ^ meaning.bits | last >> 16)
                | meaning.kind as u64
                | sector >> 54;
            if differs != 0 {
                break;
            }
            (number, at) = (number.wrapping_add(1), Nanos(eight(record, 8)));
            let Meaning { action, op, flags, errors, .. } = *meaning;
            let (sectors, other) = (word(record, 24).div_ceil(512), last & u32::from(errors));
            let block = BlockEvent { action, op, flags, device: device_cpu as u32, sector, sectors, other };
            let (pid, cpu) = (word(record, 32), (device_cpu >> 32) as u32);
            batch.events.push(Event { at, pid, cpu, what: What::Block(block) });
        }
        self.last = (key, number, at);
        batch.events.len() - before
    }

    /// Reports records that were dropped before this one.
    #[inline(always)]
    pub(super) fn follow(&mut self, batch: &mut Batch, record: &Record) {
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
