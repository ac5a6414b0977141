//! The server from a client's side of the socket, and sessions fed with invalid input.

use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::shipped;
use emmc_units::{Instant, Rng};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::{Session, VfioUserOptions, VfioUserServer, serve};
use crate::pci::{Function, Identity};
use crate::sdhci::HostFaults;
use crate::served::{Served, ServedOptions};

fn served() -> Arc<Served> {
    let profile = shipped::named("generic-8g").unwrap();
    let card = Card::new(profile, DeviceOptions { keep: StoredContent::Data, seed: 1 }).unwrap();
    Arc::new(Served::new(card, Instant::START, ServedOptions { delays: false, dilation: 1 }))
}

fn start(folder: &Path, options: VfioUserOptions) -> VfioUserServer {
    serve(served(), HostFaults::default(), &folder.join("socket"), options).unwrap()
}

struct Client {
    socket: UnixStream,
    id: u16,
}

impl Client {
    fn connect(server: &VfioUserServer) -> Self {
        let mut client = Self { socket: UnixStream::connect(server.path()).unwrap(), id: 0 };
        let answer = client.ask(1, &[0, 0, 1, 0, b'{', b'}', 0], &[]).unwrap();
        assert_eq!(answer[..4], [0, 0, 1, 0]);
        assert!(answer.ends_with(b"}\0"));
        client
    }

    fn send(&mut self, command: u16, flags: u32, payload: &[u8], fds: &[BorrowedFd<'_>]) {
        self.id += 1;
        let mut message = self.id.to_le_bytes().to_vec();
        message.extend_from_slice(&command.to_le_bytes());
        for word in [16 + payload.len() as u32, flags, 0] {
            message.extend_from_slice(&word.to_le_bytes());
        }
        message.extend_from_slice(payload);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(fds.is_empty() || control.push(SendAncillaryMessage::ScmRights(fds)));
        let sent = sendmsg(&self.socket, &[IoSlice::new(&message)], &mut control, SendFlags::NOSIGNAL);
        assert_eq!(sent.unwrap(), message.len());
    }

    /// Sends a command and waits for its reply: the part after the header, or the error number.
    fn ask(&mut self, command: u16, payload: &[u8], fds: &[BorrowedFd<'_>]) -> Result<Vec<u8>, u32> {
        self.send(command, 0, payload, fds);
        let mut header = [0; 16];
        self.socket.read_exact(&mut header).unwrap();
        assert_eq!(header[..4], [self.id.to_le_bytes(), command.to_le_bytes()].concat());
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
        let mut rest = vec![0; word(4) as usize - 16];
        self.socket.read_exact(&mut rest).unwrap();
        if word(8) == 1 { Ok(rest) } else { Err(word(12)) }
    }

    fn read(&mut self, region: u32, offset: u64, bytes: u32) -> Result<u64, u32> {
        let payload = [&offset.to_le_bytes()[..], &region.to_le_bytes(), &bytes.to_le_bytes()].concat();
        let answer = self.ask(9, &payload, &[])?;
        let mut value = [0; 8];
        value[..bytes as usize].copy_from_slice(&answer[16..]);
        Ok(u64::from_le_bytes(value))
    }

    /// A posted write: no reply.
    fn write(&mut self, region: u32, offset: u64, bytes: u32, value: u64) {
        let data = &value.to_le_bytes()[..bytes as usize];
        self.send(
            10,
            0x10,
            &[&offset.to_le_bytes()[..], &region.to_le_bytes(), &bytes.to_le_bytes(), data].concat(),
            &[],
        );
    }

    /// Writes a command and polls until it has ended.
    fn command(&mut self, index: u8, argument: u32, flags: u16, mode: u16) -> u64 {
        self.write(0, 0x08, 4, argument.into());
        self.write(0, 0x0c, 4, u64::from(u32::from(index) << 24 | u32::from(flags) << 16 | u32::from(mode)));
        let ends = if flags & 0x20 != 0 || flags & 3 == 3 { 3 } else { 1 };
        loop {
            let status = self.read(0, 0x30, 4).unwrap();
            assert_eq!(status >> 16, 0, "CMD{index}: {status:#x}");
            if status & ends == ends {
                self.write(0, 0x30, 4, status);
                return self.read(0, 0x10, 4).unwrap();
            }
        }
    }
}

fn guest_file(bytes: u64) -> File {
    let file = File::from(memfd_create("guest", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap());
    file.set_len(bytes).unwrap();
    fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
    file
}

fn count(fd: &OwnedFd) -> u64 {
    let mut raw = [0; 8];
    rustix::io::read(fd, &mut raw).map_or(0, |_| u64::from_ne_bytes(raw))
}

#[test]
fn a_client_reads_ext_csd_into_its_memory() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), VfioUserOptions::default());
    let mut client = Client::connect(&server);
    let device = client.ask(4, &[16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[]).unwrap();
    assert_eq!(device, [16, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0, 5, 0, 0, 0]);
    assert_eq!(client.read(7, 0, 4), Ok(0xe763_17a0));

    let guest = guest_file(0x10_0000);
    let map = [
        &[32u32, 3].map(u32::to_le_bytes).concat()[..],
        &[0u64, 0x4000_0000, 0x10_0000].map(u64::to_le_bytes).concat(),
    ];
    client.ask(2, &map.concat(), &[guest.as_fd()]).unwrap();
    assert_eq!(client.ask(2, &map.concat(), &[guest.as_fd()]), Err(17), "it is mapped already");
    let msi = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
    let irqs = [20u32, 0x24, 1, 0, 1].map(u32::to_le_bytes).concat();
    client.ask(8, &irqs, &[msi.as_fd()]).unwrap();

    client.write(7, 4, 2, 6);
    for (offset, bytes, value) in [(0x29, 1, 0xf), (0x2c, 2, 5), (0x2e, 1, 0xe), (0x34, 4, 0x3ff_000b), (0x38, 4, 3)] {
        client.write(0, offset, bytes, value);
    }
    client.command(0, 0, 0, 0);
    while client.command(1, 0x40ff_8080, 2, 0) >> 31 == 0 {}
    client.command(2, 0, 9, 0);
    client.command(3, 0x1_0000, 0x1a, 0);
    client.command(7, 0x1_0000, 0x1b, 0);
    // EXT_CSD, on one line as after power-up.
    guest.write_all_at(&[0x23, 0, 0, 2, 0, 0, 2, 0x40], 0x1000).unwrap();
    client.write(0, 0x04, 4, 0x1_0200);
    client.write(0, 0x28, 1, 0x10);
    client.write(0, 0x58, 4, 0x4000_1000);
    client.command(8, 0, 0x3a, 0x11);
    let mut ext_csd = [0; 512];
    guest.read_exact_at(&mut ext_csd, 0x2_0000).unwrap();
    assert_eq!((ext_csd[192], ext_csd[308] & 1), (8, 1), "EXT_CSD_REV, CMDQ_SUPPORT");
    assert!(count(&msi) > 5);
    server.stop();
}

#[test]
fn a_silent_client_does_not_block_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let negotiation = Some(std::time::Duration::from_millis(20));
    let server = start(folder.path(), VfioUserOptions { negotiation, ..VfioUserOptions::default() });
    let mut silent = UnixStream::connect(server.path()).unwrap();
    let mut half = UnixStream::connect(server.path()).unwrap();
    std::io::Write::write_all(&mut half, &[1, 0, 1]).unwrap();
    // Each waits for the one before.
    let mut client = Client::connect(&server);
    assert!(client.read(0, 0xfe, 2).is_ok());
    assert_eq!((silent.read(&mut [0]).unwrap(), half.read(&mut [0]).unwrap_or(0)), (0, 0));
    server.stop();
}

