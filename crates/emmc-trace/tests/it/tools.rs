//! The field's own tools, run on the same recordings: trace-cmd, blkparse and btt. Skipped with a message where they
//! are missing.
//!
//! `EMMCLAB_RECORDING=FILE` adds a `trace.dat` of one's own to the comparison with trace-cmd, `EMMCLAB_BLKTRACE="NAME.0
//! NAME.1"` files of blktrace to the one with btt: of one device, without merges.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;

use emmc_trace::{Correlator, Event, Op, Request, What, open};

use crate::support::{bytes, input, read};

/// The standard output of a tool; `None`, and a message, if it is not installed.
fn output(tool: &str, folder: &Path, arguments: &[&str]) -> Option<String> {
    let run = match Command::new(tool).args(arguments).current_dir(folder).output() {
        Ok(run) => run,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: {tool} is not installed");
            return None;
        }
        Err(error) => panic!("{tool}: {error}"),
    };
    assert!(run.status.success(), "{tool} {arguments:?}: {}", String::from_utf8_lossy(&run.stderr));
    Some(String::from_utf8(run.stdout).unwrap())
}

/// An empty folder, removed when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("emmc-trace-{name}-{}", std::process::id()));
        drop(std::fs::remove_dir_all(&path));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Recordings of trace-cmd and `trace record`: name and bytes.
fn recordings() -> Vec<(String, Vec<u8>)> {
    let own = std::env::var("EMMCLAB_RECORDING").ok().map(|path| {
        let content = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        (path, content)
    });
    let name = "mmc_dwrite_4096.dat";
    own.into_iter().chain([(name.to_string(), bytes(name))]).collect()
}

fn all_requests(content: Vec<u8>) -> (Vec<Request>, Correlator) {
    let mut recording = open(vec![input("recording", content)]).unwrap();
    let (mut correlator, mut all) = (Correlator::default(), Vec::new());
    recording.events.run(|event| correlator.take(event, &mut |request| all.push(*request)));
    correlator.end(&mut |request| all.push(*request));
    (all, correlator)
}

/// Every event that is read from the file is in trace-cmd's report, with the same time to the nanosecond, and the other
/// way round.
#[test]
fn trace_cmd_reports_the_same_events() {
    for (name, content) in recordings() {
        let scratch = Scratch::new("report");
        std::fs::write(scratch.0.join("trace.dat"), &content).unwrap();
        let Some(text) = output("trace-cmd", &scratch.0, &["report", "-t", "trace.dat"]) else { return };
        let binary = read(vec![input("trace.dat", content)]).0;
        let text = read(vec![input("report", text.into_bytes())]).0;
        let sorted = |events: &[Event]| {
            let mut keys: Vec<_> =
                events.iter().map(|event| (event.at.0, event.cpu, event.pid, format!("{:?}", event.what))).collect();
            keys.sort();
            keys
        };
        let (binary, text) = (sorted(&binary), sorted(&text));
        assert!(binary.len() > 1000, "{name}");
        let differs = binary.iter().zip(&text).find(|(a, b)| a != b);
        assert_eq!((binary.len(), differs), (text.len(), None), "{name}");
    }
}

/// Count, bytes and time of each operation on each device as biosnoop has them: from issue to completion, by device and
/// sector, from trace-cmd's text alone.
#[test]
fn totals_are_those_of_issue_and_completion_in_the_text() {
    for (name, content) in recordings() {
        let scratch = Scratch::new("totals");
        std::fs::write(scratch.0.join("trace.dat"), &content).unwrap();
        let Some(text) = output("trace-cmd", &scratch.0, &["report", "-t", "trace.dat"]) else { return };
        let mut issued: HashMap<(String, String), u64> = HashMap::new();
        let mut totals: BTreeMap<(String, char), (u64, u64, u64)> = BTreeMap::new();
        for line in text.lines() {
            let Some((head, event)) = line.split_once("]") else { continue };
            assert!(!head.is_empty());
            // `1.773408163: block_rq_issue: 179,0 W 4096 () 20480 + 8 [python3]`
            let words: Vec<&str> = event.split_whitespace().collect();
            let Some(plus) = words.iter().position(|word| *word == "+") else { continue };
            let [at, kind, device, flags, ..] = words[..] else { continue };
            let at: u64 = at.trim_end_matches(':').replace('.', "").parse().unwrap();
            let sectors: u64 = words[plus + 1].parse().unwrap();
            let key = (device.to_string(), words[plus - 1].to_string());
            match kind {
                "block_rq_issue:" => drop(issued.insert(key, at)),
                "block_rq_complete:" if sectors > 0 => {
                    let Some(began) = issued.remove(&key) else { continue };
                    let op = flags.trim_start_matches('F').chars().next().unwrap();
                    let sum = totals.entry((key.0, op)).or_default();
                    *sum = (sum.0 + 1, sum.1 + sectors * 512, sum.2 + at - began);
                }
                _ => {}
            }
        }
        let mut own: BTreeMap<(String, char), (u64, u64, u64)> = BTreeMap::new();
        for request in all_requests(content).0.iter().filter(|request| request.sectors > 0) {
            let op = match request.op {
                Op::Read => 'R',
                Op::Write => 'W',
                Op::Discard | Op::Erase => 'D',
                _ => continue,
            };
            let device = format!("{},{}", request.device >> 20, request.device & 0xf_ffff);
            let sum = own.entry((device, op)).or_default();
            let bytes = u64::from(request.sectors) * 512;
            *sum = (sum.0 + 1, sum.1 + bytes, sum.2 + request.device_time().0);
        }
        assert!(!totals.is_empty(), "{name}");
        assert_eq!(own, totals, "{name}");
    }
}

