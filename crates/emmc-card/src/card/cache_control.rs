//! The volatile cache as the host sees it: on, off, flush, barrier.
//!
//! `device` determines the order in which the cache is written to flash: oldest first. A unit that is overwritten in
//! the cache replaces its older content, which could violate a barrier; a barrier is therefore implemented as a flush,
//! which the standard allows. Absent on purpose: the cost of a power loss (`device::Device::power_off`).
//!
//! Source: JESD84-B51 clauses 6.6.34, 7.4 (CACHE_CTRL, FLUSH_CACHE, BARRIER_CTRL, CACHE_FLUSH_POLICY).

use emmc_regs::ext_csd::{EXT_CSD_BYTES, reg};
use emmc_units::Instant;

use super::partition::Refused;
use crate::device::{Device, StorageError};

const FLUSH: u8 = 1;
const BARRIER: u8 = 2;

fn has_cache(ext_csd: &[u8; EXT_CSD_BYTES]) -> bool {
    ext_csd[reg::CACHE_SIZE.range()] != [0; 4]
}

fn offers_barrier(ext_csd: &[u8; EXT_CSD_BYTES]) -> bool {
    ext_csd[reg::BARRIER_SUPPORT] & 1 == 1
}

/// The rule of CACHE_CTRL beyond its access class.
///
/// Errors: a card without a cache.
pub(crate) fn check_cache(ext_csd: &[u8; EXT_CSD_BYTES], value: u8) -> Result<(), Refused> {
    Refused::unless(has_cache(ext_csd) || value & 1 == 0)
}

/// The rule of BARRIER_CTRL beyond its access class.
///
/// Errors: a barrier that is not offered.
pub(crate) fn check_barrier(ext_csd: &[u8; EXT_CSD_BYTES], value: u8) -> Result<(), Refused> {
    Refused::unless(offers_barrier(ext_csd) || value & 1 == 0)
}

/// The rule of FLUSH_CACHE beyond its access class.
///
/// Errors: a card without a cache, a barrier that is not offered or not enabled.
pub(crate) fn check_flush(ext_csd: &[u8; EXT_CSD_BYTES], value: u8) -> Result<(), Refused> {
    if value & BARRIER == 0 {
        return Refused::unless(has_cache(ext_csd) || value == 0);
    }
    let enabled = ext_csd[reg::BARRIER_CTRL] & 1 == 1;
    // The standard has no combined flush and barrier.
    Refused::unless(has_cache(ext_csd) && offers_barrier(ext_csd) && enabled && value & FLUSH == 0)
}

/// Carries out a write to CACHE_CTRL that the rules allow; answers when the card is no longer busy.
///
/// Errors: worn out, power lost.
pub(crate) fn switch(device: &mut Device, value: u8, now: Instant) -> Result<Instant, StorageError> {
    let is_on = value & 1 == 1;
    let done = if is_on { now } else { device.flush(now)?.done };
    device.set_cache(is_on, done)?;
    Ok(done)
}

/// Carries out a write to FLUSH_CACHE that the rules allow; answers when the card is no longer busy.
///
/// Errors: worn out, power lost.
pub(crate) fn flush(device: &mut Device, value: u8, now: Instant) -> Result<Instant, StorageError> {
    if value & (FLUSH | BARRIER) == 0 { Ok(now) } else { Ok(device.flush(now)?.done) }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rule = fn(&[u8; EXT_CSD_BYTES], u8) -> Result<(), Refused>;

    #[test]
    fn flush_and_barrier_need_an_enabled_cache() {
        let with = |cache: u8, support: u8, enabled: u8| {
            let mut ext_csd = [0; EXT_CSD_BYTES];
            (ext_csd[reg::CACHE_SIZE], ext_csd[reg::BARRIER_SUPPORT], ext_csd[reg::BARRIER_CTRL]) =
                (cache, support, enabled);
            ext_csd
        };
        let rules: [(_, Rule, _, _); 11] = [
            (with(1, 1, 1), check_cache, 1, true),
            (with(0, 0, 0), check_cache, 1, false),
            (with(0, 0, 0), check_cache, 0, true),
            (with(1, 1, 0), check_barrier, 1, true),
            (with(1, 0, 0), check_barrier, 1, false),
            (with(1, 1, 1), check_flush, 1, true),
            (with(0, 0, 0), check_flush, 1, false),
            (with(1, 1, 1), check_flush, 2, true),
            (with(1, 1, 0), check_flush, 2, false),
            (with(1, 0, 1), check_flush, 2, false),
            (with(1, 1, 1), check_flush, 3, false),
        ];
        for (row, (ext_csd, check, value, allowed)) in rules.into_iter().enumerate() {
            assert_eq!(check(&ext_csd, value).is_ok(), allowed, "row {row}: {value}");
        }
    }
}
