//! The volatile cache as the host sees it: on, off, flush, barrier.
//!
//! The order in which the cache reaches flash is `device`'s: oldest first. A unit written again while it waits takes
//! the place of its older content, which alone would let it overtake; a barrier is therefore carried out as a flush,
//! which is within the standard. Absent on purpose: what is lost with power (`device::Device::power_off`).
//!
//! Source: JESD84-B51 clauses 6.6.34, 7.4 (CACHE_CTRL, FLUSH_CACHE, BARRIER_CTRL, CACHE_FLUSH_POLICY).

use emmc_regs::ext_csd::EXT_CSD_BYTES;
use emmc_units::Instant;

use super::partition::Refused;
use crate::device::{Device, StorageError};

/// Where BARRIER_CTRL is.
pub(crate) const BARRIER_CTRL: u8 = 31;
/// Where FLUSH_CACHE is.
pub(crate) const FLUSH_CACHE: u8 = 32;
/// Where CACHE_CTRL is.
pub(crate) const CACHE_CTRL: u8 = 33;
const CACHE_SIZE: usize = 249;
const BARRIER_SUPPORT: usize = 486;

const FLUSH: u8 = 1;
const BARRIER: u8 = 2;

/// The rules of CACHE_CTRL, FLUSH_CACHE and BARRIER_CTRL beyond their access classes.
///
/// Errors: a card without a cache, a barrier that is not offered or not enabled.
pub(crate) fn check(ext_csd: &[u8; EXT_CSD_BYTES], index: u8, value: u8) -> Result<(), Refused> {
    let has_cache = ext_csd[CACHE_SIZE..CACHE_SIZE + 4] != [0; 4];
    let offers_barrier = ext_csd[BARRIER_SUPPORT] & 1 == 1;
    let allowed = match index {
        CACHE_CTRL => has_cache || value & 1 == 0,
        BARRIER_CTRL => offers_barrier || value & 1 == 0,
        FLUSH_CACHE if value & BARRIER != 0 => {
            let enabled = ext_csd[usize::from(BARRIER_CTRL)] & 1 == 1;
            // Flush and barrier at once is no operation of the standard.
            has_cache && offers_barrier && enabled && value & FLUSH == 0
        }
        FLUSH_CACHE => has_cache || value == 0,
        _ => false,
    };
    if allowed { Ok(()) } else { Err(Refused) }
}

/// Carries out a write to CACHE_CTRL or FLUSH_CACHE that the rules allow; answers when the card is no longer busy.
///
/// Errors: worn out, power lost.
pub(crate) fn carry_out(device: &mut Device, index: u8, value: u8, now: Instant) -> Result<Instant, StorageError> {
    match index {
        CACHE_CTRL if value & 1 == 1 => {
            device.set_cache(true, now)?;
            Ok(now)
        }
        CACHE_CTRL => {
            let done = device.flush(now)?.done;
            device.set_cache(false, done)?;
            Ok(done)
        }
        FLUSH_CACHE if value & (FLUSH | BARRIER) != 0 => Ok(device.flush(now)?.done),
        _ => Ok(now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flush_and_barrier_need_what_they_stand_on() {
        let with = |cache: u8, support: u8, enabled: u8| {
            let mut ext_csd = [0; EXT_CSD_BYTES];
            (ext_csd[CACHE_SIZE], ext_csd[BARRIER_SUPPORT], ext_csd[31]) = (cache, support, enabled);
            ext_csd
        };
        for (ext_csd, index, value, allowed) in [
            (with(1, 1, 1), CACHE_CTRL, 1, true),
            (with(0, 0, 0), CACHE_CTRL, 1, false),
            (with(0, 0, 0), CACHE_CTRL, 0, true),
            (with(1, 1, 0), BARRIER_CTRL, 1, true),
            (with(1, 0, 0), BARRIER_CTRL, 1, false),
            (with(1, 1, 1), FLUSH_CACHE, 1, true),
            (with(0, 0, 0), FLUSH_CACHE, 1, false),
            (with(1, 1, 1), FLUSH_CACHE, 2, true),
            (with(1, 1, 0), FLUSH_CACHE, 2, false),
            (with(1, 0, 1), FLUSH_CACHE, 2, false),
            (with(1, 1, 1), FLUSH_CACHE, 3, false),
            (with(1, 1, 1), 34, 1, false),
        ] {
            assert_eq!(check(&ext_csd, index, value).is_ok(), allowed, "{index} = {value}");
        }
    }
}
