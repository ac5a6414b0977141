//! Erasing: CMD35, CMD36, CMD38 in this order, by whole groups or by sectors, plain or secure.
//!
//! Erase and trim both make sectors read as erased; they differ in granularity. Secure variants also remove every copy
//! from the flash, which requires moving valid data in the same blocks.

use emmc_regs::command::Erase;
use emmc_regs::ext_csd::reg;
use emmc_regs::r1::R1;
use emmc_units::Instant;

use super::interrupt::Busy;
use super::{Area, Card, Reply};
use crate::device::StorageError;
use crate::ftl::TrimKind;

/// Progress of the sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EraseSequence {
    first: Option<u64>,
    last: Option<u64>,
    /// What secure trim step 1 marked, for step 2: area, first sector, sectors.
    marked: Vec<(Area, u64, u64)>,
}

impl EraseSequence {
    /// The sectors from the first to the last, if both were set; ends the sequence.
    pub(super) fn take_range(&mut self) -> Option<(u64, u64)> {
        self.first.take().zip(self.last.take())
    }

    /// Another command came in between; returns whether a sequence was in progress.
    pub(super) fn abandon(&mut self) -> bool {
        self.last = None;
        self.first.take().is_some()
    }
}

impl Card {
    /// CMD35.
    pub(super) fn erase_start(&mut self, address: u32) -> Reply {
        match self.sector_at(address) {
            Ok(sector) => {
                (self.erase.first, self.erase.last) = (Some(sector), None);
                self.answer()
            }
            Err(bits) => self.refuse_erase(bits),
        }
    }

    /// CMD36.
    pub(super) fn erase_end(&mut self, address: u32) -> Reply {
        if self.erase.first.is_none() {
            return self.refuse_erase(R1::ERASE_SEQ_ERROR);
        }
        match self.sector_at(address) {
            Ok(sector) => {
                self.erase.last = Some(sector);
                self.answer()
            }
            Err(bits) => self.refuse_erase(bits),
        }
    }

    /// The sequence is broken and restarts.
    fn refuse_erase(&mut self, bits: R1) -> Reply {
        self.erase.abandon();
        self.refuse(bits)
    }

    /// CMD38.
    pub(super) fn erase(&mut self, erase: Erase, now: Instant) -> Reply {
        let range = self.erase.first.zip(self.erase.last);
        self.erase.abandon();
        // Step 2 of a secure trim uses the ranges marked in step 1.
        let needs_range = erase != Erase::SecureTrimStep2;
        let (first, last) = match range {
            Some(range) => range,
            None if needs_range => return self.refuse(R1::ERASE_SEQ_ERROR),
            None => (0, 0),
        };
        if last < first || !self.takes_erase(erase) {
            return self.refuse(R1::ERASE_PARAM);
        }
        let r1 = self.r1();
        let result = match erase {
            Erase::SecureTrimStep1 => {
                let area = self.area();
                let sectors = last - first + self.sectors_of_last();
                self.erase.marked.push((area, first, sectors));
                Ok(now)
            }
            Erase::SecureTrimStep2 => self.secure_trim(now),
            _ => self.erase_range(erase, first, last, now),
        };
        let done = self.done_or_failed(result, now);
        if matches!(erase, Erase::Erase | Erase::Trim | Erase::Discard) {
            self.features.next_busy = Busy::Erase;
        }
        if self.phase != super::Phase::Off {
            self.program_until(done);
        }
        Self::answer_busy(r1, done)
    }

    /// Whether the part has this kind of erase.
    ///
    /// Source: JESD84-B51: secure ones by SEC_FEATURE_SUPPORT, discard since 4.5.
    fn takes_erase(&self, erase: Erase) -> bool {
        let features = self.ext_csd_byte(reg::SEC_FEATURE_SUPPORT);
        let has = |bit: u8| features >> bit & 1 == 1;
        match erase {
            Erase::Erase => true,
            Erase::Trim => has(4),
            Erase::Discard => self.ext_csd_byte(reg::EXT_CSD_REV) >= 6,
            Erase::SecureErase => has(0),
            Erase::SecureTrimStep1 | Erase::SecureTrimStep2 => has(0) && has(4),
            Erase::Other(_) => false,
        }
    }

    /// Sectors per address: a native sector, or one.
    fn sectors_of_last(&self) -> u64 {
        if self.has_native_sectors() { 8 } else { 1 }
    }

    /// Sectors of an erase group: high-capacity groups if enabled, else those of the CSD.
    pub(super) fn erase_group_sectors(&self) -> u64 {
        let high_capacity = u64::from(self.ext_csd_byte(reg::HC_ERASE_GRP_SIZE)) * 1024;
        if self.ext_csd_byte(reg::ERASE_GROUP_DEF) & 1 == 1 && high_capacity > 0 {
            high_capacity
        } else {
            self.csd().erase_group_sectors().unwrap_or(1)
        }
    }

    /// Erases from sector `first` to sector `last`, whole groups if the command requires it.
    fn erase_range(&mut self, erase: Erase, first: u64, last: u64, now: Instant) -> Result<Instant, StorageError> {
        let area = self.area();
        let end = if erase.is_by_write_block() {
            last + self.sectors_of_last()
        } else {
            let group = self.erase_group_sectors();
            (last / group + 1) * group
        };
        let first = match erase.is_by_write_block() {
            true => first,
            false => first - first % self.erase_group_sectors(),
        };
        let end = end.min(self.device.sectors(area));
        let kind = if erase == Erase::Discard { TrimKind::Discard } else { TrimKind::Trim };
        let done = self.give_up(area, first, end, kind, now)?;
        if erase == Erase::SecureErase { self.purge_for_erase(done) } else { Ok(done) }
    }

    /// Deallocates sectors `first..end`, except protected ones.
    pub(super) fn give_up(
        &mut self,
        area: Area,
        first: u64,
        end: u64,
        kind: TrimKind,
        now: Instant,
    ) -> Result<Instant, StorageError> {
        let runs = self.erasable(area, first, end);
        if runs.iter().map(|(_, sectors)| sectors).sum::<u64>() < end - first {
            self.status.raise(R1::WP_ERASE_SKIP);
        }
        let mut done = now;
        for (first, sectors) in runs {
            done = done.max(self.device.trim(area, first, sectors, kind, now)?.done);
        }
        Ok(done)
    }

    /// Erases the ranges marked by secure trims, and every copy of them.
    fn secure_trim(&mut self, now: Instant) -> Result<Instant, StorageError> {
        let mut done = now;
        for (area, first, sectors) in std::mem::take(&mut self.erase.marked) {
            done = self.give_up(area, first, first + sectors, TrimKind::Trim, done)?;
        }
        self.purge_for_erase(done)
    }

    /// What secure variants do after they have freed the sectors.
    fn purge_for_erase(&mut self, now: Instant) -> Result<Instant, StorageError> {
        if self.device.profile().controller.secure_erase_purges { self.device.purge(now) } else { Ok(now) }
    }
}
