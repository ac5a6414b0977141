//! The spans of a guest's recording, compared with what the card itself logged for the same requests.
//!
//! The guest leaves pages of its ring buffers (`cpuN`) and the kernel's `formats`, or a `trace.dat`; `parts` (which
//! megabytes of the card a kind of requests has for itself), and fio's results. The card's server leaves its record.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use emmc_serve::pci::RecordedRequest;
use emmc_trace::{Correlator, Event, Input, Needs, Op, Request, Storage, What, open};

/// How far the mean of the span of the card may be from the card's own account.
const PERCENT_MAX: f64 = 1.0;
/// How far the time of a run at a depth may be from its prediction.
const PREDICTED_PERCENT_MAX: f64 = 5.0;
const DEPTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// Major number of MMC devices.
const MMC_MAJOR: u32 = 179;
const SECTORS_PER_MIB: u64 = 2048;

/// A kind of requests and its place on the card.
struct Part {
    name: String,
    first: u64,
    end: u64,
}

/// The recording, correlated.
#[derive(Default)]
struct Recorded {
    requests: Vec<Request>,
    calls: Calls,
}

/// System calls that queued bios: what their threads waited, counted apart from the correlation.
#[derive(Default)]
struct Calls {
    running: HashMap<u32, (u64, bool)>,
    /// Thread, begin, end. Unit: nanoseconds.
    done: Vec<(u32, u64, u64)>,
}

impl Calls {
    fn take(&mut self, event: &Event) {
        match &event.what {
            What::Syscall { entered: true, .. } => {
                self.running.insert(event.pid, (event.at.0, false));
            }
            What::Syscall { entered: false, .. } => {
                if let Some((began, true)) = self.running.remove(&event.pid) {
                    self.done.push((event.pid, began, event.at.0));
                }
            }
            What::Block(block) if block.action == emmc_trace::Action::Queue && block.device >> 20 == MMC_MAJOR => {
                if let Some((_, queued)) = self.running.get_mut(&event.pid) {
                    *queued = true;
                }
            }
            _ => {}
        }
    }
}

