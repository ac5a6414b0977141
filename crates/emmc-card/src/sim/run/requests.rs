//! The requests of a job in sequence, without running them: to give another simulator the same.

use super::RunError;
use super::latency::Kind;
use super::plan::{PatternSource, Source};
use crate::device::Device;
use crate::ftl::TrimKind;
use crate::sim::Rng;
use crate::sim::job::{Amount, Job, Pattern, Phase, Work};
use crate::sim::trace::TraceOp;

/// A request of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRequest {
    /// Its phase, counted from 0.
    pub phase: usize,
    /// What it does.
    pub op: TraceOp,
    /// First sector.
    pub lba: u64,
    /// Sectors.
    pub sectors: u32,
}

/// Calls `visit` with every request of a job on a card in its current state. Time is ignored: idle phases, flushes and
/// power cycles are skipped.
///
/// Errors: a phase that does not fit the card, has no end, or depends on the card's later content.
pub fn requests(device: &Device, job: &Job, visit: &mut dyn FnMut(HostRequest)) -> Result<(), RunError> {
    for (index, phase) in job.phases.iter().enumerate() {
        let misfit = |rule| RunError::Phase { phase: index + 1, kind: phase.kind, rule };
        let Some(mut source) = source(device, phase, Rng::new(job.phase_seed(index))).map_err(misfit)? else {
            continue;
        };
        while let Some(request) = source.next() {
            let op = match request.kind {
                Kind::Write => TraceOp::Write,
                Kind::Read => TraceOp::Read,
                Kind::Trim if request.trim == TrimKind::Discard => TraceOp::Discard,
                Kind::Trim => TraceOp::Trim,
                Kind::Flush => TraceOp::Flush,
            };
            visit(HostRequest { phase: index, op, lba: request.lba, sectors: request.sectors });
        }
    }
    Ok(())
}

fn source(device: &Device, phase: &Phase, mut rng: Rng) -> Result<Option<Source>, String> {
    Ok(Some(match &phase.work {
        Work::Transfer(transfer) if transfer.amount == Amount::UntilWornOut => {
            return Err("it ends only with the card, so it has no list of requests".into());
        }
        Work::Transfer(transfer) if matches!(transfer.pattern, Pattern::Mixed { .. }) => {
            return Err("its trims depend on the content of the card at that time".into());
        }
        Work::Transfer(transfer) => Source::Pattern(Box::new(PatternSource::new(transfer, device, rng)?)),
        Work::Trim(trim) => Source::trim(trim, device, &mut rng)?,
        Work::Replay(replay) => Source::trace(replay, device)?,
        Work::Idle { .. } | Work::Flush | Work::PowerCycle { .. } => return Ok(None),
    }))
}
