//! A server is killed while a client writes, and the card's power is cut: the next server has all acknowledged data,
//! after a cut all that was flushed. Another is killed at any moment of its start: no loop device of it stays.
//! `EMMCLAB_ROUNDS` is the number of rounds.

use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use emmc_units::Rng;

use super::client::Client;
use super::{Server, card, first_document, scratch, segment_card};
use crate::support::{command, emmclab, is_root, rounds, skip};

/// Bytes that are written at a time: a mapping unit of one of the cards.
const BLOCK: usize = 4096;
const BLOCKS: usize = (16 << 20) / BLOCK;
/// Outstanding requests.
const DEPTH: usize = 4;

/// The possible content of a block: generations, 0 for zeros.
#[derive(Clone)]
struct Known {
    /// If the power stays on: the last acknowledged one, and outstanding ones.
    on: Vec<u64>,
    /// After a cut: also everything since the last flush. A discard may be undone by any cut.
    cut: Vec<u64>,
}

impl Known {
    fn zeros() -> Self {
        Self { on: vec![0], cut: vec![0] }
    }

    fn sent(&mut self, generation: u64) {
        self.on.push(generation);
        self.cut.push(generation);
    }

    fn acknowledged(&mut self) {
        self.on.drain(..self.on.len() - 1);
    }

    fn flushed(&mut self) {
        match self.on[..] {
            [generation] if generation != 0 => self.cut = vec![generation],
            _ => {}
        }
    }
}

fn content(block: usize, generation: u64) -> Vec<u8> {
    let word = if generation == 0 { 0 } else { generation << 16 | block as u64 };
    word.to_le_bytes().repeat(BLOCK / 8)
}

/// What a client does to a card, over all servers.
struct Work {
    known: Vec<Known>,
    generation: u64,
    rng: Rng,
    flushes: u64,
}

