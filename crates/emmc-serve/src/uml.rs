//! The controller for a User-Mode Linux whose time is the card's: `time-travel=ext:` and PCI over virtio.
//!
//! `calendar` decides who runs and until when, over a shared `page`; `vhost_user`, `ring` and `pcidev` are the layers
//! of the device's link; `access` executes what they carry; `machine` puts them together over a
//! [`crate::pci::Board`], without sockets; `serve` has the sockets. One thread serves one machine at a time. Nothing
//! here reads a clock: the same machine with the same card makes the same accesses at the same nanoseconds, on any
//! host. User page: docs/serve-uml.md. Absent on purpose: INTx (the kernel's bus has none), several cards, and kernels
//! without the shared page.

mod access;
mod calendar;
mod machine;
mod page;
mod pcidev;
mod processor;
mod ring;
mod serve;
#[cfg(test)]
mod tests;
mod vhost_user;
mod watch;

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

pub use calendar::CalendarError;
pub use machine::{Machine, MachineError, Outbox};
pub use vhost_user::Malformed;
pub use watch::Watch;

use crate::listener::Listener;
use crate::pci::Identity;
use crate::sdhci::HostFaults;
use crate::served::Served;

/// The virtio device that the kernel's configuration gives to PCI: CONFIG_UML_PCI_OVER_VIRTIO_DEVICE_ID.
const VIRTIO_DEVICE: u32 = 1234;

/// Options of the controller.
#[derive(Clone, Debug, Default)]
pub struct UmlOptions {
    /// The controller it presents itself as; it must have MSI.
    pub identity: Identity,
    /// The card loses its power when the machine ends, as when a board is switched off. Else it keeps power, and a new
    /// machine finds it as the last one left it.
    pub power_follows_client: bool,
    /// Every access of a register goes to this file, with its time; of one machine after the other.
    pub accesses: Option<PathBuf>,
    /// The record of the last machine goes to this folder, which exists.
    pub record: Option<PathBuf>,
    /// The socket of what answers the guest's lines in the mailbox; each machine connects to it.
    pub mailbox: Option<PathBuf>,
    /// Gets what is else printed when a machine ends, and the machine's time while it runs.
    pub watch: Option<Arc<Watch>>,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum UmlError {
    /// The folder or a socket in it cannot be made.
    #[error("cannot listen at {}: {source}", path.display())]
    Listen {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file of accesses cannot be made.
    #[error("{}: {source}", path.display())]
    Accesses {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The kernel's parameters could not name it.
    #[error("{}: a folder whose path has a colon, a comma, a space or a quote cannot be named to the kernel", .0.display())]
    Name(PathBuf),
    /// A controller that interrupts by INTx only.
    #[error("User-Mode Linux has no INTx: the controller must have MSI (cqe or no-cqe)")]
    NeedsMsi,
    /// The system has no more threads or descriptors.
    #[error("cannot start the server of User-Mode Linux: {0}")]
    Start(#[source] io::Error),
}

/// The two sockets that a kernel connects to.
#[derive(Debug)]
struct Sockets {
    time: Listener,
    card: Listener,
}

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct UmlServer {
    folder: PathBuf,
    /// Closing it wakes the thread.
    wake: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

/// Serves a card on the driven clock to one machine after the other, at two sockets in `folder`, with injected errors
/// `faults`. The folder is created if needed.
///
/// Errors: it cannot listen there; the controller has no MSI.
pub fn serve(
    served: Arc<Served>,
    faults: HostFaults,
    folder: &Path,
    options: UmlOptions,
) -> Result<UmlServer, UmlError> {
    if !options.identity.has_msi() {
        return Err(UmlError::NeedsMsi);
    }
    let failed = |path: &Path| {
        let path = path.to_owned();
        |source| UmlError::Listen { path, source }
    };
    std::fs::create_dir_all(folder).map_err(failed(folder))?;
    let folder = folder.canonicalize().map_err(failed(folder))?;
    let is_named = |text: &str| !text.contains([':', ',', ' ', '\t', '\n', '"', '\'']);
    if !folder.to_str().is_some_and(is_named) {
        return Err(UmlError::Name(folder));
    }
    let bind = |name: &str| {
        let path = folder.join(name);
        Listener::bind(&path).map_err(failed(&path))
    };
    let accesses = options
        .accesses
        .as_deref()
        .map(|path| crate::output::create(path).map_err(|source| UmlError::Accesses { path: path.to_owned(), source }));
    let accesses = accesses.transpose()?;
    let sockets = Sockets { time: bind("time.sock")?, card: bind("card.sock")? };
    let (wake, woken) = UnixStream::pair().map_err(UmlError::Start)?;
    let run = move || serve::run(&sockets, &woken, &served, &faults, &options, accesses.as_ref());
    let thread = thread::Builder::new().name("uml".into()).spawn(run).map_err(UmlError::Start)?;
    Ok(UmlServer { folder, wake: Some(wake), thread: Some(thread) })
}

impl UmlServer {
    /// The parameters by which a kernel finds clock and card.
    pub fn kernel_parameters(&self) -> String {
        let folder = self.folder.display();
        format!("time-travel=ext:{folder}/time.sock virtio_uml.device={folder}/card.sock:{VIRTIO_DEVICE}")
    }

    /// Disconnects the machine and ends. The sockets' files are removed.
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

impl Drop for UmlServer {
    fn drop(&mut self) {
        self.end();
    }
}
