use emmc_units::{Bytes, Nanos};

use crate::{Access, MeasuredSpans, Operation, Spans};

/// A host's parameters around a request, apart from the card.
#[derive(Clone, Debug, PartialEq)]
pub struct HostModel {
    /// The access method.
    pub access: Access,
    /// The operation.
    pub operation: Operation,
    /// The software's spans for `chunk`; the card provides the hardware's.
    pub spans: Spans,
    /// The size for which the spans were measured.
    pub chunk: Bytes,
    /// Pre and post of a request without data: a flush, and nearly one of 4 KiB. Larger requests are interpolated
    /// linearly up to the spans.
    pub small: Spans,
    /// The program's own work and the system call overhead, between two calls.
    pub call: Nanos,
    /// Speed at which the program processes its data. Unit: bytes per second.
    pub touch_bytes_per_s: f64,
    /// After an extending direct write: inode size and orphan list.
    pub size_update: Nanos,
    /// The commit after a sync write.
    pub journal: Journal,
    /// Read-ahead of buffered reads.
    pub read_ahead: ReadAhead,
}

/// The commit of a journal that must be on the card before a sync write returns.
///
/// Source: jbd2_journal_commit_transaction in fs/jbd2/commit.c: descriptor and metadata blocks are written and waited
/// for, then the commit block with PREFLUSH and FUA.
#[derive(Clone, Debug, PartialEq)]
pub struct Journal {
    /// Descriptor and metadata blocks of 4 KiB per appended record.
    pub log_blocks: u64,
    /// The wake-up of the journal's thread, and of the caller afterwards; each.
    pub wake_up: Nanos,
    /// Start of the journal, which is written cyclically. Unit: sectors.
    pub first_lba: u64,
    /// Its length. Unit: sectors.
    pub sectors: u64,
}

/// Read-ahead of a buffered sequential read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadAhead {
    /// Minimum fetch; 0: the size of the call.
    pub window: Bytes,
    /// Whether the next window is fetched while the reader is still in this one.
    pub is_ahead: bool,
}

/// The largest part of a direct call that the kernel hands over at once. Source: BIO_MAX_VECS, 256 pages of 4 KiB, in
/// include/linux/bio.h. Unit: bytes.
pub(crate) const BIO_BYTES: u64 = 1 << 20;
/// Assumed: clock_gettime, comparison of a result, entry and return of a call on a Cortex-A57; the spans begin and end
/// inside it.
const CALL: Nanos = Nanos::from_micros(5);
/// Assumed: one core of a Cortex-A57 with LPDDR4 passing over data that is not in its cache.
const TOUCH_BYTES_PER_S: f64 = 3e9;
/// Assumed: two journal handles and an inode made dirty. Source that it is done: ext4_ind_direct_IO in Linux 3.19,
/// which puts an inode on the orphan list and takes it off, and writes the size, for a write past the end.
const SIZE_UPDATE: Nanos = Nanos::from_micros(40);
/// Source: Table 2: pre of the sync read, which pins no pages of a program and copies nothing yet; post of the sync
/// write, which copies nothing: upper bounds of the kernel's time for its own request.
const SMALL: Spans = Spans::from_micros(99, 0, 51);
/// Assumed: a thread woken on an idle core.
const WAKE_UP: Nanos = Nanos::from_micros(25);
/// Descriptor, inode table, block bitmap, group descriptor. Source: the blocks that ext4 makes dirty when a record is
/// appended.
const LOG_BLOCKS: u64 = 4;
/// Source: VM_MAX_READAHEAD, 128 KiB, include/linux/mm.h of Linux 3.19.
const READ_AHEAD_WINDOW: Bytes = Bytes(128 << 10);
/// Source: mke2fs gives a file system of 8 GB a journal of 128 MiB.
const JOURNAL_SECTORS: u64 = 262_144;

impl HostModel {
    /// The host of a published workload, with the parameters above; the same for every workload of the Jetson TX1.
    ///
    /// Assumed: a buffered read's next window is not fetched ahead. Otherwise, sync sequential reads of Table 2 would
    /// run at the card's speed, 332 MiB/s; 197 were measured, less than pre, hardware and post in sequence give. So
    /// nothing overlapped.
    pub fn of(workload: &MeasuredSpans) -> Self {
        Self {
            access: workload.access,
            operation: workload.operation,
            spans: Spans { hw: Nanos::ZERO, ..workload.spans },
            chunk: workload.chunk,
            small: SMALL,
            call: CALL,
            touch_bytes_per_s: TOUCH_BYTES_PER_S,
            size_update: SIZE_UPDATE,
            journal: Journal { log_blocks: LOG_BLOCKS, wake_up: WAKE_UP, first_lba: 0, sectors: JOURNAL_SECTORS },
            read_ahead: ReadAhead { window: READ_AHEAD_WINDOW, is_ahead: false },
        }
    }

    /// A host of which only the sum of its own time is known, and what each KiB adds: half of it before the card, half
    /// after.
    pub fn of_sum(operation: Operation, sum: Nanos, per_kib: Nanos) -> Self {
        let halves = |sum: Nanos| Spans { pre: Nanos(sum.0 / 2), hw: Nanos::ZERO, post: sum - Nanos(sum.0 / 2) };
        let chunk = Bytes(1 << 20);
        Self {
            access: Access::Direct,
            operation,
            spans: halves(sum + per_kib * (chunk.0 / 1024)),
            chunk,
            small: halves(sum),
            call: Nanos::ZERO,
            touch_bytes_per_s: 0.0,
            size_update: Nanos::ZERO,
            journal: Journal { log_blocks: 0, wake_up: Nanos::ZERO, first_lba: 0, sectors: 0 },
            read_ahead: ReadAhead { window: Bytes(0), is_ahead: false },
        }
    }

    /// Pre of a request of this size.
    pub fn pre(&self, bytes: u64) -> Nanos {
        self.scaled(self.small.pre, self.spans.pre, bytes)
    }

    /// Post of a request of this size.
    pub fn post(&self, bytes: u64) -> Nanos {
        self.scaled(self.small.post, self.spans.post, bytes)
    }

    /// Between two calls of this size.
    pub fn between(&self, bytes: u64) -> Nanos {
        let touch = if self.touch_bytes_per_s > 0.0 { bytes as f64 / self.touch_bytes_per_s * 1e6 } else { 0.0 };
        self.call + Nanos::from_micros_f64(touch)
    }

    /// Interpolates linearly from `small`, or from `full` if that is less, to the chunk at `full`.
    fn scaled(&self, small: Nanos, full: Nanos, bytes: u64) -> Nanos {
        let least = small.min(full);
        let share = bytes as f64 / self.chunk.0.max(1) as f64;
        least + Nanos(((full - least).0 as f64 * share).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform;

    #[test]
    fn spans_scale_from_a_small_request_to_the_chunk() {
        let write = platform("jetson-tx1").unwrap().workload("sync-sequential-write").unwrap();
        let model = HostModel::of(write);
        assert_eq!((model.pre(128 << 10), model.post(128 << 10)), (write.spans.pre, write.spans.post));
        assert_eq!(model.pre(0), Nanos::from_micros(99));
        assert_eq!(model.pre(64 << 10), Nanos::from_micros((99 + 635) / 2));
        assert_eq!(model.pre(256 << 10), Nanos::from_micros(635 + 536));
        assert_eq!(model.between(3_000_000), Nanos::from_micros(1005));
    }
}
