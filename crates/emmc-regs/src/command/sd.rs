//! Commands that only SD has, or that mean something else there, and those after CMD55.

use super::argument::{get, put, task_id};
use super::{ResponseKind as R, Spec, TaskManagement};
use crate::ocr::Ocr;

/// A command of an SD card that eMMC does not have or reads differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the fields are the standard's own names")]
pub enum SdCommand {
    /// CMD3: requests an address from the card.
    SendRelativeAddr,
    /// CMD5: requests the OCR of an I/O card; a memory card does not respond.
    IoSendOpCond { ocr: Ocr },
    /// CMD6: checks or switches functions.
    SwitchFunc(SwitchFunc),
    /// CMD8: offers a voltage and requests an echo of the pattern.
    SendIfCond { voltage: u8, pattern: u8 },
    /// CMD11: switches to 1.8 V.
    VoltageSwitch,
    /// CMD12: ends a transfer.
    StopTransmission,
    /// CMD13: requests the status, with `task_status` for the queue's.
    SendStatus { rca: u16, task_status: bool },
    /// CMD19: requests the tuning pattern.
    SendTuningBlock,
    /// CMD20: prepares the card for recording at its speed class.
    SpeedClassControl { argument: u32 },
    /// CMD22: the upper six bits of the next address, of SDUC.
    AddressExtension { address: u8 },
    /// CMD23: sets the number of blocks of the next transfer.
    SetBlockCount { blocks: u32 },
    /// CMD32: the first block to erase.
    EraseWrBlkStart { address: u32 },
    /// CMD33: the last block to erase.
    EraseWrBlkEnd { address: u32 },
    /// CMD38: erases what CMD32 and CMD33 chose.
    Erase(SdErase),
    /// CMD43: drops queued tasks.
    QManagement(TaskManagement),
    /// CMD44: queues a task: what, how many blocks.
    QTaskInfoA(SdTaskInfo),
    /// CMD45: queues a task: where.
    QTaskInfoB { address: u32 },
    /// CMD46: runs a queued read.
    QRdTask { task_id: u8 },
    /// CMD47: runs a queued write.
    QWrTask { task_id: u8 },
    /// CMD48: reads from an extension register.
    ReadExtrSingle(ExtensionAccess),
    /// CMD49: writes to an extension register.
    WriteExtrSingle(ExtensionAccess),
    /// CMD52: reads or writes a byte of an I/O card.
    IoRwDirect { argument: u32 },
    /// CMD53: reads or writes blocks of an I/O card.
    IoRwExtended { argument: u32 },
    /// CMD58: reads from extension registers.
    ReadExtrMulti(ExtensionAccess),
    /// CMD59: writes to extension registers.
    WriteExtrMulti(ExtensionAccess),
}

/// The argument of CMD6 SWITCH_FUNC of SD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SwitchFunc {
    /// Switches; else only checks.
    pub set: bool,
    /// The function of groups 1 to 6, four bits each; 15 leaves a group as it is.
    pub functions: [u8; 6],
}

/// The argument of CMD38 ERASE of SD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SdErase {
    /// Erases.
    Erase,
    /// Lets the card forget the blocks.
    Discard,
    /// Erases the whole user area logically.
    Fule,
    /// Any other argument.
    Other(u32),
}

/// The argument of CMD44 Q_TASK_INFO_A of SD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SdTaskInfo {
    /// Blocks to transfer.
    pub blocks: u16,
    /// The task's number, five bits.
    pub task_id: u8,
    /// To be done before the others.
    pub high_priority: bool,
    /// The upper six bits of the address, of SDUC.
    pub extended_address: u8,
    /// From the card to the host.
    pub read: bool,
}

/// The argument of CMD48, CMD49, CMD58 and CMD59, which reach the extension registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ExtensionAccess {
    /// MIO: an I/O function instead of a memory one.
    pub io: bool,
    /// FNO: the function's number, four bits.
    pub function: u8,
    /// Bit 26: of CMD49 that LEN is a mask, of CMD58 and CMD59 that blocks of 32 KiB are meant.
    pub bit26: bool,
    /// ADDR: where in the function's 128 KiB, 17 bits.
    pub address: u32,
    /// LEN, MASK or BUC: nine bits.
    pub length: u16,
}

