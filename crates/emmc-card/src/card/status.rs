//! The card status: which bits are set, and when they clear.
//!
//! Three clear conditions: bits for the card's state are computed when read (`Card::r1`); bits about the previous
//! command clear with the next legal command; all other errors stay until a response has reported them.

use emmc_regs::r1::R1;

/// Bits about the previous command (clear condition B).
///
/// Source: JESD84-B51 clause 6.13.
const OF_LAST_COMMAND: u32 = R1::COM_CRC_ERROR.0 | R1::ILLEGAL_COMMAND.0 | R1::SWITCH_ERROR.0;

/// Pending error bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    raised: u32,
    /// Bits raised by the current command.
    fresh: u32,
}

impl Status {
    /// A command arrives.
    pub(crate) fn begin(&mut self) {
        self.fresh = 0;
    }

    /// Sets bits: reported in this command's response if that is still to be made, else in the next.
    pub(crate) fn raise(&mut self, bits: R1) {
        self.raised |= bits.0;
        self.fresh |= bits.0;
    }

    /// The bits for a response; they clear when reported.
    pub(crate) fn take(&mut self) -> R1 {
        R1(std::mem::take(&mut self.raised))
    }

    /// A legal command whose response carries no status has passed.
    pub(crate) fn pass_untold(&mut self) {
        self.raised &= !OF_LAST_COMMAND | self.fresh;
    }

    /// Clears everything: power cycle or reset.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_bits_clear_when_reported_or_by_the_next_command() {
        let mut status = Status::default();
        status.raise(R1::ILLEGAL_COMMAND);
        status.raise(R1::WP_VIOLATION);
        status.pass_untold();
        status.begin();
        status.pass_untold();
        assert_eq!(status.take(), R1::WP_VIOLATION);
        assert_eq!(status.take(), R1(0));
    }
}
