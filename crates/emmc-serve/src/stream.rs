//! Splits the bytes and descriptors of a client's socket into messages, of any protocol.
//!
//! Many messages may come in one read. Descriptors arrive with the bytes of their message, and the kernel ends a read
//! after those: the message that contains the read's last byte owns them.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// Descriptors of one message, at most.
const FDS_MAX: usize = 8;
/// Descriptors of messages that are not whole yet, at most: a client that sends more wants the process to run out.
const FDS_HELD_MAX: usize = 64;

/// Result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// Bytes arrived.
    Some,
    /// No bytes at present.
    None,
    /// The client has disconnected.
    Closed,
}

/// A whole message: its place, and the descriptors that came with it.
pub(crate) type Message = (Range<usize>, Vec<OwnedFd>);

/// Bytes that have arrived and are not parsed yet.
#[derive(Debug)]
pub(crate) struct Incoming {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Position in the buffer of the last byte that came with descriptors.
    fds: VecDeque<(usize, Vec<OwnedFd>)>,
}

impl Incoming {
    /// Unit: `longest_message` in bytes.
    pub(crate) fn new(longest_message: usize) -> Self {
        Self { buffer: vec![0; 2 * longest_message].into(), start: 0, end: 0, fds: VecDeque::new() }
    }

    /// Reads the available bytes.
    ///
    /// Errors: the socket's.
    pub(crate) fn fill(&mut self, socket: &UnixStream) -> io::Result<Filled> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            for (at, _) in &mut self.fds {
                *at -= self.start;
            }
            (self.start, self.end) = (0, self.end - self.start);
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut self.buffer[self.end..])];
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let received = loop {
            match recvmsg(socket, &mut into, &mut control, flags) {
                Ok(received) => break received.bytes,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(Filled::None),
                Err(rustix::io::Errno::CONNRESET) => return Ok(Filled::Closed),
                Err(error) => return Err(error.into()),
            }
        };
        let mut fds = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                fds.extend(received);
            }
        }
        if received == 0 {
            return Ok(Filled::Closed);
        }
        self.end += received;
        if !fds.is_empty() {
            self.fds.push_back((self.end - 1, fds));
            if self.fds.iter().map(|(_, fds)| fds.len()).sum::<usize>() > FDS_HELD_MAX {
                self.fds.clear();
                let why = format!("more than {FDS_HELD_MAX} descriptors came with messages that are not whole");
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
        }
        Ok(Filled::Some)
    }

    /// The next whole message, and its descriptors. `length` returns the length of the message at the start of bytes:
    /// at least 1 and at most the longest, or none while they are too few to say.
    ///
    /// Errors: those of `length`.
    pub(crate) fn next<E>(&mut self, length: impl Fn(&[u8]) -> Result<Option<usize>, E>) -> Result<Option<Message>, E> {
        let there = &self.buffer[self.start..self.end];
        let Some(bytes) = length(there)?.filter(|bytes| *bytes <= there.len()) else { return Ok(None) };
        let message = self.start..self.start + bytes;
        self.start = message.end;
        let mut fds = Vec::new();
        while self.fds.front().is_some_and(|(at, _)| *at < message.end) {
            fds.extend(self.fds.pop_front().map(|(_, fds)| fds).unwrap_or_default());
        }
        Ok(Some((message, fds)))
    }

    /// The bytes of a message that [`Incoming::next`] returned, valid until the next read.
    pub(crate) fn bytes(&self, message: Range<usize>) -> &[u8] {
        &self.buffer[message]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    use std::io::{IoSlice, Write};
    use std::os::fd::AsFd;

    fn message(id: u8, size: u8) -> Vec<u8> {
        let mut bytes = vec![0; size.into()];
        (bytes[0], bytes[4]) = (id, size);
        bytes
    }

    fn send_with_fd(socket: &UnixStream, bytes: &[u8]) {
        let fds = [socket.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::empty()).unwrap();
    }

    /// The length is the fifth byte; 255 is none.
    fn length(bytes: &[u8]) -> Result<Option<usize>, ()> {
        match bytes.get(4) {
            Some(255) => Err(()),
            length => Ok(length.map(|length| usize::from(*length))),
        }
    }

    #[test]
    fn descriptors_stay_with_their_message() {
        let (mut client, server) = UnixStream::pair().unwrap();
        client.write_all(&message(1, 16)).unwrap();
        client.write_all(&message(2, 40)).unwrap();
        send_with_fd(&client, &message(3, 48));
        client.write_all(&message(4, 16)).unwrap();
        send_with_fd(&client, &message(5, 200)[..100]);
        client.write_all(&message(5, 200)[100..]).unwrap();
        client.write_all(&message(6, 16)).unwrap();
        let mut incoming = Incoming::new(200);
        let mut seen = Vec::new();
        while seen.len() < 6 {
            assert_eq!(incoming.fill(&server).unwrap(), Filled::Some);
            while let Some((range, fds)) = incoming.next(length).unwrap() {
                seen.push((incoming.bytes(range.clone())[0], range.len(), fds.len()));
            }
        }
        assert_eq!(seen, [(1, 16, 0), (2, 40, 0), (3, 48, 1), (4, 16, 0), (5, 200, 1), (6, 16, 0)]);
        assert_eq!(incoming.fill(&server).unwrap(), Filled::None);
        drop(client);
        assert_eq!(incoming.fill(&server).unwrap(), Filled::Closed);
    }

    #[test]
    fn descriptors_without_a_whole_message_are_bounded_and_closed() {
        let (client, server) = UnixStream::pair().unwrap();
        let mut incoming = Incoming::new(200);
        let held = |incoming: &Incoming| incoming.fds.iter().map(|(_, fds)| fds.len()).sum::<usize>();
        let refused = (0..400).find_map(|_| {
            send_with_fd(&client, &[9]);
            let filled = incoming.fill(&server);
            assert!(held(&incoming) <= FDS_HELD_MAX);
            filled.err()
        });
        assert_eq!(refused.unwrap().kind(), io::ErrorKind::InvalidData);
        assert_eq!(held(&incoming), 0);
    }

    #[test]
    fn invalid_headers_are_reported() {
        let (mut client, server) = UnixStream::pair().unwrap();
        client.write_all(&[0xff; 16]).unwrap();
        let mut incoming = Incoming::new(200);
        incoming.fill(&server).unwrap();
        assert!(incoming.next(length).is_err());
    }
}
