//! Power cuts and recovery, against a model of the host's guarantees.

use std::collections::BTreeMap;

use super::*;
use crate::nand::FaultPlan;

/// The contents that a unit may have after a cut: the last durable one, and all later ones.
#[derive(Clone, Debug, Default)]
struct Allowed {
    contents: Vec<u32>,
    /// The last of them is a discard, which may be undone.
    is_discarded: bool,
}

struct Power {
    bench: Bench,
    /// By unit; content 0: never written, or trimmed.
    allowed: BTreeMap<u32, Allowed>,
    version: u32,
}

fn bytes(version: u32) -> Vec<u8> {
    version.to_le_bytes().repeat(128)
}

impl Power {
    fn new(cell: CellMode, config: &FtlConfig) -> Self {
        let bench = Bench::new(&flash(cell), config, 18, 9 * 64, StoredContent::Data);
        Self { bench, allowed: BTreeMap::new(), version: 0 }
    }

    fn contents(&mut self, unit: u32) -> &mut Vec<u32> {
        let allowed = self.allowed.entry(unit).or_default();
        if allowed.contents.is_empty() {
            allowed.contents.push(0);
        }
        &mut allowed.contents
    }

    /// One step of a workload; its durability counts only once it has returned.
    fn step(&mut self) -> Result<(), FtlError> {
        let units = u64::from(self.bench.ftl.units());
        let first = self.bench.rng.below(units) as u32;
        let count = (1 + self.bench.rng.below(6) as u32).min(self.bench.ftl.units() - first);
        let draw = self.bench.rng.below(20);
        let Bench { nand, ftl, now, .. } = &mut self.bench;
        let at = *now;
        match draw {
            0 => *now = ftl.flush(nand, at)?,
            1 => {
                let kind = if self.version % 2 == 0 { TrimKind::Trim } else { TrimKind::Discard };
                for unit in first..first + count {
                    self.contents(unit).push(0);
                    self.allowed.entry(unit).or_default().is_discarded |= kind == TrimKind::Discard;
                }
                let Bench { nand, ftl, .. } = &mut self.bench;
                self.bench.now = ftl.trim(nand, first, count, kind, at)?;
                if kind == TrimKind::Trim {
                    for unit in first..first + count {
                        self.allowed.insert(unit, Allowed { contents: vec![0], is_discarded: false });
                    }
                }
                return Ok(());
            }
            2 => {
                *now = ftl.background(nand, at)?.unwrap_or(at);
                return Ok(());
            }
            draw => {
                let durability = if draw % 4 == 0 { Durability::Reliable } else { Durability::Buffered };
                let mut data = Vec::new();
                for unit in first..first + count {
                    self.version += 1;
                    data.extend(bytes(self.version));
                    let version = self.version;
                    self.contents(unit).push(version);
                    self.allowed.entry(unit).or_default().is_discarded = false;
                }
                let Bench { nand, ftl, .. } = &mut self.bench;
                self.bench.now = ftl.write(nand, first, count, Some(&data), durability, at)?;
                if durability == Durability::Buffered {
                    return Ok(());
                }
            }
        }
        // All that was written before is safe as well.
        for allowed in self.allowed.values_mut() {
            // A discard is not durable before a flush; neither is the discarded content.
            if !allowed.is_discarded || draw == 0 {
                allowed.contents.drain(..allowed.contents.len() - 1);
            }
        }
        Ok(())
    }

    /// Runs until power is lost at a step, recovers, and checks every unit.
    fn cut_at(&mut self, step: u64, seed: u64) {
        self.bench.nand.arm(FaultPlan { step, seed });
        let error = (0..100_000).find_map(|_| self.step().err());
        assert_eq!(error, Some(FtlError::PowerLost));
        self.bench.nand.power_on(self.bench.now);
        self.bench.now = self.bench.ftl.recover(&mut self.bench.nand, self.bench.now).unwrap();
        self.bench.nand.decay();
        self.check(step);
    }

    fn check(&mut self, step: u64) {
        self.bench.audit();
        let mut out = [0; 512];
        for unit in 0..self.bench.ftl.units() {
            let Bench { nand, ftl, now, .. } = &mut self.bench;
            ftl.read(nand, unit, 1, Some(&mut out), *now).unwrap();
            let version = u32::from_le_bytes([out[0], out[1], out[2], out[3]]);
            assert_eq!(out.as_slice(), bytes(version), "step {step}, unit {unit}: torn");
            let allowed = self.contents(unit);
            assert!(allowed.contains(&version), "step {step}, unit {unit}: {version} of {allowed:?}");
            self.allowed.insert(unit, Allowed { contents: vec![version], is_discarded: false });
        }
    }
}

fn configs() -> [FtlConfig; 3] {
    [
        FtlConfig { separate_gc: false, ..config() },
        config(),
        FtlConfig { hot_cold: true, wear: WearLevelling { dynamic: true, static_gap: 3 }, ..config() },
    ]
}

#[test]
fn a_cut_at_any_step_leaves_the_old_or_new_content() {
    for cell in [CellMode::Slc, CellMode::Mlc] {
        for config in configs() {
            for step in 1..150 {
                Power::new(cell, &config).cut_at(step * 7, step);
            }
        }
    }
}

#[test]
fn repeated_cuts_are_recovered() {
    for cell in [CellMode::Slc, CellMode::Mlc] {
        for config in configs() {
            let mut power = Power::new(cell, &config);
            let mut draws = Rng::new(9);
            for seed in 0..200 {
                let step = power.bench.nand.steps() + 1 + draws.below(200);
                power.cut_at(step, seed);
            }
        }
    }
}

#[test]
fn a_cut_during_recovery_is_recovered() {
    for cell in [CellMode::Slc, CellMode::Mlc] {
        for config in configs() {
            for seed in 0..40 {
                let mut power = Power::new(cell, &config);
                power.cut_at(500 + seed * 7, seed);
                let after = power.bench.nand.steps() + 20;
                power.bench.nand.arm(FaultPlan { step: after, seed });
                assert!((0..10_000).find_map(|_| power.step().err()).is_some());
                // Twice during recovery, a little later each time.
                for late in [1, 3] {
                    power.bench.nand.power_on(power.bench.now);
                    let step = power.bench.nand.steps() + late;
                    power.bench.nand.arm(FaultPlan { step, seed });
                    match power.bench.ftl.recover(&mut power.bench.nand, power.bench.now) {
                        Ok(_) => power.bench.nand.power_off(power.bench.now),
                        Err(error) => assert_eq!(error, FtlError::PowerLost),
                    }
                }
                power.bench.nand.power_on(power.bench.now);
                power.bench.now = power.bench.ftl.recover(&mut power.bench.nand, power.bench.now).unwrap();
                power.bench.nand.decay();
                power.check(seed);
            }
        }
    }
}

#[test]
fn recovery_takes_the_time_of_a_scan() {
    let mut bench = plain(&config());
    bench.fill();
    let before = bench.now;
    let done = bench.ftl.recover(&mut bench.nand, before).unwrap();
    let micros = done.since(before).0 / 1000;
    // A read of spare area from each of 38 blocks; the log is empty.
    assert!((38 * 50..38 * 55).contains(&micros), "{micros}");
    assert_eq!(bench.ftl.map.mapped(), bench.ftl.units(), "plain simulation keeps its memory");
    bench.audit();
}
