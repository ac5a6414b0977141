use emmc_units::{Bytes, Instant, Nanos, SECTOR_BYTES};
use serde::Serialize;

use crate::system::{ConstantCard, Host, HostModel, ReadAhead, Spent};
use crate::{Access, MeasuredSpans, Operation, Speed, platform};

/// A measured speed, and the model's.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredSpeed {
    /// The workload.
    pub workload: &'static str,
    /// As measured. Unit: MiB/s (the paper writes MB/s).
    pub measured_mib_s: f64,
    /// The three stages in sequence, without the other mechanisms.
    pub one_at_a_time: Speed,
    /// With all mechanisms.
    pub simulated: Speed,
    /// Simulated over measured, minus one. Unit: percent.
    pub difference_percent: f64,
    /// Breakdown of a record's time, on average. Unit: microseconds.
    pub per_record_us: PerRecord,
    /// With the next window fetched ahead, for buffered reads: the measurement excludes this.
    pub read_ahead: Option<Speed>,
}

/// Breakdown of a record's time. Unit: microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PerRecord {
    /// The program itself, and the way in and out of the kernel.
    pub program: f64,
    /// Pre, hardware and post of the record.
    pub request: f64,
    /// After extending direct writes: size and orphan list.
    pub size_update: f64,
    /// The journal's descriptor and metadata blocks.
    pub journal_log: f64,
    /// The flush of the card's cache.
    pub flush: f64,
    /// The journal's commit block.
    pub journal_commit: f64,
}

/// Records of a run: a file of 100 MiB.
const RECORDS: u64 = 800;

/// A request of 4 KiB. Source: the paper's list has software at about 45 % of direct writes of 4 KiB on the TX1; with
/// 150 us of software (see [`HostModel::small`]) that leaves 183 us to the card.
const PAGE_TIME: Nanos = Nanos::from_micros(183);

/// One program of the flash. Assumed: a page of one bit a cell, where small writes go first (200 to 300 us in data
/// sheets).
const PROGRAM: Nanos = Nanos::from_micros(250);

pub(super) fn measured() -> Vec<MeasuredSpeed> {
    let Some(jetson) = platform("jetson-tx1") else { return Vec::new() };
    jetson.workloads.iter().filter_map(|workload| one(workload, workload.measured_mib_s?)).collect()
}

fn one(workload: &MeasuredSpans, measured: f64) -> Option<MeasuredSpeed> {
    let model = HostModel::of(workload);
    let (simulated, spent) = run(model.clone(), workload);
    let is_buffered_read = (workload.access, workload.operation) == (Access::Sync, Operation::Read);
    let ahead = HostModel { read_ahead: ReadAhead { is_ahead: true, ..model.read_ahead }, ..model };
    let us = |ns: u64| ns as f64 / RECORDS as f64 / 1e3;
    Some(MeasuredSpeed {
        workload: workload.name,
        measured_mib_s: measured,
        one_at_a_time: Speed::of(workload.chunk, workload.spans.total().0 as f64),
        simulated,
        difference_percent: (simulated.mib_s / measured - 1.0) * 100.0,
        per_record_us: PerRecord {
            program: us(spent.program_ns),
            request: us(spent.pre_ns + spent.card_ns + spent.post_ns),
            size_update: us(spent.size_update_ns),
            journal_log: us(spent.journal_log_ns),
            flush: us(spent.flush_ns),
            journal_commit: us(spent.journal_commit_ns),
        },
        read_ahead: is_buffered_read.then(|| run(ahead, workload).0),
    })
}

/// Records in sequence on a card with the published hardware time.
fn run(model: HostModel, workload: &MeasuredSpans) -> (Speed, Spent) {
    let card =
        ConstantCard { chunk: workload.chunk, chunk_time: workload.spans.hw, page_time: PAGE_TIME, program: PROGRAM };
    let sectors = workload.chunk.0 / SECTOR_BYTES;
    let (mut host, mut now) = (Host::new(model), Instant::START);
    for lba in (0..RECORDS).map(|record| record * sectors) {
        now = match workload.operation {
            Operation::Write => host.write(lba, sectors, now, &mut |request| card.serve(request)),
            Operation::Read => host.read(lba, sectors, now, &mut |request| card.serve(request)),
        };
    }
    (Speed::of(Bytes(workload.chunk.0 * RECORDS), now.0 as f64), host.spent())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_speeds_match_within_ten_percent() {
        let all = measured();
        assert_eq!(all.len(), 4);
        for one in &all {
            assert!(one.difference_percent.abs() < 10.0, "{one:?}");
        }
        let sync_write = &all[0].per_record_us;
        assert!(sync_write.journal_log > 0.0 && sync_write.flush > 0.0 && sync_write.journal_commit > 0.0);
        // Without the journal and the flush it could not be met.
        assert!(all[0].one_at_a_time.mib_s > all[0].measured_mib_s * 1.6);
        for other in &all[1..] {
            assert_eq!((other.per_record_us.journal_log, other.per_record_us.flush), (0.0, 0.0), "{other:?}");
        }
    }

    #[test]
    fn the_measurement_excludes_an_overlapping_read_ahead() {
        let all = measured();
        let read = all.iter().find(|one| one.read_ahead.is_some()).unwrap();
        assert_eq!(read.workload, "sync-sequential-read");
        assert!(read.read_ahead.unwrap().mib_s > 1.5 * read.measured_mib_s, "{read:?}");
    }
}
