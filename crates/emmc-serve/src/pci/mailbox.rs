//! A mailbox in configuration space, by which the guest talks with its host while its time stands still.
//!
//! Software writes the bytes of a line to 0xf00 to 0xf7f, in any pieces; the newline hands it over. The host's answer
//! is at 0xf80 to 0xfff, 128 bytes at a time: reading the last byte turns the page. Zeros follow its end. In Linux that
//! is the file `config` of the device, without a driver and beside one. The guest's processor waits in that write, so
//! an answer takes none of its time, however long the host needs for it.

use std::io::{self, BufRead, BufReader, Read, Write};

/// What answers a guest's lines.
pub trait MailboxHost: Send {
    /// The guest sent a line, without its newline; what is returned is the answer.
    fn line(&mut self, line: &str) -> Vec<u8>;
}

/// A host behind a stream, for instance a socket.
///
/// A line that starts with `ask ` has an answer: a line `STATUS COUNT`, and COUNT further lines. Other lines have none.
#[derive(Debug)]
pub struct LineHost<S> {
    stream: BufReader<S>,
    /// The first error ends the talk: the host has gone.
    gone: bool,
}

impl<S: Read + Write> LineHost<S> {
    /// The host at the other end of a stream.
    pub fn new(stream: S) -> Self {
        Self { stream: BufReader::new(stream), gone: false }
    }

    fn talk(&mut self, line: &str) -> io::Result<Vec<u8>> {
        self.stream.get_mut().write_all(format!("{line}\n").as_bytes())?;
        let mut answer = Vec::new();
        if line.starts_with("ask ") {
            let mut head = String::new();
            self.stream.read_line(&mut head)?;
            let count = head.trim_end().rsplit_once(' ').and_then(|(_, count)| count.parse::<u64>().ok());
            let count = count.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("answer {head:?}")))?;
            answer.extend_from_slice(head.as_bytes());
            for _ in 0..count {
                self.stream.read_until(b'\n', &mut answer)?;
            }
        }
        Ok(answer)
    }
}

impl<S: Read + Write + Send> MailboxHost for LineHost<S> {
    fn line(&mut self, line: &str) -> Vec<u8> {
        if self.gone {
            return Vec::new();
        }
        self.talk(line).unwrap_or_else(|error| {
            self.gone = true;
            eprintln!("no host behind the mailbox: {error}");
            Vec::new()
        })
    }
}

/// Where lines are written.
const LINES: usize = 0xf00;
/// Where answers are read.
const ANSWERS: usize = 0xf80;
const END: usize = 0x1000;
/// A longer line is cut. Unit: bytes.
const LINE_BYTES_MAX: usize = 1 << 20;

/// The mailbox.
pub(super) struct Mailbox {
    host: Box<dyn MailboxHost>,
    line: Vec<u8>,
    answer: Vec<u8>,
    page: usize,
}

impl Mailbox {
    pub(super) fn new(host: Box<dyn MailboxHost>) -> Self {
        Self { host, line: Vec::new(), answer: Vec::new(), page: 0 }
    }

    /// The value of a read that begins in the window of answers; absent: another register.
    pub(super) fn read(&mut self, offset: usize, bytes: usize) -> Option<u64> {
        if !(ANSWERS..END).contains(&offset) {
            return None;
        }
        let bytes = bytes.min(8).min(END - offset);
        let at = self.page + offset - ANSWERS;
        let byte = |index: usize| u64::from(self.answer.get(at + index).copied().unwrap_or(0));
        let value = (0..bytes).fold(0, |value, index| value | byte(index) << (8 * index));
        if offset + bytes == END {
            self.page += END - ANSWERS;
        }
        Some(value)
    }

    /// Takes a write that begins in the window of lines; `false`: another register.
    pub(super) fn write(&mut self, offset: usize, bytes: usize, value: u64) -> bool {
        if !(LINES..ANSWERS).contains(&offset) {
            return false;
        }
        for byte in value.to_le_bytes().into_iter().take(bytes) {
            if byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                self.answer = self.host.line(&String::from_utf8_lossy(&line));
                self.page = 0;
            } else if self.line.len() < LINE_BYTES_MAX {
                self.line.push(byte);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Echo;

    impl MailboxHost for Echo {
        fn line(&mut self, line: &str) -> Vec<u8> {
            line.repeat(30).into_bytes()
        }
    }

    #[test]
    fn lines_come_in_pieces_and_answers_in_pages() {
        let mut mailbox = Mailbox::new(Box::new(Echo));
        assert_eq!(mailbox.read(ANSWERS, 4), Some(0));
        assert!(mailbox.write(LINES, 4, u64::from(u32::from_le_bytes(*b"abcd"))));
        assert!(mailbox.write(LINES + 4, 1, u64::from(b'e')));
        assert!(mailbox.write(0xf7e, 2, u64::from(u16::from_le_bytes(*b"\nx"))));
        let mut answer = Vec::new();
        for _ in 0..2 {
            for offset in (ANSWERS..END).step_by(4) {
                let word = mailbox.read(offset, 4).unwrap() as u32;
                answer.extend_from_slice(&word.to_le_bytes());
            }
        }
        assert_eq!(answer[..150], *"abcde".repeat(30).as_bytes());
        assert_eq!(answer[150..], [0; 106]);
        // The byte after the newline begins the next line.
        assert!(mailbox.write(LINES, 1, u64::from(b'\n')));
        assert_eq!(mailbox.read(ANSWERS, 2), Some(0x7878));
        assert!(!mailbox.write(0x10, 4, 0) && mailbox.read(0x10, 4).is_none());
        assert!(!mailbox.write(ANSWERS, 4, 0), "answers are read only");
    }
}
