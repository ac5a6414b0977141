//! A function with its card on a driven clock: every instant comes from the front.
//!
//! A front passes each access of software with its time, asks for the next event, and calls [`Board::advance`] when
//! that comes. Two runs with the same accesses at the same instants have the same [`Board::digest`].

use std::io::{self, Write};
use std::sync::Arc;

use emmc_units::Instant;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::Function;
use super::mailbox::{Mailbox, MailboxHost};
use crate::block::BlockError;
use crate::sdhci::{GuestMemory, RequestAccount};
use crate::served::Served;

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AccessCounts {
    /// Reads of BAR 0.
    pub reads: u64,
    /// Writes of BAR 0.
    pub writes: u64,
    /// Rising edges of the interrupt.
    pub interrupts: u64,
    /// Requests that ended.
    pub requests: u64,
}

/// The function, its card, and the record of what software did.
pub struct Board {
    function: Function,
    served: Arc<Served>,
    /// The interrupt as the front last saw it.
    asserted: bool,
    risen: bool,
    counts: AccessCounts,
    digest: Sha256,
    log: Option<Box<dyn Write + Send>>,
    log_error: Option<io::Error>,
    accounts: Vec<(RequestAccount, Option<Instant>)>,
    failed: Option<BlockError>,
    mailbox: Option<Mailbox>,
}

impl std::fmt::Debug for Board {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Board").field("function", &self.function).field("counts", &self.counts).finish()
    }
}

impl Board {
    /// A function with a card whose clock is driven ([`Served::driven`]).
    pub fn new(function: Function, served: Arc<Served>) -> Self {
        debug_assert!(served.clock_now().is_driven(), "a board's card has a driven clock");
        Self {
            function: function.with_accounts(),
            served,
            asserted: false,
            risen: false,
            counts: AccessCounts::default(),
            digest: Sha256::new(),
            log: None,
            log_error: None,
            accounts: Vec::new(),
            failed: None,
            mailbox: None,
        }
    }

    /// The same, with a line of text for each access: `ns r|w|i offset bytes value`; `i` is a rising interrupt.
    pub fn with_log(mut self, log: Box<dyn Write + Send>) -> Self {
        self.log = Some(log);
        self
    }

    /// The same, with a mailbox in configuration space to `host`.
    pub fn with_mailbox(mut self, host: Box<dyn MailboxHost>) -> Self {
        self.mailbox = Some(Mailbox::new(host));
        self
    }

    /// The card.
    pub fn served(&self) -> &Arc<Served> {
        &self.served
    }

    /// The function.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Software reads BAR 0 at `now`.
    ///
    /// Shape: up to 8 bytes, any alignment.
    pub fn read(&mut self, offset: usize, bytes: usize, memory: &dyn GuestMemory, now: Instant) -> u64 {
        self.catch_up(memory, now);
        let value = self.function.read(offset, bytes, now);
        self.counts.reads += 1;
        self.record(b'r', offset, bytes, value, now);
        self.answer(memory, now);
        value
    }

    /// Software writes BAR 0 at `now`.
    ///
    /// Shape: up to 8 bytes, any alignment.
    pub fn write(&mut self, offset: usize, bytes: usize, value: u64, memory: &dyn GuestMemory, now: Instant) {
        self.catch_up(memory, now);
        self.counts.writes += 1;
        self.record(b'w', offset, bytes, value, now);
        self.function.write(offset, bytes, value, now);
        self.answer(memory, now);
    }

    /// Software reads configuration space.
    ///
    /// Shape: up to 8 bytes, any alignment.
    pub fn read_config(&mut self, offset: usize, bytes: usize) -> u64 {
        let letter = self.mailbox.as_mut().and_then(|mailbox| mailbox.read(offset, bytes));
        letter.unwrap_or_else(|| self.function.read_config(offset, bytes))
    }

    /// Software writes configuration space at `now`.
    ///
    /// Shape: up to 8 bytes, any alignment.
    pub fn write_config(&mut self, offset: usize, bytes: usize, value: u64, now: Instant) {
        if let Some(mailbox) = &mut self.mailbox {
            // What the host does with the card on a line's behalf happens at this instant.
            self.served.advance_clock(now);
            self.served.note_accesses(self.counts);
            if mailbox.write(offset, bytes, value) {
                return;
            }
        }
        self.function.write_config(offset, bytes, value);
    }

    /// The bus is reset: the function's state is as after power-up, the card keeps its power and does not notice.
    pub fn reset(&mut self) {
        self.function.reset();
        self.asserted = false;
    }

    /// Executes everything that is due by `now`.
    pub fn advance(&mut self, memory: &dyn GuestMemory, now: Instant) {
        self.catch_up(memory, now);
        if self.served.next_idle().is_some_and(|at| at <= now) {
            self.served.idle_at(now);
        }
    }

