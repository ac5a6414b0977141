//! A server is killed while a client writes: the next server has all acknowledged data.

use std::sync::atomic::{AtomicU64, Ordering};

use super::client::Client;
use super::{Server, card, scratch};

/// Bytes that are written at a time: a mapping unit.
const BLOCK: usize = 4096;
const BLOCKS: usize = (16 << 20) / BLOCK;
/// Outstanding requests.
const DEPTH: usize = 4;
/// Times that the server is killed.
const KILLS: u64 = 60;

/// Random numbers, the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }
}

/// The possible content of a block: generations, 0 for zeros. The last acknowledged one, and the outstanding ones.
#[derive(Clone)]
struct Known(Vec<u64>);

fn content(block: usize, generation: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BLOCK);
    let word = if generation == 0 { 0 } else { generation << 16 | block as u64 };
    (0..BLOCK / 8).for_each(|_| bytes.extend(word.to_le_bytes()));
    bytes
}

/// Writes and trims until the server dies.
fn work(client: &mut Client, known: &mut [Known], generation: &mut u64, chance: &mut Chance, acknowledged: &AtomicU64) {
    let mut under_way: Vec<(u64, usize)> = Vec::new();
    loop {
        while under_way.len() < DEPTH {
            let block = chance.below(BLOCKS as u64) as usize;
            // One request a block at a time: the order of two is the server's choice.
            if under_way.iter().any(|(_, other)| *other == block) {
                continue;
            }
            *generation += 1;
            let (handle, offset) = (*generation, (block * BLOCK) as u64);
            let sent = if chance.below(8) == 0 {
                known[block].0.push(0);
                client.send_trim(handle, offset, BLOCK as u32)
            } else {
                known[block].0.push(handle);
                client.send_write(handle, offset, &content(block, handle))
            };
            if sent.is_err() {
                return;
            }
            under_way.push((handle, block));
        }
        let Ok((handle, error)) = client.reply() else { return };
        assert_eq!(error, 0);
        let at = under_way.iter().position(|(known, _)| *known == handle).unwrap();
        let (_, block) = under_way.swap_remove(at);
        known[block].0.drain(..known[block].0.len() - 1);
        acknowledged.fetch_add(1, Ordering::Release);
    }
}

/// Reads everything; then the content of each block is known.
fn check(client: &mut Client, known: &mut [Known], kill: u64) {
    const AT_ONCE: usize = 256;
    for first in (0..BLOCKS).step_by(AT_ONCE) {
        let (error, bytes) = client.read((first * BLOCK) as u64, (AT_ONCE * BLOCK) as u32);
        assert_eq!(error, 0);
        for (block, bytes) in (first..).zip(bytes.chunks_exact(BLOCK)) {
            let allowed = &known[block].0;
            let found = allowed.iter().find(|generation| bytes == content(block, **generation));
            let Some(&found) = found else {
                panic!("kill {kill}, block {block}: {:02x?} is none of {allowed:?}", &bytes[..16]);
            };
            known[block].0 = vec![found];
        }
    }
}

#[test]
fn acknowledged_data_survives_kill_9() {
    let folder = scratch("serve_killed");
    let card = card(&folder, "card");
    let mut known = vec![Known(vec![0]); BLOCKS];
    let (mut generation, mut chance) = (0, Chance(1));
    for kill in 0..KILLS {
        let server = Server::start(&card);
        check(&mut server.client(), &mut known, kill);
        let (mut client, acknowledged) = (server.client(), AtomicU64::new(0));
        // From no request at all to a good deal more than the card holds.
        let enough = chance.below(3) * chance.below(400);
        std::thread::scope(|scope| {
            let acknowledged = &acknowledged;
            let (known, generation, chance) = (&mut known, &mut generation, &mut chance);
            scope.spawn(move || work(&mut client, known, generation, chance, acknowledged));
            while acknowledged.load(Ordering::Acquire) < enough {
                std::thread::yield_now();
            }
            server.kill();
        });
    }
    let server = Server::start(&card);
    check(&mut server.client(), &mut known, KILLS);
    assert!(generation > 5000, "{generation} requests");
}
