//! Sectors of a device: written with direct I/O, in any order, by several threads; and read back.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::Mutex;

use crate::pattern::{self, Content, SECTOR, mixed};

/// `O_DIRECT` and `O_DSYNC` of Linux on x86-64, the only architecture of this program.
const O_DIRECT: i32 = 0o40_000;
const O_DSYNC: i32 = 0o10_000;

/// Alignment of direct I/O.
const ALIGNMENT: usize = 4096;

/// Largest write in sectors.
const WRITE_MAX: u64 = 128;

/// The part of a device that we use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    pub(crate) device: &'a str,
    pub(crate) first: u64,
    pub(crate) sectors: u64,
}

/// The output for records: one complete line each, in the order of events.
pub(crate) struct Records<W> {
    to: Mutex<W>,
}

impl<W: io::Write> Records<W> {
    /// To `to`.
    pub(crate) fn new(to: W) -> Self {
        Self { to: Mutex::new(to) }
    }

    /// One line.
    pub(crate) fn say(&self, line: &str) -> io::Result<()> {
        let mut to = self.to.lock().map_err(|_| io::Error::other("another thread panicked"))?;
        to.write_all(format!("{line}\n").as_bytes())?;
        to.flush()
    }
}

/// A buffer aligned for direct I/O.
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
}

impl Aligned {
    fn new(length: usize) -> Self {
        let bytes = vec![0; length + ALIGNMENT];
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        Self { bytes, start }
    }

    fn slice(&mut self, length: usize) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + length]
    }
}

/// Writes until the device fails: each of `threads` in its own stripe of the part, with numbers from `generation` on.
///
/// Records: `w WRITE SECTOR COUNT` before a write, `a WRITE` when it is acknowledged, `d WRITE` when it is acknowledged
/// and was synchronous, `f THREAD` before a flush, `F THREAD` when that is acknowledged.
pub(crate) fn write<W: io::Write + Send>(
    part: Part,
    seed: u64,
    generation: u64,
    threads: u64,
    records: &Records<W>,
) -> io::Result<()> {
    let open = |flags: i32| OpenOptions::new().write(true).custom_flags(flags).open(part.device);
    let (plain, synchronous) = (open(O_DIRECT)?, open(O_DIRECT | O_DSYNC)?);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (plain, synchronous) = (&plain, &synchronous);
            let stripe = part.sectors / threads;
            let own = Part { first: part.first + thread * stripe, sectors: stripe, ..part };
            scope.spawn(move || {
                let mut writer = Writer { part: own, thread, state: mixed(seed ^ mixed(thread)), records };
                let mut number = generation + thread;
                // Its last error is the power cut, which it waits for.
                while writer.step(plain, synchronous, number).is_ok() {
                    number += threads;
                }
            });
        }
    });
    Ok(())
}

struct Writer<'a, W> {
    part: Part<'a>,
    thread: u64,
    state: u64,
    records: &'a Records<W>,
}

impl<W: io::Write> Writer<'_, W> {
    fn chance(&mut self, below: u64) -> u64 {
        self.state = mixed(self.state);
        self.state % below
    }

    fn step(&mut self, plain: &File, synchronous: &File, number: u64) -> io::Result<()> {
        let blocks_max = WRITE_MAX / 8;
        // Mostly small ones, as file systems write.
        let blocks = if self.chance(4) == 0 { 1 + self.chance(blocks_max) } else { 1 };
        let place = self.chance(self.part.sectors / 8 - blocks + 1);
        let (first, count) = (self.part.first + place * 8, blocks * 8);
        let mut buffer = Aligned::new(WRITE_MAX as usize * SECTOR);
        let bytes = buffer.slice(count as usize * SECTOR);
        pattern::fill(bytes, first, number);
        self.records.say(&format!("w {number} {first} {count}"))?;
        if self.chance(8) == 0 {
            synchronous.write_all_at(bytes, first * SECTOR as u64)?;
            self.records.say(&format!("d {number}"))?;
        } else {
            plain.write_all_at(bytes, first * SECTOR as u64)?;
            self.records.say(&format!("a {number}"))?;
        }
        if self.chance(16) == 0 {
            self.records.say(&format!("f {}", self.thread))?;
            plain.sync_data()?;
            self.records.say(&format!("F {}", self.thread))?;
        }
        Ok(())
    }
}

/// Reads the part, and reports the content of each sector.
///
/// Records: `r SECTOR COUNT WRITE`, sectors of one write; `z SECTOR COUNT`, blank; `t SECTOR COUNT`, foreign; `e SECTOR
/// COUNT`, unreadable.
pub(crate) fn read<W: io::Write>(part: Part, records: &Records<W>) -> io::Result<()> {
    let device = OpenOptions::new().read(true).custom_flags(O_DIRECT).open(part.device)?;
    let mut buffer = Aligned::new(WRITE_MAX as usize * SECTOR);
    let mut run: Option<(Option<Content>, u64, u64)> = None;
    let mut at = part.first;
    while at < part.first + part.sectors {
        let count = WRITE_MAX.min(part.first + part.sectors - at);
        for (sector, content) in (at..).zip(read_some(&device, &mut buffer, at, count)) {
            match &mut run {
                Some((same, _, length)) if *same == content => *length += 1,
                _ => {
                    say_run(run, records)?;
                    run = Some((content, sector, 1));
                }
            }
        }
        at += count;
    }
    say_run(run, records)
}

/// The content of some sectors; nothing if one is unreadable.
fn read_some(device: &File, buffer: &mut Aligned, at: u64, count: u64) -> Vec<Option<Content>> {
    let bytes = buffer.slice(count as usize * SECTOR);
    if device.read_exact_at(bytes, at * SECTOR as u64).is_ok() {
        return (at..)
            .zip(bytes.chunks_exact(SECTOR))
            .map(|(sector, bytes)| Some(pattern::content(bytes, sector)))
            .collect();
    }
    // One by one, to find which.
    let one = |sector: u64| {
        let mut buffer = Aligned::new(SECTOR);
        let bytes = buffer.slice(SECTOR);
        device.read_exact_at(bytes, sector * SECTOR as u64).ok().map(|()| pattern::content(bytes, sector))
    };
    (at..at + count).map(one).collect()
}

fn say_run<W: io::Write>(run: Option<(Option<Content>, u64, u64)>, records: &Records<W>) -> io::Result<()> {
    let Some((content, first, count)) = run else { return Ok(()) };
    records.say(&match content {
        Some(Content::Written(number)) => format!("r {first} {count} {number}"),
        Some(Content::Blank) => format!("z {first} {count}"),
        Some(Content::Foreign) => format!("t {first} {count}"),
        None => format!("e {first} {count}"),
    })
}
