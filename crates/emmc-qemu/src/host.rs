//! The mailbox's host: a socket on which the rig answers.
//!
//! A line that starts with `ask ` has an answer: a line `STATUS COUNT`, and COUNT further lines. Other lines have none.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::FromRawFd;

use emmc_serve::pci::MailboxHost;

/// The rig.
pub(crate) struct Rig {
    socket: BufReader<File>,
    /// The first error ends the talk: the rig has gone.
    gone: bool,
}

impl Rig {
    /// The rig at an open descriptor, which is this process's own from now on.
    ///
    /// Errors: no such descriptor.
    #[expect(unsafe_code, reason = "a descriptor that the command line gives to this process")]
    pub(crate) fn at(descriptor: i32) -> io::Result<Self> {
        // SAFETY: fcntl only reads the descriptor's flags.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it is open, and the command line says that it is for this purpose only.
        let file = unsafe { File::from_raw_fd(descriptor) };
        Ok(Self { socket: BufReader::new(file), gone: false })
    }

    fn talk(&mut self, line: &str) -> io::Result<Vec<u8>> {
        self.socket.get_mut().write_all(format!("{line}\n").as_bytes())?;
        let mut answer = Vec::new();
        if line.starts_with("ask ") {
            let mut head = String::new();
            self.socket.read_line(&mut head)?;
            let count = head.trim_end().rsplit_once(' ').and_then(|(_, count)| count.parse::<u64>().ok());
            let count = count.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("answer {head:?}")))?;
            answer.extend_from_slice(head.as_bytes());
            for _ in 0..count {
                self.socket.read_until(b'\n', &mut answer)?;
            }
        }
        Ok(answer)
    }
}

impl MailboxHost for Rig {
    fn line(&mut self, line: &str) -> Vec<u8> {
        if self.gone {
            return Vec::new();
        }
        self.talk(line).unwrap_or_else(|error| {
            self.gone = true;
            eprintln!("emmc-qemu: no host behind the mailbox: {error}");
            Vec::new()
        })
    }
}
