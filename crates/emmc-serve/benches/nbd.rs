//! Compares this server with nbdkit's memory plugin: the same client (fio over libnbd), the same loads, in turn.
//!
//! `cargo bench -p emmc-serve --bench nbd -- [SECONDS] [ROUNDS] [LOAD…]`, where LOAD is part of a load's name. The best
//! round of each load counts, because the machine may be shared; the rounds of the three servers alternate. `memory` is
//! this server over plain memory, like nbdkit's plugin; `card` is this server over a whole virtual card in a folder.
//! There are no delays; the range in use was filled before. A sequential run is one GiB, which takes less than a
//! second, so it has three times as many rounds. `CPU us` is the server's processor time per request in its best round:
//! other load on the machine changes it less than the rate.

#[path = "../tests/it/memory.rs"]
mod memory;

use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::shipped;
use emmc_serve::block::Block;
use emmc_serve::nbd::{self, Listen};
use emmc_serve::served::{Served, ServedOptions};
use emmc_serve::store::Store;
use emmc_units::Instant;

use memory::Memory;

const SIZE_BYTES: u64 = 256 << 20;

const OPTIONS: ServedOptions = ServedOptions { delays: false, dilation: 1 };

/// Name, fio's `rw`, block size, depth.
const LOADS: [(&str, &str, &str, u32); 8] = [
    ("4 KiB random read, depth 1", "randread", "4k", 1),
    ("4 KiB random read, depth 32", "randread", "4k", 32),
    ("4 KiB random write, depth 1", "randwrite", "4k", 1),
    ("4 KiB random write, depth 32", "randwrite", "4k", 32),
    ("1 MiB sequential read, depth 1", "read", "1m", 1),
    ("1 MiB sequential read, depth 8", "read", "1m", 8),
    ("1 MiB sequential write, depth 1", "write", "1m", 1),
    ("1 MiB sequential write, depth 8", "write", "1m", 8),
];

fn main() {
    // With `--test` or `--list` no figures are wanted.
    let numbers: Vec<u32> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let (seconds, rounds) = (numbers.first().copied().unwrap_or(2), numbers.get(1).copied().unwrap_or(3));
    let folder = std::env::temp_dir().join(format!("emmclab-bench-nbd-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for sockets");
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| arg.contains(' ')).collect();
    compare(&folder, seconds, rounds, &wanted);
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}

fn compare(folder: &Path, seconds: u32, rounds: u32, wanted: &[String]) {
    let Some(nbdkit) = nbdkit() else { return };
    let ours: [(&str, Arc<dyn Block>); 2] =
        [("memory", Memory::new(SIZE_BYTES).without_counts().shared()), ("card", Arc::new(kept(&folder.join("kept"))))];
    let names = ours.each_ref().map(|(name, _)| *name);
    let sockets = names.map(|name| folder.join(name));
    let _servers = ours.map(|(name, block)| nbd::serve(block, &Listen::Unix(folder.join(name))).expect("a socket"));
    let contenders: [&Path; 3] = [&nbdkit.socket, &sockets[0], &sockets[1]];
    // nbdkit serves in a child of the process that was started.
    let cpu_us = [nbdkit.process.id(), std::process::id(), std::process::id()];
    let cpu_us = cpu_us
        .map(|process| move || if process == std::process::id() { cpu_us_of(process) } else { cpu_us_below(process) });
    for socket in contenders {
        if fio(folder, socket, "write", "1m", 8, &["--buffer_pattern=0xa5"]).is_none() {
            return;
        }
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load average {}, {}", load.trim(), folder.display());
    print!("{:32} {:>8} {:>6}", "IOPS, best of rounds", "nbdkit", "CPU us");
    names.iter().for_each(|name| print!(" {name:>8} {:>6} ratio", "CPU us"));
    println!();
    let runtime = format!("--runtime={seconds}");
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()));
    for (name, rw, block, depth) in LOADS.into_iter().filter(|(name, ..)| is_wanted(name)) {
        let is_sequential = block == "1m";
        let extent = if is_sequential { "--io_size=1g" } else { "--time_based" };
        let mut best = [Speed::default(); 3];
        for _ in 0..if is_sequential { 3 * rounds } else { rounds } {
            for ((best, socket), cpu_us) in best.iter_mut().zip(contenders).zip(cpu_us) {
                let before = cpu_us();
                let Some(found) = fio(folder, socket, rw, block, depth, &[&runtime, extent]) else { continue };
                let cpu_us = (cpu_us() - before) / found.requests;
                *best = if found.iops > best.iops { Speed { iops: found.iops, cpu_us } } else { *best };
            }
        }
        let [theirs, ours @ ..] = best;
        print!("{name:32} {:8.0} {:6.1}", theirs.iops, theirs.cpu_us);
        ours.iter().for_each(|ours| print!(" {:8.0} {:6.1} {:5.2}", ours.iops, ours.cpu_us, ours.iops / theirs.iops));
        println!();
    }
}

