//! The conditions for enabling the queue, and the commands that are legal with it.

use emmc_regs::command::Command;
use emmc_regs::ext_csd::{EXT_CSD_BYTES, reg};

use crate::card::partition::Refused;

/// PARTITION_ACCESS of RPMB.
const RPMB: u8 = 3;

/// Whether CMDQ_MODE_EN is set.
pub(crate) fn is_enabled(ext_csd: &[u8; EXT_CSD_BYTES]) -> bool {
    ext_csd[reg::CMDQ_MODE_EN] & 1 == 1
}

/// The rule of CMDQ_MODE_EN beyond its access class; with `partition` that of PARTITION_ACCESS about to change.
///
/// Errors: no queue on this card; a queue over RPMB.
pub(crate) fn check_mode(ext_csd: &[u8; EXT_CSD_BYTES], enable: bool, partition: Option<u8>) -> Result<(), Refused> {
    let access = partition.unwrap_or(ext_csd[reg::PARTITION_CONFIG]) & 7;
    let offered = ext_csd[reg::CMDQ_SUPPORT] & 1 == 1;
    if !enable || offered && access != RPMB { Ok(()) } else { Err(Refused) }
}

/// Whether a card in queue mode takes a command; other rules apply besides.
///
/// Transfers of blocks go by tasks only. What changes the card or the data beneath the tasks waits for an empty queue.
pub(crate) fn is_legal(command: &Command, queue_is_empty: bool) -> bool {
    use Command as C;
    match command {
        C::SetBlockLen { .. }
        | C::ReadSingleBlock { .. }
        | C::ReadMultipleBlock { .. }
        | C::SetBlockCount(_)
        | C::WriteBlock { .. }
        | C::WriteMultipleBlock { .. }
        | C::ProgramCid
        | C::ProgramCsd
        | C::SetTime => false,
        C::Switch(_)
        | C::SendExtCsd
        | C::SleepAwake { .. }
        | C::BusTestW
        | C::SendTuningBlock
        | C::SetWriteProt { .. }
        | C::ClrWriteProt { .. }
        | C::SendWriteProt { .. }
        | C::SendWriteProtType { .. }
        | C::EraseGroupStart { .. }
        | C::EraseGroupEnd { .. }
        | C::Erase(_)
        | C::LockUnlock
        | C::GenCmd { .. } => queue_is_empty,
        _ => true,
    }
}
