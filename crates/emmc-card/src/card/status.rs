//! The card status: which bits are set, and when they clear.
//!
//! Three clear conditions: bits that follow the card's state are made when asked for (`Card::r1`); bits about the
//! command before clear with the next legal command; all other errors stay until an answer has carried them.

use emmc_regs::r1::R1;

/// Bits about the command before (clear condition B).
///
/// Source: JESD84-B51 clause 6.13.
const OF_LAST_COMMAND: u32 = R1::COM_CRC_ERROR.0 | R1::ILLEGAL_COMMAND.0 | R1::SWITCH_ERROR.0;

/// Error bits that wait to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    raised: u32,
    /// What of it the present command raised.
    fresh: u32,
}

impl Status {
    /// A command arrives.
    pub(crate) fn begin(&mut self) {
        self.fresh = 0;
    }

    /// Sets bits: in this command's answer if that is still to be made, else in the next.
    pub(crate) fn raise(&mut self, bits: R1) {
        self.raised |= bits.0;
        self.fresh |= bits.0;
    }

    /// The bits for an answer; they clear by being told.
    pub(crate) fn take(&mut self) -> R1 {
        R1(std::mem::take(&mut self.raised))
    }

    /// A legal command whose answer carries no status has passed.
    pub(crate) fn pass_untold(&mut self) {
        self.raised &= !OF_LAST_COMMAND | self.fresh;
    }

    /// Forgets everything: power cycle or reset.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_clear_by_being_told_or_by_the_next_command() {
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
