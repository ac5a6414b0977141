//! Random writes of 4 KiB, then sequential writes of 1 MiB, to a card in a folder, without a client: `cargo bench -p
//! emmc-serve --bench store`.
//!
//! Then random writes until the journal was merged into the state (checkpoint): how long single ones took, beside that
//! and elsewhere.
//!
//! Rates per second of wall time and per second of processor time; the second is not affected by a busy machine. The
//! folder is a new one below TMPDIR. Its filesystem matters: on a disk the system writes data back, in memory it does
//! not.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant as Wall;

use emmc_card::card::Card;
use emmc_card::device::{Area, DeviceOptions};
use emmc_card::nand::StoredContent;
use emmc_card::profile::shipped;
use emmc_serve::block::{Block, Request};
use emmc_serve::served::{Served, ServedOptions};
use emmc_serve::store::{Purpose, Store};
use emmc_units::Instant;
use rustix::time::{ClockId, clock_gettime};

const PROFILE: &str = "generic-8g";
const WRITES: u64 = 400_000;
/// The part of the card that is written. Unit: blocks of 4 KiB.
const BLOCKS: u64 = 1 << 18;

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Of this thread: without the time that others had its processor.
fn thread_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = DeviceOptions { keep: StoredContent::Orders, seed: 1 };
    let mut card = Card::new(shipped::named(PROFILE).expect("it is shipped"), options).expect("a card");
    card.power_off(Instant::START);
    let text = shipped::text(PROFILE).expect("it is shipped");
    Store::create(folder.path(), text, &card, Instant::START).expect("a card's folder");
    let served = Served::open(folder.path(), ServedOptions { delays: false, dilation: 1 }).expect("a served card");
    let mut block = [0u8; 4096];
    let (mut state, mut count) = (1u64, 0u64);
    let mut write = |served: &Served| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        count += 1;
        block[..8].copy_from_slice(&count.to_le_bytes());
        let request = Request::Write { offset: (state >> 33) % BLOCKS * 4096, data: &block, through: false };
        served.submit(Area::User, request).expect("a write");
    };
    for round in 0..3 {
        let (wall, cpu) = (Wall::now(), cpu_seconds());
        (0..WRITES).for_each(|_| write(&served));
        let (wall, cpu) = (wall.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        let (by_wall, by_cpu) = (WRITES as f64 / wall / 1e3, WRITES as f64 / cpu / 1e3);
        println!("round {round}: {by_wall:.0} thousand writes/s, {by_cpu:.0} thousand per second of processor time");
    }
    sequential(&served);
    stalls(&served, folder.path(), write);
    let kept = std::fs::metadata(folder.path().join("card.data")).expect("contents").len();
    println!("contents: {} MiB in the folder, {} MiB on the card", kept >> 20, (BLOCKS * 4096) >> 20);
    served.finish().expect("the end");
    start(folder.path());
}

/// Sequential writes of 1 MiB; the first round overwrites random writes.
fn sequential(served: &Served) {
    const MIB: usize = 1 << 20;
    let mut block = vec![0u8; MIB];
    for round in 0..5 {
        for reads in [false, true] {
            let (wall, cpu) = (Wall::now(), cpu_seconds());
            for at in 0..512u64 {
                let offset = at % 256 * MIB as u64;
                if !reads {
                    block.chunks_exact_mut(4096).for_each(|unit| unit[0] = round + 1);
                }
                let request = match reads {
                    true => Request::Read { offset, into: &mut block },
                    false => Request::Write { offset, data: &block, through: false },
                };
                served.submit(Area::User, request).expect("a MiB");
            }
            let (wall, cpu) = (wall.elapsed().as_secs_f64(), cpu_seconds() - cpu);
            let (by_wall, by_cpu) = (512.0 / wall, 512.0 / cpu);
            let what = if reads { "read" } else { "write" };
            println!("1 MiB {what} {round}: {by_wall:.0} MiB/s, {by_cpu:.0} MiB per second of processor time");
        }
    }
}

/// How long a start takes to write the whole state at once.
fn start(folder: &Path) {
    let (mut store, mut card, now) = Store::open(folder, Purpose::Serve).expect("the card again");
    for what in ["first", "second"] {
        let start = Wall::now();
        store.begin(&mut card, now).expect("a state");
        println!("{what} state written at once: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    }
}

/// How long single requests wait beside a checkpoint, and elsewhere: random writes until one has ended, and twice as
/// many more.
fn stalls(served: &Served, folder: &Path, mut write: impl FnMut(&Served)) {
    let state = || std::fs::metadata(folder.join("card.state")).expect("a state").ino();
    let earlier_journal = folder.join("card.journal.before");
    let before = state();
    // Of each thousand writes: the slowest by the clock and of processor time, and whether a checkpoint was going on.
    let (mut slowest_us, mut after): (Vec<([f64; 2], bool)>, usize) = (Vec::new(), 0);
    while after == 0 || slowest_us.len() < 3 * after {
        let mut slowest = [0.0_f64; 2];
        for _ in 0..1000 {
            let (wall, cpu) = (Wall::now(), thread_seconds());
            write(served);
            let took = [wall.elapsed().as_secs_f64(), thread_seconds() - cpu];
            slowest.iter_mut().zip(took).for_each(|(slowest, took)| *slowest = slowest.max(took * 1e6));
        }
        if after == 0 && state() != before {
            after = slowest_us.len();
        }
        // Space is given back for some time after it.
        let is_beside = earlier_journal.exists() || after > 0 && slowest_us.len() < after + 2;
        slowest_us.push((slowest, is_beside));
    }
    let (beside, elsewhere): (Vec<_>, Vec<_>) = slowest_us.into_iter().partition(|(_, is_beside)| *is_beside);
    for (index, what) in ["by the clock", "of processor time"].into_iter().enumerate() {
        let slowest = |thousands: &[([f64; 2], bool)]| thousands.iter().map(|it| it.0[index]).fold(0.0, f64::max);
        let mut others: Vec<f64> = elsewhere.chunks_exact(beside.len()).map(slowest).collect();
        others.sort_by(f64::total_cmp);
        let [low, middle, high] = [0, others.len() / 2, others.len() - 1].map(|at| others[at]);
        println!(
            "slowest of {} writes beside a checkpoint: {:.0} us {what}; of {} times as many elsewhere: {low:.0} to \
             {high:.0} us, median {middle:.0}",
            beside.len() * 1000,
            slowest(&beside),
            others.len(),
        );
    }
}
