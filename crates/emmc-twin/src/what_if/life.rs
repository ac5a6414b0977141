//! A whole device life in simulated time, until the card is read-only.

use emmc_card::device::Health;
use emmc_port::CardTarget;
use emmc_workload::duty::DAY_S;
use emmc_workload::{BenchError, Watch};
use serde::Serialize;

use super::question::Question;
use super::trial::{Step, Trial};
use super::{DutyFacts, MakeCard, WhatIfError};
use emmc_port::TargetError;

/// Looks at the registers in a life of the expected length.
const LOOKS: f64 = 20_000.0;
/// No life is asked for beyond this, and a card's clock ends at 584 years.
const YEARS_MAX: f64 = 500.0;
/// A load of which this much in a row programs nothing has no life that ends. Unit: bytes.
const ABSORBED: u64 = 1 << 30;

/// A whole life.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Life {
    /// The profile's name.
    pub profile: String,
    /// What is written.
    pub duty: DutyFacts,
    /// How it ended.
    pub ended: LifeEnd,
    /// Register steps, in their order.
    pub steps: Vec<LifeStep>,
    /// What the card received in all, without what filled it at the start.
    pub written_bytes: u64,
    /// What the programs wrote.
    pub program_bytes: f64,
    /// Bytes programmed over bytes that the card received.
    pub write_amplification: f64,
    /// At the load's rate.
    pub days: f64,
    /// Mean erases of the blocks that wear most, of the rated ones.
    pub used_share: f64,
    /// What the blocks' rated erases can program, over the write amplification: capacity x cycles / amplification.
    pub arithmetic_bytes: f64,
    /// What filled the card and was written, over the same at the rated erases.
    pub written_over_arithmetic: f64,
    /// Erases of the good blocks at the end: fewest, mean, most.
    pub erases: [f64; 3],
    /// Blocks that went bad in use.
    pub grown_bad: u32,
}

/// How a life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LifeEnd {
    /// No spare block is left.
    ReadOnly,
    /// The rated erases are used, and nothing has failed in as much again.
    TwiceRated,
    /// It works after 500 years: the load is too small to wear it.
    Centuries,
    /// Cancelled.
    Stopped,
}

/// A register changed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LifeStep {
    /// Its name.
    pub register: &'static str,
    /// Its new value.
    pub value: u8,
    /// What the card had received.
    pub written_bytes: u64,
    /// At the load's rate.
    pub days: f64,
    /// Mean erases of the blocks that wear most, of the rated ones.
    pub used_share: f64,
}