/// An application-specific command of an SD card: one that follows CMD55.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the fields are the standard's own names")]
pub enum AppCommand {
    /// ACMD6: how many data lines to use, two bits: 0 for one, 2 for four.
    SetBusWidth { code: u8 },
    /// ACMD13: requests the SD status.
    SdStatus,
    /// ACMD22: requests the number of blocks written without error.
    SendNumWrBlocks,
    /// ACMD23: how many blocks may be erased beforehand, 23 bits.
    SetWrBlkEraseCount { blocks: u32 },
    /// ACMD41: negotiates voltage and capacity.
    SdSendOpCond { ocr: Ocr },
    /// ACMD42: connects or frees the pull-up of line 3.
    SetClrCardDetect { connect: bool },
    /// ACMD51: requests the SCR.
    SendScr,
    /// ACMD18, 25, 26, 38 and 43 to 49, of the content protection; its rules are not public.
    Security { index: u8, argument: u32 },
}

impl SdCommand {
    /// What SD makes of an index, where that differs from eMMC.
    pub(super) fn decode(index: u8, argument: u32) -> Option<Self> {
        let address = argument;
        Some(match index {
            3 => Self::SendRelativeAddr,
            5 => Self::IoSendOpCond { ocr: Ocr(argument) },
            6 => Self::SwitchFunc(SwitchFunc::decode(argument)),
            8 => Self::SendIfCond { voltage: get(argument, 11, 8) as u8, pattern: get(argument, 7, 0) as u8 },
            11 => Self::VoltageSwitch,
            12 => Self::StopTransmission,
            13 => Self::SendStatus { rca: get(argument, 31, 16) as u16, task_status: get(argument, 15, 15) == 1 },
            19 => Self::SendTuningBlock,
            20 => Self::SpeedClassControl { argument },
            22 => Self::AddressExtension { address: get(argument, 5, 0) as u8 },
            23 => Self::SetBlockCount { blocks: argument },
            32 => Self::EraseWrBlkStart { address },
            33 => Self::EraseWrBlkEnd { address },
            38 => Self::Erase(SdErase::decode(argument)),
            43 => Self::QManagement(TaskManagement::decode(argument)),
            44 => Self::QTaskInfoA(SdTaskInfo::decode(argument)),
            45 => Self::QTaskInfoB { address },
            46 => Self::QRdTask { task_id: task_id(argument) },
            47 => Self::QWrTask { task_id: task_id(argument) },
            48 => Self::ReadExtrSingle(ExtensionAccess::decode(argument)),
            49 => Self::WriteExtrSingle(ExtensionAccess::decode(argument)),
            52 => Self::IoRwDirect { argument },
            53 => Self::IoRwExtended { argument },
            58 => Self::ReadExtrMulti(ExtensionAccess::decode(argument)),
            59 => Self::WriteExtrMulti(ExtensionAccess::decode(argument)),
            _ => return None,
        })
    }

    pub(super) fn argument(self) -> u32 {
        match self {
            Self::SendRelativeAddr | Self::VoltageSwitch | Self::StopTransmission | Self::SendTuningBlock => 0,
            Self::IoSendOpCond { ocr } => ocr.0,
            Self::SwitchFunc(switch) => switch.encode(),
            Self::SendIfCond { voltage, pattern } => put(voltage, 11, 8) | put(pattern, 7, 0),
            Self::SendStatus { rca, task_status } => put(rca, 31, 16) | put(task_status, 15, 15),
            Self::AddressExtension { address } => put(address, 5, 0),
            Self::SetBlockCount { blocks } => blocks,
            Self::EraseWrBlkStart { address } | Self::EraseWrBlkEnd { address } | Self::QTaskInfoB { address } => {
                address
            }
            Self::Erase(erase) => erase.encode(),
            Self::QManagement(management) => management.encode(),
            Self::QTaskInfoA(task) => task.encode(),
            Self::QRdTask { task_id } | Self::QWrTask { task_id } => put(task_id, 20, 16),
            Self::ReadExtrSingle(access)
            | Self::WriteExtrSingle(access)
            | Self::ReadExtrMulti(access)
            | Self::WriteExtrMulti(access) => access.encode(),
            Self::SpeedClassControl { argument } | Self::IoRwDirect { argument } | Self::IoRwExtended { argument } => {
                argument
            }
        }
    }

