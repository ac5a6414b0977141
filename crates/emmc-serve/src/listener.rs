//! A unix socket that listens at a path, for fronts that serve one client after the other.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

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
        let socket = UnixListener::bind(path)?;
        socket.set_nonblocking(true)?;
        let metadata = path.symlink_metadata()?;
        Ok(Self { socket, path: path.to_owned(), file: (metadata.dev(), metadata.ino()) })
    }
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
