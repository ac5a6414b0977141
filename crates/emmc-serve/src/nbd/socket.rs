//! Listening sockets: TCP or unix, as one pair of types.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::listener::bind_private;

/// Socket buffer in each direction, so that a request of a MiB needs few system calls. Unit: bytes.
const SOCKET_BYTES: usize = 4 << 20;

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// An address and a port; port 0 lets the system choose.
    Tcp(SocketAddr),
    /// A socket's path; it must not exist, or be a socket without a listener.
    Unix(PathBuf),
}

impl Listen {
    /// From `HOST:PORT`, `PORT` or `:PORT` (on loopback), or a path (with a `/`, or after `unix:`).
    ///
    /// Errors: none of these.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:").or_else(|| text.contains('/').then_some(text)) {
            return if path.is_empty() { Err("unix: without a path".into()) } else { Ok(Self::Unix(path.into())) };
        }
        let port = text.strip_prefix(':').unwrap_or(text);
        if let Ok(port) = port.parse() {
            return Ok(Self::Tcp(SocketAddr::from(([127, 0, 0, 1], port))));
        }
        let mut addresses = text
            .to_socket_addrs()
            .map_err(|error| format!("{text:?}: {error}; expected HOST:PORT, PORT or the path of a socket"))?;
        addresses.next().map(Self::Tcp).ok_or_else(|| format!("{text:?} has no address"))
    }

    /// The NBD URI of an export, of a server that has TLS or none.
    pub fn uri(&self, export: &str, has_tls: bool) -> String {
        let scheme = if has_tls { "nbds" } else { "nbd" };
        match self {
            Self::Tcp(address) => format!("{scheme}://{address}/{export}"),
            Self::Unix(path) => format!("{scheme}+unix:///{export}?socket={}", path.display()),
        }
    }

    /// Whether only this machine reaches it.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

/// A listening socket. Dropping it removes its file.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix {
        socket: UnixListener,
        path: PathBuf,
        /// Device and inode of the file that is ours to remove.
        file: (u64, u64),
    },
}

impl Listener {
    pub(super) fn bind(listen: &Listen) -> io::Result<Self> {
        let listener = match listen {
            Listen::Tcp(address) => Self::Tcp(TcpListener::bind(address)?),
            Listen::Unix(path) => {
                remove_left_over(path)?;
                let socket = bind_private(path)?;
                Self::Unix { socket, path: path.clone(), file: identity(path)? }
            }
        };
        match &listener {
            Self::Tcp(socket) => socket.set_nonblocking(true)?,
            Self::Unix { socket, .. } => socket.set_nonblocking(true)?,
        }
        Ok(listener)
    }

    /// The address it really listens at.
    pub(super) fn local(&self) -> io::Result<Listen> {
        match self {
            Self::Tcp(socket) => socket.local_addr().map(Listen::Tcp),
            Self::Unix { path, .. } => Ok(Listen::Unix(path.clone())),
        }
    }

    /// Accepts a waiting client.
    pub(super) fn accept(&self) -> io::Result<Stream> {
        let stream = match self {
            Self::Tcp(socket) => {
                let (stream, _) = socket.accept()?;
                stream.set_nonblocking(false)?;
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
            Self::Unix { socket, .. } => {
                let (stream, _) = socket.accept()?;
                stream.set_nonblocking(false)?;
                Stream::Unix(stream)
            }
        };
        // The kernel may grant less; that is slower, not wrong.
        let _ = rustix::net::sockopt::set_socket_send_buffer_size(&stream, SOCKET_BYTES);
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&stream, SOCKET_BYTES);
        Ok(stream)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Unix { socket, .. } => socket.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix { path, file, .. } = self {
            // The file now belongs to another process: leave it.
            if identity(path).is_ok_and(|found| found == *file) {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let file = std::fs::symlink_metadata(path)?;
    Ok((file.dev(), file.ino()))
}

/// Removes the socket of a server that was killed, and no other file.
fn remove_left_over(path: &Path) -> io::Result<()> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    match UnixStream::connect(path) {
        Err(error) if is_socket && error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        _ => Ok(()),
    }
}

/// A connection; a clone is the same one.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    pub(super) fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(stream) => Self::Tcp(stream.try_clone()?),
            Self::Unix(stream) => Self::Unix(stream.try_clone()?),
        })
    }

    /// An error means that the other side closed first.
    pub(super) fn shutdown(&self, how: Shutdown) {
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(how),
            Self::Unix(stream) => stream.shutdown(how),
        };
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
        }
    }

    fn read_vectored(&mut self, parts: &mut [io::IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read_vectored(parts),
            Self::Unix(stream) => stream.read_vectored(parts),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write_vectored(slices),
            Self::Unix(stream) => stream.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
