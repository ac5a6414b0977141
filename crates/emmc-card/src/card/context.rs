//! Contexts: streams that a host opens to group data.
//!
//! CONTEXT_CONF follows the standard's rules; a transfer's context number, a data tag and a large unit are accepted and
//! do not affect data placement: the translation layers decide by the writes themselves.
//!
//! Source: JESD84-B51 clauses 6.6.27, 6.6.28, 7.4 (CONTEXT_CONF, CONTEXT_CAPABILITIES).

use emmc_regs::ext_csd::{EXT_CSD_BYTES, reg};

use super::partition::Refused;

/// The rules of CONTEXT_CONF beyond its access class: a context that the card has, a reliability mode and a multiplier
/// that exist, and an open context is closed before it is opened otherwise.
///
/// Errors: a rule broken.
pub(crate) fn check(ext_csd: &[u8; EXT_CSD_BYTES], index: u8, value: u8) -> Result<(), Refused> {
    let old = ext_csd[usize::from(index)];
    let Some(before) = u16::from(index).checked_sub(reg::CONTEXT_CONF.offset) else { return Err(Refused) };
    let exists = before < u16::from(ext_csd[reg::CONTEXT_CAPABILITIES] & 0xf);
    let is_open = |configuration: u8| configuration & 3 != 0;
    let reopens = is_open(old) && is_open(value) && old != value;
    let multiplier_max = ext_csd[reg::CONTEXT_CAPABILITIES] >> 4 & 7;
    let is_large = value & 4 != 0;
    let multiplier_fits = !is_large || value >> 3 & 7 <= multiplier_max;
    if exists && !reopens && multiplier_fits && value >> 6 != 3 { Ok(()) } else { Err(Refused) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_open_close_and_keep_to_the_cards_limits() {
        let mut ext_csd = [0; EXT_CSD_BYTES];
        ext_csd[reg::CONTEXT_CAPABILITIES] = 0x15;
        for (old, index, value, allowed) in [
            (0, 37, 0x01, true),
            (0, 41, 0x03, true),
            (0, 42, 0x01, false),
            (0, 51, 0x00, false),
            (1, 37, 0x01, true),
            (1, 37, 0x02, false),
            (1, 37, 0x00, true),
            (0, 37, 0x0f, true),
            (0, 37, 0x17, false),
            (0, 37, 0x83, true),
            (0, 37, 0xc3, false),
        ] {
            ext_csd[reg::CONTEXT_CONF] = old;
            assert_eq!(check(&ext_csd, index, value).is_ok(), allowed, "{index}: {old:#x} -> {value:#x}");
        }
    }
}
