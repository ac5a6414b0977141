//! A whole virtual card behind the server, with its times.

use std::io::Write;
use std::sync::Arc;
use std::time::Instant as Wall;

use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::shipped;
use emmc_serve::nbd::wire::{self, Command, Request};
use emmc_serve::served::{Served, ServedOptions};
use emmc_serve::store::{Store, StoreError};
use emmc_units::Instant;

use crate::nbd::client::{Client, Folder, Reply, server};

#[test]
fn replies_take_the_time_of_the_card() {
    let profile = shipped::named("generic-8g").unwrap();
    let card = Card::new(profile, DeviceOptions { keep: StoredContent::Data, seed: 1 }).unwrap();
    let served = Arc::new(Served::new(card, Instant::START, ServedOptions { delays: true, dilation: 1 }));
    let (server, path, _folder) = server("card", served.clone());
    let mut client = Client::structured(&path, "user");
    let data: Vec<u8> = (0..262_144u32).map(|at| (at % 251) as u8).collect();
    let (began, card_began) = (Wall::now(), served.now());
    for at in 0..8u64 {
        client.send(Command::Write, wire::FLAG_FUA, at << 18, 1 << 18, &data);
        assert_eq!(client.error(), 0);
    }
    // 2 MiB without the cache: no card of this class programs them faster than its bus transfers them, 400 MB/s.
    assert!(began.elapsed().as_micros() >= (2 << 20) / 400, "{:?}", began.elapsed());
    assert!(served.now().since(card_began).0 >= (2 << 20) * 1000 / 400);
    assert_eq!(client.ask(Command::Trim, 0, 1 << 18, 1 << 18), 0);
    client.send(Command::BlockStatus, 0, 0, 4 << 20, &[]);
    let (_, Reply::Chunk(1, 5, status)) = client.receive() else { panic!("no block status") };
    let kept = [(1u32 << 18, 0u32), (1 << 18, 3), (6 << 18, 0), (2 << 20, 3)];
    let kept: Vec<u8> =
        kept.iter().flat_map(|(length, state)| [length.to_be_bytes(), state.to_be_bytes()].concat()).collect();
    assert_eq!(status[4..], kept);
    client.send(Command::Read, 0, 0, 1 << 18, &[]);
    let (_, Reply::Chunk(1, 1, read)) = client.receive() else { panic!("no data") };
    assert!(read[8..] == data);
    client.send(Command::Read, 0, 1 << 18, 1 << 18, &[]);
    let (_, Reply::Chunk(1, 2, hole)) = client.receive() else { panic!("no hole") };
    assert_eq!(hole[8..], (1u32 << 18).to_be_bytes());
    server.stop();
    let (_, answers) = served.lateness();
    assert_eq!(answers, 11, "eight writes, a trim and two reads were waited for");
}

/// A client that does not wait for replies: long writes are performed while the next ones are received, and in order
/// with everything else.
#[test]
fn long_writes_of_a_client_that_goes_on_are_performed_in_order() {
    const BYTES: u32 = 1 << 20;
    const PLACES: u8 = 8;
    let folder = Folder::new("in-order");
    let (text, profile) = (shipped::text("generic-8g").unwrap(), shipped::named("generic-8g").unwrap());
    let card = Card::new(profile, DeviceOptions { keep: StoredContent::Data, seed: 1 }).unwrap();
    Store::create(&folder.0, text, &card, Instant::START).unwrap();
    let options = ServedOptions { delays: false, dilation: 1 };
    let (server, path, _socket) = server("in-order-socket", Arc::new(Served::open(&folder.0, options).unwrap()));
    let mut client = Client::structured(&path, "user");
    let content = |round: u8, place: u8| 16 * (round + 1) + place;
    let requests = move |round: u8| {
        let mut sent = Vec::new();
        for place in 0..PLACES {
            let offset = u64::from(place) << 20;
            let mut add = |command, length, data: &[u8]| {
                let request = Request { flags: 0, command, cookie: place.into(), offset, length };
                sent.extend(request.encode());
                sent.extend(data);
            };
            // Each place twice: the second content counts.
            add(Command::Write, BYTES, &vec![0xff; BYTES as usize]);
            add(Command::Write, BYTES, &vec![content(round, place); BYTES as usize]);
            add(Command::Read, 4096, &[]);
        }
        sent
    };
    // Slots are received into after each was written once.
    for round in 0..6 {
        let mut sender = client.stream.try_clone().unwrap();
        let sending = std::thread::spawn(move || sender.write_all(&requests(round)).unwrap());
        let mut read = [0; PLACES as usize];
        for _ in 0..3 * u32::from(PLACES) {
            match client.receive() {
                (_, Reply::Simple(0)) => {}
                (place, Reply::Chunk(1, 1, data)) if data[8..].iter().all(|byte| *byte == data[8]) => {
                    read[place as usize] = data[8];
                }
                other => panic!("{other:?}"),
            }
        }
        sending.join().unwrap();
        assert_eq!(read, std::array::from_fn(|place| content(round, place as u8)), "round {round}");
    }
    // A client that leaves in the middle of a write leaves a whole card.
    client.stream.write_all(&requests(6)[..(BYTES + BYTES / 2) as usize]).unwrap();
    drop(client);
    server.stop();
    // A process that another test starts has the lock of the folder until it runs its program.
    let again = loop {
        match Served::open(&folder.0, options) {
            Err(StoreError::InUse(_)) => std::thread::yield_now(),
            opened => break opened,
        }
    };
    assert!(again.is_ok(), "{:?}", again.err());
}
