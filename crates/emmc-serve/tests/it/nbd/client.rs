//! A client that sends exactly the bytes of a test.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use emmc_serve::block::Block;
use emmc_serve::nbd::option::{self, reply};
use emmc_serve::nbd::wire::{self, Command, Request};
use emmc_serve::nbd::{self, Listen, NbdServer};

/// A folder that is gone at the end of a test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("emmclab-nbd-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server with its own socket.
pub(crate) fn server(name: &str, block: Arc<dyn Block>) -> (NbdServer, PathBuf, Folder) {
    let folder = Folder::new(name);
    let path = folder.path("nbd");
    (nbd::serve(block, &Listen::Unix(path.clone())).unwrap(), path, folder)
}

pub(crate) struct Client {
    pub(crate) stream: UnixStream,
    cookie: u64,
}

/// One reply to an option: its kind and data.
pub(crate) type OptionReply = (u32, Vec<u8>);

/// A whole reply to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Error number; data are read apart.
    Simple(u32),
    /// Flags, kind, payload.
    Chunk(u16, u16, Vec<u8>),
}

impl Client {
    /// After the greeting only.
    pub(crate) fn greeted(path: &Path) -> Self {
        Self::greeted_with(path, 3)
    }

    pub(crate) fn greeted_with(path: &Path, flags: u32) -> Self {
        let mut stream = UnixStream::connect(path).unwrap();
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).unwrap();
        assert_eq!(greeting, *b"NBDMAGICIHAVEOPT\0\x03");
        stream.write_all(&flags.to_be_bytes()).unwrap();
        Self { stream, cookie: 0 }
    }

    /// With an export chosen, structured replies and the context.
    pub(crate) fn structured(path: &Path, export: &str) -> Self {
        let mut client = Self::greeted(path);
        assert_eq!(client.option(8, b""), [(reply::ACK, Vec::new())]);
        let contexts = client.option(10, &meta_query(export, &["base:allocation"]));
        assert_eq!(contexts[0], (reply::META_CONTEXT, b"\0\0\0\x01base:allocation".to_vec()));
        client.go(export);
        client
    }

    /// With an export chosen and simple replies.
    pub(crate) fn simple(path: &Path, export: &str) -> Self {
        let mut client = Self::greeted(path);
        client.go(export);
        client
    }

    pub(crate) fn go(&mut self, export: &str) {
        let replies = self.option(7, &info_query(export, &[3]));
        assert_eq!(replies.last(), Some(&(reply::ACK, Vec::new())), "{replies:?}");
    }

    pub(crate) fn send_option(&mut self, number: u32, data: &[u8]) {
        let mut bytes = option::OPTION_MAGIC.to_be_bytes().to_vec();
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
        bytes.extend_from_slice(data);
        self.stream.write_all(&bytes).unwrap();
    }

    /// All replies, up to the one that ends them.
    pub(crate) fn option(&mut self, number: u32, data: &[u8]) -> Vec<OptionReply> {
        self.send_option(number, data);
        let mut replies = Vec::new();
        loop {
            let mut head = [0; 20];
            self.stream.read_exact(&mut head).unwrap();
            assert_eq!(head[..8], option::REPLY_MAGIC.to_be_bytes());
            assert_eq!(head[8..12], number.to_be_bytes());
            let kind = u32::from_be_bytes(head[12..16].try_into().unwrap());
            let mut data = vec![0; u32::from_be_bytes(head[16..].try_into().unwrap()) as usize];
            self.stream.read_exact(&mut data).unwrap();
            replies.push((kind, data));
            if kind == reply::ACK || kind >> 31 == 1 {
                return replies;
            }
        }
    }

    /// Sends a request; returns its cookie.
    pub(crate) fn send(&mut self, command: Command, flags: u16, offset: u64, length: u32, payload: &[u8]) -> u64 {
        self.cookie += 1;
        let request = Request { flags, command, cookie: self.cookie, offset, length };
        self.stream.write_all(&request.encode()).unwrap();
        self.stream.write_all(payload).unwrap();
        self.cookie
    }

    /// The next reply and whose it is.
    pub(crate) fn receive(&mut self) -> (u64, Reply) {
        let mut magic = [0; 4];
        self.stream.read_exact(&mut magic).unwrap();
        match u32::from_be_bytes(magic) {
            wire::SIMPLE_REPLY_MAGIC => {
                let rest: [u8; 12] = self.take();
                (u64::from_be_bytes(rest[4..].try_into().unwrap()), Reply::Simple(number(&rest[..4])))
            }
            wire::CHUNK_MAGIC => {
                let rest: [u8; 16] = self.take();
                let (flags, kind) = (number(&rest[..2]) as u16, number(&rest[2..4]) as u16);
                let mut payload = vec![0; number(&rest[12..]) as usize];
                self.stream.read_exact(&mut payload).unwrap();
                (u64::from_be_bytes(rest[4..12].try_into().unwrap()), Reply::Chunk(flags, kind, payload))
            }
            other => panic!("a reply begins with 0x{other:08x}"),
        }
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// A request whose reply has no data; its error number.
    pub(crate) fn ask(&mut self, command: Command, flags: u16, offset: u64, length: u32) -> u32 {
        self.send(command, flags, offset, length, &[]);
        self.error()
    }

    /// The error number of the next reply, without data; of a chunk with an error too.
    pub(crate) fn error(&mut self) -> u32 {
        match self.receive() {
            (cookie, reply) if cookie != self.cookie => panic!("{cookie}: {reply:?}; expected {}", self.cookie),
            (_, Reply::Simple(error)) => error,
            (_, Reply::Chunk(1, 0x8001, payload)) => {
                assert_eq!(payload.len() - 6, number(&payload[4..6]) as usize);
                number(&payload[..4])
            }
            (_, other) => panic!("{other:?}"),
        }
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> u32 {
        self.send(Command::Write, 0, offset, data.len() as u32, data);
        self.error()
    }

    /// A read with simple replies.
    pub(crate) fn read(&mut self, offset: u64, length: u32) -> Result<Vec<u8>, u32> {
        match self.ask(Command::Read, 0, offset, length) {
            0 => {
                let mut data = vec![0; length as usize];
                self.stream.read_exact(&mut data).unwrap();
                Ok(data)
            }
            error => Err(error),
        }
    }

    /// Whether the server has hung up.
    pub(crate) fn is_dropped(&mut self) -> bool {
        match self.stream.read(&mut [0]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

/// A number of any width.
pub(crate) fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn name(name: &str) -> Vec<u8> {
    [&(name.len() as u32).to_be_bytes(), name.as_bytes()].concat()
}

/// The data of INFO and GO.
pub(crate) fn info_query(export: &str, wanted: &[u16]) -> Vec<u8> {
    let mut query = name(export);
    query.extend_from_slice(&(wanted.len() as u16).to_be_bytes());
    wanted.iter().for_each(|info| query.extend_from_slice(&info.to_be_bytes()));
    query
}

/// The data of the options about contexts.
pub(crate) fn meta_query(export: &str, queries: &[&str]) -> Vec<u8> {
    let mut query = name(export);
    query.extend_from_slice(&(queries.len() as u32).to_be_bytes());
    queries.iter().for_each(|text| query.extend_from_slice(&name(text)));
    query
}
