//! A command queueing engine after CQHCI 5.1: software rings doorbells of tasks, the engine queues them in the card,
//! runs them and reports completion.
//!
//! Tasks go to the card in the order of their doorbells (`engine`), run as the card makes them ready, and end at the
//! instants the card returns. Errors stop the engine until software has halted and cleared it (`errors`). Absent on
//! purpose: encryption, and any choice among tasks beyond the card's own.

mod coalescing;
mod engine;
mod errors;
pub(crate) mod registers;
mod task;
#[cfg(test)]
mod tests;

use emmc_units::{Instant, Nanos};

use crate::sdhci::descriptor::Form;
use crate::sdhci::register_file::{RegisterFile, touches};
use coalescing::Coalescing;
use registers::{
    COALESCING, CONFIGURATION, CONTROL, DEVICE_PENDING, DEVICE_QUEUE, DOORBELL, INT_STATUS, LIST_BASE, SIGNAL_ENABLE,
    STATUS_ENABLE, TASK_CLEAR, configuration, control, int,
};
use task::{Layout, Task};

pub(crate) use engine::Surroundings;

/// State of a task.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Doorbell rung, not fetched yet.
    Rung,
    /// Fetched, not sent yet.
    Fetched(Task),
    /// In the card's queue.
    Queued(Task),
    /// Ends at this instant.
    Ending {
        task: Task,
        at: Instant,
        /// The data lines are busy until then.
        with_data: bool,
        /// Error interrupts of the host controller that it raises at its end.
        errors: u32,
    },
}

/// A slot in use.
#[derive(Clone, Copy, Debug)]
struct Slot {
    stage: Stage,
    /// Sequence number over all tasks.
    order: u64,
    rung: Instant,
    /// The command that moves its data was answered.
    answered: Instant,
    /// Its last block has crossed the bus.
    crossed: Instant,
}

/// The engine.
#[derive(Debug)]
pub(crate) struct Cqhci {
    registers: RegisterFile,
    slots: [Option<Slot>; 32],
    orders: u64,
    /// Software has requested a halt.
    halting: bool,
    /// An error has stopped the engine.
    failed: bool,
    /// When to poll the queue status next, and the interval after that.
    poll_at: Instant,
    poll_interval: Nanos,
    coalescing: Coalescing,
    /// Error interrupts for the host controller.
    errors: u32,
    wants_service: bool,
    /// Buffer for blocks between card and memory.
    staging: Vec<u8>,
}

impl Cqhci {
    /// An engine after reset.
    pub(crate) fn new() -> Self {
        Self {
            registers: RegisterFile::new(registers::TABLE, registers::SIZE),
            slots: [None; 32],
            orders: 0,
            halting: false,
            failed: false,
            poll_at: Instant::START,
            poll_interval: Nanos::ZERO,
            coalescing: Coalescing::default(),
            errors: 0,
            wants_service: false,
            staging: Vec::new(),
        }
    }

    /// Same state as after power-up.
    pub(crate) fn reset(&mut self) {
        *self = Self::new();
    }

    /// Software reads.
    pub(crate) fn read(&self, offset: usize, bytes: usize) -> u64 {
        self.registers.read(offset, bytes)
    }

    /// Software writes.
    pub(crate) fn write(&mut self, offset: usize, bytes: usize, value: u64, now: Instant) {
        let was_on = self.has(configuration::ENABLE);
        self.registers.write(offset, bytes, value);
        // Registers with side effects see the bytes that were written; the other bytes of the four count as 0.
        let written = |at: u16| {
            let touched = (0..4u16).filter(|index| touches(offset, bytes, at + index));
            touched.fold(0u32, |word, index| {
                let byte = value >> (8 * (usize::from(at + index) - offset));
                word | u32::from(byte as u8) << (8 * index)
            })
        };
        if was_on && !self.has(configuration::ENABLE) {
            self.forget(u32::MAX);
            self.failed = false;
        }
        if touches(offset, bytes, CONTROL) {
            self.control(written(CONTROL));
        } else if touches(offset, bytes, CONTROL + 1) && written(CONTROL) & control::CLEAR_ALL != 0 {
            self.clear_all();
        }
        let coalescing = written(COALESCING);
        if touches(offset, bytes, COALESCING) {
            self.coalescing.configure(coalescing);
            self.registers.set32(COALESCING, self.coalescing.register());
        }
        self.ring(written(DOORBELL), now);
        let cleared = written(TASK_CLEAR);
        if cleared != 0 && self.is_halted() {
            self.forget(cleared);
        }
        self.wants_service = true;
    }

    fn has(&self, bit: u32) -> bool {
        self.registers.get32(CONFIGURATION) & bit != 0
    }

    fn is_halted(&self) -> bool {
        self.registers.get32(CONTROL) & control::HALT != 0
    }

    /// The doorbell: takes tasks in free slots.
    fn ring(&mut self, bits: u32, now: Instant) {
        if bits == 0 || !self.has(configuration::ENABLE) {
            return;
        }
        for number in (0..32).filter(|number| bits >> number & 1 == 1) {
            if self.slots[number].is_none() {
                self.orders += 1;
                self.slots[number] =
                    Some(Slot { stage: Stage::Rung, order: self.orders, rung: now, answered: now, crossed: now });
            }
        }
        self.registers.set32(DOORBELL, self.registers.get32(DOORBELL) | bits);
        self.poll_interval = Nanos::ZERO;
        self.poll_at = self.poll_at.min(now);
    }

    /// CONTROL was written.
    fn control(&mut self, bits: u32) {
        self.halting = bits & control::HALT != 0;
        if !self.halting {
            self.registers.set32(CONTROL, 0);
            self.failed = false;
        }
        if bits & control::CLEAR_ALL != 0 {
            self.clear_all();
        }
    }

    /// Clears all tasks; only a halted engine does that.
    fn clear_all(&mut self) {
        if self.is_halted() {
            self.forget(u32::MAX);
            self.failed = false;
            self.raise(int::TASK_CLEARED);
        }
    }

    /// Clears tasks.
    fn forget(&mut self, bits: u32) {
        for register in [DOORBELL, DEVICE_PENDING, DEVICE_QUEUE] {
            self.registers.set32(register, self.registers.get32(register) & !bits);
        }
        for (number, slot) in self.slots.iter_mut().enumerate() {
            if bits >> number & 1 == 1 {
                *slot = None;
            }
        }
    }

    fn raise(&mut self, bits: u32) {
        let enabled = self.registers.get32(STATUS_ENABLE);
        self.registers.set32(INT_STATUS, self.registers.get32(INT_STATUS) | bits & enabled);
    }

    /// Whether its interrupt is asserted.
    pub(crate) fn interrupt(&self) -> bool {
        self.registers.get32(INT_STATUS) & self.registers.get32(SIGNAL_ENABLE) != 0
    }

    /// Whether the engine can use the card now.
    pub(crate) fn wants_service(&self) -> bool {
        self.wants_service
    }

    /// Error interrupts for the host controller; reading clears them.
    pub(crate) fn take_errors(&mut self) -> u32 {
        std::mem::take(&mut self.errors)
    }

    /// Where software's task list is.
    fn layout(&self) -> Layout {
        let long_tasks = self.has(configuration::TASK_128);
        let base = self.registers.get64(LIST_BASE);
        Layout {
            base: if long_tasks { base } else { base & 0xffff_ffff },
            long_tasks,
            form: if long_tasks { Form::Bits128 } else { Form::Bits64 },
            direct: self.has(configuration::DIRECT),
        }
    }
}