/// Compares, and prints a table. If guest and card have clocks of their own, how far a single span is from the card's
/// account is printed (half of the requests, nine in ten), and is no error.
///
/// Errors: what differs.
pub(crate) fn compare(out: &Path, log: &Path, on_one_clock: bool) -> anyhow::Result<()> {
    let mut recorded = read(out)?;
    let log = card_log(log)?;
    recorded.requests.sort_by_key(|request| (request.issued, request.sector));
    let all = pair(&recorded.requests, &log)?;
    let mut wrong = Vec::new();
    println!("requests               count   spans, us    card, us  differ    half 9 in 10     most, us   fio has");
    for part in parts(&fs::read_to_string(out.join("parts")).context("parts")?)? {
        let own = |(request, _): &&(Request, RecordedRequest)| (part.first..part.end).contains(&request.sector);
        let own: Vec<_> = all.iter().filter(own).copied().collect();
        let bytes: u64 = own.iter().map(|(request, _)| u64::from(request.sectors) * 512).sum();
        let fio = fio_bytes(&out.join(format!("{}.json", part.name)))?;
        let ahead = part.name.starts_with("sync-read");
        if (!ahead && bytes != fio) || bytes < fio {
            wrong.push(format!("{}: {bytes} B in requests, {fio} B in fio's result", part.name));
        }
        ensure!(!own.is_empty(), "{}: no request", part.name);
        let (mut spans, mut card, mut apart) = (0, 0, Vec::new());
        for (request, logged) in &own {
            let hardware = request.spans().hardware.context("a request without commands")?.0;
            let own = logged.done_ns - logged.issued_ns;
            (spans, card) = (spans + hardware, card + own);
            apart.push(hardware.abs_diff(own));
        }
        apart.sort_unstable();
        let apart = [apart.len() / 2, apart.len() * 9 / 10, apart.len() - 1].map(|at| apart[at] as f64 / 1e3);
        let mean = |sum: u64| sum as f64 / own.len() as f64 / 1e3;
        let percent = (spans as f64 / card as f64 - 1.0) * 100.0;
        println!(
            "{:22} {:5} {:11.3} {:11.3} {percent:+6.2} % {:7.3} {:7.3} {:12.3} {fio:9}",
            part.name,
            own.len(),
            mean(spans),
            mean(card),
            apart[0],
            apart[1],
            apart[2]
        );
        if on_one_clock && percent.abs() > PERCENT_MAX {
            wrong.push(format!("{}: the span of the card differs by {percent:.2} %", part.name));
        }
    }
    wrong.extend(sums(&recorded));
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Predicts the speed at every depth from the requests at the least and at the most, and compares it with the runs.
///
/// On one clock processors work in turns, so that they are one. On the wall clock what differs is printed, and is no
/// error.
///
/// Errors: what differs.
pub(crate) fn predict(out: &Path, queueing: bool, on_one_clock: bool, processors: u32) -> anyhow::Result<()> {
    let processors = if on_one_clock { 1 } else { processors };
    let recorded = read(out)?;
    let parts = parts(&fs::read_to_string(out.join("parts")).context("parts")?)?;
    let mut wrong = Vec::new();
    println!("requests            predicted, us measured, us  differ");
    for kind in ["randread", "randwrite"] {
        let part = |depth: u32| {
            let name = format!("depth-{kind}-{depth}");
            parts.iter().find(|part| part.name == name).with_context(|| format!("no part {name}"))
        };
        let ends = [part(1)?, part(32)?];
        let within = |request: &&Request| ends.iter().any(|part| (part.first..part.end).contains(&request.sector));
        // Neighbours that were merged are of another size.
        let single = |request: &&Request| request.sectors == 8 && matches!(request.op, Op::Read | Op::Write);
        let needs = Needs::of(recorded.requests.iter().filter(within).filter(single)).context("no request")?;
        println!(
            "{kind}: the card takes {} alone, {} in a queue; the program {} itself, the processor {} in all",
            needs.alone,
            shown(needs.queued),
            shown(needs.own),
            shown(needs.processor)
        );
        for depth in DEPTHS {
            let predicted = needs.period_ns(depth, processors, queueing).context("the model refuses it")? / 1e3;
            let part = part(depth)?;
            let name = part.name.as_str();
            let here = |request: &&Request| request.sectors > 0 && (part.first..part.end).contains(&request.sector);
            let run: Vec<&Request> = recorded.requests.iter().filter(here).collect();
            let begin = run.iter().map(|request| request.began()).min().context("no request")?;
            let end = run.iter().map(|request| request.completed).max().context("no request")?;
            // A merged request is as many of fio's.
            let requests: u64 = run.iter().map(|request| u64::from(request.sectors) / 8).sum();
            let found = (end.0 - begin.0) as f64 / requests as f64 / 1e3;
            let percent = (predicted / found - 1.0) * 100.0;
            println!("{name:18} {predicted:14.2} {found:12.2} {percent:+6.1} %");
            if on_one_clock && percent.abs() > PREDICTED_PERCENT_MAX {
                wrong.push(format!("{name}: predicted {predicted:.2} us, found {found:.2} us"));
            }
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// A question mark for what is not known.
fn shown<T: ToString>(time: Option<T>) -> String {
    time.map_or("?".into(), |time| time.to_string())
}

fn read(out: &Path) -> anyhow::Result<Recorded> {
    let mut inputs = Vec::new();
    for entry in fs::read_dir(out)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with("cpu") || name == "formats" || name == "trace.dat" {
            let storage: Arc<dyn Storage> = Arc::new(fs::read(&path)?);
            inputs.push(Input { name, storage });
        }
    }
    inputs.sort_by(|a, b| a.name.cmp(&b.name));
    let mut recording = open(inputs)?;
    let (mut correlator, mut recorded) = (Correlator::default(), Recorded::default());
    let mut keep = |request: &Request| {
        if request.device >> 20 == MMC_MAJOR {
            recorded.requests.push(*request);
        }
    };
    recording.events.run(|event| {
        recorded.calls.take(event);
        correlator.take(event, &mut keep);
    });
    correlator.end(&mut keep);
    let started_late = correlator.commands().started_late;
    if started_late > 0 {
        println!("{started_late} tasks ended before their start was recorded");
    }
    let late = recording.events.late;
    let notes = recording.events.notes();
    let unpaired = correlator.unpaired;
    ensure!(unpaired.total() == 0 && late == 0, "not everything was paired: {unpaired:?}, {late} events out of order");
    ensure!(notes.lost == 0 && notes.losses_uncounted == 0 && notes.damaged == 0, "events lost: {notes:?}");
    Ok(recorded)
}

/// Data requests of the card, in the order in which they were issued.
fn card_log(path: &Path) -> anyhow::Result<Vec<RecordedRequest>> {
    let text = fs::read_to_string(path).context("the requests of the card")?;
    let mut all = Vec::new();
    for line in text.lines() {
        let request: RecordedRequest = serde_json::from_str(line).context("the requests of the card")?;
        if matches!(request.command, 17 | 18 | 24 | 25 | 46 | 47) {
            all.push(request);
        }
    }
    all.sort_by_key(|request| request.issued_ns);
    Ok(all)
}

/// Each request that moved data with the card's account of it: the recording is a run of the log without a gap.
fn pair(requests: &[Request], log: &[RecordedRequest]) -> anyhow::Result<Vec<(Request, RecordedRequest)>> {
    let moves = |request: &&Request| matches!(request.op, Op::Read | Op::Write);
    let data: Vec<Request> = requests.iter().filter(moves).copied().collect();
    ensure!(!data.is_empty(), "no request in the recording");
    let recorded: Vec<_> = data.iter().map(|one| (one.op == Op::Write, one.sector, one.sectors)).collect();
    let is_write = |one: &RecordedRequest| matches!(one.command, 24 | 25 | 47);
    let logged: Vec<_> = log.iter().map(|one| (is_write(one), u64::from(one.argument), one.blocks)).collect();
    let Some(at) = logged.windows(recorded.len()).position(|run| run == recorded) else {
        let first = logged.iter().position(|one| *one == recorded[0]).unwrap_or(0);
        let differs = logged[first..].iter().zip(&recorded).position(|(a, b)| a != b).unwrap_or(0);
        bail!(
            "the {} requests of the recording are no run of the card's {}: number {differs} is {:?}, the card's is {:?}",
            recorded.len(),
            logged.len(),
            recorded[differs],
            logged.get(first + differs)
        );
    };
    Ok(data.into_iter().zip(log[at..].iter().copied()).collect())
}

fn parts(text: &str) -> anyhow::Result<Vec<Part>> {
    let part = |line: &str| {
        let [name, first, mib] = line.split(' ').collect::<Vec<_>>()[..] else { bail!("a part: {line:?}") };
        let (first, mib): (u64, u64) = (first.parse()?, mib.parse()?);
        Ok(Part { name: name.into(), first: first * SECTORS_PER_MIB, end: (first + mib) * SECTORS_PER_MIB })
    };
    text.lines().map(part).collect()
}

fn fio_bytes(path: &Path) -> anyhow::Result<u64> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let result: serde_json::Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    let bytes = |kind: &str| result["jobs"][0][kind]["io_bytes"].as_u64().context("fio's io_bytes");
    Ok(bytes("read")? + bytes("write")?)
}

/// Spans add up to the time from begin to end, and the requests of a call to what its thread waited.
fn sums(recorded: &Recorded) -> Vec<String> {
    let mut wrong = Vec::new();
    for request in &recorded.requests {
        let spans = request.spans();
        let all = [spans.vfs, spans.block, spans.issue, spans.hardware, spans.post];
        let sum: u64 = all.iter().flatten().map(|span| span.0).sum();
        if sum != request.total().0 {
            wrong.push(format!("sector {}: spans of {sum} ns, {} ns in all", request.sector, request.total().0));
        }
    }
    let (mut calls, mut waited) = (0, 0u64);
    for (pid, began, ended) in &recorded.calls.done {
        let within = |request: &&Request| {
            request.pid == *pid
                && request.began().0 >= *began
                && request.ended().0 <= *ended
                && request.entered.is_some()
        };
        let mut own: Vec<&Request> = recorded.requests.iter().filter(within).collect();
        own.sort_by_key(|request| request.completed);
        if own.iter().all(|request| request.exited.is_none()) {
            // Nobody waited in it.
            continue;
        }
        // Requests of a call that overlap are counted once: the union of their intervals.
        let (mut until, mut sum) = (*began, 0);
        for request in own {
            let from = request.began().0.max(until);
            sum += request.ended().0.saturating_sub(from);
            until = until.max(request.ended().0);
        }
        (calls, waited) = (calls + 1, waited + sum);
        if sum != ended - began {
            wrong
                .push(format!("a call of thread {pid} at {began} ns took {} ns, its requests {sum} ns", ended - began));
        }
    }
    println!(
        "spans of {} requests add up to their time to the nanosecond; so do the requests of {calls} system calls, {} us",
        recorded.requests.len(),
        waited / 1000
    );
    wrong.truncate(20);
    wrong
}
