//! Compares `clone` and `restore` with `dd | zstd` and `nbdcopy`, in one run, in turns:
//! `cargo bench -p emmclab --bench clone -- [ROUNDS] [--delays]`.
//!
//! A virtual card of 4 GiB is served as files, loop devices and over NBD. It has a GPT with one partition of ext4 that
//! holds 400 MiB of this machine's files (`/usr`). `clone` and `dd` read its loop device with direct I/O; `nbdcopy`
//! reads the NBD export, whose block status says what is not mapped. Each run ends when its file is on the disk
//! (`sync`). `clone` also compares its file with all hashes, and `restore` reads everything back; the others check
//! nothing. The card has no delays, so that the programs decide; with `--delays` it has its own times.
//!
//! The columns: the median of the rounds with the lowest and the highest, processor time of the program without that of
//! server and kernel threads, what the card was asked to read, and what is stored. Afterwards a clone is killed
//! (`kill -9`) five times and continued, its file is compared with that of the first, and the restored card is compared
//! sector by sector and by e2fsck. Requires root, loop devices, sfdisk, mkfs.ext4, zstd and nbdcopy; prints what is
//! missing.

mod card;
mod killed;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use card::Card;

const MIB: u64 = 1 << 20;
const ROUNDS: usize = 5;

/// A program that is measured, and the card whose requests count.
struct Contender<'a> {
    name: &'static str,
    card: &'a Card,
    /// A line of sh; a file named `$OUT` is removed before it.
    line: String,
    out: Option<PathBuf>,
}

/// What a run needed.
#[derive(Clone, Copy)]
struct Run {
    seconds: f64,
    cpu_seconds: f64,
    /// What the card was asked for. Unit: bytes.
    read_bytes: u64,
    written_bytes: u64,
    /// The size of what is stored, on the disk. Unit: bytes.
    stored_bytes: u64,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<usize> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
    let rounds = numbers.first().copied().unwrap_or(ROUNDS).max(1);
    let delays = args.iter().any(|arg| arg == "--delays");
    if let Some(missing) = missing() {
        eprintln!("SKIPPED: {missing}");
        return;
    }
    let folder = std::env::temp_dir().join(format!("emmclab-bench-clone-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    compare(&folder, rounds, delays);
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}

fn missing() -> Option<String> {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|found| std::os::unix::fs::MetadataExt::uid(&found) == 0);
    if !is_root {
        return Some("not root: no loop devices".into());
    }
    let programs = ["sfdisk", "partx", "mkfs.ext4", "e2fsck", "mount", "zstd", "nbdcopy", "dd", "sync"];
    let is_missing = |program: &&&str| {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).stdout(Stdio::null()).status();
        !found.is_ok_and(|status| status.success())
    };
    programs.iter().find(is_missing).map(|program| format!("{program} is not installed"))
}