    /// When [`Board::advance`] must be called next, unless software accesses it before; absent: it waits for software.
    pub fn next(&self) -> Option<Instant> {
        let events = self.function.poll_timeout().into_iter().chain(self.served.next_idle());
        events.chain(self.served.next_scheduled()).min()
    }

    /// The level of the interrupt line.
    pub fn interrupt(&self) -> bool {
        self.function.interrupt()
    }

    /// Whether the interrupt has risen since the last call: a message-signalled interrupt is to be sent.
    pub fn take_interrupt(&mut self) -> bool {
        std::mem::take(&mut self.risen)
    }

    /// The requests that have ended since the last call, each with the instant of the interrupt that reported it, if
    /// one rose then.
    pub fn take_requests(&mut self) -> Vec<(RequestAccount, Option<Instant>)> {
        std::mem::take(&mut self.accounts)
    }

    /// The counts so far.
    pub fn counts(&self) -> AccessCounts {
        self.counts
    }

    /// Of all accesses and interrupts with their instants so far, as hexadecimal digits of SHA-256.
    pub fn digest(&self) -> String {
        self.digest.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Why software gets no answers any more, if a change of the card could not be recorded.
    pub fn failure(&self) -> Option<&BlockError> {
        self.failed.as_ref()
    }

    /// Writes out the log.
    ///
    /// Errors: the system's, also of earlier lines.
    pub fn flush_log(&mut self) -> io::Result<()> {
        if let Some(error) = self.log_error.take() {
            return Err(error);
        }
        self.log.as_mut().map_or(Ok(()), |log| log.flush())
    }

    /// Executes what the function does by itself and what is scheduled up to `now`, each step at its own instant. What
    /// is scheduled for an instant comes before the function's step at it.
    fn catch_up(&mut self, memory: &dyn GuestMemory, now: Instant) {
        while let Some(at) = self.function.poll_timeout().filter(|at| *at <= now) {
            self.served.act_until(at);
            self.service(memory, at);
        }
        self.served.act_until(now);
    }

    /// Executes what an access requested.
    fn answer(&mut self, memory: &dyn GuestMemory, now: Instant) {
        if self.function.wants_service() {
            self.service(memory, now);
        } else {
            self.look_at_interrupt(now);
        }
    }

    fn service(&mut self, memory: &dyn GuestMemory, now: Instant) {
        let function = &mut self.function;
        let kept = self.served.with_card_at(now, |card, now| function.service(card, memory, now));
        if let Err(error) = kept {
            // The guest must not learn that it was done: it runs into its timeout instead.
            self.function.abandon();
            self.failed.get_or_insert(error);
        }
        let ended = self.function.take_accounts();
        self.counts.requests += ended.len() as u64;
        if !ended.is_empty() {
            self.served.count_requests(ended.iter());
        }
        let rose = self.look_at_interrupt(now).then_some(now);
        self.served.note_accesses(self.counts);
        self.accounts.extend(ended.into_iter().map(|account| (account, rose)));
    }

    /// Whether the interrupt has just risen.
    fn look_at_interrupt(&mut self, now: Instant) -> bool {
        let level = self.function.interrupt();
        let rises = level && !self.asserted;
        self.asserted = level;
        if rises {
            self.risen = true;
            self.counts.interrupts += 1;
            self.record(b'i', 0, 0, 0, now);
        }
        rises
    }

    fn record(&mut self, what: u8, offset: usize, bytes: usize, value: u64, now: Instant) {
        self.digest.update([what, bytes as u8]);
        self.digest.update((offset as u16).to_le_bytes());
        self.digest.update(now.0.to_le_bytes());
        self.digest.update(value.to_le_bytes());
        if let (Some(log), None) = (&mut self.log, &self.log_error) {
            let written = writeln!(log, "{} {} {offset:#x} {bytes} {value:#x}", now.0, what as char);
            self.log_error = written.err();
        }
    }
}

#[cfg(test)]
mod tests {
    use emmc_card::card::Card;
    use emmc_card::device::DeviceOptions;
    use emmc_card::nand::StoredContent;
    use emmc_card::profile::shipped;
    use emmc_units::Nanos;

    use super::*;
    use crate::pci::Identity;
    use crate::sdhci::FlatMemory;

    const DATA: u64 = 0x1000;

    /// A driver of the smallest kind: single blocks by SDMA, waiting by advancing to the next event.
    struct Driver {
        board: Board,
        memory: FlatMemory,
        now: Instant,
    }

