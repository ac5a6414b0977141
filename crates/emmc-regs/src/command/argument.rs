//! Arguments with an inner layout, each as a type that reads and writes the 32 bits.
//!
//! Bits that the standard reserves are dropped on reading and 0 on writing; a value too large for its bits is cut off.

/// Bits `hi` down to `lo` of an argument.
pub(super) fn get(argument: u32, hi: u32, lo: u32) -> u32 {
    argument >> lo & mask(hi, lo)
}

/// `value` in bits `hi` down to `lo`.
pub(super) fn put(value: impl Into<u32>, hi: u32, lo: u32) -> u32 {
    (value.into() & mask(hi, lo)) << lo
}

fn mask(hi: u32, lo: u32) -> u32 {
    u32::MAX >> (31 - (hi - lo))
}

/// The relative card address in the upper half of many arguments.
pub(super) fn rca(argument: u32) -> u16 {
    get(argument, 31, 16) as u16
}

/// What CMD6 does to a byte of EXT_CSD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SwitchAccess {
    /// Changes the command set and no byte.
    CommandSet,
    /// Sets the bits that are 1 in the value.
    SetBits,
    /// Clears the bits that are 1 in the value.
    ClearBits,
    /// Writes the value.
    WriteByte,
}

/// The argument of CMD6 SWITCH of eMMC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Switch {
    /// What happens to the byte.
    pub access: SwitchAccess,
    /// The byte's place in EXT_CSD.
    pub index: u8,
    /// The value.
    pub value: u8,
    /// The command set, three bits.
    pub cmd_set: u8,
}

impl Switch {
    /// Reads an argument.
    pub fn decode(argument: u32) -> Self {
        Self {
            access: match get(argument, 25, 24) {
                0 => SwitchAccess::CommandSet,
                1 => SwitchAccess::SetBits,
                2 => SwitchAccess::ClearBits,
                _ => SwitchAccess::WriteByte,
            },
            index: get(argument, 23, 16) as u8,
            value: get(argument, 15, 8) as u8,
            cmd_set: get(argument, 2, 0) as u8,
        }
    }

    /// The argument.
    pub fn encode(self) -> u32 {
        let access = match self.access {
            SwitchAccess::CommandSet => 0u32,
            SwitchAccess::SetBits => 1,
            SwitchAccess::ClearBits => 2,
            SwitchAccess::WriteByte => 3,
        };
        put(access, 25, 24) | put(self.index, 23, 16) | put(self.value, 15, 8) | put(self.cmd_set, 2, 0)
    }

    /// The byte after the switch, given what it held before; `None` where no byte changes.
    pub fn apply(self, byte: u8) -> Option<u8> {
        match self.access {
            SwitchAccess::CommandSet => None,
            SwitchAccess::SetBits => Some(byte | self.value),
            SwitchAccess::ClearBits => Some(byte & !self.value),
            SwitchAccess::WriteByte => Some(self.value),
        }
    }
}

/// The argument of CMD23 SET_BLOCK_COUNT of eMMC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SetBlockCount {
    /// Blocks of the next transfer; of a packed one, its header included.
    pub blocks: u16,
    /// Reliable write; with RPMB, that the frame is a write request.
    pub reliable_write: bool,
    /// Packed command; then only `blocks` has a meaning.
    pub packed: bool,
    /// Tag request: the data is to be kept where it is safest.
    pub tag: bool,
    /// Context ID, four bits; 0 is none.
    pub context: u8,
    /// Forced programming: bypasses the cache.
    pub forced_programming: bool,
}

impl SetBlockCount {
    /// Reads an argument.
    pub fn decode(argument: u32) -> Self {
        Self {
            blocks: get(argument, 15, 0) as u16,
            reliable_write: get(argument, 31, 31) == 1,
            packed: get(argument, 30, 30) == 1,
            tag: get(argument, 29, 29) == 1,
            context: get(argument, 28, 25) as u8,
            forced_programming: get(argument, 24, 24) == 1,
        }
    }

    /// The argument.
    pub fn encode(self) -> u32 {
        put(self.reliable_write, 31, 31)
            | put(self.packed, 30, 30)
            | put(self.tag, 29, 29)
            | put(self.context, 28, 25)
            | put(self.forced_programming, 24, 24)
            | put(self.blocks, 15, 0)
    }
}

/// The argument of CMD44 QUEUED_TASK_PARAMS of eMMC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct QueuedTaskParams {
    /// Blocks to transfer.
    pub blocks: u16,
    /// The task's number, five bits.
    pub task_id: u8,
    /// To be done before the others.
    pub high_priority: bool,
    /// Forced programming: bypasses the cache.
    pub forced_programming: bool,
    /// Context ID, four bits; 0 is none.
    pub context: u8,
    /// Tag request.
    pub tag: bool,
    /// From the card to the host.
    pub read: bool,
    /// Reliable write.
    pub reliable_write: bool,
}

