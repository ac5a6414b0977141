//! Clients that send anything, take nothing, or come in numbers. `EMMCLAB_SESSIONS` is the number of malformed ones.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use emmc_card::device::Area;
use emmc_serve::block::Request;
use emmc_serve::nbd::wire::{self, Command};
use emmc_serve::nbd::{self, Budget, Listen, NbdOptions};
use emmc_units::Rng;

use crate::memory::Memory;
use crate::nbd::client::{Client, Folder, info_query, meta_query, server};

/// How many sessions: as the variable says.
pub(crate) fn sessions(otherwise: u64) -> u64 {
    std::env::var("EMMCLAB_SESSIONS").ok().map_or(otherwise, |count| count.parse().expect("a number of sessions"))
}

fn random_bytes(random: &mut Rng, count: u64) -> Vec<u8> {
    (0..count).map(|_| random.below(256) as u8).collect()
}

fn option(random: &mut Rng, bytes: &mut Vec<u8>) {
    let number = random.below(13) as u32;
    let data = match (number, random.below(3)) {
        (_, 0) => {
            let count = random.below(40);
            random_bytes(random, count)
        }
        (6 | 7, _) => info_query(["user", "boot1", "rpmb", ""][random.below(4) as usize], &[3]),
        (9 | 10, _) => meta_query("user", &["base:allocation"]),
        _ => Vec::new(),
    };
    let length = if random.below(8) == 0 { random.below(1 << 32) as u32 } else { data.len() as u32 };
    bytes.extend_from_slice(b"IHAVEOPT");
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend(data);
}

fn request(random: &mut Rng, bytes: &mut Vec<u8>) {
    let small = [0, 512, 4096, 1 << 20, u64::MAX - 511, random.below(1 << 32)][random.below(6) as usize];
    let length = [0, 1, 512, 4096, 65536, random.below(1 << 32)][random.below(6) as usize] as u32;
    let flags = if random.below(2) == 0 { 0 } else { random.below(1 << 16) as u16 };
    let command = Command::from_number(random.below(10) as u16);
    let request = wire::Request { flags, command, cookie: random.below(u64::MAX >> 33), offset: small, length };
    bytes.extend(request.encode());
    if command == Command::Write && random.below(4) > 0 {
        let count = u64::from(length.min(8192));
        bytes.extend(random_bytes(random, count));
    }
}

/// All that one malformed session sends.
fn malformed(random: &mut Rng) -> Vec<u8> {
    if random.below(10) == 0 {
        let count = random.below(200);
        return random_bytes(random, count);
    }
    let mut bytes = [0, 0, 0, random.below(5) as u8].to_vec();
    (0..random.below(5)).for_each(|_| option(random, &mut bytes));
    if random.below(3) > 0 {
        bytes.extend_from_slice(b"IHAVEOPT\0\0\0\x01\0\0\0\x04user");
        (0..random.below(8)).for_each(|_| request(random, &mut bytes));
    }
    if random.below(3) == 0 {
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << random.below(8);
    }
    bytes
}

#[test]
fn malformed_sessions_end_and_affect_nobody_else() {
    let memory = Memory::new(1 << 20).shared();
    let (server, path, _folder) = server("malformed", memory.clone());
    let (protected, count) = (memory.content(Area::Boot(1)), sessions(300));
    for seed in 0..count {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // The server may have disconnected already.
        let _ = stream.write_all(&malformed(&mut Rng::new(seed))).and_then(|()| stream.shutdown(Shutdown::Write));
        let mut rest = Vec::new();
        let end = stream.read_to_end(&mut rest);
        let hangs = end.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        assert!(!hangs, "session {seed} does not end");
        if seed % 100 == 0 {
            let mut client = Client::simple(&path, "user");
            assert_eq!(client.write(8192, &seed.to_be_bytes().repeat(64)), 0, "after session {seed}");
            assert_eq!(client.read(8192, 512), Ok(seed.to_be_bytes().repeat(64)), "after session {seed}");
        }
    }
    assert!(memory.content(Area::Boot(1)) == protected);
    server.stop();
    println!("{count} malformed sessions, 0 broken");
}

#[test]
fn five_hundred_connections_leave_a_server_that_serves() {
    let (server, path, _folder) = server("many", Memory::new(1 << 20).shared());
    let mut first = Client::simple(&path, "user");
    let many: Vec<UnixStream> = (0..500).map(|_| UnixStream::connect(&path).unwrap()).collect();
    assert_eq!(first.write(0, &[7; 512]), 0);
    assert_eq!(first.read(0, 512), Ok(vec![7; 512]));
    // Beyond the largest number they are disconnected.
    let mut last = many.last().unwrap();
    let _ = last.read(&mut [0; 18]);
    drop(many);
    // Refused until the server has noticed that the others are gone.
    loop {
        let mut stream = UnixStream::connect(&path).unwrap();
        if stream.read_exact(&mut [0; 18]).is_ok() {
            break;
        }
    }
    server.stop();
}

#[test]
fn clients_that_take_no_replies_have_a_bound_together() {
    let folder = Folder::new("hogs");
    let path = folder.path("nbd");
    let budget = Arc::new(Budget::new(64 << 20, Duration::from_millis(500)));
    let options = NbdOptions { budget, ..NbdOptions::default() };
    let server = nbd::serve_with(Memory::new(32 << 20).shared(), &Listen::Unix(path.clone()), options).unwrap();
    let mut other = Client::simple(&path, "user");
    let hogs: Vec<Client> = (0..8)
        .map(|_| {
            let mut hog = Client::simple(&path, "user");
            for _ in 0..4 {
                hog.send(Command::Read, 0, 0, 32 << 20, &[]);
            }
            hog
        })
        .collect();
    // Two of them have all of it, and give none back: the others are told so.
    let refused = std::iter::repeat_with(|| other.read(0, 1 << 20)).find_map(Result::err);
    assert_eq!(refused, Some(12), "ENOMEM");
    assert_eq!(other.write(0, &vec![5; 1 << 20]), 12);
    // Short requests need none of it.
    assert_eq!(other.write(0, &vec![5; 128 << 10]), 0);
    assert_eq!(other.read(0, 128 << 10), Ok(vec![5; 128 << 10]));
    drop(hogs);
    let read = std::iter::repeat_with(|| other.read(0, 1 << 20)).find_map(Result::ok);
    assert_eq!(read.unwrap()[..128 << 10], vec![5; 128 << 10]);
    server.stop();
}

#[test]
fn only_a_client_that_waits_for_nothing_is_idle() {
    let folder = Folder::new("idle");
    let path = folder.path("nbd");
    // A read is replied to when the idle client is gone.
    let (gone, is_gone) = mpsc::channel::<()>();
    let is_gone = Mutex::new(is_gone);
    let memory = Memory::new(1 << 20).with_delay(move |request| {
        if matches!(request, Request::Read { .. }) {
            let _ = is_gone.lock().unwrap().recv();
        }
        Duration::ZERO
    });
    let options = NbdOptions { idle: Some(Duration::from_secs(3)), ..NbdOptions::default() };
    let server = nbd::serve_with(memory.shared(), &Listen::Unix(path.clone()), options).unwrap();
    let mut waiting = Client::simple(&path, "user");
    waiting.send(Command::Read, 0, 0, 512, &[]);
    let mut idle = Client::simple(&path, "user");
    assert!(idle.is_dropped());
    drop(gone);
    assert_eq!(waiting.error(), 0, "a slow reply");
    server.stop();
}
