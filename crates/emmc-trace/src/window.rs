//! Buffered input: the next bytes as one slice, with their offset.

use std::io::{ErrorKind, Read};

use crate::notes::Notes;

const CHUNK_BYTES: usize = 1 << 16;

/// Buffered input.
pub(crate) struct Window<R> {
    from: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Of the first byte that is not consumed.
    offset: u64,
    ended: bool,
}

impl<R: Read> Window<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, buffer: Vec::new(), start: 0, end: 0, offset: 0, ended: false }
    }

    /// At least this many bytes if the input has them. An error of the system ends the input, and is noted.
    #[inline]
    pub(crate) fn peek(&mut self, wanted: usize, notes: &mut Notes) -> &[u8] {
        if self.end - self.start < wanted && !self.ended {
            self.refill(wanted, notes);
        }
        &self.buffer[self.start..self.end]
    }

    #[cold]
    fn refill(&mut self, wanted: usize, notes: &mut Notes) {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        self.buffer.resize(self.buffer.len().max(wanted.max(CHUNK_BYTES)), 0);
        while self.end < self.buffer.len() && !self.ended {
            match self.from.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(count) => self.end += count.min(self.buffer.len() - self.end),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let offset = self.offset + self.end as u64;
                    notes.damage(offset, 0, format!("an error: {error}"), "more bytes");
                    self.ended = true;
                }
            }
            if self.end >= wanted {
                break;
            }
        }
    }

    #[inline]
    pub(crate) fn consume(&mut self, count: usize) {
        self.start += count;
        self.offset += count as u64;
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }
}

/// Longest line of text.
const LINE_BYTES_MAX: usize = 1 << 16;

/// Lines of text with their numbers and offsets.
pub(crate) struct Lines<R> {
    window: Window<R>,
    pub(crate) number: u64,
    pub(crate) offset: u64,
    taken: usize,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { window: Window::new(from), number: 0, offset: 0, taken: 0 }
    }

    /// The next line without its end; `None` at the end. A line that is too long is noted and given in parts.
    pub(crate) fn next(&mut self, notes: &mut Notes) -> Option<&[u8]> {
        self.window.consume(std::mem::take(&mut self.taken));
        self.offset = self.window.offset();
        self.number += 1;
        let mut wanted = 1;
        let length = loop {
            let bytes = self.window.peek(wanted, notes);
            if bytes.is_empty() {
                return None;
            }
            let known = bytes.len().min(LINE_BYTES_MAX);
            if let Some(length) = memchr::memchr(b'\n', &bytes[..known]) {
                self.taken = length + 1;
                break length;
            }
            if bytes.len() < wanted || bytes.len() >= LINE_BYTES_MAX {
                self.taken = known;
                break known;
            }
            wanted = bytes.len() + 1;
        };
        if length == LINE_BYTES_MAX {
            notes.damage(self.offset, self.number, "a line of 64 KiB and more", "lines of text");
        }
        let line = &self.window.peek(length, notes)[..length];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}