impl QueuedTaskParams {
    /// Reads an argument.
    pub fn decode(argument: u32) -> Self {
        Self {
            blocks: get(argument, 15, 0) as u16,
            task_id: task_id(argument),
            high_priority: get(argument, 23, 23) == 1,
            forced_programming: get(argument, 24, 24) == 1,
            context: get(argument, 28, 25) as u8,
            tag: get(argument, 29, 29) == 1,
            read: get(argument, 30, 30) == 1,
            reliable_write: get(argument, 31, 31) == 1,
        }
    }

    /// The argument.
    pub fn encode(self) -> u32 {
        put(self.reliable_write, 31, 31)
            | put(self.read, 30, 30)
            | put(self.tag, 29, 29)
            | put(self.context, 28, 25)
            | put(self.forced_programming, 24, 24)
            | put(self.high_priority, 23, 23)
            | put(self.task_id, 20, 16)
            | put(self.blocks, 15, 0)
    }
}

/// The task number of CMD44 and CMD46 to CMD48, of SD's CMD43 to CMD47 too.
pub(super) fn task_id(argument: u32) -> u8 {
    get(argument, 20, 16) as u8
}

/// The argument of CMD48 CMDQ_TASK_MGMT of eMMC and CMD43 Q_MANAGEMENT of SD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskManagement {
    /// Drops every task.
    DiscardQueue,
    /// Drops one task.
    DiscardTask {
        /// The task's number, five bits.
        task_id: u8,
    },
    /// An operation that the standard reserves.
    Reserved {
        /// Its code, four bits.
        operation: u8,
        /// The task's number, five bits.
        task_id: u8,
    },
}

impl TaskManagement {
    /// Reads an argument.
    pub fn decode(argument: u32) -> Self {
        match get(argument, 3, 0) {
            1 => Self::DiscardQueue,
            2 => Self::DiscardTask { task_id: task_id(argument) },
            operation => Self::Reserved { operation: operation as u8, task_id: task_id(argument) },
        }
    }

    /// The argument.
    pub fn encode(self) -> u32 {
        let (operation, task_id) = match self {
            Self::DiscardQueue => (1, 0),
            Self::DiscardTask { task_id } => (2, task_id),
            Self::Reserved { operation, task_id } => (operation, task_id),
        };
        put(task_id, 20, 16) | put(operation, 3, 0)
    }
}

/// The argument of CMD38 ERASE of eMMC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Erase {
    /// Erases whole groups.
    Erase,
    /// Erases write blocks, which then read as erased.
    Trim,
    /// Lets the card forget write blocks.
    Discard,
    /// Erases whole groups and every copy of them.
    SecureErase,
    /// Marks write blocks for the next step.
    SecureTrimStep1,
    /// Erases the marked blocks and every copy of them.
    SecureTrimStep2,
    /// Any other argument.
    Other(u32),
}

impl Erase {
    /// Reads an argument.
    pub fn decode(argument: u32) -> Self {
        match argument {
            0 => Self::Erase,
            1 => Self::Trim,
            3 => Self::Discard,
            0x8000_0000 => Self::SecureErase,
            0x8000_0001 => Self::SecureTrimStep1,
            0x8000_8000 => Self::SecureTrimStep2,
            other => Self::Other(other),
        }
    }

    /// The argument.
    pub fn encode(self) -> u32 {
        match self {
            Self::Erase => 0,
            Self::Trim => 1,
            Self::Discard => 3,
            Self::SecureErase => 0x8000_0000,
            Self::SecureTrimStep1 => 0x8000_0001,
            Self::SecureTrimStep2 => 0x8000_8000,
            Self::Other(argument) => argument,
        }
    }

    /// Whether the addresses before it count write blocks instead of whole erase groups.
    pub fn is_by_write_block(self) -> bool {
        matches!(self, Self::Trim | Self::Discard | Self::SecureTrimStep1 | Self::SecureTrimStep2)
    }
}

/// The argument of CMD39 FAST_IO of MMC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FastIo {
    /// The card's address.
    pub rca: u16,
    /// Writes the register; else reads it.
    pub write: bool,
    /// The register, seven bits.
    pub register: u8,
    /// What is written.
    pub data: u8,
}

impl FastIo {
    /// Reads an argument.
    pub fn decode(argument: u32) -> Self {
        Self {
            rca: rca(argument),
            write: get(argument, 15, 15) == 1,
            register: get(argument, 14, 8) as u8,
            data: get(argument, 7, 0) as u8,
        }
    }

    /// The argument.
    pub fn encode(self) -> u32 {
        put(self.rca, 31, 16) | put(self.write, 15, 15) | put(self.register, 14, 8) | put(self.data, 7, 0)
    }
}
