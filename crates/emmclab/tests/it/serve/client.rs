//! The part of an NBD client that the tests need: the default export, one or several outstanding requests, errors as
//! numbers.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;
const REQUEST: u32 = 0x2560_9513;
const REPLY: u32 = 0x6744_6698;

/// A connection.
pub(crate) struct Client {
    stream: UnixStream,
}

impl Client {
    pub(crate) fn connect(socket: &Path) -> Self {
        Self::try_to_connect(socket).unwrap()
    }

    /// The same where the server may have no room.
    pub(crate) fn try_to_connect(socket: &Path) -> std::io::Result<Self> {
        let mut stream = UnixStream::connect(socket)?;
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting)?;
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        // Fixed newstyle, no zeroes; NBD_OPT_EXPORT_NAME of the default export.
        stream.write_all(&3u32.to_be_bytes())?;
        stream.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0")?;
        let mut export = [0; 10];
        stream.read_exact(&mut export)?;
        Ok(Self { stream })
    }

    fn send(&mut self, kind: u16, handle: u64, offset: u64, length: u32, data: &[u8]) -> std::io::Result<()> {
        let mut bytes = REQUEST.to_be_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend(kind.to_be_bytes());
        bytes.extend(handle.to_be_bytes());
        bytes.extend(offset.to_be_bytes());
        bytes.extend(length.to_be_bytes());
        bytes.extend(data);
        self.stream.write_all(&bytes)
    }

    /// Sends a write and does not wait.
    pub(crate) fn send_write(&mut self, handle: u64, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.send(WRITE, handle, offset, data.len() as u32, data)
    }

    /// Sends a trim and does not wait.
    pub(crate) fn send_trim(&mut self, handle: u64, offset: u64, length: u32) -> std::io::Result<()> {
        self.send(TRIM, handle, offset, length, &[])
    }

    /// Waits until everything that was acknowledged is durable; no request may be outstanding.
    pub(crate) fn flush(&mut self) -> std::io::Result<u32> {
        self.send(FLUSH, 1, 0, 0, &[])?;
        self.reply().map(|(_, error)| error)
    }

    /// The next reply: its handle and error.
    pub(crate) fn reply(&mut self) -> std::io::Result<(u64, u32)> {
        let mut reply = [0; 16];
        self.stream.read_exact(&mut reply)?;
        let number = |at: usize| u32::from_be_bytes([reply[at], reply[at + 1], reply[at + 2], reply[at + 3]]);
        assert_eq!(number(0), REPLY);
        Ok((u64::from(number(8)) << 32 | u64::from(number(12)), number(4)))
    }

    /// Writes; returns the error, 0 for none.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> u32 {
        self.send_write(1, offset, data).unwrap();
        self.reply().unwrap().1
    }

    /// Reads; returns the error and the bytes.
    pub(crate) fn read(&mut self, offset: u64, length: u32) -> (u32, Vec<u8>) {
        self.send(READ, 2, offset, length, &[]).unwrap();
        let (_, error) = self.reply().unwrap();
        let mut bytes = vec![0; if error == 0 { length as usize } else { 0 }];
        self.stream.read_exact(&mut bytes).unwrap();
        (error, bytes)
    }
}