#[test]
fn a_new_client_finds_the_card_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    for power_follows_client in [false, true] {
        let options = VfioUserOptions { power_follows_client, ..VfioUserOptions::default() };
        let server = start(folder.path(), options);
        let mut selected = Vec::new();
        for first in [true, false] {
            let mut client = Client::connect(&server);
            for (offset, bytes, value) in [(0x29, 1, 0xf), (0x2c, 2, 5), (0x34, 4, 0x1ff_0003)] {
                client.write(0, offset, bytes, value);
            }
            if first {
                client.command(0, 0, 0, 0);
                while client.command(1, 0x40ff_8080, 2, 0) >> 31 == 0 {}
                client.command(2, 0, 9, 0);
                client.command(3, 0x1_0000, 0x1a, 0);
            }
            client.write(0, 0x08, 4, 0x1_0000);
            client.write(0, 0x0c, 4, 0x0d1a_0000);
            let mut status = 0;
            while status == 0 {
                status = client.read(0, 0x30, 4).unwrap();
            }
            selected.push(status);
        }
        let answered = if power_follows_client { 0x1_8000 } else { 1 };
        assert_eq!(selected, [1, answered], "CMD13 is answered where the address is still known");
        server.stop();
    }
}

#[test]
fn hostile_clients_affect_only_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), VfioUserOptions { identity: Identity::Generic, ..VfioUserOptions::default() });
    let mut early = Client { socket: UnixStream::connect(server.path()).unwrap(), id: 0 };
    assert_eq!(early.read(0, 0, 4), Err(22), "before the version");
    assert_eq!(early.ask(1, &[1, 0, 0, 0], &[]), Err(95), "another major version");
    drop(early);
    let mut client = Client::connect(&server);
    for (command, bytes) in [(6, 16), (11, 16), (12, 16), (0, 0), (999, 3), (2, 8), (9, 15), (10, 16 + 3), (15, 8 + 23)]
    {
        client.ask(command, &vec![1; bytes], &[]).unwrap_err();
    }
    for (region, offset, bytes) in [(0, 0xffe, 4), (0, 0, 3), (0, u64::MAX, 1), (1, 0, 4), (7, 0x1000, 1), (9, 0, 4)] {
        assert_eq!(client.read(region, offset, bytes), Err(22), "{region} {offset:#x} {bytes}");
    }
    assert_eq!(
        client.ask(8, &[20u32, 0x24, 1, 0, 1].map(u32::to_le_bytes).concat(), &[]),
        Err(22),
        "MSI there is none"
    );
    assert_eq!(client.read(0, 0xfe, 2), Ok(2), "still served");
    // Not a message at all: the client is disconnected.
    client.socket.write_all(&[0xff; 64]).unwrap();
    let mut rest = Vec::new();
    let _ = client.socket.read_to_end(&mut rest);
    assert!(rest.is_empty());
    assert_eq!(Client::connect(&server).read(0, 0xfe, 2), Ok(2), "the next client is served");
    server.stop();
}

