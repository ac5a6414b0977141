//! Requests: their effect, the reasons of refusals, and the sequence of replies.

use std::io::{Read, Write};
use std::sync::atomic::Ordering;
use std::time::Duration;

use emmc_card::device::Area;
use emmc_serve::block::Request;
use emmc_serve::nbd::wire::{self, Command};

use crate::memory::Memory;
use crate::nbd::client::{Client, Reply, number, server};

const EPERM: u32 = 1;
const EIO: u32 = 5;
const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;
const ENOTSUP: u32 = 95;
const ESHUTDOWN: u32 = 108;

#[test]
fn data_reads_back() {
    let (_server, path, _folder) = server("data", Memory::new(40 << 20).shared());
    let mut client = Client::simple(&path, "user");
    // The longest there are, with lengths in between that leave the input anywhere.
    for (number, length) in [512u32, 4096, 1 << 20, 512, 32 << 20, 66_048, 131_072, 512].into_iter().enumerate() {
        let data: Vec<u8> = (0..length).map(|at| (at / 7 + number as u32) as u8).collect();
        let offset = 512 * number as u64;
        assert_eq!(client.write(offset, &data), 0);
        assert!(client.read(offset, length) == Ok(data), "{length} bytes at {offset}");
    }
}

#[test]
fn invalid_requests_are_refused() {
    let memory = Memory::new(1 << 20).shared();
    let (_server, path, _folder) = server("refused", memory.clone());
    for structured in [false, true] {
        let client = if structured { Client::structured } else { Client::simple };
        let mut user = client(&path, "user");
        let mut refused = |command, flags, offset, length, error| {
            let payload = if command == Command::Write { length } else { 0 };
            user.send(command, flags, offset, length, &vec![1; payload as usize]);
            assert_eq!(user.error(), error, "{command:?} flags {flags} offset {offset} length {length}");
        };
        refused(Command::Read, 0, 100, 512, EINVAL);
        refused(Command::Read, 0, 0, 100, EINVAL);
        refused(Command::Read, 0, 0, 0, EINVAL);
        refused(Command::Read, 0, 1 << 20, 512, EINVAL);
        refused(Command::Read, 0, u64::MAX - 511, 512, EINVAL);
        refused(Command::Read, 0, 0, (32 << 20) + 512, EINVAL);
        refused(Command::Read, wire::FLAG_NO_HOLE, 0, 512, EINVAL);
        refused(Command::Write, 0, (1 << 20) - 512, 1024, ENOSPC);
        refused(Command::Write, 0, 3, 512, EINVAL);
        // Longer than any valid request: its data is skipped.
        refused(Command::Write, 0, 0, (32 << 20) + 512, EINVAL);
        refused(Command::WriteZeroes, 0, 1 << 20, 512, ENOSPC);
        refused(Command::WriteZeroes, 0, 0, u32::MAX - 511, ENOSPC);
        refused(Command::WriteZeroes, wire::FLAG_FAST_ZERO | wire::FLAG_NO_HOLE, 0, 4096, ENOTSUP);
        refused(Command::Trim, 0, 1 << 20, 512, EINVAL);
        refused(Command::Trim, wire::FLAG_REQ_ONE, 0, 512, EINVAL);
        refused(Command::Flush, 0, 0, 512, EINVAL);
        refused(Command::Cache, 0, 0, 512, EINVAL);
        refused(Command::Other(99), 0, 0, 512, EINVAL);
        if !structured {
            refused(Command::BlockStatus, 0, 0, 512, EINVAL);
            refused(Command::Read, wire::FLAG_DF, 0, 512, EINVAL);
        }
        let mut protected = client(&path, "boot1");
        assert_eq!(protected.write(0, &[1; 512]), EPERM);
        assert_eq!(protected.ask(Command::Trim, 0, 0, 4096), EPERM);
    }
    assert_eq!(memory.content(Area::User), vec![0; 1 << 20], "what is refused changes nothing");
    *memory.bad.lock().unwrap() = vec![9];
    let mut user = Client::simple(&path, "user");
    assert_eq!(user.read(4096, 4096), Err(EIO));
    assert_eq!(user.read(8192, 4096), Ok(vec![0; 4096]));
    memory.powered_for.store(0, Ordering::SeqCst);
    assert_eq!(user.write(0, &[1; 512]), ESHUTDOWN);
}