    /// Source: SD physical layer simplified specification 7.10, clause 4.7.4; Linux `include/linux/mmc/sd.h`.
    pub(super) fn spec(self) -> Spec {
        match self {
            Self::SendRelativeAddr => Spec::bcr(3, "SEND_RELATIVE_ADDR", 0, R::R6),
            Self::IoSendOpCond { .. } => Spec::bcr(5, "IO_SEND_OP_COND", 9, R::R4),
            Self::SwitchFunc(_) => Spec::read(6, "SWITCH_FUNC", 10),
            Self::SendIfCond { .. } => Spec::bcr(8, "SEND_IF_COND", 0, R::R7),
            Self::VoltageSwitch => Spec::ac(11, "VOLTAGE_SWITCH", 0),
            Self::StopTransmission => Spec::ac_with(12, "STOP_TRANSMISSION", 0, R::R1b),
            Self::SendStatus { .. } => Spec::ac(13, "SEND_STATUS", 0),
            Self::SendTuningBlock => Spec::read(19, "SEND_TUNING_BLOCK", 2),
            Self::SpeedClassControl { .. } => Spec::ac_with(20, "SPEED_CLASS_CONTROL", 2, R::R1b),
            Self::AddressExtension { .. } => Spec::ac(22, "ADDRESS_EXTENSION", 2),
            Self::SetBlockCount { .. } => Spec::ac(23, "SET_BLOCK_COUNT", 2),
            Self::EraseWrBlkStart { .. } => Spec::ac(32, "ERASE_WR_BLK_START", 5),
            Self::EraseWrBlkEnd { .. } => Spec::ac(33, "ERASE_WR_BLK_END", 5),
            Self::Erase(_) => Spec::ac_with(38, "ERASE", 5, R::R1b),
            Self::QManagement(_) => Spec::ac_with(43, "Q_MANAGEMENT", 1, R::R1b),
            Self::QTaskInfoA(_) => Spec::ac(44, "Q_TASK_INFO_A", 1),
            Self::QTaskInfoB { .. } => Spec::ac(45, "Q_TASK_INFO_B", 1),
            Self::QRdTask { .. } => Spec::read(46, "Q_RD_TASK", 1),
            Self::QWrTask { .. } => Spec::write(47, "Q_WR_TASK", 1),
            Self::ReadExtrSingle(_) => Spec::read(48, "READ_EXTR_SINGLE", 11),
            Self::WriteExtrSingle(_) => Spec::write(49, "WRITE_EXTR_SINGLE", 11),
            Self::IoRwDirect { .. } => Spec::ac_with(52, "IO_RW_DIRECT", 9, R::R5),
            Self::IoRwExtended { argument } if argument >> 31 == 0 => {
                Spec { response: R::R5, ..Spec::read(53, "IO_RW_EXTENDED", 9) }
            }
            Self::IoRwExtended { .. } => Spec { response: R::R5, ..Spec::write(53, "IO_RW_EXTENDED", 9) },
            Self::ReadExtrMulti(_) => Spec::read(58, "READ_EXTR_MULTI", 11),
            Self::WriteExtrMulti(_) => Spec::write(59, "WRITE_EXTR_MULTI", 11),
        }
    }
}

impl AppCommand {
    pub(super) fn decode(index: u8, argument: u32) -> Option<Self> {
        Some(match index {
            6 => Self::SetBusWidth { code: get(argument, 1, 0) as u8 },
            13 => Self::SdStatus,
            22 => Self::SendNumWrBlocks,
            23 => Self::SetWrBlkEraseCount { blocks: get(argument, 22, 0) },
            41 => Self::SdSendOpCond { ocr: Ocr(argument) },
            42 => Self::SetClrCardDetect { connect: get(argument, 0, 0) == 1 },
            51 => Self::SendScr,
            18 | 25 | 26 | 38 | 43..=49 => Self::Security { index, argument },
            _ => return None,
        })
    }

