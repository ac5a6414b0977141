//! NBD: a card's areas as network block devices, fixed newstyle.
//!
//! `wire` and `option` encode and decode bytes; `handshake` negotiates an export; `session` reads requests, `execute`
//! performs them in the model, `outbox` sends each reply when the card would have finished. One thread per client, and
//! a second one as soon as a reply has to wait. User page: docs/serve-nbd.md. Absent on purpose: TLS, extended headers,
//! `NBD_CMD_CACHE`; RPMB, which is not a block device.

pub mod buffer;
mod execute;
mod handshake;
mod input;
pub mod option;
mod outbox;
mod session;
mod socket;
pub mod wire;
mod writes;

use std::collections::BTreeMap;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant as Wall};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub use self::handshake::HandshakeError;
pub use self::session::{SessionError, session};
pub use self::socket::Listen;

use self::outbox::Outbox;
use self::socket::{Listener, Stream};
use crate::block::Block;

/// The largest number of clients; each may use 100 MiB.
const CLIENTS_MAX: usize = 64;
/// How long a client may take until it has chosen an export: the places of [`CLIENTS_MAX`] are not for silent ones.
const NEGOTIATION: Duration = Duration::from_secs(10);
/// The pause after the system had no descriptor or memory for a client.
const SHORTAGE: Duration = Duration::from_millis(100);
/// How long a stopping server waits for pending replies.
const GRACE: Duration = Duration::from_secs(5);

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum NbdError {
    /// The address is in use or not available, or the socket cannot be created.
    #[error("cannot listen at {listen}: {source}")]
    Listen {
        /// Where.
        listen: Listen,
        /// Why not.
        source: io::Error,
    },
    /// The system has no more threads or descriptors.
    #[error("cannot start the NBD server: {0}")]
    Start(#[source] io::Error),
}

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct NbdServer {
    local: Listen,
    clients: Arc<Clients>,
    /// Closing it wakes the thread that waits for clients.
    wake: Option<UnixStream>,
    acceptor: Option<JoinHandle<()>>,
}

/// Serves the areas of a card to any number of clients.
///
/// Errors: it cannot listen there.
pub fn serve(block: Arc<dyn Block>, listen: &Listen) -> Result<NbdServer, NbdError> {
    serve_with(block, listen, NEGOTIATION)
}

/// The same with another time in which a client must choose an export.
///
/// Errors: as [`serve`].
pub fn serve_with(block: Arc<dyn Block>, listen: &Listen, negotiation: Duration) -> Result<NbdServer, NbdError> {
    let listener = Listener::bind(listen).map_err(|source| NbdError::Listen { listen: listen.clone(), source })?;
    let local = listener.local().map_err(NbdError::Start)?;
    let (wake, woken) = UnixStream::pair().map_err(NbdError::Start)?;
    let clients = Arc::new(Clients::default());
    let acceptor = {
        let clients = Arc::clone(&clients);
        let accept = move || accept(&listener, &woken, (&block, negotiation), &clients);
        thread::Builder::new().name("nbd-accept".into()).spawn(accept).map_err(NbdError::Start)?
    };
    Ok(NbdServer { local, clients, wake: Some(wake), acceptor: Some(acceptor) })
}

impl NbdServer {
    /// The address it listens at, with the port that the system chose.
    pub fn local(&self) -> &Listen {
        &self.local
    }

    /// Takes no more clients and requests, sends pending replies, and ends.
    ///
    /// A client that does not take its replies, or whose card is busy for more than 5 s, is disconnected.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.wake = None;
        if let Some(acceptor) = self.acceptor.take() {
            // A panic there was printed when it happened.
            let _ = acceptor.join();
        }
        self.clients.end();
    }
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        self.end();
    }
}

#[derive(Debug, Default)]
struct Clients {
    connected: Mutex<BTreeMap<u64, Arc<Client>>>,
    left: Condvar,
    ending: AtomicBool,
}

#[derive(Debug)]
struct Client {
    stream: Stream,
    outbox: Outbox<Stream>,
    /// When it came.
    since: Wall,
    /// Whether it has chosen an export.
    has_agreed: AtomicBool,
}

impl Clients {
    fn connected(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Client>>> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Disconnects clients that have not chosen an export in this time. Returns when the next one is due.
    fn drop_silent(&self, negotiation: Duration) -> Option<Duration> {
        let mut next = None;
        for client in self.connected().values().filter(|client| !client.has_agreed.load(Ordering::SeqCst)) {
            match negotiation.checked_sub(client.since.elapsed()) {
                Some(left) => next = Some(next.map_or(left, |next: Duration| next.min(left))),
                None => client.stream.shutdown(Shutdown::Both),
            }
        }
        next
    }

    fn end(&self) {
        self.ending.store(true, Ordering::SeqCst);
        let connected = self.connected();
        connected.values().for_each(|client| client.stream.shutdown(Shutdown::Read));
        let waited = self.left.wait_timeout_while(connected, GRACE, |connected| !connected.is_empty());
        let connected = waited.unwrap_or_else(PoisonError::into_inner).0;
        for client in connected.values() {
            client.outbox.abandon();
            client.stream.shutdown(Shutdown::Both);
        }
        let gone = self.left.wait_while(connected, |connected| !connected.is_empty());
        drop(gone);
    }
}

/// Accepts clients until the other end of `woken` is closed.
fn accept(
    listener: &Listener,
    woken: &UnixStream,
    (block, negotiation): (&Arc<dyn Block>, Duration),
    clients: &Arc<Clients>,
) {
    let mut is_short = false;
    for number in 0.. {
        let mut waits = [PollFd::new(woken, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
        let next = clients.drop_silent(negotiation);
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
                if let Err(error) = admit(number, stream, block, clients) {
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

/// Starts the client's thread.
fn admit(number: u64, stream: Stream, block: &Arc<dyn Block>, clients: &Arc<Clients>) -> io::Result<()> {
    let mut connected = clients.connected();
    if connected.len() >= CLIENTS_MAX {
        return Err(io::Error::other(format!("refused: there are {CLIENTS_MAX} clients already")));
    }
    let input = stream.try_clone()?;
    let outbox = Outbox::new(stream.try_clone()?);
    let client = Arc::new(Client { outbox, stream, since: Wall::now(), has_agreed: AtomicBool::new(false) });
    let (block, registry) = (Arc::clone(block), Arc::clone(clients));
    let its_own = Arc::clone(&client);
    thread::Builder::new().name(format!("nbd-{number}")).spawn(move || {
        let leaving = Leaving { number, clients: &registry };
        let agreed = || its_own.has_agreed.store(true, Ordering::SeqCst);
        let end = session::run(&*block, input, &its_own.outbox, agreed);
        // A descriptor is closed when its last owner drops it.
        its_own.stream.shutdown(Shutdown::Both);
        match end {
            // Disconnected by us.
            Err(_) if registry.ending.load(Ordering::SeqCst) => {}
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

/// Removes a client from the list, also when its thread panics.
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
