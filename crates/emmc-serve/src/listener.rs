//! A unix socket that listens at a path, for fronts that serve one client after the other.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Clients that may wait to be accepted: the limit of most systems.
const BACKLOG: i32 = 4096;

/// A listening socket. Dropping it removes its file.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) socket: UnixListener,
    path: PathBuf,
    /// Device and inode of the file that is ours to remove.
    file: (u64, u64),
}

impl Listener {
    /// Errors: the path is a socket with a listener, or not a socket.
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        if let Ok(metadata) = path.symlink_metadata() {
            // A socket without a listener is left over from a server that was killed.
            if metadata.file_type().is_socket() && UnixStream::connect(path).is_err() {
                std::fs::remove_file(path)?;
            }
        }
        let socket = bind_private(path)?;
        socket.set_nonblocking(true)?;
        let metadata = path.symlink_metadata()?;
        Ok(Self { socket, path: path.to_owned(), file: (metadata.dev(), metadata.ino()) })
    }
}

/// Binds a socket that only its owner can connect to, whatever the umask is.
///
/// Errors: the system's.
pub(crate) fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // The file gets the mode that the socket has when it is bound, less the umask: at no time can others connect.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

impl Drop for Listener {
    fn drop(&mut self) {
        let ours = self.path.symlink_metadata().is_ok_and(|file| (file.dev(), file.ino()) == self.file);
        if ours {
            // A file that cannot be removed is removed by the next server.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_its_owner_can_connect_whatever_the_umask_is() {
        let folder = tempfile::tempdir().unwrap();
        for mask in [0, 0o022] {
            let path = folder.path().join(format!("{mask:o}"));
            let before = rustix::process::umask(Mode::from_raw_mode(mask));
            let listener = bind_private(&path);
            rustix::process::umask(before);
            let _listener = listener.unwrap();
            let mode = path.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "umask {mask:o}");
        }
        assert!(bind_private(&folder.path().join("a".repeat(200))).is_err());
    }
}