impl Work {
    /// Writes, trims and flushes until the server dies. Requests fail while the power is off.
    fn go(&mut self, client: &mut Client, acknowledged: &AtomicU64) {
        let mut under_way: Vec<(u64, usize)> = Vec::new();
        loop {
            let flushes = self.rng.below(64) == 0;
            while !flushes && under_way.len() < DEPTH {
                let block = self.rng.below(BLOCKS as u64) as usize;
                // One request a block at a time: the order of two is the server's choice.
                if under_way.iter().any(|(_, other)| *other == block) {
                    continue;
                }
                self.generation += 1;
                let (handle, offset) = (self.generation, (block * BLOCK) as u64);
                let is_trim = self.rng.below(8) == 0;
                self.known[block].sent(if is_trim { 0 } else { handle });
                let sent = match is_trim {
                    true => client.send_trim(handle, offset, BLOCK as u32),
                    false => client.send_write(handle, offset, &content(block, handle)),
                };
                if sent.is_err() {
                    return;
                }
                under_way.push((handle, block));
            }
            while flushes && !under_way.is_empty() {
                if self.reply(client, &mut under_way, acknowledged).is_none() {
                    return;
                }
            }
            if !flushes {
                if self.reply(client, &mut under_way, acknowledged).is_none() {
                    return;
                }
                continue;
            }
            match client.flush() {
                Ok(0) => {
                    self.flushes += 1;
                    self.known.iter_mut().for_each(Known::flushed);
                }
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    fn reply(
        &mut self,
        client: &mut Client,
        under_way: &mut Vec<(u64, usize)>,
        acknowledged: &AtomicU64,
    ) -> Option<()> {
        let (handle, error) = client.reply().ok()?;
        let at = under_way.iter().position(|(sent, _)| *sent == handle).unwrap();
        let (_, block) = under_way.swap_remove(at);
        if error == 0 {
            self.known[block].acknowledged();
        }
        acknowledged.fetch_add(1, Ordering::Release);
        Some(())
    }

    /// Reads everything; then the content of each block is known.
    fn check(&mut self, client: &mut Client, round: u64, was_cut: bool) {
        const AT_ONCE: usize = 256;
        for first in (0..BLOCKS).step_by(AT_ONCE) {
            let (error, bytes) = client.read((first * BLOCK) as u64, (AT_ONCE * BLOCK) as u32);
            assert_eq!(error, 0);
            for (block, bytes) in (first..).zip(bytes.chunks_exact(BLOCK)) {
                let known = &mut self.known[block];
                let allowed = if was_cut { &known.cut } else { &known.on };
                let found = allowed.iter().find(|generation| bytes == content(block, **generation));
                let Some(&found) = found else {
                    panic!("round {round}, block {block}: {:02x?} is none of {allowed:?}", &bytes[..16]);
                };
                known.on = vec![found];
                if was_cut {
                    known.cut = vec![found];
                } else if !known.cut.contains(&found) {
                    known.cut.push(found);
                }
            }
        }
    }
}

/// Cuts the power within an operation of the flash that the client's requests lead to.
fn cut(card: &Path, seed: u64) {
    let name = card.display().to_string();
    let at = (1 + seed % 40).to_string();
    emmclab(["sim", "ctl", &name, "cut", "--at-operation", &at, "--seed", &seed.to_string()]).exits(0);
    while emmclab(["sim", "ctl", &name, "state", "--json"]).exits(0).json()["powered"] == true {}
}

fn acknowledged_data_survives(card: &Path, rounds: u64) {
    let mut work = Work { known: vec![Known::zeros(); BLOCKS], generation: 0, rng: Rng::new(1), flushes: 0 };
    let mut was_cut = false;
    for round in 0..rounds {
        let server = Server::start(card);
        work.check(&mut server.client(), round, was_cut);
        let (mut client, acknowledged) = (server.client(), AtomicU64::new(0));
        // From no request at all to a good deal more than the card holds.
        let (enough, seed) = (work.rng.below(3) * work.rng.below(400), work.rng.next_u64() >> 32);
        was_cut = round % 2 == 1;
        std::thread::scope(|scope| {
            let (acknowledged, work) = (&acknowledged, &mut work);
            scope.spawn(move || work.go(&mut client, acknowledged));
            while acknowledged.load(Ordering::Acquire) < enough {
                std::thread::yield_now();
            }
            if was_cut {
                cut(card, seed);
            }
            server.kill();
        });
    }
    let server = Server::start(card);
    work.check(&mut server.client(), rounds, was_cut);
    assert!(work.generation > 80 * rounds && work.flushes > rounds / 2, "{} requests", work.generation);
    println!("{rounds} rounds, {} requests, {} flushes, 0 bytes lost", work.generation, work.flushes);
}

#[test]
fn acknowledged_data_survives_kill_9_and_cuts_on_a_page_mapped_card() {
    let folder = scratch("serve_killed");
    acknowledged_data_survives(&card(&folder, "card"), rounds(30));
}

#[test]
fn acknowledged_data_survives_kill_9_and_cuts_on_a_segment_mapped_card() {
    let folder = scratch("serve_killed_segments");
    acknowledged_data_survives(&segment_card(&folder, "card"), rounds(30));
}

/// Loop devices whose file the kernel names below a folder, also where the folder's mount is dead.
fn loops_below(folder: &Path) -> Vec<String> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.into());
    let devices = std::fs::read_dir("/sys/block").unwrap().flatten();
    let is_below = |entry: &std::fs::DirEntry| {
        let file = std::fs::read_to_string(entry.path().join("loop/backing_file"));
        file.is_ok_and(|file| Path::new(file.trim_end_matches([' ', '\n'])).starts_with(&folder))
    };
    devices.filter(is_below).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn no_loop_device_of_killed_servers_stays() {
    if !is_root() || !Path::new("/dev/fuse").exists() || !Path::new("/dev/loop-control").exists() {
        return skip("needs root, FUSE and loop devices");
    }
    let folder = scratch("serve_killed_loops");
    let (card, mount) = (card(&folder, "card"), folder.join("mount"));
    std::fs::create_dir(&mount).unwrap();
    let start = || {
        let mut serve = command();
        serve.arg("serve").arg(&card).arg("--fuse").arg(&mount).args(["--loop", "--no-delay", "--json"]);
        serve.stdout(Stdio::piped()).spawn().unwrap()
    };
    let (mut rng, mut left_over) = (Rng::new(4), 0);
    for round in 0..rounds(12) {
        let mut server = start();
        if round % 2 == 0 {
            first_document(&mut server);
            let loops = loops_below(&mount);
            assert_eq!(loops.len(), 3, "round {round}: the user area and two boot areas, not {loops:?}");
        } else {
            std::thread::sleep(Duration::from_millis(rng.below(60)));
        }
        server.kill().unwrap();
        server.wait().unwrap();
        left_over += usize::from(!loops_below(&mount).is_empty());
    }
    assert!(left_over as u64 >= rounds(12) / 2, "{left_over} servers left loop devices behind: nothing was tested");
    let mut server = start();
    first_document(&mut server);
    assert_eq!(loops_below(&mount).len(), 3);
    emmclab(["sim", "ctl", &card.display().to_string(), "stop"]).exits(0);
    assert!(server.wait().unwrap().success());
    assert_eq!(loops_below(&mount), Vec::<String>::new());
}
