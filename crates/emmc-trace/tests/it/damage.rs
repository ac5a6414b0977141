//! Damaged input: reported with its place, the rest read, and never a panic.

use emmc_trace::{Event, What, open};

use crate::support::{bytes, input, read};

const FILES: [&str; 6] = [
    "blk_dwrite_4096.blktrace.1",
    "mmc_dwrite_4096.report.txt",
    "reliable_write_io_sched.ftrace.txt",
    "cpu0.trace_pipe_raw",
    "mmc_dwrite_4096.dat",
    "formats_6.18.txt",
];

fn try_all(name: &str, bytes: Vec<u8>) -> Option<usize> {
    let mut inputs = vec![input(name, bytes)];
    if name.contains("raw") {
        inputs.push(input("formats", crate::support::bytes("formats_6.18.txt")));
    }
    let mut recording = open(inputs).map_err(|error| error.to_string()).ok()?;
    let mut count = 0;
    recording.events.run(|_| count += 1);
    Some(count)
}

#[test]
fn a_file_that_ends_anywhere_is_read_up_to_its_end() {
    for name in FILES {
        let whole = bytes(name);
        let all = try_all(name, whole.clone());
        // Every length of the first bytes, then some.
        let lengths = (0..whole.len()).filter(|length| *length < 600 || length % 997 == 0);
        for length in lengths {
            let some = try_all(name, whole[..length].to_vec());
            assert!(some <= all, "{name} {length}: {some:?} of {all:?}");
        }
    }
}

#[test]
fn changed_bytes_never_panic() {
    for name in FILES {
        let whole = bytes(name);
        for at in (0..whole.len()).step_by(211).chain(0..whole.len().min(512)) {
            for value in [0, 0xff, whole[at] ^ 0x10] {
                let mut changed = whole.clone();
                changed[at] = value;
                try_all(name, changed);
            }
        }
    }
}

#[test]
fn a_damaged_record_is_skipped_and_its_place_reported() {
    let name = "blk_dwrite_4096.blktrace.1";
    let whole = bytes(name);
    let (all, _) = read(vec![input(name, whole.clone())]);
    let at = record_after(&whole, 1000);
    let mut changed = whole;
    changed[at] ^= 0xff;
    let (some, notes) = read(vec![input(name, changed)]);
    assert_eq!((notes.damaged, notes.damage[0].offset), (1, at as u64));
    // The record is missing, and its place in the sequence is a loss.
    assert_eq!((some.len(), notes.lost), (all.len(), 1));
}

/// The place of the next record.
fn record_after(bytes: &[u8], from: usize) -> usize {
    (from..).find(|at| bytes[*at..].starts_with(b"\x07\x74\x61\x65")).unwrap()
}

/// A missing record leaves a gap in the sequence numbers: a loss between its neighbours.
#[test]
fn dropped_records_are_a_loss() {
    let name = "blk_bread_131072.blktrace.0";
    let whole = bytes(name);
    let (all, _) = read(vec![input(name, whole.clone())]);
    let at = record_after(&whole, 1000);
    let next = record_after(&whole, at + 1);
    let (some, notes) = read(vec![input(name, [&whole[..at], &whole[next..]].concat())]);
    assert_eq!((notes.lost, some.len()), (1, all.len()));
    let is_loss = |event: &&Event| matches!(event.what, What::Lost { count: 1, .. });
    assert_eq!(some.iter().filter(is_loss).count(), 1);
}

#[test]
fn lines_in_between_are_reported_with_their_number() {
    let line = "sh-1 [000] ..... 1.000001: block_plug: [sh]\n";
    let (events, notes) = read(vec![input("f", format!("{line}garbage\n{line}").into())]);
    assert_eq!((events.len(), notes.damaged), (2, 1));
    let expected = "line 2, byte 44: found \"garbage\"; expected name-pid [cpu] flags seconds: event: values";
    assert_eq!(notes.damage[0].to_string(), expected);
}

#[test]
fn an_empty_file_beside_others_is_a_processor_without_events() {
    let name = "blk_bread_131072.blktrace.0";
    let (events, _) = read(vec![input("cpu1", Vec::new()), input(name, bytes(name))]);
    assert!(!events.is_empty());
    let alone = open(vec![input("cpu1", Vec::new())]).err().unwrap().to_string();
    assert!(alone.starts_with("cpu1: it is empty; expected ftrace text"), "{alone}");
}

#[test]
fn files_with_different_clocks_are_refused() {
    let names = ["blk_bread_131072.blktrace.0", "mmc_dwrite_4096.dat"];
    let error = open(names.map(|name| input(name, bytes(name))).into()).err().unwrap().to_string();
    assert!(error.contains("have different clocks"), "{error}");
}
