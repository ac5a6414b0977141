//! One machine and its card: what each message does, and whose turn it is. No sockets and no clocks here.
//!
//! The machine runs until it waits. While it runs, each access is executed at the calendar's time, and the machine may
//! continue until the card's next event. While it waits, `advance` executes the events of the card in sequence, each at
//! its own instant, and ends with the machine running or handling an interrupt. When both are due, the card is first.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use emmc_units::{Instant, Nanos};

use super::access::{execute, gather, scatter};
use super::calendar::{Calendar, CalendarError, MESSAGE_BYTES, Said};
use super::pcidev::{self, Access};
use super::ring::{Chain, Ring, RingError};
use super::vhost_user::{self, Malformed, Message, RINGS, Request};
use crate::guest_memory::{GuestRam, READ, RangeError, WRITE};
use crate::pci::{Board, Record};
use crate::sdhci::Unmapped;

/// The ring of accesses; the other is that of interrupts.
const ACCESSES: usize = 0;
const INTERRUPTS: usize = 1;
/// Events of the card before messages are looked at again.
const STEPS_MAX: u32 = 256;
/// Offsets in configuration space: the MSI capability's control, address and data.
const MSI_CONTROL: usize = 0x52;
const MSI_ADDRESS: usize = 0x54;
const MSI_DATA: usize = 0x5c;

