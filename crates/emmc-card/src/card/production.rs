//! Production state awareness: the host says when the part is soldered, and what it loads before.
//!
//! The states are kept after the standard's rules. What heat does to data is not simulated, so they change nothing
//! else.
//!
//! Source: JESD84-B51 clauses 6.6.18, 7.4 (PRODUCTION_STATE_AWARENESS and its neighbours).

use emmc_regs::ext_csd::EXT_CSD_BYTES;

use super::partition::Refused;

/// Where PRODUCT_STATE_AWARENESS_ENABLEMENT is.
pub(crate) const ENABLEMENT: u8 = 17;
/// Where PRE_LOADING_DATA_SIZE begins.
pub(crate) const PRE_LOADING_DATA_SIZE: u8 = 22;
/// Where PRODUCTION_STATE_AWARENESS is.
pub(crate) const STATE: u8 = 133;
const MAX_PRE_LOADING: usize = 18;

const NORMAL: u8 = 0;
const PRE_SOLDERING_WRITES: u8 = 1;
const PRE_SOLDERING_POST_WRITES: u8 = 2;
const AUTO_PRE_SOLDERING: u8 = 3;

/// The rules of the state's registers beyond their access classes.
///
/// Errors: a mode that the card does not have or that is not enabled, a reserved state, more data than fits.
pub(crate) fn check(ext_csd: &[u8; EXT_CSD_BYTES], index: u8, value: u8) -> Result<(), Refused> {
    let enablement = ext_csd[usize::from(ENABLEMENT)];
    let (manual, automatic) = (enablement & 1 == 1, enablement & 2 != 0);
    let enabled = enablement & 0x10 != 0;
    let allowed = match index {
        ENABLEMENT => (manual || value & 0x10 == 0) && (automatic || value & 0x20 == 0),
        STATE => match value {
            NORMAL => true,
            PRE_SOLDERING_WRITES | PRE_SOLDERING_POST_WRITES => manual && enabled,
            AUTO_PRE_SOLDERING => automatic && enablement & 0x20 != 0,
            _ => false,
        },
        PRE_LOADING_DATA_SIZE..=25 => {
            let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            let mut size = [0; 4];
            size.copy_from_slice(&ext_csd[usize::from(PRE_LOADING_DATA_SIZE)..][..4]);
            size[usize::from(index - PRE_LOADING_DATA_SIZE)] = value;
            number(&size) <= number(&ext_csd[MAX_PRE_LOADING..MAX_PRE_LOADING + 4])
        }
        _ => false,
    };
    if allowed { Ok(()) } else { Err(Refused) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_need_their_mode() {
        let mut ext_csd = [0; EXT_CSD_BYTES];
        assert_eq!((check(&ext_csd, STATE, 0), check(&ext_csd, STATE, 1)), (Ok(()), Err(Refused)));
        assert_eq!(check(&ext_csd, ENABLEMENT, 0x10), Err(Refused));
        ext_csd[17] = 1;
        assert_eq!(check(&ext_csd, ENABLEMENT, 0x11), Ok(()));
        assert_eq!(check(&ext_csd, ENABLEMENT, 0x21), Err(Refused));
        assert_eq!(check(&ext_csd, STATE, 1), Err(Refused), "not enabled");
        ext_csd[17] = 0x11;
        for (state, allowed) in [(1, true), (2, true), (3, false), (4, false)] {
            assert_eq!(check(&ext_csd, STATE, state).is_ok(), allowed, "{state}");
        }
        ext_csd[17] = 0x22;
        assert_eq!(check(&ext_csd, STATE, 3), Ok(()));
        ext_csd[MAX_PRE_LOADING + 1] = 1;
        assert_eq!((check(&ext_csd, 22, 0xff), check(&ext_csd, 23, 1)), (Ok(()), Ok(())));
        assert_eq!((check(&ext_csd, 23, 2), check(&ext_csd, 25, 1)), (Err(Refused), Err(Refused)));
    }
}