    impl Driver {
        fn new() -> Self {
            let profile = shipped::named("generic-8g").unwrap();
            let mut card = Card::new(profile, DeviceOptions { keep: StoredContent::Data, seed: 1 }).unwrap();
            let now = card.power_on(Instant::START).unwrap() + Nanos::from_millis(100);
            let board = Board::new(Function::new(Identity::Gl9763e), Arc::new(Served::driven(card, now)));
            let mut driver = Self { board, memory: FlatMemory::new(1 << 16), now };
            driver.board.write_config(4, 2, 6, now);
            for (offset, bytes, value) in
                [(0x29, 1, 0x0f), (0x2c, 2, 5), (0x2e, 1, 0x0e), (0x34, 4, 0xffff_ffff), (0x38, 4, 0xffff_ffff)]
            {
                driver.write(offset, bytes, value);
            }
            driver.command(0, 0, 0);
            while driver.command(1, 0x40ff_8080, 0x02) >> 31 == 0 {
                driver.now = driver.now + Nanos::from_millis(1);
            }
            driver.command(2, 0, 0x09);
            driver.command(3, 0x1_0000, 0x1a);
            driver.command(7, 0x1_0000, 0x1b);
            driver.board.take_requests();
            driver
        }

        fn write(&mut self, offset: usize, bytes: usize, value: u64) {
            self.board.write(offset, bytes, value, &self.memory, self.now);
        }

        /// Advances to the interrupt; returns INT_STATUS, cleared.
        fn interrupt(&mut self) -> u64 {
            while !self.board.interrupt() {
                self.now = self.board.next().expect("an interrupt comes");
                self.board.advance(&self.memory, self.now);
            }
            let status = self.board.read(0x30, 4, &self.memory, self.now);
            self.write(0x30, 4, status);
            status
        }

        /// Returns the first word of the response.
        fn command(&mut self, index: u64, argument: u64, flags: u64) -> u64 {
            self.write(0x08, 4, argument);
            self.write(0x0c, 4, index << 24 | flags << 16 | if index == 17 { 0x11 } else { 1 });
            let ends = if flags & 0x20 != 0 || flags & 3 == 3 { 3 } else { 1 };
            let mut status = 0;
            while status & ends != ends {
                status |= self.interrupt();
                assert_eq!(status & 0xffff_0000, 0, "CMD{index}: {status:#x}");
            }
            self.board.read(0x10, 4, &self.memory, self.now)
        }

        fn block(&mut self, index: u64, sector: u64) {
            self.write(0x00, 4, DATA);
            self.write(0x04, 4, 1 << 16 | 0x7200);
            self.command(index, sector, 0x3a);
        }
    }

    fn run() -> (String, AccessCounts, Vec<(RequestAccount, Option<Instant>)>) {
        let mut driver = Driver::new();
        driver.memory.write(DATA, &[0x5a; 512]).unwrap();
        driver.block(24, 7);
        driver.memory.write(DATA, &[0; 512]).unwrap();
        driver.block(17, 7);
        let mut found = [0; 512];
        driver.memory.read(DATA, &mut found).unwrap();
        assert_eq!(found, [0x5a; 512]);
        let (seen, counts) = (driver.board.served.driven_client().unwrap().accesses, driver.board.counts());
        // What it read after the last request had ended is not yet in them.
        assert_eq!((seen.requests, seen.interrupts), (counts.requests, counts.interrupts));
        assert!(seen.reads < counts.reads && seen.writes <= counts.writes && seen.reads > 0, "{seen:?}");
        (driver.board.digest(), driver.board.counts(), driver.board.take_requests())
    }

    #[test]
    fn requests_are_accounted_to_the_nanosecond_and_runs_repeat() {
        let (digest, counts, requests) = run();
        assert!(counts.requests >= 2 && counts.interrupts >= 2, "{counts:?}");
        let commands: Vec<u8> = requests.iter().map(|(account, _)| account.command).collect();
        assert_eq!(commands, [24, 17]);
        for (account, interrupt) in &requests {
            assert_eq!((account.blocks, account.argument, account.errors), (1, 7, 0));
            assert!(account.issued < account.answered && account.answered < account.crossed, "{account:?}");
            assert!(account.crossed <= account.done, "{account:?}");
            assert_eq!(*interrupt, Some(account.done), "the interrupt of the end");
        }
        assert_eq!(run().0, digest);
    }

    #[test]
    fn the_digest_depends_on_the_time_of_each_access() {
        let mut driver = Driver::new();
        let before = driver.board.digest();
        driver.board.read(0x30, 4, &driver.memory, driver.now);
        let one = driver.board.digest();
        let mut driver = Driver::new();
        assert_eq!(driver.board.digest(), before);
        driver.board.read(0x30, 4, &driver.memory, driver.now + Nanos(1));
        assert_ne!(driver.board.digest(), one);
    }

    #[test]
    fn an_idle_card_has_events_of_its_own_only_while_it_has_work() {
        let mut driver = Driver::new();
        driver.block(24, 7);
        let mut events = 0;
        while let Some(at) = driver.board.next() {
            assert!(at > driver.now, "an event that never ends");
            driver.now = at;
            driver.board.advance(&driver.memory, at);
            events += 1;
            assert!(events < 10_000, "no end of work");
        }
    }
}
