//! The calendar: who runs when. The protocol of a User-Mode Linux with `time-travel=ext:`.
//!
//! Source: Linux, `include/uapi/linux/um_timetravel.h`. Time is in nanoseconds since the machine's start. While the
//! machine runs it may pass any time before `free_until` of the shared page by itself; when it has nothing to do it
//! leaves its next instant there and sends WAIT. Then the calendar chooses: the card's next event or RUN. Without the
//! shared page (before Linux 6.11) the machine is refused.

use std::io;
use std::os::fd::BorrowedFd;

use super::page::{MACHINE, Page};

/// The length of every message. Unit: bytes.
pub(super) const MESSAGE_BYTES: usize = 16;
/// The latest time: the kernel takes times as signed.
const NEVER: u64 = i64::MAX as u64 - 1;
/// How far an idle machine passes time by itself before it tells; it needs a second of real time for a day. Unit: ns.
const HORIZON: u64 = 3_600_000_000_000;
/// The time of day when the card was made: 2024-01-01 00:00:00 UTC. Always the same, so that runs are. Unit: ns.
const EPOCH_NS: u64 = 1_704_067_200_000_000_000;

mod op {
    pub(super) const ACK: u32 = 0;
    pub(super) const START: u32 = 1;
    pub(super) const REQUEST: u32 = 2;
    pub(super) const WAIT: u32 = 3;
    pub(super) const GET: u32 = 4;
    pub(super) const UPDATE: u32 = 5;
    pub(super) const RUN: u32 = 6;
    pub(super) const GET_TIME_OF_DAY: u32 = 8;
}

/// Why a machine cannot be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalendarError {
    /// A message out of turn, or none of the protocol.
    #[error("message {0} of the time travel protocol, which is not one or not now")]
    Message(u32),
    /// The kernel is too old.
    #[error("its kernel does not share the calendar's page: Linux 6.11 or newer is needed")]
    DoesNotShare,
}

/// A message in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Message {
    op: u32,
    sequence: u32,
    time: u64,
}

impl Message {
    fn parse(bytes: [u8; MESSAGE_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, time @ ..] = bytes;
        Self {
            op: u32::from_ne_bytes([a, b, c, d]),
            sequence: u32::from_ne_bytes([e, f, g, h]),
            time: u64::from_ne_bytes(time),
        }
    }

    fn bytes(self) -> [u8; MESSAGE_BYTES] {
        let mut bytes = [0; MESSAGE_BYTES];
        bytes[..4].copy_from_slice(&self.op.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.sequence.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.time.to_ne_bytes());
        bytes
    }
}

/// What a message leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// A reply.
    Reply([u8; MESSAGE_BYTES]),
    /// A reply that goes with the page's file.
    ReplyWithPage([u8; MESSAGE_BYTES]),
    /// No reply: the machine waits until it is run.
    Waits,
}

/// The calendar of one machine.
#[derive(Debug)]
pub(super) struct Calendar {
    page: Page,
    has_started: bool,
    now: u64,
    /// The machine may not pass this instant by itself.
    limit: u64,
    /// A request that came as a message.
    request: Option<u64>,
    /// Added to the time of day: the card's age when the machine started. Unit: ns.
    age_ns: u64,
}

impl Calendar {
    /// The calendar of a machine that starts now, with a card of this age.
    ///
    /// Errors: the system's.
    pub(super) fn new(age_ns: u64) -> io::Result<Self> {
        Ok(Self { page: Page::new(NEVER)?, has_started: false, now: 0, limit: NEVER, request: None, age_ns })
    }

