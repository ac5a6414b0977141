use std::path::PathBuf;
use std::sync::Arc;

use emmc_trace::result::Analysis;
use emmc_trace::{Correlator, Event, Ftrace, Input, Merge, Notes, Request, analyse, open};

pub(crate) fn bytes(name: &str) -> Vec<u8> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../testdata/traces", name].iter().collect();
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn input(name: &str, bytes: Vec<u8>) -> Input {
    Input { name: name.into(), storage: Arc::new(bytes) }
}

/// All events of a recording.
pub(crate) fn read(inputs: Vec<Input>) -> (Vec<Event>, Notes) {
    let mut recording = open(inputs).unwrap();
    let mut events = Vec::new();
    recording.events.run(|event| events.push(*event));
    assert_eq!(recording.events.late, 0);
    assert!(events.is_sorted_by_key(|event| event.at));
    (events, recording.events.notes())
}

pub(crate) fn events(names: &[&str]) -> Vec<Event> {
    let (events, notes) = read(names.iter().map(|name| input(name, bytes(name))).collect());
    assert_eq!((notes.damaged, notes.lost, notes.losses_uncounted), (0, 0, 0), "{:?}", notes.damage);
    events
}

pub(crate) fn analysis(names: &[&str]) -> Analysis {
    let inputs = names.iter().map(|name| input(name, bytes(name))).collect();
    analyse(open(inputs).unwrap(), None)
}

/// A line of ftrace for each `time-in-us pid event: values`, on processor 0.
pub(crate) fn ftrace(lines: &str) -> String {
    let line = |line: &str| {
        let (at, rest) = line.trim().split_once(' ').unwrap();
        let (pid, rest) = rest.split_once(' ').unwrap();
        let at: u64 = at.parse().unwrap();
        format!("task-{pid} [000] ..... {}.{:06}: {rest}\n", at / 1_000_000, at % 1_000_000)
    };
    lines.lines().filter(|line| !line.trim().is_empty()).map(line).collect()
}

pub(crate) fn start(opcode: u8, blocks: u32, address: u64, request: &str) -> String {
    format!(
        "mmc_request_start: mmc0: start struct mmc_request[{request}]: cmd_opcode={opcode} cmd_arg=0x0 \
         blocks={blocks} block_size=512 blk_addr={address} tag=1"
    )
}

pub(crate) fn done(opcode: u8, request: &str) -> String {
    format!("mmc_request_done: mmc0: end struct mmc_request[{request}]: cmd_opcode={opcode} cmd_err=0 tag=1")
}

/// The requests of a text.
pub(crate) fn requests(text: &str) -> (Vec<Request>, Correlator) {
    let (mut merge, mut correlator) = (Merge::new(vec![Ftrace::new(text.as_bytes())]), Correlator::default());
    let mut all = Vec::new();
    merge.run(|event| correlator.take(event, &mut |request| all.push(*request)));
    correlator.end(&mut |request| all.push(*request));
    assert_eq!(merge.notes().damaged, 0);
    (all, correlator)
}
