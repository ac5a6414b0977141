//! The clients of a server: who is admitted, for how long, and what each one's thread does.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant as Wall};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{Timeout, set_socket_timeout};

use super::handshake::{Agreed, Outcome, Security, greet, negotiate};
use super::outbox::Outbox;
use super::session::{self, Direct, SessionError};
use super::socket::{Listener, Stream};
use super::tls::Tls;
use super::{NbdOptions, tls};
use crate::block::{Block, Export};

/// The largest number of clients.
const CLIENTS_MAX: usize = 64;
/// The pause after the system had no descriptor or memory for a client.
const SHORTAGE: Duration = Duration::from_millis(100);
/// How long a stopping server waits for pending replies.
const GRACE: Duration = Duration::from_secs(5);

/// All clients of a server.
#[derive(Debug)]
pub(super) struct Clients {
    options: NbdOptions,
    connected: Mutex<BTreeMap<u64, Arc<Client>>>,
    left: Condvar,
    ending: AtomicBool,
}

/// A connection.
#[derive(Debug)]
struct Client {
    /// What the session reads from and writes to.
    stream: Stream,
    outbox: Outbox<Stream>,
    /// The network, where TLS is between it and the session.
    network: Option<Stream>,
    /// When it came.
    since: Wall,
    /// Whether it has chosen an export.
    has_agreed: AtomicBool,
}

impl Client {
    fn new(stream: Stream, network: Option<Stream>, since: Wall) -> io::Result<Self> {
        let outbox = Outbox::new(stream.try_clone()?);
        Ok(Self { stream, outbox, network, since, has_agreed: AtomicBool::new(false) })
    }

    fn disconnect(&self) {
        self.stream.shutdown(Shutdown::Both);
        if let Some(network) = &self.network {
            network.shutdown(Shutdown::Both);
        }
    }
}

impl Clients {
    pub(super) fn new(options: NbdOptions) -> Self {
        Self { options, connected: Mutex::default(), left: Condvar::new(), ending: AtomicBool::new(false) }
    }