/// Why a machine is no longer served.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// Its calendar link.
    #[error("{0}")]
    Calendar(#[from] CalendarError),
    /// Its device link.
    #[error("{0}")]
    Device(#[from] Malformed),
    /// Its memory.
    #[error("its memory: {0}")]
    Memory(String),
    /// Nothing will happen any more.
    #[error("at {}.{:09} s it waits for ever: neither it nor the card has anything to do", ns / 1_000_000_000, ns % 1_000_000_000)]
    Deadlock {
        /// When. Unit: ns.
        ns: u64,
    },
}

impl From<RingError> for MachineError {
    fn from(error: RingError) -> Self {
        Self::Memory(error.to_string())
    }
}

impl From<RangeError> for MachineError {
    fn from(error: RangeError) -> Self {
        Self::Memory(error.to_string())
    }
}

impl From<Unmapped> for MachineError {
    fn from(error: Unmapped) -> Self {
        Self::Memory(error.to_string())
    }
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// The machine runs.
    Runs,
    /// It waits.
    Waits,
    /// It waits, and has not replied to an interrupt yet.
    Interrupted,
}

/// What must be sent.
#[derive(Debug, Default)]
pub struct Outbox {
    /// To the calendar's link.
    pub calendar: Vec<u8>,
    /// The last message there goes with the calendar's page.
    pub has_page: bool,
    /// To the device's link.
    pub device: Vec<u8>,
    /// To the link of the device's own requests.
    pub calls: Vec<u8>,
}

/// A machine.
#[derive(Debug)]
pub struct Machine {
    calendar: Calendar,
    /// The card's time at the machine's start.
    start: Instant,
    board: Board,
    record: Record,
    /// When software last accessed a register, on the card's clock.
    last_access: Instant,
    memory: GuestRam,
    rings: [Ring; RINGS],
    turn: Turn,
    /// An interrupt that could not be sent while the machine ran.
    interrupt_due: Option<u64>,
    /// The link of the device's own requests, until it is taken.
    calls: Option<OwnedFd>,
    out: Outbox,
    chain: Chain,
    message: Vec<u8>,
    answer: Vec<u8>,
}

impl Machine {
    /// A machine that starts when the card's clock shows `start`.
    ///
    /// Errors: the system's.
    pub fn new(board: Board, record: Record, start: Instant) -> io::Result<Self> {
        Ok(Self {
            calendar: Calendar::new(start.0)?,
            start,
            board,
            record,
            last_access: start,
            memory: GuestRam::of_unsealed_files(),
            rings: Default::default(),
            turn: Turn::Runs,
            interrupt_due: None,
            calls: None,
            out: Outbox::default(),
            chain: Chain::default(),
            message: Vec::new(),
            answer: Vec::new(),
        })
    }

    /// What must be sent; the sender clears it.
    pub fn outbox(&mut self) -> &mut Outbox {
        &mut self.out
    }

    /// The calendar's page, which goes with the reply to the machine's first message.
    pub fn page(&self) -> BorrowedFd<'_> {
        self.calendar.page()
    }

    /// The link of the device's own requests, once it has come.
    pub fn take_calls(&mut self) -> Option<OwnedFd> {
        self.calls.take()
    }

    /// The controller.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Writes out the record of the machine, which has ended.
    ///
    /// Errors: in words, one for each file that is not complete.
    pub fn finish(&mut self) -> Vec<String> {
        self.record.finish(&mut self.board, self.last_access, Nanos::ZERO)
    }

    /// Time since the machine's start. Unit: ns.
    pub fn now(&mut self) -> u64 {
        self.calendar.now()
    }

    /// The time of the last access to the card. Unit: ns.
    pub fn last_access(&self) -> u64 {
        self.last_access.0.saturating_sub(self.start.0)
    }

    /// The calendar's page, to play the machine's part.
    #[cfg(test)]
    pub(super) fn shared(&self) -> &super::page::Page {
        self.calendar.shared()
    }

    /// Whether [`Machine::advance`] has anything to do.
    pub fn waits(&self) -> bool {
        self.turn == Turn::Waits
    }

    /// A message on the calendar's link.
    ///
    /// Errors: the machine must be disconnected.
    pub fn calendar_message(&mut self, message: [u8; MESSAGE_BYTES]) -> Result<(), MachineError> {
        match self.calendar.receive(message)? {
            Said::Reply(reply) => self.out.calendar.extend_from_slice(&reply),
            Said::ReplyWithPage(reply) => {
                self.out.calendar.extend_from_slice(&reply);
                self.out.has_page = true;
            }
            Said::Waits if self.turn == Turn::Runs => self.turn = Turn::Waits,
            // It waits already.
            Said::Waits => {}
        }
        Ok(())
    }

    /// A whole message on the device's link.
    ///
    /// Errors: the machine must be disconnected.
    pub fn device_message(&mut self, message: &[u8], fds: Vec<OwnedFd>) -> Result<(), MachineError> {
        let message = Message::parse(message)?;
        match &message.request {
            Request::GetFeatures | Request::GetProtocolFeatures | Request::Noted => {}
            Request::Memory(regions) => {
                self.memory = GuestRam::of_unsealed_files();
                let mut files = fds.into_iter().map(File::from);
                for region in regions {
                    let file = files.next().ok_or(RangeError::Invalid)?;
                    self.memory.map(READ | WRITE, region.offset, region.address, region.size, Some(file))?;
                }
            }
            Request::Size(ring, size) => self.rings[*ring].set_size(*size)?,
            Request::Base(ring, base) => self.rings[*ring].set_base(*base),
            Request::Places { ring, descriptors, used, available } => {
                self.rings[*ring].set_places(*descriptors, *used, *available);
            }
            Request::Enable(ring, is_enabled) => self.rings[*ring].set_enabled(*is_enabled),
            Request::RequestsTo => self.calls = fds.into_iter().next(),
            Request::Kick(ring) => {
                if *ring == ACCESSES {
                    self.accesses()?;
                }
            }
        }
        let now = self.calendar.now();
        let next = self.next(now);
        self.calendar.set_free_until(next);
        message.reply(&mut self.out.device);
        Ok(())
    }

    /// A whole message on the link of the device's own requests: the machine has taken an interrupt.
    ///
    /// Errors: the machine must be disconnected.
    pub fn call_reply(&mut self, message: &[u8]) -> Result<(), MachineError> {
        vhost_user::check_call_reply(message)?;
        if self.turn == Turn::Interrupted {
            self.turn = Turn::Waits;
        }
        Ok(())
    }

    /// The device's link was closed: the driver is gone, the machine may be too.
    pub fn device_is_gone(&mut self) {
        self.rings = Default::default();
        self.memory = GuestRam::of_unsealed_files();
        self.interrupt_due = None;
        if self.turn == Turn::Interrupted {
            self.turn = Turn::Waits;
        }
    }

    /// While the machine waits: executes events of the card until the machine runs or takes an interrupt. Returns
    /// whether it must be called again.
    ///
    /// Errors: neither side has anything to do; the machine must be disconnected.
    pub fn advance(&mut self) -> Result<bool, MachineError> {
        for _ in 0..STEPS_MAX {
            if self.turn != Turn::Waits {
                return Ok(false);
            }
            let now = self.calendar.now();
            match (self.calendar.request(), self.next(now)) {
                (Some(machine), device) if device.is_none_or(|device| machine < device) => {
                    let run = self.calendar.run(machine, device);
                    self.out.calendar.extend_from_slice(&run);
                    self.turn = Turn::Runs;
                }
                (_, Some(device)) => self.event(device)?,
                (_, None) => return Err(MachineError::Deadlock { ns: now }),
            }
        }
        Ok(true)
    }

    /// The next instant at which the device does something by itself.
    fn next(&self, now: u64) -> Option<u64> {
        let board = self.board.next().map(|at| at.0.saturating_sub(self.start.0));
        board.into_iter().chain(self.interrupt_due).min().map(|at| at.max(now))
    }

    /// The card's time at a time of the machine.
    fn at(&self, ns: u64) -> Instant {
        Instant(self.start.0.saturating_add(ns))
    }

    /// Executes what is due at `ns`.
    fn event(&mut self, ns: u64) -> Result<(), MachineError> {
        self.calendar.advance_to(ns);
        let at = self.at(ns);
        self.board.advance(&self.memory, at);
        self.record.settle(&mut self.board);
        if self.board.take_interrupt() || self.interrupt_due.is_some_and(|due| due <= ns) {
            self.interrupt_due = None;
            self.interrupt()?;
        }
        Ok(())
    }

    /// Sends an MSI. A machine that has not enabled it, or has no buffer for it, does not get it.
    fn interrupt(&mut self) -> Result<(), MachineError> {
        let function = self.board.function();
        if function.read_config(MSI_CONTROL, 2) & 1 == 0 || !self.rings[INTERRUPTS].is_ready() {
            return Ok(());
        }
        let address = function.read_config(MSI_ADDRESS, 8);
        let message = pcidev::msi(address, function.read_config(MSI_DATA, 2) as u32);
        let ring = &mut self.rings[INTERRUPTS];
        if ring.pop(&self.memory, &mut self.chain)? {
            let written = scatter(&self.memory, &self.chain.writable, &message)?;
            ring.push(&self.memory, &self.chain, written)?;
            vhost_user::call(&mut self.out.calls);
            self.turn = Turn::Interrupted;
        }
        Ok(())
    }

    /// Executes all accesses in the ring.
    fn accesses(&mut self) -> Result<(), MachineError> {
        let ns = self.calendar.now();
        let now = self.at(ns);
        self.last_access = now;
        // Buffers in one kick are at most the ring's entries: it cannot be filled while it is emptied.
        while self.rings[ACCESSES].pop(&self.memory, &mut self.chain)? {
            gather(&self.memory, &self.chain.readable, &mut self.message)?;
            self.answer.clear();
            match Access::parse(&self.message) {
                Some(access) => execute(&mut self.board, &self.memory, &access, now, &mut self.answer),
                None => return Err(MachineError::Memory("an access that is none".into())),
            }
            let written = scatter(&self.memory, &self.chain.writable, &self.answer)?;
            self.rings[ACCESSES].push(&self.memory, &self.chain, written)?;
        }
        self.record.settle(&mut self.board);
        if self.board.take_interrupt() {
            // The machine gets the interrupt when it waits next. That is at this instant, which it may not pass.
            self.interrupt_due.get_or_insert(ns);
        }
        Ok(())
    }
}
