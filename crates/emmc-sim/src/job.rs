//! The card below a job: areas, power, and counters.

use emmc_card::device::StorageError;
use emmc_card::ftl::FtlError;
use emmc_port::{Access, CardCounters, CardTarget, TargetError};
use emmc_regs::Area;
use emmc_units::{Nanos, SECTOR_BYTES};

use crate::SimTarget;

impl CardTarget for SimTarget {
    fn area_bytes(&self, area: Area) -> u64 {
        self.device.sectors(area) * SECTOR_BYTES
    }

    fn unit_bytes(&self) -> u32 {
        self.device.nand().geometry().unit_bytes
    }

    fn is_mapped(&self, area: Area, offset_bytes: u64) -> bool {
        self.device.is_mapped(area, offset_bytes / SECTOR_BYTES)
    }

    fn set_access(&mut self, access: Access) {
        self.access = access;
    }

    fn set_cache(&mut self, on: bool) -> Result<(), TargetError> {
        match self.device.switch_cache(on, self.now) {
            Ok(()) | Err(StorageError::Ftl(FtlError::WornOut)) => Ok(()),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn pass(&mut self, time: Nanos) {
        self.now = self.now + time;
    }

    fn power_cycle(&mut self, is_announced: bool) -> Result<(), TargetError> {
        let cycle = |target: &mut Self| {
            if is_announced {
                target.now = target.device.flush(target.now)?.done;
            }
            target.device.power_off(target.now);
            target.now = target.device.power_on(target.now)?;
            target.taken.clear();
            Ok(())
        };
        cycle(self).map_err(|error: StorageError| self.ended(error))
    }

    fn can_recover(&self) -> bool {
        self.device.nand().keeps_orders()
    }

    #[inline]
    fn counters(&self) -> CardCounters {
        let (flash, layers) = (self.device.nand().counters(), self.device.stats());
        CardCounters {
            programs: flash.unit_programs,
            erases: flash.erases,
            copied_units: layers.copied_units,
            stalls: layers.foreground_stalls,
        }
    }

    fn used_life(&self) -> f64 {
        let health = self.device.health();
        let used = health.used_multi_bit.unwrap_or(0.0).max(health.used_single_bit.unwrap_or(0.0));
        used.min(1.0)
    }

    fn endurance(&self) -> u32 {
        self.device.profile().nand.native.endurance
    }
}
