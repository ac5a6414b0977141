//! Bytes between a TLS connection and a session at a socket, both ways, until both have ended.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant as Wall};

use openssl::ssl::{ErrorCode, SslStream};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::TlsFailure;
use super::credentials::why;
use crate::nbd::socket::Stream;

/// What is outstanding in one direction, at most. Unit: bytes.
const PIPE_BYTES: usize = 256 << 10;
/// How long a client may take the rest of its replies after its session has ended.
const GRACE: Duration = Duration::from_secs(5);

/// A connection after the handshake.
pub(in crate::nbd) type Secured = SslStream<Stream>;

/// Bytes that were read at one side and are not written at the other.
struct Pipe {
    memory: Box<[u8]>,
    start: usize,
    end: usize,
    /// No more will come.
    has_ended: bool,
}

impl Pipe {
    fn new() -> Self {
        Self { memory: vec![0; PIPE_BYTES].into(), start: 0, end: 0, has_ended: false }
    }

    fn is_empty(&self) -> bool {
        self.start == self.end
    }

    fn pending(&self) -> &[u8] {
        &self.memory[self.start..self.end]
    }

    /// Removes bytes from the front.
    fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Where more bytes go.
    fn room(&mut self) -> &mut [u8] {
        &mut self.memory[self.end..]
    }

    /// Whether it takes more now: only when it is empty, so that bytes need no moving.
    fn is_open(&self) -> bool {
        self.is_empty() && !self.has_ended
    }
}

/// What an attempt at one side came to.
enum Step {
    Moved,
    /// The side has to become ready for this.
    Waits(PollFlags),
}

struct Relay<'a> {
    secured: Secured,
    plain: &'a UnixStream,
    /// From the client to the session.
    inward: Pipe,
    /// From the session to the client.
    outward: Pipe,
    /// The session knows that no more will come.
    has_told: bool,
}

/// Relays until the session has ended and the client has all that it sent, or the connection fails.
pub(in crate::nbd) fn relay(secured: Secured, plain: &UnixStream) -> Result<(), TlsFailure> {
    let (inward, outward) = (Pipe::new(), Pipe::new());
    let mut relay = Relay { secured, plain, inward, outward, has_told: false };
    let end = relay.run();
    // The session sees the end of a connection that failed.
    let _ = plain.shutdown(Shutdown::Both);
    end
}

impl Relay<'_> {
    fn run(&mut self) -> Result<(), TlsFailure> {
        rustix::io::ioctl_fionbio(self.secured.get_ref(), true).map_err(failed)?;
        self.plain.set_nonblocking(true).map_err(|error| TlsFailure(error.to_string()))?;
        let mut until = None;
        loop {
            let (mut network, mut session) = (PollFlags::empty(), PollFlags::empty());
            let mut moved = false;
            let mut note = |step: Step, wants: &mut PollFlags| match step {
                Step::Moved => moved = true,
                Step::Waits(flags) => *wants |= flags,
            };
            if self.inward.is_open() {
                note(self.receive()?, &mut network);
            }
            if !self.inward.is_empty() {
                note(self.pass_in(), &mut session);
            }
            if self.inward.has_ended && self.inward.is_empty() && !self.has_told {
                let _ = self.plain.shutdown(Shutdown::Write);
                self.has_told = true;
            }
            if self.outward.is_open() {
                note(self.take_out(), &mut session);
            }
            if !self.outward.is_empty() {
                note(self.send()?, &mut network);
            }
            if self.outward.has_ended && self.outward.is_empty() {
                // Best effort: it may be gone.
                let _ = self.secured.shutdown();
                return Ok(());
            }
            if self.outward.has_ended {
                let until = *until.get_or_insert_with(|| Wall::now() + GRACE);
                if Wall::now() >= until {
                    return Err(TlsFailure("the client does not take its replies".into()));
                }
            }
            if !moved {
                self.wait(network, session, until)?;
            }
        }
    }

    /// Waits for what a side has to become ready for.
    fn wait(&self, network: PollFlags, session: PollFlags, until: Option<Wall>) -> Result<(), TlsFailure> {
        let mut waits = Vec::with_capacity(2);
        // A side of which nothing is wanted would report its end again and again.
        if !network.is_empty() {
            waits.push(PollFd::new(self.secured.get_ref(), network));
        }
        if !session.is_empty() {
            waits.push(PollFd::new(self.plain, session));
        }
        let left = until.map(|until| until.saturating_duration_since(Wall::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut waits, left.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// From the network.
    fn receive(&mut self) -> Result<Step, TlsFailure> {
        while !self.inward.room().is_empty() {
            match self.secured.ssl_read(self.inward.room()) {
                Ok(read) => self.inward.end += read,
                Err(error) => {
                    let step = match error.code() {
                        ErrorCode::WANT_READ => Step::Waits(PollFlags::IN),
                        ErrorCode::WANT_WRITE => Step::Waits(PollFlags::OUT),
                        ErrorCode::ZERO_RETURN => self.end_inward(),
                        // NBD has its own request to disconnect: what ends without one has lost nothing that was
                        // acknowledged.
                        _ if is_end(&error) => self.end_inward(),
                        _ => return Err(TlsFailure(why(&error))),
                    };
                    return Ok(if self.inward.is_empty() { step } else { Step::Moved });
                }
            }
        }
        Ok(Step::Moved)
    }

    fn end_inward(&mut self) -> Step {
        self.inward.has_ended = true;
        Step::Moved
    }

    /// To the session.
    fn pass_in(&mut self) -> Step {
        match self.plain.write(self.inward.pending()) {
            Ok(written) => self.inward.consume(written),
            Err(error) if is_later(&error) => return Step::Waits(PollFlags::OUT),
            // It has ended: nobody reads this.
            Err(_) => {
                self.inward.consume(self.inward.pending().len());
                self.inward.has_ended = true;
            }
        }
        Step::Moved
    }

    /// From the session.
    fn take_out(&mut self) -> Step {
        match self.plain.read(self.outward.room()) {
            Ok(0) => self.outward.has_ended = true,
            Ok(read) => self.outward.end += read,
            Err(error) if is_later(&error) => return Step::Waits(PollFlags::IN),
            Err(_) => self.outward.has_ended = true,
        }
        Step::Moved
    }

    /// To the network.
    fn send(&mut self) -> Result<Step, TlsFailure> {
        match self.secured.ssl_write(self.outward.pending()) {
            Ok(written) => self.outward.consume(written),
            Err(error) => match error.code() {
                ErrorCode::WANT_WRITE => return Ok(Step::Waits(PollFlags::OUT)),
                ErrorCode::WANT_READ => return Ok(Step::Waits(PollFlags::IN)),
                _ if is_end(&error) => {
                    self.outward.consume(self.outward.pending().len());
                    self.outward.has_ended = true;
                }
                _ => return Err(TlsFailure(why(&error))),
            },
        }
        Ok(Step::Moved)
    }
}

fn failed(error: rustix::io::Errno) -> TlsFailure {
    TlsFailure(io::Error::from(error).to_string())
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Whether a client just closed its connection.
fn is_end(error: &openssl::ssl::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    let is_gone = |error: &io::Error| matches!(error.kind(), BrokenPipe | ConnectionReset | ConnectionAborted);
    match (error.io_error(), error.ssl_error()) {
        (Some(error), _) => is_gone(error),
        (None, Some(errors)) => errors
            .errors()
            .iter()
            .any(|error| error.reason().is_some_and(|reason| reason.starts_with("unexpected eof"))),
        (None, None) => true,
    }
}
