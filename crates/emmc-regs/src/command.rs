//! Commands: the 64 indices of a kind of card, with their arguments as values, both ways.
//!
//! `Command::decode` is total: an index that a kind does not define becomes `Reserved`. Reserved and stuff bits of an
//! argument are dropped, so that `encode` gives the canonical argument. Absent on purpose: in which state a card
//! accepts a command and what it does then, and the SPI mode.

use std::fmt;

use crate::CardKind;
use crate::crc::crc7;
use crate::ocr::Ocr;

mod argument;
mod response;
mod sd;
mod spec;
pub mod switch_status;

pub use argument::{Erase, FastIo, QueuedTaskParams, SetBlockCount, Switch, SwitchAccess, TaskManagement};
use argument::{get, put, rca, task_id};
pub use response::{Response, ResponseKind};
pub use sd::{AppCommand, ExtensionAccess, SdCommand, SdErase, SdTaskInfo, SwitchFunc};
pub use spec::{CommandKind, DataDirection, Spec};

/// A command of eMMC or SD with its argument.
///
/// Addresses count bytes or sectors of 512 bytes, as the card's access mode says. Where SD gives an index another
/// meaning than eMMC the command is an [`SdCommand`]; what follows CMD55 is an [`AppCommand`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the fields are the standard's own names")]
pub enum Command {
    /// CMD0: resets the card; any argument but the next two.
    GoIdleState,
    /// CMD0 with 0xF0F0F0F0: back to before booting.
    GoPreIdleState,
    /// CMD0 with 0xFFFFFFFA: the card sends its boot area.
    BootInitiation,
    /// CMD1: negotiates voltage and access mode.
    SendOpCond { ocr: Ocr },
    /// CMD2: requests the CID of all cards that are not identified yet.
    AllSendCid,
    /// CMD3: gives the card its address.
    SetRelativeAddr { rca: u16 },
    /// CMD4: programs the driver stage.
    SetDsr { dsr: u16 },
    /// CMD5: sends the card to sleep or wakes it.
    SleepAwake { rca: u16, sleep: bool },
    /// CMD6: changes a byte of EXT_CSD or the command set.
    Switch(Switch),
    /// CMD7: selects the card with this address and deselects the others.
    SelectCard { rca: u16 },
    /// CMD8: requests EXT_CSD.
    SendExtCsd,
    /// CMD9: requests the CSD.
    SendCsd { rca: u16 },
    /// CMD10: requests the CID.
    SendCid { rca: u16 },
    /// CMD11, of MMC before 4.3: reads a stream.
    ReadDatUntilStop { address: u32 },
    /// CMD12: ends a transfer, or with `hpi` interrupts the card.
    StopTransmission { rca: u16, hpi: bool },
    /// CMD13: requests the status, with `sqs` for the queue's, with `hpi` interrupts the card.
    SendStatus { rca: u16, sqs: bool, hpi: bool },
    /// CMD14: reads back the bus test pattern.
    BusTestR,
    /// CMD15: switches the card off until it loses power.
    GoInactiveState { rca: u16 },
    /// CMD16: sets the block length.
    SetBlockLen { bytes: u32 },
    /// CMD17: reads a block.
    ReadSingleBlock { address: u32 },
    /// CMD18: reads blocks until CMD12, or the number set by CMD23.
    ReadMultipleBlock { address: u32 },
    /// CMD19: sends the bus test pattern.
    BusTestW,
    /// CMD20, of MMC before 4.3: writes a stream.
    WriteDatUntilStop { address: u32 },
    /// CMD21: requests the tuning pattern of HS200.
    SendTuningBlock,
    /// CMD23: sets the number of blocks of the next transfer.
    SetBlockCount(SetBlockCount),
    /// CMD24: writes a block.
    WriteBlock { address: u32 },
    /// CMD25: writes blocks until CMD12, or the number set by CMD23.
    WriteMultipleBlock { address: u32 },
    /// CMD26: programs the CID, once.
    ProgramCid,
    /// CMD27: programs the writable bits of the CSD.
    ProgramCsd,
    /// CMD28: protects a write protection group.
    SetWriteProt { address: u32 },
    /// CMD29: frees a write protection group.
    ClrWriteProt { address: u32 },
    /// CMD30: requests the protection bits of 32 groups.
    SendWriteProt { address: u32 },
    /// CMD31: requests the kinds of protection of 32 groups.
    SendWriteProtType { address: u32 },
    /// CMD35: the first group or block to erase.
    EraseGroupStart { address: u32 },
    /// CMD36: the last group or block to erase.
    EraseGroupEnd { address: u32 },
    /// CMD38: erases what CMD35 and CMD36 chose.
    Erase(Erase),
    /// CMD39: reads or writes a register of an I/O card.
    FastIo(FastIo),
    /// CMD40: waits for an interrupt.
    GoIrqState,
    /// CMD42: sets, clears or uses the password.
    LockUnlock,
    /// CMD44: queues a task: what, how many blocks.
    QueuedTaskParams(QueuedTaskParams),
    /// CMD45: queues a task: where.
    QueuedTaskAddress { address: u32 },
    /// CMD46: runs a queued read.
    ExecuteReadTask { task_id: u8 },
    /// CMD47: runs a queued write.
    ExecuteWriteTask { task_id: u8 },
    /// CMD48: drops queued tasks.
    CmdqTaskMgmt(TaskManagement),
    /// CMD49: sends the time to the card.
    SetTime,
    /// CMD53: reads from a security protocol.
    ProtocolRd { specific: u16, protocol: u8 },
    /// CMD54: writes to a security protocol.
    ProtocolWr { specific: u16, protocol: u8 },
    /// CMD55: the next command is an application-specific one.
    AppCmd { rca: u16 },
    /// CMD56: a maker's own data; bit 0 says that the card sends it.
    GenCmd { argument: u32 },
    /// A command with its own meaning on SD.
    Sd(SdCommand),
    /// A command after CMD55.
    App(AppCommand),
    /// CMD60 to CMD63, each maker's own.
    Manufacturer { index: u8, argument: u32 },
    /// An index that this kind of card does not define.
    Reserved { index: u8, argument: u32 },
}

