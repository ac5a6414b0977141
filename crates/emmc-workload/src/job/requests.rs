//! The requests of a job in sequence, without running them: to give another simulator the same.

use emmc_port::{BlockOp, CardTarget};
use emmc_units::{Rng, SECTOR_BYTES};

use super::run::RunError;
use super::{Amount, Job, Pattern, Phase, Work, plan};
use crate::drive::source::Source;

/// A request of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRequest {
    /// Its phase, counted from 0.
    pub phase: usize,
    /// What it does.
    pub op: BlockOp,
    /// First sector.
    pub lba: u64,
    /// Sectors.
    pub sectors: u32,
}

/// Calls `visit` with every request of a job on a card in its current state. Time is ignored: idle phases, flushes and
/// power cycles are skipped.
///
/// Errors: a phase that does not fit the card, has no end, or depends on the card's later content.
pub fn requests(card: &impl CardTarget, job: &Job, visit: &mut dyn FnMut(HostRequest)) -> Result<(), RunError> {
    for (index, phase) in job.phases.iter().enumerate() {
        let misfit = |rule| RunError::Phase { phase: index + 1, kind: phase.kind, rule };
        list(card, phase, Rng::new(job.phase_seed(index)), &mut |op, offset_bytes, bytes| {
            let (lba, sectors) = (offset_bytes / SECTOR_BYTES, (bytes / SECTOR_BYTES) as u32);
            visit(HostRequest { phase: index, op, lba, sectors });
        })
        .map_err(misfit)?;
    }
    Ok(())
}

type Visit<'a> = &'a mut dyn FnMut(BlockOp, u64, u64);

fn list(card: &impl CardTarget, phase: &Phase, rng: Rng, visit: Visit<'_>) -> Result<(), String> {
    match &phase.work {
        Work::Transfer(transfer) if transfer.amount == Amount::UntilWornOut => {
            return Err("it ends only with the card, so it has no list of requests".into());
        }
        Work::Transfer(transfer) if matches!(transfer.pattern, Pattern::Mixed { .. }) => {
            return Err("its trims depend on the content of the card at that time".into());
        }
        Work::Transfer(transfer) => all(plan::transfer(transfer, card, rng)?, visit),
        Work::Trim(trim) => all(plan::trim(trim, card, rng)?, visit),
        Work::Replay(replay) => all(plan::recorded(replay, card)?, visit),
        Work::Idle { .. } | Work::Flush | Work::PowerCycle { .. } => {}
    }
    Ok(())
}

fn all(mut source: impl Source, visit: Visit<'_>) {
    while let Some(planned) = source.next() {
        visit(planned.op, planned.offset_bytes, planned.bytes);
    }
}
