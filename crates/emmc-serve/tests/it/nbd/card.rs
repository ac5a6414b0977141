//! A whole virtual card behind the server, with its times.

use std::sync::Arc;
use std::time::Instant as Wall;

use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::shipped;
use emmc_serve::nbd::wire::{self, Command};
use emmc_serve::served::{Served, ServedOptions};
use emmc_units::Instant;

use crate::nbd::client::{Client, Reply, server};

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
