//! Registers that the host programs whole: CID (CMD26), CSD (CMD27), and the time (CMD49).

use emmc_regs::BitField;
use emmc_regs::crc::{Crc, sealed};
use emmc_regs::csd::mmc;
use emmc_regs::ext_csd::reg;
use emmc_regs::r1::R1;
use emmc_units::{Instant, Nanos};

use super::transfer::Purpose;
use super::{Card, Reply};

/// Duration of programming a register.
///
/// Assumed: about one page program.
const PROGRAM: Nanos = Nanos::from_micros(500);

/// The CSD's one-time fields.
const CSD_ONE_TIME: [&BitField; 4] = [mmc::FILE_FORMAT_GRP, mmc::COPY, mmc::PERM_WRITE_PROTECT, mmc::FILE_FORMAT];
/// Its other writable fields, but for the checksum, which follows.
const CSD_WRITABLE: [&BitField; 2] = [mmc::TMP_WRITE_PROTECT, mmc::ECC];

impl Card {
    /// CMD26.
    pub(super) fn program_cid(&mut self, now: Instant) -> Reply {
        self.collect_one(Purpose::Cid, 16, now)
    }

    /// CMD27.
    pub(super) fn program_csd(&mut self, now: Instant) -> Reply {
        self.collect_one(Purpose::Csd, 16, now)
    }

    /// CMD49.
    pub(super) fn set_time(&mut self, now: Instant) -> Reply {
        self.collect_one(Purpose::Time, 512, now)
    }

    /// The CID can be programmed once, which the factory did.
    pub(super) fn store_cid(&mut self, _bytes: &[u8], now: Instant) -> Instant {
        self.status.raise(R1::CID_CSD_OVERWRITE);
        now
    }

    /// Accepts a CSD in which only writable bits differ, one-time bits only from 0 to 1.
    pub(super) fn store_csd(&mut self, bytes: &[u8], now: Instant) -> Instant {
        let old = self.device.stored_registers().csd;
        let Ok(wanted) = <[u8; 16]>::try_from(bytes) else { return now };
        if !matches!(Crc::of(&wanted), Crc::Matches) {
            self.status.raise(R1::CID_CSD_OVERWRITE);
            return now;
        }
        let mut new = old;
        for field in CSD_ONE_TIME {
            field.set(&mut new, field.get(&old) | field.get(&wanted));
        }
        for field in CSD_WRITABLE {
            field.set(&mut new, field.get(&wanted));
        }
        let new = sealed(new);
        // USER_WP.CD_PERM_WP_DIS: the card can no longer be protected permanently.
        let is_disabled = self.is_emmc() && self.ext_csd_byte(reg::USER_WP) >> 6 & 1 == 1;
        let protects = mmc::PERM_WRITE_PROTECT.is_set(&new) && !mmc::PERM_WRITE_PROTECT.is_set(&old);
        if new[..15] != wanted[..15] || is_disabled && protects {
            self.status.raise(R1::CID_CSD_OVERWRITE);
            return now;
        }
        let protection =
            |csd: &[u8; 16]| [&mmc::PERM_WRITE_PROTECT, &mmc::TMP_WRITE_PROTECT].map(|bit| bit.is_set(csd));
        if self.holds_write_protection() && protection(&new) != protection(&old) {
            self.status.raise(R1::ERROR);
            return now;
        }
        self.device.registers_mut().csd = new;
        now + PROGRAM
    }

    /// The time is stored and not used: no part documents its use.
    pub(super) fn store_time(&mut self, bytes: Vec<u8>, now: Instant) -> Instant {
        self.host_time = Some(bytes.into());
        now
    }
}
