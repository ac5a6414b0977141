//! Legal commands of an SD card in each state.

use emmc_regs::command::{AppCommand, Command, SdCommand};
use emmc_regs::r1::State;

const TRAN: &[State] = &[State::Tran];
/// All states of a card that has an address.
const ADDRESSED: &[State] = &[State::Stby, State::Tran, State::Data, State::Rcv, State::Prg, State::Dis];

/// Whether an SD card accepts a command in a state.
///
/// Source: SD physical layer simplified specification, table of card state transitions.
pub(crate) fn is_legal(state: State, command: &Command) -> bool {
    use Command as C;
    use State as S;
    let states: &[State] = match command {
        C::GoIdleState => return true,
        // CMD55 before ACMD41 comes without an address.
        C::AppCmd { .. } => return state == S::Idle || ADDRESSED.contains(&state),
        C::AllSendCid => &[S::Ready],
        C::SetDsr { .. } | C::SendCsd { .. } | C::SendCid { .. } => &[S::Stby],
        C::SelectCard { .. } => &[S::Stby, S::Tran, S::Data, S::Prg, S::Dis],
        C::GoInactiveState { .. } => ADDRESSED,
        C::SetBlockLen { .. }
        | C::ReadSingleBlock { .. }
        | C::ReadMultipleBlock { .. }
        | C::WriteBlock { .. }
        | C::WriteMultipleBlock { .. }
        | C::ProgramCsd
        | C::LockUnlock
        | C::GenCmd { .. } => TRAN,
        C::Sd(command) => of_sd(command),
        C::App(command) => of_app(command),
        _ => &[],
    };
    states.contains(&state)
}

fn of_sd(command: &SdCommand) -> &'static [State] {
    use State as S;
    match command {
        SdCommand::SendRelativeAddr => &[S::Ident, S::Stby],
        SdCommand::SendIfCond { .. } => &[S::Idle],
        SdCommand::VoltageSwitch => &[S::Ready],
        SdCommand::StopTransmission => &[S::Data, S::Rcv],
        SdCommand::SendStatus { .. } => ADDRESSED,
        SdCommand::SwitchFunc(_)
        | SdCommand::SendTuningBlock
        | SdCommand::SetBlockCount { .. }
        | SdCommand::EraseWrBlkStart { .. }
        | SdCommand::EraseWrBlkEnd { .. }
        | SdCommand::Erase(_) => TRAN,
        // I/O, queue, extension registers, speed class control and SDUC are not announced.
        _ => &[],
    }
}

fn of_app(command: &AppCommand) -> &'static [State] {
    match command {
        AppCommand::SdSendOpCond { .. } => &[State::Idle],
        AppCommand::Security { .. } => &[],
        _ => TRAN,
    }
}