/// Recordings of blktrace: files of each processor.
fn processors() -> Vec<Vec<Vec<u8>>> {
    let own = std::env::var("EMMCLAB_BLKTRACE").ok().map(|paths| {
        let content = |path: &str| std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        paths.split_whitespace().map(content).collect()
    });
    let stored = [0, 1].map(|cpu| bytes(&format!("blk_bread_131072.blktrace.{cpu}"))).to_vec();
    own.into_iter().chain([stored]).collect()
}

/// The latencies that btt writes for each request, to its last digit, its means, and its counts of bios and issues.
#[test]
fn latencies_are_those_of_btt() {
    for files in processors() {
        if !agrees_with_btt(&files) {
            return;
        }
    }
}

/// Whether btt is there.
fn agrees_with_btt(files: &[Vec<u8>]) -> bool {
    let scratch = Scratch::new("btt");
    for (cpu, content) in files.iter().enumerate() {
        std::fs::write(scratch.0.join(format!("own.blktrace.{cpu}")), content).unwrap();
    }
    if output("blkparse", &scratch.0, &["-q", "-i", "own", "-d", "bin", "-O"]).is_none() {
        return false;
    }
    let tools = ["-i", "bin", "-l", "d2c", "-q", "q2c", "-z", "q2d"];
    let Some(text) = output("btt", &scratch.0, &tools) else { return false };
    let inputs = files.iter().enumerate().map(|(cpu, content)| input(&format!("own.blktrace.{cpu}"), content.clone()));
    let (mut correlator, mut all) = (Correlator::default(), Vec::new());
    let (mut queued, mut issues) = (0u64, 0u64);
    open(inputs.collect()).unwrap().events.run(|event| {
        if let What::Block(block) = event.what {
            queued += u64::from(block.action == emmc_trace::Action::Queue);
            issues += u64::from(block.action == emmc_trace::Action::Issue);
        }
        correlator.take(event, &mut |request: &Request| all.push(*request));
    });
    assert!(all.len() > 10 && all.iter().all(|request| request.bios.0 == 0));
    let device = all[0].device;
    assert!(all.iter().all(|request| request.device == device), "of several devices");
    let since = |from: emmc_units::Nanos, to: emmc_units::Nanos| to.0 - from.0;
    for (kind, of) in [
        ("d2c", (|one: &Request| (one.issued, one.completed)) as fn(&Request) -> _),
        ("q2c", |one| (one.queued.unwrap(), one.completed)),
        ("q2d", |one| (one.queued.unwrap(), one.issued)),
    ] {
        let name = format!("{kind}_{},{}_{kind}.dat", device >> 20, device & 0xf_ffff);
        let file = scratch.0.join(name);
        let written = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let latency = |line: &str| line.split_whitespace().nth(1).unwrap().to_string();
        let mut theirs: Vec<String> = written.lines().filter(|line| !line.trim().is_empty()).map(latency).collect();
        let own: Vec<u64> = all.iter().map(of).map(|(from, to)| since(from, to)).collect();
        let mut printed: Vec<String> = own.iter().map(|ns| format!("{:.6}", *ns as f64 / 1e9)).collect();
        theirs.sort();
        printed.sort();
        assert_eq!(printed, theirs, "{kind}");
        // `D2C   0.000004116   0.000146655   0.004021121   4096` of its table of all devices.
        let heading = kind.to_uppercase();
        if let Some(row) = text.lines().find(|line| line.split_whitespace().next() == Some(&heading)) {
            let theirs: Vec<&str> = row.split_whitespace().skip(1).collect();
            let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
            let (least, most) = (*own.iter().min().unwrap(), *own.iter().max().unwrap());
            let mean = format!("{:.9}", own.iter().sum::<u64>() as f64 / own.len() as f64 / 1e9);
            assert_eq!(theirs, [seconds(least), mean, seconds(most), own.len().to_string()], "{kind}");
        }
    }
    // `(179,  0) |       29       27     1.1 | ...` of its section about merges.
    let (_, merges) = text.split_once("Device Merge Information").unwrap();
    let row = merges.lines().find(|line| line.trim_start().starts_with('(')).unwrap();
    let counts: Vec<u64> =
        row.split('|').nth(1).unwrap().split_whitespace().take(2).map(|count| count.parse().unwrap()).collect();
    assert_eq!(counts, [queued, issues]);
    true
}
