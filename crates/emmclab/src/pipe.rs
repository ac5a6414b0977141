//! Pipes as input: a pipe without a writer is refused; for a silent one the program waits and prints a message.
//!
//! Also standard input beside a source that the user named: its bytes are inspected and stay unread. So a piped card is
//! never dropped without a message, and the program never waits for a pipe without a writer.

use std::fs::File;
use std::io::{Cursor, IsTerminal, Read, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use emmc_report::visible;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::net::RecvFlags;
use rustix::pipe::SpliceFlags;

/// After this time without a byte, a message names the pipe.
pub(crate) const SILENCE: Duration = Duration::from_secs(2);

/// Time in which a pipe beside a named source shows its first byte. Cron, CI and ssh leave pipes open that stay empty.
const GLANCE: Duration = Duration::from_millis(200);

/// Inspected bytes: as many as a pipe holds by default.
const LOOK_BYTES: usize = 64 << 10;

/// Opens a file or a named pipe for reading.
///
/// Errors: a pipe that nobody writes to; errors of the system.
pub(crate) fn open(path: &Path) -> std::io::Result<Box<dyn Read>> {
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let mut file = File::options().read(true).custom_flags(nonblocking).open(path)?;
    if !file.metadata()?.file_type().is_fifo() {
        return Ok(Box::new(file));
    }
    let mut first = [0; 1];
    let mut count = 0;
    if ready(&file, SILENCE)?.is_none() {
        match file.read(&mut first) {
            Ok(0) => return Err(std::io::Error::other("nobody writes to this pipe")),
            Ok(read) => count = read,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                // If standard error is closed, nobody reads the message.
                let _ = std::io::Write::write_fmt(
                    &mut std::io::stderr(),
                    format_args!(
                        "emmclab: {}: waits for the program that writes to this pipe\n",
                        visible(&path.to_string_lossy())
                    ),
                );
            }
            Err(error) => return Err(error),
        }
    }
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(Box::new(Cursor::new(first).take(count as u64).chain(file)))
}

/// The events of a pipe or socket within a time; `None` if there is none.
fn ready(file: impl AsFd, within: Duration) -> std::io::Result<Option<PollFlags>> {
    let mut events = [PollFd::new(&file, PollFlags::IN)];
    let within = Timespec { tv_sec: within.as_secs() as i64, tv_nsec: within.subsec_nanos().into() };
    let count = loop {
        match poll(&mut events, Some(&within)) {
            Err(rustix::io::Errno::INTR) => {}
            result => break result?,
        }
    };
    Ok((count > 0).then(|| events[0].revents()))
}

/// What standard input holds now, up to [`LOOK_BYTES`]; it stays there for whoever reads it.
///
/// Empty for a terminal, a device, a closed or an empty input, and a pipe that stays silent for a moment.
pub(crate) fn look_at_stdin() -> Vec<u8> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Vec::new();
    }
    // What cannot be looked at holds nothing that could be used.
    stdin.as_fd().try_clone_to_owned().map(File::from).and_then(|file| look(&file)).unwrap_or_default()
}

fn look(mut file: &File) -> std::io::Result<Vec<u8>> {
    let kind = file.metadata()?.file_type();
    let mut bytes = vec![0; LOOK_BYTES];
    let count = if kind.is_file() {
        let at = file.stream_position()?;
        file.read_at(&mut bytes, at)?
    } else if kind.is_socket() && has_bytes(file)? {
        rustix::net::recv(file, &mut bytes, RecvFlags::PEEK | RecvFlags::DONTWAIT)?.0
    } else if kind.is_fifo() && has_bytes(file)? {
        let (mut reader, writer) = rustix::pipe::pipe().map(|(reader, writer)| (File::from(reader), writer))?;
        rustix::pipe::tee(file, &writer, LOOK_BYTES, SpliceFlags::NONBLOCK)?;
        drop(writer);
        reader.read(&mut bytes)?
    } else {
        0
    };
    bytes.truncate(count);
    Ok(bytes)
}

fn has_bytes(file: &File) -> std::io::Result<bool> {
    Ok(ready(file, GLANCE)?.is_some_and(|events| events.contains(PollFlags::IN)))
}
