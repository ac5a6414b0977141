//! A command of the MMC layer, as it is reported.

use emmc_units::Nanos;

use super::open::Open;
use crate::event::Op;
use crate::request::Hardware;

/// A command with its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// When it started.
    pub at: Nanos,
    /// Until its end, with the polls of a busy card.
    pub took: Nanos,
    /// The controller.
    pub host: u8,
    /// The command; 0 is a task of the command queue.
    pub opcode: u8,
    /// Its argument, or the first block.
    pub argument: u32,
    /// Unit: blocks.
    pub blocks: u32,
    /// A reliable write.
    pub reliable: bool,
    /// Re-tuning was needed or in progress.
    pub retuning: bool,
    /// The first error; 0 is none.
    pub error: i32,
    /// CMD13 after it; all but the last found the card busy.
    pub polls: u32,
    /// The operation of its request, if that is known.
    pub op: Option<Op>,
    /// The thread that queued its request, else that started it.
    pub pid: u32,
}

impl Open {
    /// The first command, or a further one.
    pub(super) fn begin(&mut self, command: &Command, busy: u64) {
        match &mut self.hardware {
            Some(hardware) => {
                hardware.repeats += 1;
                hardware.retuning |= command.retuning;
            }
            None => {
                self.waited = self.waited.saturating_add(busy.saturating_sub(self.busy_mark));
                self.hardware = Some(hardware(command));
            }
        }
    }
}

/// Of a command that began.
pub(super) fn hardware(command: &Command) -> Hardware {
    Hardware {
        started: command.at,
        ended: command.at,
        released: command.at,
        host: command.host,
        opcode: command.opcode,
        reliable: command.reliable,
        polls: 0,
        repeats: 0,
        retuning: command.retuning,
    }
}