    pub(super) fn argument(self) -> u32 {
        match self {
            Self::SetBusWidth { code } => put(code, 1, 0),
            Self::SdStatus | Self::SendNumWrBlocks | Self::SendScr => 0,
            Self::SetWrBlkEraseCount { blocks } => put(blocks, 22, 0),
            Self::SdSendOpCond { ocr } => ocr.0,
            Self::SetClrCardDetect { connect } => put(connect, 0, 0),
            Self::Security { argument, .. } => argument,
        }
    }

    /// Source: SD physical layer simplified specification 7.10, clause 4.7.4.
    pub(super) fn spec(self) -> Spec {
        match self {
            Self::SetBusWidth { .. } => Spec::ac(6, "SET_BUS_WIDTH", 8),
            Self::SdStatus => Spec::read(13, "SD_STATUS", 8),
            Self::SendNumWrBlocks => Spec::read(22, "SEND_NUM_WR_BLOCKS", 8),
            Self::SetWrBlkEraseCount { .. } => Spec::ac(23, "SET_WR_BLK_ERASE_COUNT", 8),
            Self::SdSendOpCond { .. } => Spec::bcr(41, "SD_SEND_OP_COND", 8, R::R3),
            Self::SetClrCardDetect { .. } => Spec::ac(42, "SET_CLR_CARD_DETECT", 8),
            Self::SendScr => Spec::read(51, "SEND_SCR", 8),
            Self::Security { index: index @ (38 | 49), .. } => Spec::ac_with(index, "security", 8, R::R1b),
            Self::Security { index: index @ (18 | 43 | 44 | 46 | 48), .. } => Spec::read(index, "security", 8),
            Self::Security { index, .. } => Spec::write(index, "security", 8),
        }
    }
}

impl SwitchFunc {
    /// Reads an argument.
    pub fn decode(argument: u32) -> Self {
        let functions = [0, 4, 8, 12, 16, 20].map(|lo| get(argument, lo + 3, lo) as u8);
        Self { set: get(argument, 31, 31) == 1, functions }
    }

    /// The argument.
    pub fn encode(self) -> u32 {
        let groups = (0..).step_by(4).zip(self.functions);
        groups.fold(put(self.set, 31, 31), |argument, (lo, function)| argument | put(function, lo + 3, lo))
    }
}

impl SdErase {
    /// Reads an argument.
    pub fn decode(argument: u32) -> Self {
        match argument {
            0 => Self::Erase,
            1 => Self::Discard,
            2 => Self::Fule,
            other => Self::Other(other),
        }
    }

    /// The argument.
    pub fn encode(self) -> u32 {
        match self {
            Self::Erase => 0,
            Self::Discard => 1,
            Self::Fule => 2,
            Self::Other(argument) => argument,
        }
    }
}

impl SdTaskInfo {
    /// Reads an argument.
    pub fn decode(argument: u32) -> Self {
        Self {
            blocks: get(argument, 15, 0) as u16,
            task_id: task_id(argument),
            high_priority: get(argument, 23, 23) == 1,
            extended_address: get(argument, 29, 24) as u8,
            read: get(argument, 30, 30) == 1,
        }
    }

    /// The argument.
    pub fn encode(self) -> u32 {
        put(self.read, 30, 30)
            | put(self.extended_address, 29, 24)
            | put(self.high_priority, 23, 23)
            | put(self.task_id, 20, 16)
            | put(self.blocks, 15, 0)
    }
}

impl ExtensionAccess {
    /// Reads an argument.
    pub fn decode(argument: u32) -> Self {
        Self {
            io: get(argument, 31, 31) == 1,
            function: get(argument, 30, 27) as u8,
            bit26: get(argument, 26, 26) == 1,
            address: get(argument, 25, 9),
            length: get(argument, 8, 0) as u16,
        }
    }

    /// The argument.
    pub fn encode(self) -> u32 {
        put(self.io, 31, 31)
            | put(self.function, 30, 27)
            | put(self.bit26, 26, 26)
            | put(self.address, 25, 9)
            | put(self.length, 8, 0)
    }
}