fn compare(folder: &Path, rounds: usize, delays: bool) {
    let source = Card::new(&folder.join("source"), delays);
    let used = source.fill(400 * MIB);
    let target = Card::new(&folder.join("target"), delays);
    let emmclab = env!("CARGO_BIN_EXE_emmclab");
    let file = |name: &str| folder.join(name);
    let [clone, packed, raw, raw_packed] = ["card.clone", "dd.zst", "nbdcopy.img", "nbdcopy.zst"].map(file);
    let [shown, own_target] = [&source, &target].map(|card| card.loop_device().to_owned());
    let (nbd, to_nbd) = (source.uri(), target.uri());
    let line = |name, card, line: String, out: Option<&PathBuf>| Contender { name, card, line, out: out.cloned() };
    let show = |path: &Path| path.display().to_string();
    let (c, p, r, z) = (show(&clone), show(&packed), show(&raw), show(&raw_packed));
    let taking = [
        line("emmclab clone", &source, format!("{emmclab} clone {shown} -o {c}"), Some(&clone)),
        line(
            "dd, zstd -1 -T0",
            &source,
            format!("dd if={shown} bs=1M iflag=direct status=none | zstd -q -1 -T0 -o {p} && sync {p}"),
            Some(&packed),
        ),
        line("nbdcopy to an image", &source, format!("nbdcopy --flush '{nbd}' {r}"), Some(&raw)),
        line(
            "nbdcopy, zstd -1 -T0",
            &source,
            format!("nbdcopy '{nbd}' - | zstd -q -1 -T0 -o {z} && sync {z}"),
            Some(&raw_packed),
        ),
    ];
    let consent = format!("--destroy --yes-i-mean {}", &own_target["/dev/".len()..]);
    let putting = [
        line("emmclab restore", &target, format!("{emmclab} restore {c} {own_target} {consent}"), None),
        line(
            "emmclab restore, no read-back",
            &target,
            format!("{emmclab} restore {c} {own_target} {consent} --no-read-back"),
            None,
        ),
        line(
            "zstd -d, dd",
            &target,
            format!("zstd -qdc {p} | dd of={own_target} bs=1M iflag=fullblock oflag=direct conv=fsync status=none"),
            None,
        ),
        line("nbdcopy of the image", &target, format!("nbdcopy --flush {r} '{to_nbd}'"), None),
    ];
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!(
        "A card of 4 GiB, of which ext4 has {} MiB of files; {rounds} rounds; load average {}",
        used / MIB,
        load.trim()
    );
    let taken = table("clone", rounds, &taking);
    let put = table("restore", rounds, &putting);
    for (contenders, runs) in [(&taking, taken), (&putting, put)] {
        // Lines for `cargo xtask bench`; restores without reading back have no peer of their own.
        for (peer, run) in contenders.iter().zip(&runs).skip(1).filter(|(peer, _)| !peer.name.starts_with("emmclab")) {
            let Run { seconds, cpu_seconds, .. } = runs[0];
            let (own, peer, [s, cpu]) = (contenders[0].name, peer.name, [run.seconds, run.cpu_seconds]);
            println!("{own} beside {peer}: {seconds:.2} s, {s:.2} s, CPU {cpu_seconds:.2} s, {cpu:.2} s");
        }
    }
    killed::five_times(&source, &clone, folder);
    // The last contender has written the target: once more by `restore`.
    run(&putting[0]);
    card::compare(&source, &target, folder);
}

/// Runs all contenders in turns, and prints them. Returns the median run of each.
fn table(what: &str, rounds: usize, contenders: &[Contender<'_>]) -> Vec<Run> {
    let mut runs = vec![Vec::new(); contenders.len()];
    for _ in 0..rounds {
        for (contender, runs) in contenders.iter().zip(&mut runs) {
            runs.push(run(contender));
        }
    }
    println!("| {what} | s | lowest | highest | CPU s | card reads MiB | card writes MiB | stored MiB |");
    println!("|---|---|---|---|---|---|---|---|");
    let mut medians = Vec::new();
    for (contender, mut runs) in contenders.iter().zip(runs) {
        runs.sort_by(|a: &Run, b: &Run| a.seconds.total_cmp(&b.seconds));
        let (median, first, last) = (runs[runs.len() / 2], runs[0], runs[runs.len() - 1]);
        let Run { seconds, cpu_seconds, read_bytes, written_bytes, stored_bytes } = median;
        let mib = |bytes: u64| bytes.div_ceil(MIB);
        println!(
            "| {} | {seconds:.2} | {:.2} | {:.2} | {cpu_seconds:.2} | {} | {} | {} |",
            contender.name,
            first.seconds,
            last.seconds,
            mib(read_bytes),
            mib(written_bytes),
            if contender.out.is_some() { mib(stored_bytes).to_string() } else { "-".into() },
        );
        medians.push(median);
    }
    medians
}

/// Runs one contender once.
fn run(contender: &Contender<'_>) -> Run {
    use std::os::unix::fs::MetadataExt;
    if let Some(out) = &contender.out {
        let _ = std::fs::remove_file(out);
    }
    // What an earlier run has left to write is not this one's.
    rustix::fs::sync();
    let ([read, written], cpu, begin) = (contender.card.requested(), cpu_of_children(), Instant::now());
    let status = Command::new("sh")
        .args(["-c", &contender.line])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("sh");
    let seconds = begin.elapsed().as_secs_f64();
    assert!(status.success(), "{}: {status}", contender.line);
    let [read_now, written_now] = contender.card.requested();
    let stored = contender.out.as_ref().map(|out| std::fs::metadata(out).expect("its file").blocks() * 512);
    Run {
        seconds,
        cpu_seconds: (cpu_of_children() - cpu).as_secs_f64(),
        read_bytes: read_now - read,
        written_bytes: written_now - written,
        stored_bytes: stored.unwrap_or(0),
    }
}

/// Processor time of all children that ended.
///
/// Source: proc(5), fields 16 and 17; a tick is 10 ms.
fn cpu_of_children() -> Duration {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace();
    let ticks: u64 = fields.skip(13).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
