//! Legal commands in each state.
//!
//! Absent on purpose: other reasons for refusing a legal command (`gate` in `dispatch`, and each command itself).

use emmc_regs::command::{Command, SdCommand};
use emmc_regs::r1::State;

/// Whether power and mode allow commands at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Without power, possibly lost in the middle of an operation.
    Off,
    /// After power-up or hardware reset: boot can be requested.
    PreIdle,
    /// In a state of CURRENT_STATE.
    In(State),
    /// Inactive after CMD15 or an unsupported voltage, until power or RST_n.
    Inactive,
}

const STBY: &[State] = &[State::Stby];
const TRAN: &[State] = &[State::Tran];
/// All states of a card that has an address, but sleep.
const ADDRESSED: &[State] = &[State::Stby, State::Tran, State::Data, State::Btst, State::Rcv, State::Prg, State::Dis];

/// Whether an eMMC accepts a command in a state.
///
/// The standard allows a card to treat CMD24 and CMD25 in `prg` as illegal; this one does.
/// Source: JESD84-B51, table of card state transitions.
pub(crate) fn is_legal(state: State, command: &Command) -> bool {
    use Command as C;
    use State as S;
    let states: &[State] = match command {
        C::GoIdleState | C::GoPreIdleState => return true,
        // Only as the first command (`gate`).
        C::BootInitiation => &[S::Idle],
        C::SendOpCond { .. } => &[S::Idle],
        C::AllSendCid => &[S::Ready],
        C::SetRelativeAddr { .. } => &[S::Ident],
        C::SetDsr { .. } | C::SendCsd { .. } | C::SendCid { .. } => STBY,
        C::SleepAwake { .. } => &[S::Stby, S::Slp],
        C::SelectCard { .. } => &[S::Stby, S::Tran, S::Data, S::Prg, S::Dis],
        // In `prg` only as HPI.
        C::StopTransmission { hpi, .. } if *hpi => &[S::Data, S::Rcv, S::Prg],
        C::StopTransmission { .. } => &[S::Data, S::Rcv],
        C::SendStatus { .. } | C::GoInactiveState { .. } | C::AppCmd { .. } => ADDRESSED,
        C::BusTestR => &[S::Btst],
        // While a queued task's data is transferred, further tasks may be queued.
        C::QueuedTaskParams(_) | C::QueuedTaskAddress { .. } => &[S::Tran, S::Data, S::Rcv, S::Prg],
        C::Switch(_)
        | C::SendExtCsd
        | C::BusTestW
        | C::SetBlockLen { .. }
        | C::ReadSingleBlock { .. }
        | C::ReadMultipleBlock { .. }
        | C::SendTuningBlock
        | C::SetBlockCount(_)
        | C::WriteBlock { .. }
        | C::WriteMultipleBlock { .. }
        | C::ProgramCid
        | C::ProgramCsd
        | C::SetWriteProt { .. }
        | C::ClrWriteProt { .. }
        | C::SendWriteProt { .. }
        | C::SendWriteProtType { .. }
        | C::EraseGroupStart { .. }
        | C::EraseGroupEnd { .. }
        | C::Erase(_)
        | C::LockUnlock
        | C::SetTime
        | C::GenCmd { .. }
        | C::ExecuteReadTask { .. }
        | C::ExecuteWriteTask { .. }
        | C::CmdqTaskMgmt(_) => TRAN,
        // Streams and I/O mode left the standard or were never in eMMC parts; no security protocol is offered.
        C::ReadDatUntilStop { .. }
        | C::WriteDatUntilStop { .. }
        | C::FastIo(_)
        | C::GoIrqState
        | C::ProtocolRd { .. }
        | C::ProtocolWr { .. }
        | C::Sd(_)
        | C::App(_)
        | C::Manufacturer { .. }
        | C::Reserved { .. } => &[],
    };
    states.contains(&state)
}

/// Whether a command is for this card: it has no address, or this card's.
pub(crate) fn concerns(command: &Command, own_rca: u16) -> bool {
    use Command as C;
    match *command {
        C::SendCsd { rca }
        | C::SendCid { rca }
        | C::SendStatus { rca, .. }
        | C::GoInactiveState { rca }
        | C::AppCmd { rca }
        | C::SleepAwake { rca, .. } => rca == own_rca,
        C::StopTransmission { rca, hpi } => !hpi || rca == own_rca,
        C::Sd(SdCommand::SendStatus { rca, .. }) => rca == own_rca,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emmc_regs::CardKind;

    /// The states in which a command is legal, by their codes.
    fn states_of(index: u8, argument: u32) -> Vec<u8> {
        let command = Command::decode(index, argument, CardKind::Emmc);
        let states = (0..=10).filter_map(State::from_code);
        states.filter(|state| is_legal(*state, &command)).map(State::code).collect()
    }

    #[test]
    fn the_state_table_matches_the_standard() {
        for (index, argument, states) in [
            (0, 0, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10][..]),
            (1, 0, &[0]),
            (2, 0, &[1]),
            (3, 0x1_0000, &[2]),
            (5, 0, &[3, 10]),
            (7, 0, &[3, 4, 5, 7, 8]),
            (8, 0, &[4]),
            (12, 0, &[5, 6]),
            (12, 1, &[5, 6, 7]),
            (13, 0, &[3, 4, 5, 6, 7, 8, 9]),
            (14, 0, &[9]),
            (19, 0, &[4]),
            (18, 0, &[4]),
            (25, 0, &[4]),
            (38, 0, &[4]),
            (44, 0, &[4, 5, 6, 7]),
            (11, 0, &[]),
            (39, 0, &[]),
            (53, 0, &[]),
            (62, 0, &[]),
        ] {
            assert_eq!(states_of(index, argument), states, "CMD{index}");
        }
    }

    #[test]
    fn commands_for_another_card_are_ignored() {
        let command = |index, argument| Command::decode(index, argument, CardKind::Emmc);
        assert!(concerns(&command(13, 0x1_0000), 1));
        assert!(!concerns(&command(13, 0x2_0000), 1));
        assert!(concerns(&command(17, 0x2_0000), 1));
        assert!(concerns(&command(7, 0x2_0000), 1), "CMD7 for another card deselects this one");
    }
}
