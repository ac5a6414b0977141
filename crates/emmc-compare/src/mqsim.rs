//! MQSim: its configuration, its workload, its results.
//!
//! MQSim maps pages, not units, so its pages have the size of a mapping unit, with proportional times: the same bytes
//! take the same time. It reads requests with their times from a trace: the times of the virtual card's requests,
//! spread evenly over each phase and stretched by a factor, since a backlog makes MQSim several times slower. It
//! reports no write amplification; that is computed from the pages that garbage collection moved.

mod config;
mod outcome;
mod trace;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};
use emmc_workload::Job;

use crate::Mqsim;
use crate::clock::Clock;
use crate::ours;
use crate::table::Side;

/// Runs MQSim in `folder` on the job that `ours` has run.
pub(crate) fn run(options: &Mqsim, job: &Job, ours: &Side, folder: &Path) -> anyhow::Result<Side> {
    let card = ours::card(&options.profile)?;
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| path.display().to_string())
    };
    let ends: Vec<_> = ours.phase_ends.iter().map(|(count, end)| (*count, end * options.stretch)).collect();
    let trace = trace::write(&card, job, &ends, &folder.join("trace.txt"))?;
    write("ssd.xml", &config::device(card.device(), job)?)?;
    write("workload.xml", &config::workload(card.device(), &folder.join("trace.txt")))?;
    let program = options.mqsim.canonicalize().with_context(|| options.mqsim.display().to_string())?;
    let clock = Clock::start();
    let output = Command::new(&program)
        .args(["-i", "ssd.xml", "-w", "workload.xml"])
        .current_dir(folder)
        .stdin(std::process::Stdio::null())
        .output()
        .with_context(|| program.display().to_string())?;
    let spent = clock.spent();
    let said = String::from_utf8_lossy(&output.stdout);
    let Ok(text) = std::fs::read_to_string(folder.join("workload_scenario_1.xml")) else {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("MQSim ended ({}) without results; its output: {} {}", output.status, said.trim(), complaint.trim());
    };
    outcome::read(&text, &said, &trace, spent)
}