/// `EMMCLAB_SESSIONS` is their number.
#[test]
fn malformed_sessions_of_hostile_clients_end() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), VfioUserOptions::default());
    let variable = std::env::var("EMMCLAB_SESSIONS").ok();
    let sessions: u64 = variable.map_or(300, |count| count.parse().expect("a number of sessions"));
    let mut rng = Rng::new(1);
    let mut below = |limit: u64| rng.below(limit);
    for session in 0..sessions {
        let mut bytes = Vec::new();
        let mut message = |command: u64, payload: &[u8], size: u64, flags: u64| {
            bytes.extend_from_slice(&[1, 0, command as u8, 0]);
            [size, flags, 0].iter().for_each(|word| bytes.extend_from_slice(&(*word as u32).to_le_bytes()));
            bytes.extend_from_slice(payload);
        };
        if below(4) > 0 {
            message(1, &[0, 0, 1, 0, b'{', b'}', 0], 23, 0);
        }
        for _ in 0..below(6) {
            let length = [0, 4, 8, 16, 20, 24, 32, below(200)][below(8) as usize];
            let payload: Vec<u8> = (0..length).map(|at| [0, 0, below(256), at & 7][below(4) as usize] as u8).collect();
            let size = if below(10) == 0 { below(1 << 32) } else { 16 + length };
            message(below(18), &payload, size, [0, 0x10, below(1 << 32)][below(3) as usize]);
        }
        let mut socket = UnixStream::connect(server.path()).unwrap();
        socket.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        let _ = socket.write_all(&bytes).and_then(|()| socket.shutdown(std::net::Shutdown::Write));
        let hangs = socket.read_to_end(&mut Vec::new()).is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock);
        assert!(!hangs, "session {session} does not end");
        if session % 100 == 0 {
            drop(socket);
            assert!(Client::connect(&server).read(0, 0xfe, 2).is_ok(), "after session {session}");
        }
    }
    server.stop();
    println!("{sessions} malformed sessions, 0 broken");
}

#[test]
fn one_message_can_hold_many_writes() {
    let mut session = Session::new(Function::new(Identity::default()));
    let message = |command: u16, payload: &[u8]| {
        let mut bytes = vec![1, 0];
        bytes.extend_from_slice(&command.to_le_bytes());
        bytes.extend_from_slice(&[16 + payload.len() as u32, 0, 0].map(u32::to_le_bytes).concat());
        bytes.extend_from_slice(payload);
        bytes
    };
    session.receive(&message(1, &[0; 4]), vec![], Instant::START).unwrap();
    let one = |offset: u64, value: u32| {
        [&offset.to_le_bytes()[..], &[0u32, 4, value, 0].map(u32::to_le_bytes).concat()].concat()
    };
    let writes = [&2u64.to_le_bytes()[..], &one(0x220, 0x1234), &one(0x08, 0x5678)].concat();
    session.receive(&message(15, &writes), vec![], Instant::START).unwrap();
    session.answers().clear();
    let read = [&0x220u64.to_le_bytes()[..], &[0u32, 4].map(u32::to_le_bytes).concat()].concat();
    session.receive(&message(9, &read), vec![], Instant::START).unwrap();
    assert!(session.answers().ends_with(&0x1234u32.to_le_bytes()));
}

#[test]
fn a_path_in_use_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), VfioUserOptions::default());
    let path = server.path().to_owned();
    let error = serve(served(), HostFaults::default(), &path, VfioUserOptions::default()).unwrap_err().to_string();
    assert!(error.contains("socket") && error.contains("in use"), "{error}");
    server.stop();
    assert!(!path.exists());
    // Left over from a server that was killed.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    serve(served(), HostFaults::default(), &path, VfioUserOptions::default()).unwrap().stop();
    std::fs::write(&path, "mine").unwrap();
    serve(served(), HostFaults::default(), &path, VfioUserOptions::default()).unwrap_err();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
}