/// A server's rate, and its processor time per request.
#[derive(Clone, Copy, Default)]
struct Speed {
    iops: f64,
    cpu_us: f64,
}

/// The processor time that a process used.
///
/// Source: proc(5), fields 14 and 15; a tick is 10 ms.
fn cpu_us_of(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() * 10_000.0
}

/// The same with all processes that it started and that still run.
///
/// Source: proc(5), `/proc/PID/task/TID/children`.
fn cpu_us_below(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let children = text.split_ascii_whitespace().filter_map(|child| child.parse().ok());
    cpu_us_of(process) + children.map(cpu_us_below).sum::<f64>()
}

fn kept(folder: &Path) -> Served {
    std::fs::create_dir_all(folder).expect("a folder for the card");
    let (text, profile) = (shipped::text("generic-8g"), shipped::named("generic-8g"));
    let (text, profile) = (text.expect("a shipped profile"), profile.expect("a good profile"));
    let card = Card::new(profile, DeviceOptions { keep: StoredContent::Data, seed: 1 }).expect("a card");
    Store::create(folder, text, &card, Instant::START).expect("a card in a folder");
    Served::open(folder, OPTIONS).expect("the card that was made")
}

/// An nbdkit process that ends when its standard input is closed.
struct Nbdkit {
    process: Child,
    socket: PathBuf,
}

impl Drop for Nbdkit {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Started and ready: its `--run` command prints the socket's path and waits until standard input is closed.
fn nbdkit() -> Option<Nbdkit> {
    let mut command = Command::new("nbdkit");
    command.args(["-U", "-", "memory", &SIZE_BYTES.to_string(), "--run", "echo $unixsocket; exec cat"]);
    let mut process = match command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() {
        Ok(process) => process,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("SKIPPED: nbdkit is not installed");
            return None;
        }
        Err(error) => panic!("nbdkit: {error}"),
    };
    let mut line = String::new();
    BufReader::new(process.stdout.as_mut().expect("piped")).read_line(&mut line).expect("nbdkit prints its socket");
    Some(Nbdkit { process, socket: line.trim().into() })
}

/// What fio reports of a run.
struct Run {
    iops: f64,
    requests: f64,
}

/// One run; `None`, with a message, if fio is not installed.
fn fio(folder: &Path, socket: &Path, rw: &str, block: &str, depth: u32, extra: &[&str]) -> Option<Run> {
    let mut command = Command::new("fio");
    command.args([
        "--name=nbd",
        "--ioengine=nbd",
        "--thread",
        "--output-format=json",
        "--norandommap",
        "--randrepeat=0",
    ]);
    command.arg(format!("--uri=nbd+unix:///?socket={}", socket.display()));
    command.args([format!("--rw={rw}"), format!("--bs={block}"), format!("--iodepth={depth}")]);
    command.arg(format!("--size={SIZE_BYTES}")).args(extra).current_dir(folder);
    let output = match command.stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("SKIPPED: fio is not installed");
            return None;
        }
        Err(error) => panic!("fio: {error}"),
    };
    assert!(output.status.success(), "fio: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let json: serde_json::Value = serde_json::from_str(&text[text.find('{').unwrap_or(0)..]).expect("fio's JSON");
    let job = &json["jobs"][0];
    let sum = |key: &str| ["read", "write"].iter().filter_map(|kind| job[kind][key].as_f64()).sum();
    Some(Run { iops: sum("iops"), requests: sum("total_ios") })
}
