//! What became of each request that crossed the bus, in the card's time.

use emmc_units::Instant;

/// A request that has ended: data by a command or a queued task, or a command that kept the card busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestAccount {
    /// The command: 17, 18, 24, 25 and others with data; 46 and 47 of a queued task; 6, 38 and others with busy time.
    pub command: u8,
    /// Its argument; of a queued task the one of CMD45: its address.
    pub argument: u32,
    /// Blocks of data that were asked for; 0: none, or until CMD12.
    pub blocks: u32,
    /// Software rang the doorbell, or wrote COMMAND.
    pub issued: Instant,
    /// The command that moves the data was answered.
    pub answered: Instant,
    /// The last block had crossed the bus; without data as `answered`.
    pub crossed: Instant,
    /// The controller sent its own CMD12 after the data; absent: none. The card's busy time from there on is that of
    /// CMD12, the one before is that of the data. A CMD12 of software is a request of its own.
    pub stopped: Option<Instant>,
    /// The card was no longer busy, and the controller reported the end.
    pub done: Instant,
    /// The error interrupts it ended with; 0: none.
    pub errors: u32,
}

/// The request that is served without the queue, and those that have ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accounts {
    /// Nobody reads them otherwise.
    pub(crate) enabled: bool,
    current: Option<RequestAccount>,
    ended: Vec<RequestAccount>,
}

impl Accounts {
    /// A command with data or busy time was answered.
    pub(crate) fn begin(&mut self, (command, argument): (u8, u32), blocks: u32, issued: Instant, answered: Instant) {
        let (crossed, done) = (answered, answered);
        self.current = Some(RequestAccount {
            command,
            argument,
            blocks,
            issued,
            answered,
            crossed,
            done,
            stopped: None,
            errors: 0,
        });
    }

    /// Blocks have crossed the bus by `at`.
    pub(crate) fn cross(&mut self, at: Instant) {
        if let Some(current) = &mut self.current {
            current.crossed = at;
        }
    }

    /// The controller sends CMD12 at `at`.
    pub(crate) fn stop(&mut self, at: Instant) {
        if let Some(current) = &mut self.current {
            current.stopped = Some(at);
        }
    }

    /// The current one has ended.
    pub(crate) fn end(&mut self, at: Instant, errors: u32) {
        if let Some(current) = self.current.take() {
            self.add(RequestAccount { done: at, errors, ..current });
        }
    }

    /// One has ended.
    pub(crate) fn add(&mut self, ended: RequestAccount) {
        if self.enabled {
            self.ended.push(ended);
        }
    }

    /// Those that have ended since the last call, in that order.
    pub(crate) fn take(&mut self) -> Vec<RequestAccount> {
        std::mem::take(&mut self.ended)
    }
}