impl Command {
    /// What a card of this kind reads from a command that does not follow CMD55.
    pub fn decode(index: u8, argument: u32, kind: CardKind) -> Self {
        match kind {
            CardKind::Sd => match SdCommand::decode(index, argument) {
                Some(command) => Self::Sd(command),
                None => Self::decode_shared(index, argument),
            },
            CardKind::Emmc => Self::decode_emmc(index, argument),
        }
    }

    /// What a card of this kind reads from a command that follows CMD55.
    ///
    /// What is no application-specific command counts as a plain one, as the standard says.
    pub fn decode_app(index: u8, argument: u32, kind: CardKind) -> Self {
        match kind {
            CardKind::Sd => AppCommand::decode(index, argument).map(Self::App),
            CardKind::Emmc => None,
        }
        .unwrap_or_else(|| Self::decode(index, argument, kind))
    }

    /// Indices that mean the same to both kinds.
    fn decode_shared(index: u8, argument: u32) -> Self {
        let address = argument;
        match index {
            0 => Self::GoIdleState,
            2 => Self::AllSendCid,
            4 => Self::SetDsr { dsr: rca(argument) },
            7 => Self::SelectCard { rca: rca(argument) },
            9 => Self::SendCsd { rca: rca(argument) },
            10 => Self::SendCid { rca: rca(argument) },
            12 => Self::StopTransmission { rca: rca(argument), hpi: get(argument, 0, 0) == 1 },
            13 => {
                Self::SendStatus { rca: rca(argument), sqs: get(argument, 15, 15) == 1, hpi: get(argument, 0, 0) == 1 }
            }
            15 => Self::GoInactiveState { rca: rca(argument) },
            16 => Self::SetBlockLen { bytes: argument },
            17 => Self::ReadSingleBlock { address },
            18 => Self::ReadMultipleBlock { address },
            24 => Self::WriteBlock { address },
            25 => Self::WriteMultipleBlock { address },
            27 => Self::ProgramCsd,
            28 => Self::SetWriteProt { address },
            29 => Self::ClrWriteProt { address },
            30 => Self::SendWriteProt { address },
            42 => Self::LockUnlock,
            55 => Self::AppCmd { rca: rca(argument) },
            56 => Self::GenCmd { argument },
            60..=63 => Self::Manufacturer { index, argument },
            _ => Self::Reserved { index, argument },
        }
    }

    /// Indices of eMMC; the others are shared.
    fn decode_emmc(index: u8, argument: u32) -> Self {
        let address = argument;
        match index {
            0 if argument == PRE_IDLE => Self::GoPreIdleState,
            0 if argument == BOOT => Self::BootInitiation,
            1 => Self::SendOpCond { ocr: Ocr(argument) },
            3 => Self::SetRelativeAddr { rca: rca(argument) },
            5 => Self::SleepAwake { rca: rca(argument), sleep: get(argument, 15, 15) == 1 },
            6 => Self::Switch(Switch::decode(argument)),
            8 => Self::SendExtCsd,
            11 => Self::ReadDatUntilStop { address },
            14 => Self::BusTestR,
            19 => Self::BusTestW,
            20 => Self::WriteDatUntilStop { address },
            21 => Self::SendTuningBlock,
            23 => Self::SetBlockCount(SetBlockCount::decode(argument)),
            26 => Self::ProgramCid,
            31 => Self::SendWriteProtType { address },
            35 => Self::EraseGroupStart { address },
            36 => Self::EraseGroupEnd { address },
            38 => Self::Erase(Erase::decode(argument)),
            39 => Self::FastIo(FastIo::decode(argument)),
            40 => Self::GoIrqState,
            44 => Self::QueuedTaskParams(QueuedTaskParams::decode(argument)),
            45 => Self::QueuedTaskAddress { address },
            46 => Self::ExecuteReadTask { task_id: task_id(argument) },
            47 => Self::ExecuteWriteTask { task_id: task_id(argument) },
            48 => Self::CmdqTaskMgmt(TaskManagement::decode(argument)),
            49 => Self::SetTime,
            53 => Self::ProtocolRd { specific: rca(argument), protocol: get(argument, 15, 8) as u8 },
            54 => Self::ProtocolWr { specific: rca(argument), protocol: get(argument, 15, 8) as u8 },
            _ => Self::decode_shared(index, argument),
        }
    }

