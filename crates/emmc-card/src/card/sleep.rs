//! Sleep: CMD5 takes a deselected card to `slp` and back.
//!
//! In `slp` the host may switch VCC off (VCCQ stays), without loss of data; the card accepts CMD5 and resets only.
//!
//! Source: JESD84-B51 clauses 6.6.21, 7.4 (S_A_TIMEOUT).
//! Assumed: that a card needs a tenth of its specified maximum.

use emmc_regs::ext_csd::{EXT_CSD_BYTES, reg};
use emmc_regs::r1::State;
use emmc_units::{Instant, Nanos};

use super::legality::Phase;
use super::{Card, Reply};

/// The state after CMD5, and when it is reached; `None`: the command is illegal.
pub(crate) fn switch(
    ext_csd: &[u8; EXT_CSD_BYTES],
    state: State,
    sleep: bool,
    now: Instant,
) -> Option<(State, Instant)> {
    let next = match (state, sleep) {
        (State::Stby, true) => State::Slp,
        (State::Slp, false) => State::Stby,
        _ => return None,
    };
    // 100 ns x 2^n, at most 2^23; 0 means that the part does not say.
    let allowed_ns = 100u64 << ext_csd[reg::S_A_TIMEOUT].min(0x17);
    Some((next, now + Nanos(allowed_ns / 10)))
}

impl Card {
    /// CMD5.
    pub(super) fn sleep_awake(&mut self, sleep: bool, now: Instant) -> Reply {
        let Phase::In(state) = self.phase else { return Reply::SILENT };
        let Some((next, done)) = switch(&self.device.stored_registers().ext_csd, state, sleep, now) else {
            return self.illegal();
        };
        let r1 = self.r1();
        self.phase = Phase::In(next);
        Self::answer_busy(r1, done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_is_entered_from_standby_only() {
        let mut ext_csd = [0; EXT_CSD_BYTES];
        ext_csd[reg::S_A_TIMEOUT] = 0x12;
        let now = Instant::START;
        let (state, at) = switch(&ext_csd, State::Stby, true, now).unwrap();
        assert_eq!(state, State::Slp);
        assert_eq!(at.since(now), Nanos(2_621_440));
        assert_eq!(switch(&ext_csd, State::Slp, false, now), Some((State::Stby, at)));
        for (state, sleep) in [(State::Stby, false), (State::Slp, true), (State::Tran, true), (State::Idle, true)] {
            assert_eq!(switch(&ext_csd, state, sleep, now), None, "{state} {sleep}");
        }
    }
}