    /// The shared page's file.
    pub(super) fn page(&self) -> BorrowedFd<'_> {
        self.page.file()
    }

    /// The time, which never goes back, and does not pass what the machine was allowed, whatever the page says.
    pub(super) fn now(&mut self) -> u64 {
        self.now = self.now.max(self.page.current().min(self.limit));
        self.now
    }

    /// Takes a message of the machine.
    ///
    /// Errors: not a message of this protocol; a kernel without the page.
    pub(super) fn receive(&mut self, bytes: [u8; MESSAGE_BYTES]) -> Result<Said, CalendarError> {
        let Message { op, sequence, time } = Message::parse(bytes);
        let acknowledge = |time| Message { op: op::ACK, sequence, time }.bytes();
        if op == op::START {
            return if std::mem::replace(&mut self.has_started, true) {
                Err(CalendarError::Message(op))
            } else {
                Ok(Said::ReplyWithPage(acknowledge(MACHINE.into())))
            };
        }
        if !self.has_started {
            return Err(CalendarError::Message(op));
        }
        Ok(Said::Reply(acknowledge(match op {
            op::REQUEST => {
                self.request = Some(time);
                0
            }
            op::WAIT if self.page.is_used() => {
                self.page.set_running(0);
                return Ok(Said::Waits);
            }
            op::WAIT => return Err(CalendarError::DoesNotShare),
            op::GET => self.now(),
            op::UPDATE => {
                self.now = self.now().max(time.min(self.limit));
                self.page.set_current(self.now);
                0
            }
            op::GET_TIME_OF_DAY => EPOCH_NS.saturating_add(self.age_ns).saturating_add(self.now()),
            other => return Err(CalendarError::Message(other)),
        })))
    }

    /// When the waiting machine wants to run; a machine without anything to do asks for the end of time.
    pub(super) fn request(&self) -> Option<u64> {
        let asked = self.page.request().into_iter().chain(self.request).min();
        asked.filter(|at| *at < NEVER).map(|at| at.max(self.now))
    }

    /// The machine may pass any time before `at` by itself, or the horizon.
    pub(super) fn set_free_until(&mut self, at: Option<u64>) {
        let horizon = self.now.saturating_add(HORIZON).min(NEVER);
        self.limit = at.map_or(horizon, |at| at.min(horizon));
        self.page.set_free_until(self.limit);
    }

    /// Time advances to an event of the card, while the machine waits.
    pub(super) fn advance_to(&mut self, at: u64) {
        self.now = self.now().max(at.min(NEVER));
        self.page.set_current(self.now);
    }

    /// Lets the machine run at `at`; the message that tells it.
    pub(super) fn run(&mut self, at: u64, free_until: Option<u64>) -> [u8; MESSAGE_BYTES] {
        self.advance_to(at);
        self.request = None;
        self.set_free_until(free_until);
        self.page.set_running(MACHINE);
        Message { op: op::RUN, sequence: 0, time: self.now }.bytes()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::uml) fn message(op: u32, sequence: u32, time: u64) -> [u8; MESSAGE_BYTES] {
        Message { op, sequence, time }.bytes()
    }

    impl Calendar {
        pub(in crate::uml) fn shared(&self) -> &Page {
            &self.page
        }
    }

    fn started() -> Calendar {
        let mut calendar = Calendar::new(5).unwrap();
        let said = calendar.receive(message(op::START, 3, 77)).unwrap();
        assert_eq!(said, Said::ReplyWithPage(message(op::ACK, 3, 1)));
        calendar
    }

    #[test]
    fn a_machine_runs_when_it_asked_to() {
        let mut calendar = started();
        calendar.shared().ask(1, 1, 500);
        assert_eq!(calendar.receive(message(op::WAIT, 4, 0)), Ok(Said::Waits));
        assert_eq!((calendar.request(), calendar.shared().state().1), (Some(500), 0));
        assert_eq!(calendar.run(500, Some(900)), message(op::RUN, 0, 500));
        assert_eq!((calendar.now(), calendar.shared().state()), (500, (900, 1)));
        calendar.shared().set_current(700);
        assert_eq!(calendar.receive(message(op::GET, 5, 0)), Ok(Said::Reply(message(op::ACK, 5, 700))));
        let day = EPOCH_NS + 5 + 700;
        assert_eq!(calendar.receive(message(op::GET_TIME_OF_DAY, 6, 0)), Ok(Said::Reply(message(op::ACK, 6, day))));
        assert_eq!(calendar.receive(message(op::REQUEST, 7, 600)), Ok(Said::Reply(message(op::ACK, 7, 0))));
        calendar.shared().ask(1, 0, 500);
        assert_eq!(calendar.request(), Some(700), "what is past is due now");
        calendar.run(700, None);
        calendar.shared().ask(1, 1, i64::MAX as u64);
        assert_eq!((calendar.request(), calendar.shared().state()), (None, (700 + HORIZON, 1)));
    }

    #[test]
    fn time_never_goes_back_and_never_wraps() {
        let mut calendar = started();
        calendar.advance_to(1_000);
        calendar.shared().set_current(10);
        assert_eq!(calendar.now(), 1_000);
        calendar.receive(message(op::UPDATE, 1, 20)).unwrap();
        assert_eq!((calendar.now(), calendar.shared().current()), (1_000, 1_000));
        calendar.set_free_until(Some(3_000));
        calendar.shared().set_current(u64::MAX);
        assert_eq!(calendar.now(), 3_000, "not beyond what it was allowed");
        calendar.set_free_until(None);
        assert_eq!(calendar.now(), 3_000 + HORIZON);
        calendar.advance_to(u64::MAX);
        calendar.set_free_until(None);
        assert_eq!(calendar.now(), NEVER);
        assert!(calendar.receive(message(op::GET_TIME_OF_DAY, 1, 0)).is_ok());
    }

    #[test]
    fn what_is_not_the_protocol_is_refused() {
        let mut calendar = Calendar::new(0).unwrap();
        assert_eq!(calendar.receive(message(op::WAIT, 0, 0)), Err(CalendarError::Message(op::WAIT)));
        let mut calendar = started();
        for op in [op::START, op::ACK, op::RUN, 99] {
            assert_eq!(calendar.receive(message(op, 0, 0)), Err(CalendarError::Message(op)));
        }
        assert_eq!(calendar.receive(message(op::WAIT, 0, 0)), Err(CalendarError::DoesNotShare));
    }
}