    fn connected(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Client>>> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Disconnects clients that have not chosen an export in their time. Returns when the next one is due.
    fn drop_silent(&self) -> Option<Duration> {
        let mut next = None;
        for client in self.connected().values().filter(|client| !client.has_agreed.load(Ordering::SeqCst)) {
            match self.options.negotiation.checked_sub(client.since.elapsed()) {
                Some(left) => next = Some(next.map_or(left, |next: Duration| next.min(left))),
                None => client.disconnect(),
            }
        }
        next
    }

    /// Disconnects all, those that take their replies after these.
    pub(super) fn end(&self) {
        self.ending.store(true, Ordering::SeqCst);
        let connected = self.connected();
        connected.values().for_each(|client| client.stream.shutdown(Shutdown::Read));
        let waited = self.left.wait_timeout_while(connected, GRACE, |connected| !connected.is_empty());
        let connected = waited.unwrap_or_else(PoisonError::into_inner).0;
        for client in connected.values() {
            client.outbox.abandon();
            client.disconnect();
        }
        let gone = self.left.wait_while(connected, |connected| !connected.is_empty());
        drop(gone);
    }

    /// Accepts clients until the other end of `woken` is closed.
    pub(super) fn accept(self: &Arc<Self>, block: &Arc<dyn Block>, listener: &Listener, woken: &UnixStream) {
        let mut is_short = false;
        for number in 0.. {
            let mut waits = [PollFd::new(woken, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
            let next = self.drop_silent();
            // Those that wait are accepted when there is room again.
            let (waits, limit) = if is_short { (&mut waits[..1], Some(SHORTAGE)) } else { (&mut waits[..], next) };
            let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
            match poll(waits, limit.as_ref()) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return eprintln!("nbd: no more clients are accepted: {error}"),
                Ok(_) => {}
            }
            if !waits[0].revents().is_empty() {
                return;
            }
            match listener.accept() {
                Ok(stream) => {
                    is_short = false;
                    if let Err(error) = self.admit(number, stream, block) {
                        eprintln!("nbd: client {number}: {error}");
                    }
                }
                // The client has disconnected already.
                Err(error) if is_passing(&error) => {}
                Err(error) if is_shortage(&error) => {
                    if !std::mem::replace(&mut is_short, true) {
                        eprintln!("nbd: new clients wait: {error}");
                    }
                }
                Err(error) => return eprintln!("nbd: no more clients are accepted: {error}"),
            }
        }
    }

    /// Starts the client's thread.
    fn admit(self: &Arc<Self>, number: u64, stream: Stream, block: &Arc<dyn Block>) -> io::Result<()> {
        let mut connected = self.connected();
        if connected.len() >= CLIENTS_MAX {
            return Err(io::Error::other(format!("refused: there are {CLIENTS_MAX} clients already")));
        }
        let client = Arc::new(Client::new(stream, None, Wall::now())?);
        let (block, clients, its_own) = (Arc::clone(block), Arc::clone(self), Arc::clone(&client));
        thread::Builder::new().name(format!("nbd-{number}")).spawn(move || {
            let leaving = Leaving { number, clients: &clients };
            let end = clients.serve(number, &*block, &its_own);
            // A descriptor is closed when its last owner drops it.
            its_own.disconnect();
            match end {
                // Disconnected by us.
                Err(_) if clients.ending.load(Ordering::SeqCst) => {}
                Err(error) => eprintln!("nbd: client {number} dropped: {error}"),
                Ok(()) => {}
            }
            // Who waits for the last client may open the card's folder again.
            drop(block);
            drop(leaving);
        })?;
        connected.insert(number, client);
        Ok(())
    }

    /// From the greeting to the end, over TLS if the client starts it.
    fn serve(&self, number: u64, block: &dyn Block, client: &Client) -> Result<(), SessionError> {
        let exports = block.exports();
        let mut input = client.stream.try_clone()?;
        let no_zeroes = greet(&mut input, &mut Direct(&client.outbox))?;
        let security = self.options.tls.as_ref().map_or(Security::Off, |tls| tls.security());
        match negotiate(&exports, no_zeroes, security, &mut input, &mut Direct(&client.outbox))? {
            Outcome::Ended => Ok(()),
            Outcome::Agreed(choice) => {
                client.has_agreed.store(true, Ordering::SeqCst);
                self.transmit(block, choice, client, input)
            }
            Outcome::StartTls => match &self.options.tls {
                Some(tls) => self.serve_secured(number, block, client, (tls, &exports, no_zeroes)),
                None => Ok(()),
            },
        }
    }

    fn transmit(&self, block: &dyn Block, choice: Agreed, client: &Client, input: Stream) -> Result<(), SessionError> {
        let outbox = &client.outbox;
        let Some(idle) = self.options.idle else {
            return session::transmit(block, choice, input, outbox, &self.options.budget);
        };
        set_socket_timeout(&input, Timeout::Recv, Some(idle)).map_err(io::Error::from)?;
        session::transmit(block, choice, NotIdle { input, outbox, idle }, outbox, &self.options.budget)
    }

    /// The same client from the start of TLS: its session is at one end of a pair of sockets, TLS at the other.
    fn serve_secured(
        &self,
        number: u64,
        block: &dyn Block,
        client: &Client,
        (tls, exports, no_zeroes): (&Tls, &[Export], bool),
    ) -> Result<(), SessionError> {
        let secured = tls.accept(client.stream.try_clone()?)?;
        let (ours, theirs) = UnixStream::pair()?;
        let ours = Stream::Unix(ours);
        let mut input = ours.try_clone()?;
        let inner = Arc::new(Client::new(ours, Some(client.stream.try_clone()?), client.since)?);
        let relay = thread::Builder::new().name("nbd-tls".into()).spawn(move || tls::relay(secured, &theirs))?;
        {
            let mut connected = self.connected();
            connected.insert(number, Arc::clone(&inner));
            // Who ended the server saw only the connection before.
            if self.ending.load(Ordering::SeqCst) {
                inner.stream.shutdown(Shutdown::Read);
            }
        }
        let end = negotiate(exports, no_zeroes, Security::Secured, &mut input, &mut Direct(&inner.outbox));
        let end = end.map_err(SessionError::from).and_then(|outcome| match outcome {
            Outcome::Agreed(choice) => {
                inner.has_agreed.store(true, Ordering::SeqCst);
                self.transmit(block, choice, &inner, input)
            }
            Outcome::Ended | Outcome::StartTls => Ok(()),
        });
        // TLS sends what is left and ends.
        inner.stream.shutdown(Shutdown::Both);
        match relay.join() {
            // What the session saw follows from it.
            Ok(Err(failure)) => Err(failure.into()),
            // A panic there was printed when it happened.
            Ok(Ok(())) | Err(_) => end,
        }
    }
}

/// Input of a client that may not be idle for longer than the timeout of its socket.
struct NotIdle<'a> {
    input: Stream,
    outbox: &'a Outbox<Stream>,
    idle: Duration,
}

impl NotIdle<'_> {
    /// Goes on as long as the client waits for a reply.
    fn until_idle(&mut self, mut read: impl FnMut(&mut Stream) -> io::Result<usize>) -> io::Result<usize> {
        loop {
            match read(&mut self.input) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.outbox.is_empty() {
                        let why = format!("the client sent nothing for {:?}", self.idle);
                        return Err(io::Error::new(io::ErrorKind::TimedOut, why));
                    }
                }
                other => return other,
            }
        }
    }
}

impl Read for NotIdle<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.until_idle(|input| input.read(into))
    }

    fn read_vectored(&mut self, parts: &mut [io::IoSliceMut<'_>]) -> io::Result<usize> {
        self.until_idle(|input| input.read_vectored(parts))
    }
}

fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted | ConnectionReset)
}

/// Descriptors or memory that other processes and clients may give back.
fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    shortages.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Removes the client from the list, also when its thread panics.
struct Leaving<'a> {
    number: u64,
    clients: &'a Clients,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.clients.connected().remove(&self.number);
        self.clients.left.notify_all();
    }
}
