//! Input of a connection: read in large pieces, handed out request by request, without a copy.

use std::io::{self, IoSliceMut, Read};

use super::buffer::KEPT_BYTES_MAX;

/// The amount read ahead: one burst of a client at depth 32 with 4 KiB writes. Unit: bytes.
const AHEAD_BYTES: usize = 128 << 10;

/// Buffered bytes of a stream; those from `start` to `end` have arrived and are not consumed.
#[derive(Debug)]
pub(crate) struct Input<R> {
    stream: R,
    memory: Vec<u8>,
    start: usize,
    end: usize,
    /// How many bytes more than needed are read. Unit: bytes.
    ahead: usize,
}

impl<R: Read> Input<R> {
    pub(crate) fn new(stream: R) -> Self {
        Self { stream, memory: vec![0; 2 * AHEAD_BYTES], start: 0, end: 0, ahead: AHEAD_BYTES }
    }

    /// Whether `bytes` bytes are available without waiting.
    pub(crate) fn has(&self, bytes: usize) -> bool {
        self.end - self.start >= bytes
    }

    /// Waits until `bytes` bytes are there; `false`: the stream ended right here.
    ///
    /// Errors: the connection failed, or ended with fewer bytes.
    pub(crate) fn fill(&mut self, bytes: usize) -> io::Result<bool> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.memory.len() > KEPT_BYTES_MAX && self.end - self.start + bytes <= 2 * AHEAD_BYTES {
            let mut memory = vec![0; 3 * AHEAD_BYTES];
            let arrived = self.end - self.start;
            memory[..arrived].copy_from_slice(self.next(arrived));
            (self.memory, self.start, self.end) = (memory, 0, arrived);
        }
        if self.start + bytes + AHEAD_BYTES > self.memory.len() {
            self.memory.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            let needed = bytes + AHEAD_BYTES;
            if self.memory.len() < needed {
                self.memory.resize(needed, 0);
            }
        }
        // Not to the end of the buffer: data that is read far ahead would have to be moved to the front.
        let until = self.start + bytes + std::mem::replace(&mut self.ahead, AHEAD_BYTES);
        while !self.has(bytes) {
            match self.stream.read(&mut self.memory[self.end..until]) {
                Ok(0) if self.start == self.end => return Ok(false),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Fills memory with the next bytes: those that have arrived are copied, the others are received there, and up to
    /// `next` bytes behind them here if they come at once.
    ///
    /// Errors: as [`Self::fill`].
    pub(crate) fn take(&mut self, into: &mut [u8], next: usize) -> io::Result<()> {
        let arrived = into.len().min(self.end - self.start);
        let (known, rest) = into.split_at_mut(arrived);
        known.copy_from_slice(self.next(arrived));
        self.consume(arrived);
        let mut received = 0;
        while received < rest.len() {
            // All that was here is in `known`.
            (self.start, self.end) = (0, 0);
            let wanted = rest.len() - received;
            let mut parts = [IoSliceMut::new(&mut rest[received..]), IoSliceMut::new(&mut self.memory[..next])];
            match self.stream.read_vectored(&mut parts) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    received += read.min(wanted);
                    self.end = read.saturating_sub(wanted);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // What follows is probably like it: only its header is received here.
        self.ahead = 0;
        Ok(())
    }

    /// The next `bytes` bytes, which must be there.
    pub(crate) fn next(&self, bytes: usize) -> &[u8] {
        &self.memory[self.start..self.start + bytes]
    }

    /// Removes `bytes` bytes from the front.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.start += bytes;
    }

    /// Skips `bytes` bytes, including those that have not arrived yet.
    pub(crate) fn discard(&mut self, mut bytes: usize) -> io::Result<()> {
        while bytes > 0 {
            let step = bytes.min(AHEAD_BYTES);
            if !self.has(step) && !self.fill(step)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.consume(step);
            bytes -= step;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns its bytes in pieces of varying size.
    struct Drip<'a>(&'a [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.1 = self.1 * 7 % 1009 + 1;
            let bytes = self.1.min(self.0.len()).min(into.len());
            let (now, later) = self.0.split_at(bytes);
            into[..bytes].copy_from_slice(now);
            self.0 = later;
            Ok(bytes)
        }
    }

    #[test]
    fn messages_in_pieces_of_any_size_are_joined() {
        let data: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
        let mut input = Input::new(Drip(&data, 1));
        let mut at = 0;
        for bytes in [28, 4096, 28, 1 << 20, 28, 300_000, 512].into_iter().cycle() {
            if at + bytes > data.len() {
                break;
            }
            assert!(input.fill(bytes).unwrap());
            assert_eq!(input.next(bytes), &data[at..at + bytes], "at {at}");
            input.consume(bytes);
            at += bytes;
        }
        input.discard(data.len() - at).unwrap();
        assert!(!input.fill(1).unwrap());
    }

    #[test]
    fn messages_are_received_elsewhere() {
        let data: Vec<u8> = (0..700_000_u32).map(|i| (i % 251) as u8).collect();
        let mut input = Input::new(Drip(&data, 5));
        let mut at = 0;
        for bytes in [28, 300_000, 28, 100, 28, 200_000, 60_000] {
            assert!(input.fill(28).unwrap());
            let mut elsewhere = vec![0; bytes];
            input.take(&mut elsewhere, 28).unwrap();
            assert!(elsewhere == data[at..at + bytes], "at {at}");
            at += bytes;
        }
        let mut rest = vec![0; data.len() - at + 1];
        assert_eq!(input.take(&mut rest, 28).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn the_memory_of_a_long_message_is_not_kept() {
        let data: Vec<u8> = (0..6_000_000_u32).map(|i| (i % 251) as u8).collect();
        let mut input = Input::new(Drip(&data, 1));
        for (at, bytes) in [(0, 28), (28, 5_000_000), (5_000_028, 28), (5_000_056, 400_000)] {
            assert!(input.fill(bytes).unwrap());
            assert_eq!(input.next(bytes), &data[at..at + bytes], "at {at}");
            input.consume(bytes);
        }
        assert!(input.memory.len() < 1_000_000, "{}", input.memory.len());
    }

    #[test]
    fn an_end_inside_a_message_is_an_error() {
        let mut input = Input::new(Drip(&[0; 27], 1));
        assert_eq!(input.fill(28).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let mut input = Input::new(Drip(&[0; 500_000], 1));
        assert_eq!(input.discard(500_001).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