    /// The argument, with reserved and stuff bits 0.
    pub fn argument(&self) -> u32 {
        match *self {
            Self::GoPreIdleState => PRE_IDLE,
            Self::BootInitiation => BOOT,
            Self::SendOpCond { ocr } => ocr.0,
            Self::SetDsr { dsr } => put(dsr, 31, 16),
            Self::SetRelativeAddr { rca }
            | Self::SelectCard { rca }
            | Self::SendCsd { rca }
            | Self::SendCid { rca }
            | Self::GoInactiveState { rca }
            | Self::AppCmd { rca } => put(rca, 31, 16),
            Self::SleepAwake { rca, sleep } => put(rca, 31, 16) | put(sleep, 15, 15),
            Self::StopTransmission { rca, hpi } => put(rca, 31, 16) | put(hpi, 0, 0),
            Self::SendStatus { rca, sqs, hpi } => put(rca, 31, 16) | put(sqs, 15, 15) | put(hpi, 0, 0),
            Self::SetBlockLen { bytes } => bytes,
            Self::ReadDatUntilStop { address }
            | Self::WriteDatUntilStop { address }
            | Self::ReadSingleBlock { address }
            | Self::ReadMultipleBlock { address }
            | Self::WriteBlock { address }
            | Self::WriteMultipleBlock { address }
            | Self::SetWriteProt { address }
            | Self::ClrWriteProt { address }
            | Self::SendWriteProt { address }
            | Self::SendWriteProtType { address }
            | Self::EraseGroupStart { address }
            | Self::EraseGroupEnd { address }
            | Self::QueuedTaskAddress { address } => address,
            Self::Switch(switch) => switch.encode(),
            Self::SetBlockCount(count) => count.encode(),
            Self::Erase(erase) => erase.encode(),
            Self::FastIo(io) => io.encode(),
            Self::QueuedTaskParams(task) => task.encode(),
            Self::ExecuteReadTask { task_id } | Self::ExecuteWriteTask { task_id } => put(task_id, 20, 16),
            Self::CmdqTaskMgmt(management) => management.encode(),
            Self::ProtocolRd { specific, protocol } | Self::ProtocolWr { specific, protocol } => {
                put(specific, 31, 16) | put(protocol, 15, 8)
            }
            Self::GenCmd { argument } | Self::Manufacturer { argument, .. } | Self::Reserved { argument, .. } => {
                argument
            }
            Self::Sd(command) => command.argument(),
            Self::App(command) => command.argument(),
            Self::GoIdleState
            | Self::AllSendCid
            | Self::SendExtCsd
            | Self::BusTestR
            | Self::BusTestW
            | Self::SendTuningBlock
            | Self::ProgramCid
            | Self::ProgramCsd
            | Self::GoIrqState
            | Self::LockUnlock
            | Self::SetTime => 0,
        }
    }

    /// The index, 0 to 63 unless the command is `Reserved` with another.
    pub fn index(&self) -> u8 {
        self.spec().index
    }

    /// Index and argument.
    pub fn encode(&self) -> (u8, u32) {
        (self.index(), self.argument())
    }

    /// The 48 bits on the command line: start, host, index, argument, checksum, end.
    pub fn frame(&self) -> [u8; 6] {
        let [a, b, c, d] = self.argument().to_be_bytes();
        let head = [0x40 | self.index() & 0x3f, a, b, c, d];
        [head[0], a, b, c, d, crc7(&head) << 1 | 1]
    }
}

const PRE_IDLE: u32 = 0xf0f0_f0f0;
const BOOT: u32 = 0xffff_fffa;

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let application = if matches!(self, Self::App(_)) { "A" } else { "" };
        write!(f, "{application}CMD{} {} 0x{:08x}", self.index(), self.spec().name, self.argument())
    }
}

#[cfg(test)]
mod tests;
