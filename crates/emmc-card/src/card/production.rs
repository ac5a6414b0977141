//! Production state awareness: the host announces soldering and preloaded data.
//!
//! The states follow the standard's rules. The effect of heat on data is not simulated, so they have no other effect.
//!
//! Source: JESD84-B51 clauses 6.6.18, 7.4 (PRODUCTION_STATE_AWARENESS and its neighbours).

use emmc_regs::ext_csd::{EXT_CSD_BYTES, reg};

use super::partition::Refused;

const NORMAL: u8 = 0;
const PRE_SOLDERING_WRITES: u8 = 1;
const PRE_SOLDERING_POST_WRITES: u8 = 2;
const AUTO_PRE_SOLDERING: u8 = 3;

/// The modes that the card has: the host says when it is soldered, or the card finds out.
fn modes(ext_csd: &[u8; EXT_CSD_BYTES]) -> (bool, bool) {
    let enablement = ext_csd[reg::PRODUCT_STATE_AWARENESS_ENABLEMENT];
    (enablement & 1 == 1, enablement & 2 != 0)
}

/// The rule of PRODUCT_STATE_AWARENESS_ENABLEMENT beyond its access classes.
///
/// Errors: a mode that the card does not have.
pub(crate) fn check_enablement(ext_csd: &[u8; EXT_CSD_BYTES], value: u8) -> Result<(), Refused> {
    let (manual, automatic) = modes(ext_csd);
    Refused::unless((manual || value & 0x10 == 0) && (automatic || value & 0x20 == 0))
}

/// The rule of PRODUCTION_STATE_AWARENESS beyond its access class.
///
/// Errors: a state of a mode that the card does not have or that is not enabled, a reserved state.
pub(crate) fn check_state(ext_csd: &[u8; EXT_CSD_BYTES], value: u8) -> Result<(), Refused> {
    let (manual, automatic) = modes(ext_csd);
    let enablement = ext_csd[reg::PRODUCT_STATE_AWARENESS_ENABLEMENT];
    Refused::unless(match value {
        NORMAL => true,
        PRE_SOLDERING_WRITES | PRE_SOLDERING_POST_WRITES => manual && enablement & 0x10 != 0,
        AUTO_PRE_SOLDERING => automatic && enablement & 0x20 != 0,
        _ => false,
    })
}

/// The rule of one byte of PRE_LOADING_DATA_SIZE beyond its access class.
///
/// Errors: more data than fits.
pub(crate) fn check_pre_loading(ext_csd: &[u8; EXT_CSD_BYTES], index: u8, value: u8) -> Result<(), Refused> {
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let mut wanted = *ext_csd;
    wanted[usize::from(index)] = value;
    let size = number(&wanted[reg::PRE_LOADING_DATA_SIZE.range()]);
    Refused::unless(size <= number(&ext_csd[reg::MAX_PRE_LOADING_DATA_SIZE.range()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn production_states_need_their_mode() {
        let mut ext_csd = [0; EXT_CSD_BYTES];
        assert_eq!((check_state(&ext_csd, 0), check_state(&ext_csd, 1)), (Ok(()), Err(Refused)));
        assert_eq!(check_enablement(&ext_csd, 0x10), Err(Refused));
        ext_csd[reg::PRODUCT_STATE_AWARENESS_ENABLEMENT] = 1;
        assert_eq!(check_enablement(&ext_csd, 0x11), Ok(()));
        assert_eq!(check_enablement(&ext_csd, 0x21), Err(Refused));
        assert_eq!(check_state(&ext_csd, 1), Err(Refused), "not enabled");
        ext_csd[reg::PRODUCT_STATE_AWARENESS_ENABLEMENT] = 0x11;
        for (state, allowed) in [(1, true), (2, true), (3, false), (4, false)] {
            assert_eq!(check_state(&ext_csd, state).is_ok(), allowed, "{state}");
        }
        ext_csd[reg::PRODUCT_STATE_AWARENESS_ENABLEMENT] = 0x22;
        assert_eq!(check_state(&ext_csd, 3), Ok(()));
        ext_csd[reg::MAX_PRE_LOADING_DATA_SIZE.index() + 1] = 1;
        assert_eq!((check_pre_loading(&ext_csd, 22, 0xff), check_pre_loading(&ext_csd, 23, 1)), (Ok(()), Ok(())));
        assert_eq!(
            (check_pre_loading(&ext_csd, 23, 2), check_pre_loading(&ext_csd, 25, 1)),
            (Err(Refused), Err(Refused))
        );
    }
}
