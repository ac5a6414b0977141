//! NBD: a card's areas as network block devices, fixed newstyle.
//!
//! `wire` and `option` encode and decode bytes; `handshake` negotiates an export; `session` reads requests, `execute`
//! performs them in the model, `outbox` sends each reply when the card would have finished. One thread per client, and
//! a second one as soon as a reply has to wait; with TLS another between the network and the session (`tls`). User
//! page: docs/serve-nbd.md. Absent on purpose: extended headers, `NBD_CMD_CACHE`; RPMB, which is not a block device.

mod budget;
pub mod buffer;
mod clients;
mod execute;
mod handshake;
mod input;
pub mod option;
mod outbox;
mod session;
mod socket;
mod tls;
pub mod wire;
mod writes;

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub use self::budget::Budget;
pub use self::handshake::HandshakeError;
pub use self::session::{SessionError, session};
pub use self::socket::Listen;
pub use self::tls::{Credentials, Tls, TlsError, TlsFailure};

use self::clients::Clients;
use self::socket::Listener;
use crate::block::Block;

/// How a server treats its clients.
#[derive(Clone, Debug)]
pub struct NbdOptions {
    /// How long a client may take until it has chosen an export, TLS included.
    pub negotiation: Duration,
    /// How long a client that has chosen one may send nothing while it waits for no reply; absent: for ever.
    pub idle: Option<Duration>,
    /// The memory for long requests of all clients, of all servers with this same bound.
    pub budget: Arc<Budget>,
    /// Whether there is TLS.
    pub tls: Option<Arc<Tls>>,
}

impl Default for NbdOptions {
    fn default() -> Self {
        Self { negotiation: Duration::from_secs(10), idle: None, budget: Arc::default(), tls: None }
    }
}

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
    serve_with(block, listen, NbdOptions::default())
}

/// The same with options.
///
/// Errors: as [`serve`].
pub fn serve_with(block: Arc<dyn Block>, listen: &Listen, options: NbdOptions) -> Result<NbdServer, NbdError> {
    let listener = Listener::bind(listen).map_err(|source| NbdError::Listen { listen: listen.clone(), source })?;
    let local = listener.local().map_err(NbdError::Start)?;
    let (wake, woken) = UnixStream::pair().map_err(NbdError::Start)?;
    let clients = Arc::new(Clients::new(options));
    let acceptor = {
        let clients = Arc::clone(&clients);
        let accept = move || clients.accept(&block, &listener, &woken);
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