#[test]
fn zeros_and_trims_read_as_zero() {
    let memory = Memory::new(4 << 20).shared();
    let (_server, path, _folder) = server("zeros", memory.clone());
    let mut user = Client::simple(&path, "user");
    let mut boot = Client::simple(&path, "boot0");
    for client in [&mut user, &mut boot] {
        assert_eq!(client.write(0, &[7; 65536]), 0);
        assert_eq!(client.ask(Command::Trim, 0, 0, 4096), 0);
        assert_eq!(client.ask(Command::WriteZeroes, 0, 4096, 4096), 0);
        assert_eq!(client.ask(Command::WriteZeroes, wire::FLAG_NO_HOLE | wire::FLAG_FUA, 8192, 4096), 0);
    }
    assert_eq!(memory.content(Area::User)[..12288], [0; 12288]);
    assert_eq!(memory.content(Area::Boot(0))[..12288], [[0xff; 4096], [0; 4096], [0; 4096]].concat());
    assert_eq!(user.ask(Command::WriteZeroes, wire::FLAG_FAST_ZERO, 12288, 4096), 0);
    assert_eq!(boot.ask(Command::WriteZeroes, wire::FLAG_FAST_ZERO, 12288, 4096), ENOTSUP);
    assert_eq!(boot.read(12288, 512), Ok(vec![7; 512]));
    assert_eq!(memory.count("zero"), 3);
    // Zeros that are to take space are written, at any length.
    assert_eq!(user.ask(Command::WriteZeroes, wire::FLAG_NO_HOLE, 512, (4 << 20) - 512), 0);
    let mut user = Client::structured(&path, "user");
    assert_eq!(status(&mut user, 0, 0, 4 << 20), [(4 << 20, 0)]);
}

#[test]
fn durable_writes_and_flushes_survive_a_power_cut() {
    let memory = Memory::new(1 << 20).shared();
    let (_server, path, _folder) = server("fua", memory.clone());
    let mut client = Client::simple(&path, "user");
    client.send(Command::Write, wire::FLAG_FUA, 0, 512, &[1; 512]);
    assert_eq!(client.error(), 0);
    assert_eq!(client.ask(Command::WriteZeroes, wire::FLAG_FUA, 0, 512), 0);
    assert_eq!(memory.through.load(Ordering::SeqCst), 2);
    assert_eq!(client.ask(Command::Flush, 0, 0, 0), 0);
    assert_eq!(client.ask(Command::Trim, wire::FLAG_FUA, 0, 512), 0);
    assert_eq!(memory.flushes.load(Ordering::SeqCst), 2, "a trim that must be kept is followed by a flush");
}

/// The reply of BLOCK_STATUS: lengths and states.
fn status(client: &mut Client, flags: u16, offset: u64, length: u32) -> Vec<(u32, u32)> {
    client.send(Command::BlockStatus, flags, offset, length, &[]);
    let (_, Reply::Chunk(1, 5, payload)) = client.receive() else { panic!("no block status") };
    assert_eq!(payload[..4], [0, 0, 0, 1]);
    payload[4..].chunks(8).map(|extent| (number(&extent[..4]), number(&extent[4..]))).collect()
}

#[test]
fn block_status_reports_mapped_ranges() {
    let (_server, path, _folder) = server("status", Memory::new(200 << 20).shared());
    let mut client = Client::structured(&path, "user");
    assert_eq!(status(&mut client, 0, 0, 200 << 20), [(200 << 20, 3)]);
    assert_eq!(client.write(8192, &[1; 8192]), 0);
    assert_eq!(client.write(100 << 20, &[1; 4096]), 0);
    let all = [(8192, 3), (8192, 0), ((100 << 20) - 16384, 3), (4096, 0), ((100 << 20) - 4096, 3)];
    assert_eq!(status(&mut client, 0, 0, 200 << 20), all);
    assert_eq!(status(&mut client, 0, 512, 1024), [(1024, 3)]);
    assert_eq!(status(&mut client, wire::FLAG_REQ_ONE, 16384, 200 << 20 >> 1), [((100 << 20) - 16384, 3)]);
    assert_eq!(client.ask(Command::Trim, 0, 8192, 8192), 0);
    assert_eq!(status(&mut client, wire::FLAG_REQ_ONE, 0, 1 << 20), [(1 << 20, 3)]);
    let mut boot = Client::structured(&path, "boot0");
    assert_eq!(status(&mut boot, 0, 0, 4096), [(4096, 1)], "what is erased to ones is a hole, and not zero");
}

/// A reassembled structured read; the numbers of data chunks and holes.
fn read(client: &mut Client, flags: u16, offset: u64, length: usize) -> (Vec<u8>, usize, usize) {
    client.send(Command::Read, flags, offset, length as u32, &[]);
    let (mut data, mut covered, mut chunks, mut holes) = (vec![0xee; length], vec![false; length], 0, 0);
    loop {
        let (_, Reply::Chunk(done, kind, payload)) = client.receive() else { panic!("no chunk") };
        let at = (u64::from_be_bytes(payload[..8].try_into().unwrap()) - offset) as usize;
        let bytes = match kind {
            1 => payload[8..].to_vec(),
            2 => vec![0; number(&payload[8..]) as usize],
            other => panic!("chunk of kind {other}"),
        };
        if kind == 1 {
            chunks += 1
        } else {
            holes += 1
        }
        data[at..at + bytes.len()].copy_from_slice(&bytes);
        assert!(!covered[at..at + bytes.len()].contains(&true), "chunks overlap");
        covered[at..at + bytes.len()].fill(true);
        if done == 1 {
            assert!(!covered.contains(&false), "chunks leave something out");
            return (data, chunks, holes);
        }
    }
}

