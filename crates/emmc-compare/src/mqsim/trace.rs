//! The requests of a job as MQSim's trace: `time_ns device lba sectors type`, type 0 writes and 1 reads.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, bail};
use emmc_port::BlockOp;
use emmc_sim::SimTarget;
use emmc_workload::Job;
use emmc_workload::job::requests;

/// What is in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// Requests.
    pub(crate) requests: u64,
    /// Mapping units written.
    pub(crate) units: u64,
}

/// Writes the trace; `phase_ends` has requests and simulated seconds at the end of every phase.
pub(crate) fn write(card: &SimTarget, job: &Job, phase_ends: &[(u64, f64)], path: &Path) -> anyhow::Result<Written> {
    let context = || path.display().to_string();
    let mut file = BufWriter::new(File::create(path).with_context(context)?);
    let unit_sectors = u64::from(card.device().nand().geometry().unit_bytes) / 512;
    let mut written = Written::default();
    let mut failed = None;
    requests(card, job, &mut |request| {
        let kind = match request.op {
            BlockOp::Write => 0,
            BlockOp::Read => 1,
            _ => return failed = Some("MQSim has no trim and no flush".to_string()),
        };
        let time = time_of(written.requests, request.phase, phase_ends);
        if let Err(error) = writeln!(file, "{time} 0 {} {} {kind}", request.lba, request.sectors) {
            failed = Some(error.to_string());
        }
        let end = (request.lba + u64::from(request.sectors)).div_ceil(unit_sectors);
        written.units += if kind == 0 { end - request.lba / unit_sectors } else { 0 };
        written.requests += 1;
    })?;
    if let Some(what) = failed {
        bail!("{}: {what}", path.display());
    }
    file.flush().with_context(context)?;
    Ok(written)
}

/// The time of a request: uniform between the ends of the previous phase and of its own.
fn time_of(number: u64, phase: usize, ends: &[(u64, f64)]) -> u64 {
    let (from, began) = if phase == 0 { (0, 0.0) } else { ends[phase - 1] };
    let (to, ended) = ends[phase];
    let share = (number - from) as f64 / (to - from).max(1) as f64;
    ((began + (ended - began) * share) * 1e9) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_evenly_spaced_and_sorted() {
        let ends = [(4, 2.0), (6, 3.0)];
        let times: Vec<u64> = (0..6).map(|number| time_of(number, usize::from(number >= 4), &ends)).collect();
        assert_eq!(times, [0, 500_000_000, 1_000_000_000, 1_500_000_000, 2_000_000_000, 2_500_000_000]);
    }
}