/// Runs a life.
///
/// Errors: a load that does not fit; a card that fails otherwise than by wear.
pub fn life(make: MakeCard<'_>, question: &Question, watch: &mut dyn Watch) -> Result<Life, WhatIfError> {
    let refused = |what| WhatIfError::Refused { change: "the load".into(), what };
    let mut trial = Trial::new(make, question, &question.today, None).map_err(refused)?;
    let step = Step { name: "a life", number: 1, count: 1 };
    let start = trial.target.counters();
    trial.fill(step, watch)?;
    let filled = trial.target.counters();
    let unit = f64::from(CardTarget::unit_bytes(&trial.target));
    let capacity = Capacity::of(&trial);
    let expected = capacity.rated_bytes();
    // Without a first guess of the amplification: parts grow shorter where it is high.
    let mut run =
        Run { written: 0, programs: 0.0, load_s: 0.0, steps: Vec::new(), registers: registers(&trial.health()) };
    let mut absorbed = 0;
    let ended = loop {
        let used = used(&trial.health());
        if used >= 2.0 {
            break LifeEnd::TwiceRated;
        }
        if run.load_s >= YEARS_MAX * 365.25 * DAY_S {
            break LifeEnd::Centuries;
        }
        let amplification = match run.written {
            0 => 1.0,
            written => trial.programmed_since(&filled) * unit / written as f64,
        };
        let bytes = (expected / amplification.max(0.1) / LOOKS).max(65_536.0) as u64;
        if absorbed >= ABSORBED {
            return Err(refused("all that it writes stays in the card's cache: it wears nothing".into()));
        }
        // A part can be too short for the engine to ask.
        if !watch.progress(step.at(used, used)) {
            break LifeEnd::Stopped;
        }
        let part = trial.duty.run(&mut trial.target, bytes, true, step.at(used, used), watch);
        absorbed = if part.card.programs == 0 { absorbed + part.written_bytes } else { 0 };
        run.written += part.written_bytes;
        run.programs += part.program_bytes;
        run.load_s += part.load_s;
        run.note(&trial.health());
        match part.ended {
            None => {}
            Some(BenchError::Stopped) => break LifeEnd::Stopped,
            Some(BenchError::Target(TargetError::WornOut { .. })) => break LifeEnd::ReadOnly,
            Some(error) => return Err(WhatIfError::Refused { change: "the load".into(), what: error.to_string() }),
        }
    };
    let programmed = trial.programmed_since(&filled) * unit;
    let write_amplification = programmed / run.written.max(1) as f64;
    let health = trial.health();
    let arithmetic_bytes = expected / write_amplification;
    let used_share = used(&health);
    let fill_bytes = (filled.programs - start.programs) as f64 * unit / write_amplification;
    Ok(Life {
        profile: trial.target.device().profile().name.clone(),
        duty: trial.facts.facts.clone(),
        ended,
        steps: run.steps,
        written_bytes: run.written,
        program_bytes: run.programs,
        write_amplification,
        days: run.load_s / DAY_S,
        used_share,
        arithmetic_bytes,
        written_over_arithmetic: (run.written as f64 + fill_bytes) / arithmetic_bytes,
        erases: [f64::from(health.all.min), health.all.mean(), f64::from(health.all.max)],
        grown_bad: health.grown_bad,
    })
}

/// A life in progress.
struct Run {
    written: u64,
    programs: f64,
    load_s: f64,
    steps: Vec<LifeStep>,
    registers: [(&'static str, u8); 3],
}

impl Run {
    fn note(&mut self, health: &Health) {
        let now = registers(health);
        for (old, (register, value)) in self.registers.iter().zip(now) {
            if old.1 != value {
                let (written_bytes, days) = (self.written, self.load_s / DAY_S);
                self.steps.push(LifeStep { register, value, written_bytes, days, used_share: used(health) });
            }
        }
        self.registers = now;
    }
}

fn registers(health: &Health) -> [(&'static str, u8); 3] {
    [
        ("DEVICE_LIFE_TIME_EST_TYP_A", health.life_time_a()),
        ("DEVICE_LIFE_TIME_EST_TYP_B", health.life_time_b()),
        ("PRE_EOL_INFO", health.pre_eol_info()),
    ]
}

/// Of the kind of block that wears most.
fn used(health: &Health) -> f64 {
    health.used_multi_bit.unwrap_or(0.0).max(health.used_single_bit.unwrap_or(0.0))
}

/// What the blocks of the kind that the load wears can bear.
struct Capacity {
    blocks: f64,
    block_bytes: f64,
    endurance: f64,
}

impl Capacity {
    fn of(trial: &Trial) -> Self {
        let (device, geometry) = (trial.target.device(), trial.target.device().nand().geometry());
        let (health, nand) = (device.health(), &device.profile().nand);
        let is_single = health.multi_bit.blocks == 0 || device.partitioning().enhanced_groups > 0;
        let (counts, mode, endurance) = if is_single {
            let slc = nand.slc.as_ref().unwrap_or(&nand.native);
            (health.single_bit, nand.cell.single_bit(), slc.endurance)
        } else {
            (health.multi_bit, nand.cell, nand.native.endurance)
        };
        Self {
            blocks: f64::from(counts.blocks),
            block_bytes: f64::from(geometry.units_in(mode)) * f64::from(geometry.unit_bytes),
            endurance: f64::from(endurance),
        }
    }

    fn rated_bytes(&self) -> f64 {
        self.blocks * self.block_bytes * self.endurance
    }
}
