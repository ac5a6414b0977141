//! Torture: seeded workloads against translation layers and whole devices, with power cuts at every step or at random,
//! and oracles beside them.
//!
//! A *case* is one number, from which everything is drawn: the subject, the workload, the cuts. [`torture`] runs one; a
//! violation names the case that reproduces it. The fault model is `emmc-card/src/nand/fault.rs`; the oracles check the
//! guarantees after a cut, one file each: `acknowledged_writes`, `flushed_writes`, `trimmed_ranges`,
//! `unacknowledged_writes`. Beside them the subject audits itself, and the flash counts breaches of its contract.
//! Absent on purpose: time limits and parallel runs (the caller's), and the command level above the device.

mod acknowledged_writes;
mod card;
mod content;
mod drive;
mod flushed_writes;
mod history;
mod rigs;
mod subject;
#[cfg(test)]
mod tests;
mod trimmed_ranges;
mod unacknowledged_writes;
mod workload;

use drive::{Drive, Ended};

use emmc_card::nand::FaultPlan;
use emmc_card::profile::Profile;
use emmc_units::Rng;

/// Requests after the fill in a workload that is cut at every step.
const REQUESTS: u32 = 60;

/// Cuts in one life of a case with random cuts.
const CUTS_IN_A_LIFE: u32 = 50;

/// A test case.
///
/// Its number ([`Case::number`]) determines everything, and is the argument of `cargo xtask sim --seed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// A workload with a cut at one step, and two more at random after it.
    Step {
        /// The workload.
        workload: u32,
        /// The step, 1 the first after the fill.
        step: u32,
    },
    /// A life with random cuts.
    Random {
        /// Seed of everything in it.
        seed: u32,
    },
    /// A life of a general purpose area, a boot area or RPMB, with random cuts.
    Area {
        /// Seed of everything in it.
        seed: u32,
    },
    /// A life of one translation layer under short trims, rewrites that wait in memory, and few other requests: its log
    /// of trims often begins another block. With random cuts.
    Trims {
        /// Seed of everything in it.
        seed: u32,
    },
}

impl Case {
    /// The number of this case.
    pub const fn number(self) -> u64 {
        match self {
            Self::Step { workload, step } => 1 << 63 | (workload as u64) << 20 | step as u64,
            Self::Random { seed } => seed as u64,
            Self::Area { seed } => 1 << 62 | seed as u64,
            Self::Trims { seed } => 1 << 61 | seed as u64,
        }
    }

    /// The case of a number.
    pub const fn from_number(number: u64) -> Self {
        if number >> 63 == 1 {
            Self::Step { workload: (number >> 20) as u32, step: number as u32 & 0xf_ffff }
        } else if number >> 62 == 1 {
            Self::Area { seed: number as u32 }
        } else if number >> 61 == 1 {
            Self::Trims { seed: number as u32 }
        } else {
            Self::Random { seed: number as u32 }
        }
    }
}

/// Result of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The subject of the test.
    pub subject: String,
    /// Cuts of power, those during recovery not counted.
    pub cuts: u32,
    /// Whether the cut of a `Step` case came; if not, the workload has fewer steps.
    pub reached: bool,
}

/// A violated guarantee.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("case {} ({case:?}, {subject}): {what}", case.number())]
pub struct Violation {
    /// The case that reproduces it.
    pub case: Case,
    /// The subject of the test.
    pub subject: String,
    /// A description.
    pub what: String,
}

/// Runs a case.
///
/// Errors: the first violated guarantee.
pub fn torture(case: Case) -> Result<Outcome, Violation> {
    let seed = match case {
        Case::Step { workload, .. } => 0x5eed_0000_0000 + u64::from(workload),
        Case::Random { seed } => u64::from(seed),
        Case::Area { seed } => 0xa4ea_0000_0000 + u64::from(seed),
        Case::Trims { seed } => 0x7215_0000_0000 + u64::from(seed),
    };
    let mut rng = Rng::new(seed);
    let drawn = match case {
        Case::Area { .. } => rigs::draw_area(&mut rng),
        Case::Trims { .. } => Ok(rigs::draw_layer(&mut rng)),
        _ => rigs::draw(&mut rng),
    };
    let subject = drawn.map_err(|what| Violation { case, subject: "none".into(), what })?;
    let name = subject.name().to_string();
    let mut drive = Drive::new(subject, rng);
    if matches!(case, Case::Trims { .. }) {
        drive.workload = drive.workload.with_many_trims();
    }
    let result = match case {
        Case::Step { step, .. } => cut_at(&mut drive, step),
        Case::Random { .. } | Case::Area { .. } | Case::Trims { .. } => live(&mut drive),
    };
    match result {
        Ok((cuts, reached)) => Ok(Outcome { subject: name, cuts, reached }),
        Err(what) => Err(Violation { case, subject: name, what }),
    }
}

/// A life of a part of this profile, scaled down to a few MiB, with about fifty random cuts.
///
/// Errors: a description of the first violated guarantee.
pub fn torture_profile(profile: Profile, seed: u64) -> Result<Outcome, String> {
    let mut rng = Rng::new(seed);
    let subject: Box<dyn subject::Subject> = Box::new(card::Card::of(profile, &mut rng)?);
    let name = subject.name().to_string();
    let mut drive = Drive::new(subject, rng);
    let (cuts, reached) = live(&mut drive)?;
    Ok(Outcome { subject: name, cuts, reached })
}

fn fill(drive: &mut Drive) -> Result<Ended, String> {
    for op in drive.workload.fill() {
        let ended = drive.one(op)?;
        if ended != Ended::Done {
            return Ok(ended);
        }
    }
    Ok(Ended::Done)
}

fn arm(drive: &mut Drive, steps: u64) {
    let plan = FaultPlan { step: drive.subject.nand().steps() + steps, seed: drive.rng.next_u64() };
    drive.subject.nand_mut().arm(plan);
}

fn cut_at(drive: &mut Drive, step: u32) -> Result<(u32, bool), String> {
    let mut ended = fill(drive)?;
    if ended == Ended::Done {
        arm(drive, u64::from(step));
        ended = drive.run(REQUESTS)?;
    }
    let reached = ended == Ended::Cut;
    let mut cuts = 0;
    while ended == Ended::Cut && cuts < 3 {
        cuts += 1;
        drive.come_back()?;
        let steps = 1 + drive.rng.below(40);
        arm(drive, steps);
        ended = drive.run(20)?;
    }
    finish(drive, ended)?;
    Ok((cuts, reached))
}

fn live(drive: &mut Drive) -> Result<(u32, bool), String> {
    let mut ended = fill(drive)?;
    let mut cuts = 0;
    while cuts < CUTS_IN_A_LIFE && ended != Ended::WornOut {
        let steps = 1 + drive.rng.below(150);
        arm(drive, steps);
        let requests = 1 + drive.rng.below(400) as u32;
        ended = drive.run(requests)?;
        if ended == Ended::Done {
            drive.audit()?;
            drive.pull_the_plug();
            ended = Ended::Cut;
        }
        if ended == Ended::Cut {
            cuts += 1;
            drive.come_back()?;
            ended = Ended::Done;
        }
    }
    finish(drive, ended)?;
    Ok((cuts, true))
}

/// The end of a case: every unit is readable, in every state of the part.
fn finish(drive: &mut Drive, ended: Ended) -> Result<(), String> {
    if ended == Ended::Cut {
        drive.come_back()?;
    }
    drive.subject.nand_mut().disarm();
    drive.audit()?;
    // A worn-out part may have performed the last request in part.
    if ended != Ended::WornOut {
        drive.check_all()?;
    }
    Ok(())
}
