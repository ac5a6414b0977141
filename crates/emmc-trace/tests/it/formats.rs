//! Real recordings, and the same recording in two formats.

use std::path::Path;

use emmc_trace::{Action, Event, What};

use crate::support::{bytes, events, input, read};

const PAGES: [&str; 3] = ["formats_6.18.txt", "cpu0.trace_pipe_raw", "cpu1.trace_pipe_raw"];

fn count(events: &[Event], of: impl Fn(&What) -> bool) -> usize {
    events.iter().filter(|event| of(&event.what)).count()
}

fn actions(events: &[Event], action: Action) -> usize {
    count(events, |what| matches!(what, What::Block(block) if block.action == action))
}

/// The text of `trace-cmd report -t` has the same events with the same times; only 179,0, MMC and system calls are in
/// it.
#[test]
fn trace_dat_and_the_report_of_trace_cmd_agree() {
    let of_card = |event: &Event| match event.what {
        What::Block(block) => block.device == 179 << 20,
        What::Mmc(_) | What::Syscall { .. } => true,
        _ => false,
    };
    let mut binary = events(&["mmc_dwrite_4096.dat"]);
    binary.retain(of_card);
    let mut text = events(&["mmc_dwrite_4096.report.txt"]);
    text.retain(of_card);
    assert_eq!((binary.len(), count(&binary, |what| matches!(what, What::Mmc(_)))), (text.len(), 32));
    for (binary, text) in binary.iter().zip(&text) {
        assert_eq!(binary, text);
    }
}

#[test]
fn files_of_each_processor_and_one_dump_agree() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/block_traces");
    let dump = ["blk_dwrite_4096.bin", "blk_dwrite_4096.txt"];
    let [binary, text] = dump.map(|name| read(vec![input(name, std::fs::read(path.join(name)).unwrap())]).0);
    let files = events(&["blk_dwrite_4096.blktrace.0", "blk_dwrite_4096.blktrace.1"]);
    // blkparse counts the time from the first event.
    let sorted = |events: &[Event]| {
        let began = events[0].at.0;
        let key = |event: &Event| (event.at.0 - began, event.cpu, event.pid, format!("{:?}", event.what));
        let mut keys: Vec<_> = events.iter().map(key).collect();
        keys.sort();
        keys
    };
    assert!(sorted(&files) == sorted(&binary));
    // The binary has more: blkparse's text has no plug of a device, and FUA and flush in other words.
    let issued = |events: &[Event]| {
        let of = |event: &Event| match event.what {
            What::Block(block) if block.action == Action::Issue => Some((event.at, block)),
            _ => None,
        };
        events.iter().filter_map(of).collect::<Vec<_>>()
    };
    assert_eq!(issued(&binary), issued(&text));
}

#[test]
fn pages_of_a_kernel_are_read_by_its_format_files() {
    let events = events(&PAGES);
    let of =
        [Action::Queue, Action::GetRequest, Action::Issue, Action::Complete].map(|action| actions(&events, action));
    assert_eq!(of.map(|count| count > 50), [true; 4], "{of:?}");
    // The recording is of a loop device, 7:0 or the disk below it, with requests of 4 KiB.
    let sizes = count(&events, |what| matches!(what, What::Block(block) if block.sectors == 8));
    assert!(sizes * 10 > events.len() * 4, "{sizes} of {}", events.len());
}

#[test]
fn pages_need_formats() {
    let error = emmc_trace::open(vec![input("cpu0", bytes(PAGES[1]))]).err().unwrap();
    assert_eq!(
        error.to_string(),
        "cpu0: pages of trace_pipe_raw need the kernel's format files; give them as one more file"
    );
}

/// A file of version 6, put together from pages and formats.
#[test]
fn trace_dat_of_version_6_is_read() {
    let word = |value: u64| value.to_le_bytes().to_vec();
    let half = |value: u32| value.to_le_bytes().to_vec();
    let (formats, pages) = (bytes(PAGES[0]), bytes(PAGES[1]));
    let mut file = b"\x17\x08\x44tracing6\0\0\x08".to_vec();
    file.extend(half(4096));
    let header = "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n";
    for part in
        [b"header_page\0".to_vec(), word(header.len() as u64), header.into(), b"header_event\0".to_vec(), word(0)]
    {
        file.extend(part);
    }
    for part in [half(0), half(1), b"block\0".to_vec(), half(1), word(formats.len() as u64), formats] {
        file.extend(part);
    }
    let names = b"7 a name\n".to_vec();
    for part in [half(0), half(0), word(names.len() as u64), names, half(1), b"flyrecord\0".to_vec()] {
        file.extend(part);
    }
    let at = (file.len() + 16).next_multiple_of(4096);
    file.extend([word(at as u64), word(pages.len() as u64)].concat());
    file.resize(at, 0);
    file.extend(&pages);
    let (read, notes) = read(vec![input("trace.dat", file)]);
    assert_eq!(read, events(&PAGES[..2]));
    assert_eq!((notes.damaged, notes.names.get(7).as_deref()), (0, Some("a name")));
}

#[test]
fn old_and_vendor_kernels_are_read() {
    let old = events(&["reliable_write_io.ftrace.txt"]);
    assert_eq!(
        (old.len(), count(&old, |what| matches!(what, What::Mmc(mmc) if mmc.reliable && mmc.blocks == 8))),
        (3, 1)
    );
    // Marks of an editor are before the names.
    let marked = events(&["reliable_write_io_sched.ftrace.txt"]);
    let commands: Vec<_> = marked.iter().filter(|event| matches!(event.what, What::Mmc(_))).collect();
    assert_eq!((commands.len(), commands[1].at.0 - commands[0].at.0), (2, 268_231_000));
    // Switches from and to the idle thread, of those between.
    let from = count(&marked, |what| matches!(what, What::Switch { previous: 0, next } if *next != 0));
    let to = count(&marked, |what| matches!(what, What::Switch { previous, next: 0 } if *previous != 0));
    assert_eq!((from, to, marked.len()), (3, 3, 11));
    let (vendor, notes) = read(vec![input("vendor", bytes("android_mmcqd.ftrace.txt"))]);
    assert_eq!((vendor.len(), notes.damaged, notes.unused), (2, 0, 2));
}

#[test]
fn text_of_the_kernel_has_losses_threads_and_processes() {
    let text = "# tracer: nop\n\
        my-app two-12    (   10) [001] d..2.  5.000001: block_rq_issue: 179,0 WS 4096 () 8 + 8 be,0,4 [x]\n\
        CPU:1 [LOST 7 EVENTS]\n\
        <...>-13 [001] 5.000900000: block_split: 179,0 W 8 / 16 [x]\n\
        sh-1 [000] ...1. 6.0: sys_write -> 0x1\n";
    let (events, notes) = read(vec![input("f", text.into())]);
    assert_eq!((notes.lost, notes.names.get(12).as_deref(), notes.names.get(13)), (7, Some("my-app two"), None));
    assert!(matches!(events[1].what, What::Lost { until, count: 7 } if until.0 == 5_000_900_000), "{events:?}");
    assert!(matches!(events[2].what, What::Block(block) if (block.sector, block.other) == (8, 8)), "{events:?}");
    assert!(matches!(events[3].what, What::Syscall { entered: false, .. }), "{events:?}");
}
