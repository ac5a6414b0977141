use super::{Command, ResponseKind};

/// How a command uses the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommandKind {
    /// Broadcast, no answer.
    Bc,
    /// Broadcast, with an answer.
    Bcr,
    /// To one card, no data.
    Ac,
    /// To one card, with data.
    Adtc,
}

/// Which way data flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataDirection {
    /// From the card to the host.
    Read,
    /// From the host to the card.
    Write,
}

/// The standard's specification of a command, for every argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The index.
    pub index: u8,
    /// The standard's name.
    pub name: &'static str,
    /// The command class in the CSD's CCC, where the command has one.
    pub class: Option<u8>,
    /// How it uses the bus.
    pub kind: CommandKind,
    /// Which way its data flows.
    pub data: Option<DataDirection>,
    /// What answers it. Where the standard has R1 or R1b by circumstance (CMD7, CMD12) this says R1b.
    pub response: ResponseKind,
}

impl Spec {
    const fn new(index: u8, name: &'static str, class: u8, kind: CommandKind, response: ResponseKind) -> Self {
        Self { index, name, class: Some(class), kind, data: None, response }
    }

    /// A broadcast without an answer.
    pub(super) const fn bc(index: u8, name: &'static str, class: u8) -> Self {
        Self::new(index, name, class, CommandKind::Bc, ResponseKind::None)
    }

    /// A broadcast with an answer.
    pub(super) const fn bcr(index: u8, name: &'static str, class: u8, response: ResponseKind) -> Self {
        Self::new(index, name, class, CommandKind::Bcr, response)
    }

    /// A command without data, answered by R1.
    pub(super) const fn ac(index: u8, name: &'static str, class: u8) -> Self {
        Self::new(index, name, class, CommandKind::Ac, ResponseKind::R1)
    }

    /// A command without data, answered otherwise.
    pub(super) const fn ac_with(index: u8, name: &'static str, class: u8, response: ResponseKind) -> Self {
        Self::new(index, name, class, CommandKind::Ac, response)
    }

    /// A command whose data the card sends.
    pub(super) const fn read(index: u8, name: &'static str, class: u8) -> Self {
        let spec = Self::new(index, name, class, CommandKind::Adtc, ResponseKind::R1);
        Self { data: Some(DataDirection::Read), ..spec }
    }

    /// A command whose data the host sends.
    pub(super) const fn write(index: u8, name: &'static str, class: u8) -> Self {
        let spec = Self::new(index, name, class, CommandKind::Adtc, ResponseKind::R1);
        Self { data: Some(DataDirection::Write), ..spec }
    }

    /// A command that no class names.
    pub(super) const fn classless(self) -> Self {
        Self { class: None, ..self }
    }
}

