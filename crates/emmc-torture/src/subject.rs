//! The subject of a test: a translation layer on its own flash, or a whole device.

use emmc_units::Instant;

use emmc_card::ftl::{Durability, Ftl, FtlError, TrimKind};
use emmc_card::nand::Nand;

/// Anything that stores units across power cuts.
pub(crate) trait Subject {
    /// What it is, for people.
    fn name(&self) -> &str;

    fn units(&self) -> u32;

    fn unit_bytes(&self) -> usize;

    fn write(&mut self, first: u32, data: &[u8], durability: Durability, now: Instant) -> Result<Instant, FtlError>;

    fn read(&mut self, first: u32, out: &mut [u8], now: Instant) -> Result<Instant, FtlError>;

    fn trim(&mut self, first: u32, count: u32, kind: TrimKind, now: Instant) -> Result<Instant, FtlError>;

    fn flush(&mut self, now: Instant) -> Result<Instant, FtlError>;

    fn background(&mut self, now: Instant) -> Result<Option<Instant>, FtlError>;

    fn purge(&mut self, now: Instant) -> Result<Instant, FtlError>;

    fn power_off(&mut self, now: Instant);

    /// Power comes back; `cut` arms the next cut, which may come during recovery.
    fn power_on(&mut self, cut: Option<crate::FaultPlan>, now: Instant) -> Result<Instant, FtlError>;

    fn audit(&self) -> Result<(), String>;

    fn nand(&self) -> &Nand;

    fn nand_mut(&mut self) -> &mut Nand;

    /// Units that are mapped, and so rewritten and damaged, together.
    fn granule(&self) -> u32 {
        1
    }

    /// The real durability of a write with this minimum.
    fn kept_as(&self, durability: Durability) -> Durability {
        durability
    }

    /// Units with a completed page that the last cut damaged.
    fn damaged_pairs(&self) -> Vec<u32>;
}

/// A layer.
pub(crate) struct Layer {
    pub(crate) name: String,
    pub(crate) nand: Nand,
    pub(crate) ftl: Box<dyn Ftl>,
}

impl Layer {
    fn count(&self, bytes: &[u8]) -> u32 {
        (bytes.len() / self.unit_bytes()) as u32
    }
}

impl Subject for Layer {
    fn name(&self) -> &str {
        &self.name
    }

    fn units(&self) -> u32 {
        self.ftl.units()
    }

    fn unit_bytes(&self) -> usize {
        self.nand.geometry().unit_bytes as usize
    }

    fn write(&mut self, first: u32, data: &[u8], durability: Durability, now: Instant) -> Result<Instant, FtlError> {
        let count = self.count(data);
        self.nand.passed(now);
        self.ftl.write(&mut self.nand, first, count, Some(data), durability, now)
    }

    fn read(&mut self, first: u32, out: &mut [u8], now: Instant) -> Result<Instant, FtlError> {
        let count = self.count(out);
        self.ftl.read(&mut self.nand, first, count, Some(out), now)
    }

    fn trim(&mut self, first: u32, count: u32, kind: TrimKind, now: Instant) -> Result<Instant, FtlError> {
        self.nand.passed(now);
        self.ftl.trim(&mut self.nand, first, count, kind, now)
    }

    fn flush(&mut self, now: Instant) -> Result<Instant, FtlError> {
        self.nand.passed(now);
        self.ftl.flush(&mut self.nand, now)
    }

    fn background(&mut self, now: Instant) -> Result<Option<Instant>, FtlError> {
        self.nand.passed(now);
        self.ftl.background(&mut self.nand, now)
    }

    fn purge(&mut self, now: Instant) -> Result<Instant, FtlError> {
        self.nand.passed(now);
        self.ftl.purge(&mut self.nand, now)
    }

    fn power_off(&mut self, now: Instant) {
        self.nand.power_off(now);
    }

    fn power_on(&mut self, cut: Option<crate::FaultPlan>, now: Instant) -> Result<Instant, FtlError> {
        if let Some(plan) = cut {
            self.nand.arm(plan);
        }
        self.nand.power_on(now);
        self.ftl.recover(&mut self.nand, now)
    }

    fn audit(&self) -> Result<(), String> {
        self.ftl.audit(&self.nand)
    }

    fn nand(&self) -> &Nand {
        &self.nand
    }

    fn nand_mut(&mut self) -> &mut Nand {
        &mut self.nand
    }

    fn damaged_pairs(&self) -> Vec<u32> {
        self.nand.damaged_pairs().iter().map(|&(_, unit)| unit).collect()
    }
}
