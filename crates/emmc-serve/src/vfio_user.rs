//! The controller for a virtual machine: a vfio-user device on a unix socket.
//!
//! `protocol` encodes and decodes bytes; `session` handles a client's requests, over one PCI function; `irqs` are its
//! interrupts. One thread serves one client at a time and waits for the first of these events: a message, or an event
//! of the card. User page: docs/serve-vfio-user.md. Absent on purpose: migration, dirty pages, and memory that is
//! accessible only by messages. Registers are not mapped into the client: each access has effects.

mod irqs;
mod protocol;
mod serve;
mod session;
#[cfg(test)]
mod tests;

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub use session::{Malformed, Session};

use crate::listener::Listener;
use crate::pci::Identity;
use crate::sdhci::HostFaults;
use crate::served::Served;

/// Options of the controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VfioUserOptions {
    /// The controller it presents itself as.
    pub identity: Identity,
    /// The card loses its power when the client disconnects, as when a board is switched off. Else it keeps power, and
    /// a new client finds it as the last one left it.
    pub power_follows_client: bool,
    /// The folder for what became of each request (`requests`), of the last client.
    pub record: Option<PathBuf>,
    /// A client that has not agreed on a version after this time is disconnected, so that the next one is served;
    /// absent: after 10 s.
    pub negotiation: Option<Duration>,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum VfioUserError {
    /// The path is in use, or cannot be created.
    #[error("cannot listen at {}: {source}", path.display())]
    Listen {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The system has no more threads or descriptors.
    #[error("cannot start the vfio-user server: {0}")]
    Start(#[source] io::Error),
}

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct VfioUserServer {
    path: PathBuf,
    /// Closing it wakes the thread.
    wake: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

/// Serves a card to one virtual machine after the other, at a socket's path, with injected errors `faults`.
///
/// Errors: it cannot listen there.
pub fn serve(
    served: Arc<Served>,
    faults: HostFaults,
    path: &Path,
    options: VfioUserOptions,
) -> Result<VfioUserServer, VfioUserError> {
    let listener = Listener::bind(path).map_err(|source| VfioUserError::Listen { path: path.to_owned(), source })?;
    let (wake, woken) = UnixStream::pair().map_err(VfioUserError::Start)?;
    let run = move || serve::run(&listener, &woken, &served, &faults, &options);
    let thread = thread::Builder::new().name("vfio-user".into()).spawn(run).map_err(VfioUserError::Start)?;
    Ok(VfioUserServer { path: path.to_owned(), wake: Some(wake), thread: Some(thread) })
}

impl VfioUserServer {
    /// The socket's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Disconnects the client and ends. The socket's file is removed.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            // A panic there was printed when it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for VfioUserServer {
    fn drop(&mut self) {
        self.end();
    }
}