impl Command {
    /// What the standard says of this command.
    ///
    /// Source: JESD84-B51 clause 6.10; Linux `include/linux/mmc/mmc.h`.
    pub fn spec(&self) -> Spec {
        use ResponseKind as R;
        match *self {
            Self::GoIdleState => Spec::bc(0, "GO_IDLE_STATE", 0),
            Self::GoPreIdleState => Spec::bc(0, "GO_PRE_IDLE_STATE", 0),
            Self::BootInitiation => Spec::bc(0, "BOOT_INITIATION", 0),
            Self::SendOpCond { .. } => Spec::bcr(1, "SEND_OP_COND", 0, R::R3),
            Self::AllSendCid => Spec::bcr(2, "ALL_SEND_CID", 0, R::R2),
            Self::SetRelativeAddr { .. } => Spec::ac(3, "SET_RELATIVE_ADDR", 0),
            Self::SetDsr { .. } => Spec::bc(4, "SET_DSR", 0),
            Self::SleepAwake { .. } => Spec::ac_with(5, "SLEEP_AWAKE", 0, R::R1b),
            Self::Switch(_) => Spec::ac_with(6, "SWITCH", 0, R::R1b),
            Self::SelectCard { .. } => Spec::ac_with(7, "SELECT/DESELECT_CARD", 0, R::R1b),
            Self::SendExtCsd => Spec::read(8, "SEND_EXT_CSD", 0),
            Self::SendCsd { .. } => Spec::ac_with(9, "SEND_CSD", 0, R::R2),
            Self::SendCid { .. } => Spec::ac_with(10, "SEND_CID", 0, R::R2),
            Self::ReadDatUntilStop { .. } => Spec::read(11, "READ_DAT_UNTIL_STOP", 1),
            Self::StopTransmission { .. } => Spec::ac_with(12, "STOP_TRANSMISSION", 0, R::R1b),
            Self::SendStatus { .. } => Spec::ac(13, "SEND_STATUS", 0),
            Self::BusTestR => Spec::read(14, "BUSTEST_R", 0),
            Self::GoInactiveState { .. } => Spec::ac_with(15, "GO_INACTIVE_STATE", 0, R::None),
            Self::SetBlockLen { .. } => Spec::ac(16, "SET_BLOCKLEN", 2),
            Self::ReadSingleBlock { .. } => Spec::read(17, "READ_SINGLE_BLOCK", 2),
            Self::ReadMultipleBlock { .. } => Spec::read(18, "READ_MULTIPLE_BLOCK", 2),
            Self::BusTestW => Spec::write(19, "BUSTEST_W", 0),
            Self::WriteDatUntilStop { .. } => Spec::write(20, "WRITE_DAT_UNTIL_STOP", 3),
            Self::SendTuningBlock => Spec::read(21, "SEND_TUNING_BLOCK", 2),
            Self::SetBlockCount(_) => Spec::ac(23, "SET_BLOCK_COUNT", 2),
            Self::WriteBlock { .. } => Spec::write(24, "WRITE_BLOCK", 4),
            Self::WriteMultipleBlock { .. } => Spec::write(25, "WRITE_MULTIPLE_BLOCK", 4),
            Self::ProgramCid => Spec::write(26, "PROGRAM_CID", 4),
            Self::ProgramCsd => Spec::write(27, "PROGRAM_CSD", 4),
            Self::SetWriteProt { .. } => Spec::ac_with(28, "SET_WRITE_PROT", 6, R::R1b),
            Self::ClrWriteProt { .. } => Spec::ac_with(29, "CLR_WRITE_PROT", 6, R::R1b),
            Self::SendWriteProt { .. } => Spec::read(30, "SEND_WRITE_PROT", 6),
            Self::SendWriteProtType { .. } => Spec::read(31, "SEND_WRITE_PROT_TYPE", 6),
            Self::EraseGroupStart { .. } => Spec::ac(35, "ERASE_GROUP_START", 5),
            Self::EraseGroupEnd { .. } => Spec::ac(36, "ERASE_GROUP_END", 5),
            Self::Erase(_) => Spec::ac_with(38, "ERASE", 5, R::R1b),
            Self::FastIo(_) => Spec::ac_with(39, "FAST_IO", 9, R::R4),
            Self::GoIrqState => Spec::bcr(40, "GO_IRQ_STATE", 9, R::R5),
            Self::LockUnlock => Spec::write(42, "LOCK_UNLOCK", 7),
            Self::QueuedTaskParams(_) => Spec::ac(44, "QUEUED_TASK_PARAMS", 11),
            Self::QueuedTaskAddress { .. } => Spec::ac(45, "QUEUED_TASK_ADDRESS", 11),
            Self::ExecuteReadTask { .. } => Spec::read(46, "EXECUTE_READ_TASK", 11),
            Self::ExecuteWriteTask { .. } => Spec::write(47, "EXECUTE_WRITE_TASK", 11),
            Self::CmdqTaskMgmt(_) => Spec::ac_with(48, "CMDQ_TASK_MGMT", 11, R::R1b),
            Self::SetTime => Spec::write(49, "SET_TIME", 4),
            Self::ProtocolRd { .. } => Spec::read(53, "PROTOCOL_RD", 10),
            Self::ProtocolWr { .. } => Spec::write(54, "PROTOCOL_WR", 10),
            Self::AppCmd { .. } => Spec::ac(55, "APP_CMD", 8),
            Self::GenCmd { argument } if argument & 1 == 1 => Spec::read(56, "GEN_CMD", 8),
            Self::GenCmd { .. } => Spec::write(56, "GEN_CMD", 8),
            Self::Sd(command) => command.spec(),
            Self::App(command) => command.spec(),
            Self::Manufacturer { index, .. } => Spec::ac(index, "reserved for the manufacturer", 0).classless(),
            Self::Reserved { index, .. } => Spec::ac(index, "reserved", 0).classless(),
        }
    }
}