#[test]
fn holes_are_left_out_of_structured_reads() {
    let memory = Memory::new(1 << 20).shared();
    let (_server, path, _folder) = server("holes", memory.clone());
    let mut client = Client::structured(&path, "user");
    assert_eq!(read(&mut client, 0, 0, 1 << 20).1, 0);
    // Data and holes of every kind, also at the edges and of a single sector.
    for (unit, byte) in [(1u64, 1u8), (2, 2), (4, 3), (8, 0), (9, 4), (255, 5)] {
        let mut data = [0; 4096];
        data[4095] = byte;
        assert_eq!(client.write(unit * 4096, &data), 0);
    }
    let all = memory.content(Area::User);
    for (offset, length) in [(0, 1 << 20), (512, 65536), (4096, 4096), (8192 - 512, 1024), (40960, 512), (3584, 9216)] {
        let (data, ..) = read(&mut client, 0, offset, length);
        assert!(data == all[offset as usize..][..length], "{length} bytes at {offset}");
    }
    let (data, chunks, holes) = read(&mut client, 0, 0, 1 << 20);
    assert!(data == all);
    assert_eq!((chunks, holes), (4, 4));
    let (data, chunks, holes) = read(&mut client, wire::FLAG_DF, 0, 1 << 20);
    assert!(data == all);
    assert_eq!((chunks, holes), (1, 0));
}

#[test]
fn replies_can_overtake_each_other() {
    let slow = |request: &Request<'_>| match request {
        Request::Read { offset: 0, .. } => Duration::from_millis(60),
        Request::Read { .. } => Duration::from_millis(20),
        Request::Trim { .. } => Duration::from_secs(3600),
        _ => Duration::ZERO,
    };
    let memory = Memory::new(1 << 20).with_delay(slow).shared();
    let (server, path, _folder) = server("order", memory.clone());
    let mut client = Client::simple(&path, "user");
    let began = std::time::Instant::now();
    let slowest = client.send(Command::Read, 0, 0, 4096, &[]);
    let slow = client.send(Command::Read, 0, 4096, 4096, &[]);
    let fast = client.send(Command::Write, 0, 8192, 512, &[1; 512]);
    let mut order = Vec::new();
    for length in [0, 4096, 4096] {
        let (cookie, reply) = client.receive();
        assert_eq!(reply, Reply::Simple(0));
        client.stream.read_exact(&mut vec![0; length]).unwrap();
        order.push(cookie);
    }
    assert_eq!(order, [fast, slow, slowest]);
    assert!(began.elapsed() >= Duration::from_millis(60), "a reply came before the card would have been done");
    // A disconnect waits for outstanding replies; a stopping server does not wait for requests without end.
    let last = client.send(Command::Read, 0, 0, 512, &[]);
    client.send(Command::Disconnect, 0, 0, 0, &[]);
    assert_eq!(client.receive(), (last, Reply::Simple(0)));
    client.stream.read_exact(&mut [0; 512]).unwrap();
    assert!(client.is_dropped());
    let mut client = Client::simple(&path, "user");
    client.send(Command::Trim, 0, 0, 4096, &[]);
    assert_eq!(client.write(0, &[1; 512]), 0);
    server.stop();
    assert!(client.is_dropped());
    assert_eq!(memory.answers.load(Ordering::SeqCst), 5, "every answer that left is told of, and no other");
}

#[test]
fn requests_in_one_packet_are_all_answered() {
    let memory = Memory::new(1 << 20).shared();
    let (_server, path, _folder) = server("burst", memory.clone());
    let mut client = Client::simple(&path, "user");
    let mut burst = Vec::new();
    for at in 0..256u64 {
        let request = wire::Request { flags: 0, command: Command::Write, cookie: at, offset: at * 4096, length: 4096 };
        burst.extend_from_slice(&request.encode());
        burst.extend_from_slice(&[at as u8; 4096]);
    }
    client.stream.write_all(&burst).unwrap();
    for at in 0..256 {
        assert_eq!(client.receive(), (at, Reply::Simple(0)));
    }
    assert!(memory.content(Area::User).chunks(4096).zip(0..=255).all(|(unit, at)| unit == [at; 4096]));
}

#[test]
fn clients_see_each_others_writes() {
    let memory = Memory::new(1 << 20).shared();
    let (_server, path, _folder) = server("two", memory.clone());
    let (mut one, mut other) = (Client::simple(&path, "user"), Client::simple(&path, "user"));
    assert_eq!(one.write(4096, &[9; 4096]), 0);
    assert_eq!(other.read(4096, 4096), Ok(vec![9; 4096]));
    assert_eq!(other.ask(Command::Flush, 0, 0, 0), 0);
    assert_eq!(memory.flushes.load(Ordering::SeqCst), 1);
}
