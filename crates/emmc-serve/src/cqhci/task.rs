//! Task descriptors: requests of software, each in a slot of the task list.
//!
//! Source: eMMC Command Queuing Host Controller Interface 5.1, task descriptor fields; Linux `cqhci.h`.

use emmc_regs::command::QueuedTaskParams;

use crate::sdhci::GuestMemory;
use crate::sdhci::descriptor::{Form, Walk};

/// The slot of direct commands.
pub(super) const DIRECT_SLOT: u8 = 31;

/// How the list is laid out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) base: u64,
    /// Task descriptors of 128 bits, else of 64.
    pub(super) long_tasks: bool,
    /// Of transfer descriptors and links.
    pub(super) form: Form,
    /// The last slot is for direct commands.
    pub(super) direct: bool,
}

/// The request of a slot.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    /// Data, by the card's queue.
    Data {
        params: QueuedTaskParams,
        address: u32,
        /// The place of the data.
        walk: Walk,
    },
    /// A direct command.
    Direct {
        index: u8,
        argument: u32,
        /// May be sent during a data transfer.
        during_data: bool,
        /// 0: no response; 2: response without busy; 3: with busy.
        response: u8,
    },
}

/// A task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) work: Work,
    /// Barrier: all earlier tasks finish first, and no later task starts before it has finished.
    pub(super) barrier: bool,
    /// Completion is reported with an immediate interrupt.
    pub(super) interrupt: bool,
}

impl Layout {
    /// Reads the descriptor of a slot. Absent: outside memory, not valid, or not a task descriptor.
    pub(super) fn fetch(&self, memory: &dyn GuestMemory, slot: u8) -> Option<Task> {
        let task_bytes: u64 = if self.long_tasks { 16 } else { 8 };
        let link_bytes = if self.form == Form::Bits64 { 8 } else { 16 };
        let at = self.base.wrapping_add(u64::from(slot) * (task_bytes + link_bytes));
        let mut raw = [0; 8];
        memory.read(at, &mut raw).ok()?;
        let bits = u64::from_le_bytes(raw);
        let has = |bit: u32| bits >> bit & 1 == 1;
        if !has(0) || bits >> 3 & 7 != 5 {
            return None;
        }
        let high = (bits >> 32) as u32;
        let work = if self.direct && slot == DIRECT_SLOT {
            Work::Direct {
                index: (bits >> 16 & 0x3f) as u8,
                argument: high,
                during_data: has(22),
                response: (bits >> 23 & 3) as u8,
            }
        } else {
            let params = QueuedTaskParams {
                blocks: (bits >> 16) as u16,
                task_id: slot,
                high_priority: has(13),
                forced_programming: has(6),
                context: (bits >> 7 & 0xf) as u8,
                tag: has(11),
                read: has(12),
                reliable_write: has(15),
            };
            // After the task descriptor comes a link to its list, or a single transfer descriptor.
            Work::Data { params, address: high, walk: Walk::new(self.form, at.wrapping_add(task_bytes)) }
        };
        Some(Task { work, barrier: has(14), interrupt: has(2) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sdhci::FlatMemory;

    fn layout(direct: bool) -> Layout {
        Layout { base: 0x100, long_tasks: true, form: Form::Bits128, direct }
    }

    #[test]
    fn a_read_of_linux_is_decoded() {
        let memory = FlatMemory::new(0x1000);
        // Valid, end, int, act 5, read, 8 blocks, address 0x1234.
        memory.write(0x100 + 3 * 32, &0x1234_0008_102f_u64.to_le_bytes()).unwrap();
        let task = layout(true).fetch(&memory, 3).unwrap();
        let Work::Data { params, address, walk } = task.work else { panic!("{task:?}") };
        assert_eq!((params.blocks, params.task_id, params.read, address), (8, 3, true, 0x1234));
        assert_eq!((walk.next, task.barrier, task.interrupt), (0x100 + 3 * 32 + 16, false, true));
        assert_eq!(params.encode(), 0x4003_0008);
    }

    #[test]
    fn a_direct_command_is_valid_in_its_slot_only() {
        let memory = FlatMemory::new(0x1000);
        // Valid, end, int, act 5, barrier, CMD6, R1b, argument.
        let bits = 0x03b7_0600_0000_0000_u64 | 3 << 23 | 6 << 16 | 1 << 14 | 0x2f;
        memory.write(0x100 + 31 * 32, &bits.to_le_bytes()).unwrap();
        let task = layout(true).fetch(&memory, 31).unwrap();
        assert!(task.barrier && matches!(task.work, Work::Direct { index: 6, argument: 0x03b7_0600, response: 3, .. }));
        assert!(matches!(layout(false).fetch(&memory, 31).unwrap().work, Work::Data { .. }));
    }

    #[test]
    fn invalid_tasks_are_refused() {
        let memory = FlatMemory::new(0x1000);
        assert!(layout(true).fetch(&memory, 0).is_none(), "not valid");
        memory.write(0x100, &[0x27]).unwrap();
        assert!(layout(true).fetch(&memory, 0).is_none(), "a transfer, no task");
        let outside = Layout { base: u64::MAX - 4, ..layout(true) };
        assert!(outside.fetch(&memory, 0).is_none(), "outside memory");
    }
}
