//! The job on the virtual card.

use anyhow::ensure;
use emmc_card::device::{Device, DeviceOptions};
use emmc_card::nand::StoredContent;
use emmc_card::profile::shipped;
use emmc_sim::SimTarget;
use emmc_units::Instant;
use emmc_workload::job::{PhaseResult, run as run_job};
use emmc_workload::{Job, Unwatched};

use crate::clock::Clock;
use crate::table::Side;

/// A factory-new card.
pub(crate) fn device(profile: &str) -> anyhow::Result<Device> {
    let profile = shipped::named(profile)?;
    Ok(Device::new(profile, DeviceOptions { keep: StoredContent::Nothing, seed: 1 })?)
}

/// The card below a job.
pub(crate) fn card(profile: &str) -> anyhow::Result<SimTarget> {
    Ok(SimTarget::new(device(profile)?, &format!("sim:{profile}"), Instant::START, true))
}

/// Runs the job; returns its results, and the job for the other side.
pub(crate) fn run(profile: &str, text: &str) -> anyhow::Result<(Side, Job)> {
    let no_files = &mut |name: &str| Err(format!("{name}: a comparison takes no trace files"));
    let job = Job::from_json(text, no_files)?;
    let mut card = card(profile)?;
    let clock = Clock::start();
    let result = run_job(&mut card, &job, &mut Unwatched)?;
    let spent = clock.spent();
    let phases = result.phases;
    let result = result.work;
    ensure!(result.host_trimmed_bytes == 0, "MQSim has no trim, and the job trims");
    let side = Side {
        name: "emmclab".into(),
        requests: result.host_requests,
        served: result.host_requests,
        spent,
        simulated_s: result.simulated_s,
        write_amplification: result.write_amplification,
        erases: result.erases,
        phase_ends: ends(&phases),
    };
    Ok((side, job))
}

/// When each phase ended, and after how many requests.
fn ends(phases: &[PhaseResult]) -> Vec<(u64, f64)> {
    let mut sum = (0, 0.0);
    let add = |phase: &PhaseResult| {
        sum = (sum.0 + phase.work.host_requests, sum.1 + phase.work.simulated_s);
        sum
    };
    phases.iter().map(add).collect()
}
