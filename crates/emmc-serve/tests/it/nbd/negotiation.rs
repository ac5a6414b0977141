//! Options: agreed and refused ones; refusals keep the stream synchronised.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use emmc_serve::nbd::option::{info, reply, transmission};
use emmc_serve::nbd::wire::Command;

use crate::memory::Memory;
use crate::nbd::client::{Client, info_query, meta_query, number, server};

#[test]
fn exports_are_listed_and_described() {
    let (_server, path, _folder) = server("list", Memory::new(8 << 20).shared());
    let mut client = Client::greeted(&path);
    let names: Vec<Vec<u8>> = client.option(3, b"").into_iter().map(|(_, data)| data).collect();
    assert_eq!(names, [&b"\0\0\0\x04user"[..], b"\0\0\0\x05boot0", b"\0\0\0\x05boot1", b""]);

    let replies = client.option(6, &info_query("", &[info::BLOCK_SIZE]));
    let data = |kind: u16| {
        let found = replies.iter().find(|(_, data)| data.starts_with(&kind.to_be_bytes()));
        &found.unwrap_or_else(|| panic!("info {kind}")).1[2..]
    };
    assert_eq!(data(info::EXPORT)[..8], (8u64 << 20).to_be_bytes());
    assert_eq!(data(info::NAME), b"user");
    assert_eq!(data(info::BLOCK_SIZE), [512u32, 4096, 32 << 20].map(u32::to_be_bytes).concat());

    let flags = |client: &mut Client, name: &str| {
        let replies = client.option(6, &info_query(name, &[]));
        number(&replies[0].1[10..]) as u16
    };
    assert_eq!(flags(&mut client, "user") & (transmission::READ_ONLY | transmission::SEND_DF), 0);
    assert_ne!(flags(&mut client, "boot1") & transmission::READ_ONLY, 0);
    client.option(8, b"");
    assert_ne!(flags(&mut client, "user") & transmission::SEND_DF, 0);
}

#[test]
fn refusals_keep_the_stream_synchronised() {
    let (_server, path, _folder) = server("refusals", Memory::new(1 << 20).shared());
    let mut client = Client::greeted(&path);
    let mut refused = |number: u32, data: &[u8], kind: u32| {
        let replies = client.option(number, data);
        assert_eq!(replies.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [kind], "option {number}");
        assert!(std::str::from_utf8(&replies[0].1).is_ok_and(|text| !text.is_empty()));
    };
    refused(5, b"", reply::ERR_UNSUP);
    refused(11, b"", reply::ERR_UNSUP);
    refused(4711, &[7; 300], reply::ERR_UNSUP);
    refused(7, &info_query("rpmb", &[]), reply::ERR_UNKNOWN);
    refused(6, &info_query("gp1", &[3]), reply::ERR_UNKNOWN);
    refused(7, b"\0\0\xff\xffuser\0\0", reply::ERR_INVALID);
    refused(3, b"data", reply::ERR_INVALID);
    refused(7, &vec![0; 100_000], reply::ERR_TOO_BIG);
    refused(9, &meta_query("user", &[]), reply::ERR_INVALID);
    client.option(8, b"");
    client.go("user");
    assert_eq!(client.write(0, &[1; 512]), 0);
}

#[test]
fn contexts_belong_to_an_export() {
    let (_server, path, _folder) = server("contexts", Memory::new(1 << 20).shared());
    let mut client = Client::greeted(&path);
    client.option(8, b"");
    let mut kinds = |number, queries: &[&str]| -> Vec<u32> {
        client.option(number, &meta_query("user", queries)).into_iter().map(|(kind, _)| kind).collect()
    };
    let (context, ack) = (reply::META_CONTEXT, reply::ACK);
    assert_eq!(kinds(9, &[]), [context, ack]);
    assert_eq!(kinds(9, &["base:"]), [context, ack]);
    assert_eq!(kinds(9, &["qemu:dirty-bitmap:x", "base:allocation"]), [context, ack]);
    assert_eq!(kinds(10, &[]), [ack]);
    assert_eq!(kinds(10, &["base:none"]), [ack]);
    assert_eq!(kinds(10, &["base:allocation"]), [context, ack]);
    // Chosen for the user area, which is not the one that is then opened.
    client.go("boot0");
    assert_eq!(client.ask(Command::BlockStatus, 0, 0, 4096), 22);
}

#[test]
fn the_old_export_name_option_works() {
    let (_server, path, _folder) = server("old", Memory::new(1 << 20).shared());
    for (flags, zeros) in [(3u32, 0), (1, 124)] {
        let mut client = Client::greeted_with(&path, flags);
        client.send_option(1, b"boot0");
        let mut answer = vec![0xaa; 10 + zeros];
        client.stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer[..8], (1u64 << 20).to_be_bytes());
        assert!(answer[10..].iter().all(|byte| *byte == 0));
        assert_eq!(client.read(0, 512), Ok(vec![0xff; 512]));
    }
    let mut client = Client::greeted(&path);
    client.send_option(1, b"nosuch");
    assert!(client.is_dropped());
}

#[test]
fn only_a_client_that_breaks_the_protocol_is_dropped() {
    let (_server, path, _folder) = server("step", Memory::new(1 << 20).shared());
    let mut other = Client::simple(&path, "user");
    let mut client = Client::greeted(&path);
    client.stream.write_all(&[0x55; 64]).unwrap();
    assert!(client.is_dropped());
    let mut client = Client::greeted(&path);
    client.stream.write_all(b"IHAVEOPT\0\0\0\x03\xff\xff\xff\xff").unwrap();
    assert!(client.is_dropped());
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.read_exact(&mut [0; 18]).unwrap();
    stream.write_all(&7u32.to_be_bytes()).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    let mut client = Client::simple(&path, "user");
    client.stream.write_all(&[0; 28]).unwrap();
    assert!(client.is_dropped());
    assert_eq!(other.write(512, &[1; 512]), 0);
    assert_eq!(other.read(512, 512), Ok(vec![1; 512]));
}

#[test]
fn abort_is_acknowledged() {
    let (_server, path, _folder) = server("abort", Memory::new(1 << 20).shared());
    let mut client = Client::greeted(&path);
    assert_eq!(client.option(2, b""), [(reply::ACK, Vec::new())]);
    assert!(client.is_dropped());
}
