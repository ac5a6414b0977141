//! One client from greeting to disconnect, over any pair of byte streams.
//!
//! The thread that reads a request performs it in the model immediately, so that the card sees requests in the order
//! and at the time of their arrival. The same thread writes replies that are already due, together with those of other
//! requests that have arrived meanwhile; the rest goes to the `Outbox`. Long replies go there, too, if the next request
//! is there: it is served while they are written. A long write is performed by another thread (`Writes`) if the next
//! request is there: that is received meanwhile.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::thread;
use std::time::Instant as Wall;

use emmc_units::Instant;

use super::budget::{Budget, Reservation, SHORT_BYTES};
use super::buffer::Buffer;
use super::execute::Executor;
use super::handshake::{Agreed, HandshakeError, Outcome, PAYLOAD_BYTES_MAX, Security, greet, negotiate};
use super::input::Input;
use super::outbox::{Due, Outbox};
use super::tls::TlsFailure;
use super::wire::{BadMagic, Command, REQUEST_BYTES, Request};
use super::writes::Writes;
use crate::block::Block;

/// Replies are written when they reach this size, even while more requests are available. Unit: bytes.
const COALESCED_BYTES_MAX: usize = 128 << 10;

/// Why a client was dropped.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The negotiation failed.
    #[error("negotiation: {0}")]
    Handshake(#[from] HandshakeError),
    /// TLS failed, at its start or later.
    #[error("TLS: {0}")]
    Tls(#[from] TlsFailure),
    /// The connection failed.
    #[error("the connection: {0}")]
    Io(#[from] io::Error),
    /// The stream is out of sync.
    #[error(transparent)]
    Request(#[from] BadMagic),
}

/// Serves one client until it disconnects; without TLS.
///
/// Errors: a protocol error after which the stream cannot be parsed, or the connection failed.
pub fn session<W: Write + Send>(block: &dyn Block, mut input: impl Read, output: W) -> Result<(), SessionError> {
    let outbox = Outbox::new(output);
    let no_zeroes = greet(&mut input, &mut Direct(&outbox))?;
    match negotiate(&block.exports(), no_zeroes, Security::Off, &mut input, &mut Direct(&outbox))? {
        Outcome::Agreed(choice) => transmit(block, choice, input, &outbox, &Arc::default()),
        Outcome::Ended | Outcome::StartTls => Ok(()),
    }
}

/// Serves the requests of a client that has chosen an export.
pub(crate) fn transmit<W: Write + Send>(
    block: &dyn Block,
    choice: Agreed,
    input: impl Read,
    outbox: &Outbox<W>,
    budget: &Arc<Budget>,
) -> Result<(), SessionError> {
    let executor = Executor::new(block, choice);
    let (writes, mut writer) = (Writes::default(), Some(executor.another()));
    let mut session = Session {
        executor,
        input: Input::new(input),
        replies: Buffer::default(),
        done: Vec::new(),
        reserved: Vec::new(),
        budget,
        outbox,
        writes: &writes,
        has_writes: false,
    };
    thread::scope(|scope| {
        let mut has_sender = false;
        let end = session.transmit(&mut |thread| {
            let spawn = |name: &str| thread::Builder::new().name(name.into());
            match thread {
                Thread::Writer => {
                    if let Some(executor) = writer.take() {
                        spawn("nbd-writes").spawn_scoped(scope, || writes.perform(executor, outbox))?;
                    }
                }
                Thread::Sender if !has_sender => {
                    let send = || outbox.send_when_due(|at| block.answered(at));
                    spawn("nbd-replies").spawn_scoped(scope, send)?;
                    has_sender = true;
                }
                Thread::Sender => {}
            }
            Ok(outbox)
        });
        writes.end();
        match end {
            // What was done before the stream got out of sync is still answered.
            Ok(()) | Err(SessionError::Request(_)) => outbox.close(),
            Err(_) => outbox.abandon(),
        }
        end
    })
}

/// A thread beside the one that reads requests.
#[derive(Clone, Copy)]
enum Thread {
    /// Of the outbox.
    Sender,
    /// Of long writes.
    Writer,
}

/// Whether there is memory for a request.
enum Memory {
    /// It needs none of the common one.
    Short,
    Reserved(Reservation),
    /// Not in time.
    Refused,
}

/// The outbox, with a thread started.
type Started<'s, 'a, W> = &'s mut dyn FnMut(Thread) -> io::Result<&'a Outbox<W>>;

struct Session<'a, R, W> {
    executor: Executor<'a>,
    input: Input<R>,
    /// Replies that are due.
    replies: Buffer,
    /// When the card finished each of them, where clients wait for it.
    done: Vec<Instant>,
    /// The memory of long ones among them.
    reserved: Vec<Reservation>,
    budget: &'a Arc<Budget>,
    outbox: &'a Outbox<W>,
    writes: &'a Writes,
    /// Some may not be performed yet.
    has_writes: bool,
}

impl<'a, R: Read, W: Write> Session<'a, R, W> {
    /// Takes requests until the client disconnects or closes its side.
    fn transmit(&mut self, started: Started<'_, 'a, W>) -> Result<(), SessionError> {
        while self.arrived(REQUEST_BYTES)? {
            let mut header = [0; REQUEST_BYTES];
            header.copy_from_slice(self.input.next(REQUEST_BYTES));
            self.input.consume(REQUEST_BYTES);
            let request = match Request::decode(&header) {
                Ok(Request { command: Command::Disconnect, .. }) => break,
                Ok(request) => request,
                Err(error) => {
                    self.write_replies()?;
                    return Err(error.into());
                }
            };
            self.serve(&request, started)?;
            if self.replies.length() >= COALESCED_BYTES_MAX {
                let goes_on = self.input.has(REQUEST_BYTES) && self.done.is_empty();
                if !(goes_on && started(Thread::Sender)?.hand_over(&mut self.replies, &mut self.reserved)?) {
                    self.write_replies()?;
                }
            }
        }
        self.settle()?;
        Ok(self.write_replies()?)
    }

    /// Waits until the long writes before are performed.
    fn settle(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.has_writes) { self.writes.wait() } else { Ok(()) }
    }

    fn serve(&mut self, request: &Request, started: Started<'_, 'a, W>) -> Result<(), SessionError> {
        let payload = if request.command == Command::Write { request.length as usize } else { 0 };
        if payload > PAYLOAD_BYTES_MAX as usize {
            self.write_replies()?;
            self.input.discard(payload)?;
            self.executor.refuse_as_too_long(request, &mut self.replies);
            return Ok(());
        }
        if let Some(mut landing) = self.executor.landing(request) {
            let received = self.receive(landing.bytes_mut());
            let goes_on = received.is_ok() && self.input.has(REQUEST_BYTES) && self.executor.is_immediate();
            if goes_on && started(Thread::Writer).is_ok() {
                self.writes.add(*request, landing)?;
                self.has_writes = true;
                return Ok(());
            }
            let received = received.and_then(|()| self.settle());
            let start = self.replies.length();
            let due = received.map(|()| self.executor.execute(request, landing.bytes(), &mut self.replies));
            self.executor.end_landing(landing);
            return self.reply(start, due?, started);
        }
        self.settle()?;
        let is_read = request.command == Command::Read && request.length <= PAYLOAD_BYTES_MAX;
        let memory = payload.max(if is_read { request.length as usize } else { 0 });
        let reserved = match self.reserve(memory)? {
            Memory::Refused => {
                self.input.discard(payload)?;
                self.executor.refuse_without_memory(request, &mut self.replies);
                return Ok(());
            }
            Memory::Short => None,
            Memory::Reserved(reserved) => Some(reserved),
        };
        if !self.arrived(payload)? {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let start = self.replies.length();
        let due = self.executor.execute(request, self.input.next(payload), &mut self.replies);
        self.input.consume(payload);
        if is_read {
            self.reserved.extend(reserved);
        }
        self.reply(start, due, started)
    }

    /// Memory for a long request. Before it waits, it writes the replies that are due, which have some.
    fn reserve(&mut self, bytes: usize) -> io::Result<Memory> {
        if bytes <= SHORT_BYTES {
            return Ok(Memory::Short);
        }
        self.write_replies()?;
        Ok(self.budget.reserve(bytes).map_or(Memory::Refused, Memory::Reserved))
    }

    /// The reply from `start` on is sent when it is due.
    fn reply(&mut self, start: usize, due: Option<Due>, started: Started<'_, 'a, W>) -> Result<(), SessionError> {
        match due {
            Some(due) if due.wall > Wall::now() => {
                let reserved = std::mem::take(&mut self.reserved);
                started(Thread::Sender)?.later(due, self.replies.tail(start), reserved)?;
                self.replies.truncate(start);
                if start == 0 {
                    self.replies.clear();
                }
            }
            late => self.done.extend(late.map(|due| due.at)),
        }
        Ok(())
    }

    /// Receives into memory of the card; before it waits, it writes the replies that are due.
    fn receive(&mut self, into: &mut [u8]) -> io::Result<()> {
        if !self.input.has(into.len()) {
            self.write_replies()?;
        }
        self.input.take(into, REQUEST_BYTES)
    }

    /// Makes sure that `bytes` bytes are there; before it waits for them, it writes the replies that are due.
    fn arrived(&mut self, bytes: usize) -> io::Result<bool> {
        if self.input.has(bytes) {
            return Ok(true);
        }
        self.write_replies()?;
        self.input.fill(bytes)
    }

    fn write_replies(&mut self) -> io::Result<()> {
        if self.replies.length() > 0 {
            self.outbox.write(self.replies.bytes())?;
            self.replies.clear();
            self.reserved.clear();
            self.done.drain(..).for_each(|at| self.executor.answered(at));
        }
        Ok(())
    }
}

/// The outbox's stream during the negotiation, before there are replies to requests.
pub(super) struct Direct<'a, W>(pub(super) &'a Outbox<W>);

impl<W: Write> Write for Direct<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
