//! The probe as a suite, so that a target is opened, confirmed and saved as for any other.

use std::sync::{Mutex, PoisonError};

use emmc_port::TargetShape;
use emmc_units::Nanos;
use emmc_workload::{Bench, BenchError, Cost, Knob, Options, Progress, Suite};

use crate::capacity;
use crate::part::{Part, Settings};
use crate::probe::{BUDGET, probe};
use crate::requests::NAME;
use crate::result::{Findings, Spent};

/// A probe that leaves its findings here.
#[derive(Debug, Default)]
pub struct ProbeSuite {
    parts: Vec<Part>,
    time: Option<Nanos>,
    findings: Mutex<Option<Findings>>,
}

impl ProbeSuite {
    /// Some parts, or everything if there are none; with a time limit of the target's clock.
    pub fn new(parts: Vec<Part>, time: Option<Nanos>) -> Self {
        Self { parts, time, ..Self::default() }
    }

    fn settings(&self, shape: &TargetShape, options: &Options) -> Result<Settings, BenchError> {
        let end = options.size_bytes.map_or(shape.size_bytes, |size| options.from_bytes.saturating_add(size));
        if end > shape.size_bytes {
            let what = format!("the area ends at byte {end}, and the target at {}", shape.size_bytes);
            return Err(BenchError::Misfit { suite: NAME, what });
        }
        let mut settings = Settings {
            write: !options.read_only,
            from_bytes: options.from_bytes,
            to_bytes: end,
            budget_bytes: 0,
            time: self.time,
            parts: self.parts.clone(),
            seed: options.seed,
        };
        let usual = if settings.is_capacity_alone() { capacity::WRITTEN } else { BUDGET };
        settings.budget_bytes = options.write_budget_bytes.unwrap_or(usual);
        Ok(settings)
    }

    /// What the last run found.
    pub fn take(&self) -> Option<Findings> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Suite for ProbeSuite {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "the geometry and the limits of a card, from the times of requests"
    }

    fn follows(&self) -> &'static [Knob] {
        &[Knob::From, Knob::Size, Knob::ReadOnly, Knob::WriteBudget]
    }

    fn time_most(&self) -> Option<Nanos> {
        self.time
    }

    fn reads_content(&self) -> bool {
        self.parts == [Part::Capacity]
    }

    fn restores(&self) -> bool {
        self.parts == [Part::Capacity]
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        let settings = self.settings(shape, options)?;
        let (written_bytes, to_bytes) = match settings.write {
            true => (settings.budget_bytes, settings.to_bytes),
            false => (0, settings.from_bytes),
        };
        let read_bytes = settings.read_bytes(u64::from(shape.sector_bytes));
        Ok(Cost { written_bytes, read_bytes, from_bytes: settings.from_bytes, to_bytes, steps: 0, ..Cost::default() })
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let settings = self.settings(bench.target.shape(), bench.options)?;
        let mut last = Spent::default();
        let found = {
            let (target, watch) = bench.parts();
            let mut requests = 0u32;
            let mut watching = |step: &str, spent: &Spent| {
                last = *spent;
                requests += 1;
                let progress = Progress { step, number: 1, steps: 0, done_share: 0.0, whole: None, now: None };
                requests % 64 != 0 || watch.progress(progress)
            };
            probe(target, &settings, &mut watching)
        };
        bench.count_bytes(last.written_bytes, last.read_bytes, last.trimmed_bytes);
        *self.findings.lock().unwrap_or_else(PoisonError::into_inner) = Some(found?);
        Ok(())
    }
}
