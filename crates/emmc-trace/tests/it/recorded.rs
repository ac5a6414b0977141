//! What a recording says with some of the kernel's events and without others: wake-ups, merges without `block_getrq`.

use emmc_trace::result::{Analysis, PostParts};
use emmc_trace::{analyse, open};

use crate::support::{done, ftrace, input, start};

fn analysed(text: &str) -> Analysis {
    let found = analyse(open(vec![input("f", ftrace(text).into())]).unwrap(), None);
    assert_eq!((found.damaged, found.unpaired), (0, 0), "{:?} {:?}", found.damage, found.unpaired_by);
    found
}

/// A direct read of thread 7 that takes 100 us at the card, with these events after its completion at 1115 us; the call
/// returns at 1160 us.
fn read(events: &str) -> Analysis {
    analysed(&format!(
        "1000 7 sys_enter_pread64: fd: 3
         1004 7 block_bio_queue: 179,0 R 8 + 8 [x]
         1006 7 block_rq_issue: 179,0 R 4096 () 8 + 8 [x]
         1010 7 {}
         1011 7 sched_switch: prev_comm=x prev_pid=7 prev_prio=120 prev_state=D ==> next_comm=swapper/0 next_pid=0 next_prio=120
         1110 0 {}
         1115 0 block_rq_complete: 179,0 R () 8 + 8 [0]
         {events}
         1160 7 sys_exit_pread64: 0x1000",
        start(18, 8, 8, "a"),
        done(18, "a"),
    ))
}

fn parts(found: &Analysis) -> (PostParts, (&str, &str)) {
    let source = found.sources.iter().find(|source| source.span == "wake-up").unwrap();
    (found.spans[0].post_parts.unwrap(), (source.quality, source.events))
}

fn means(parts: &PostParts) -> [Option<f64>; 4] {
    [parts.completion_us, parts.wake_us, parts.run_us, parts.return_us].map(|times| Some(times?.mean))
}

const TO_THREAD: &str =
    "sched_switch: prev_comm=y prev_pid=9 prev_prio=120 prev_state=R ==> next_comm=x next_pid=7 next_prio=120";

#[test]
fn the_wake_up_of_the_waiter_is_a_part_of_post() {
    // Another thread is woken up first, and has the processor for 20 us; the waiter is interrupted on its way back.
    let found = read(&format!(
        "1116 0 sched_waking: comm=y pid=9 prio=120 target_cpu=000
         1118 0 sched_waking: comm=x pid=7 prio=120 target_cpu=000
         1120 0 sched_wakeup: comm=x pid=7 prio=120 target_cpu=000
         1140 9 {TO_THREAD}
         1150 9 {TO_THREAD}"
    ));
    let (parts, (quality, events)) = parts(&found);
    assert_eq!((parts.count, parts.with_wake, parts.with_run), (1, 1, 1));
    assert_eq!(means(&parts), [5.0, 3.0, 25.0, 20.0].map(Some));
    let sum = 5.0 + 25.0 + 20.0;
    assert_eq!((found.spans[0].post_us.unwrap().mean, quality), (sum, "exact"), "{events}");
    // The form of trace-cmd, and a name with its marks in it.
    let short = read(
        "1118 0 sched_waking: a:8 [1] x:7 [120] CPU:000
         1140 9 sched_switch: y:9 [120] R ==> x:7 [120]",
    );
    assert_eq!(means(&self::parts(&short).0), [5.0, 3.0, 25.0, 20.0].map(Some));
}

/// A thread that waits again, as fsync does for the journal, is woken up for good the last time.
#[test]
fn the_last_wake_up_counts() {
    let found = read(&format!(
        "1118 0 sched_waking: comm=x pid=7 prio=120 target_cpu=000
         1120 9 {TO_THREAD}
         1130 0 sched_waking: comm=x pid=7 prio=120 target_cpu=000
         1135 9 {TO_THREAD}"
    ));
    assert_eq!(means(&parts(&found).0), [5.0, 15.0, 20.0, 25.0].map(Some));
}

#[test]
fn a_missing_event_of_the_scheduler_is_said() {
    let switch = read(&format!("1140 9 {TO_THREAD}"));
    let (found, (quality, _)) = parts(&switch);
    assert_eq!((means(&found), quality), ([Some(5.0), None, Some(25.0), Some(20.0)], "derived"));
    let wake = read("1118 0 sched_waking: comm=x pid=7 prio=120 target_cpu=000");
    let (found, (quality, events)) = parts(&wake);
    assert_eq!((means(&found), quality), ([Some(5.0), Some(3.0), None, Some(42.0)], "derived"), "{events}");
    // Before the completion, or of another thread.
    let other = read("1116 0 sched_waking: comm=y pid=9 prio=120 target_cpu=000");
    let (found, (quality, events)) = parts(&other);
    assert_eq!((means(&found), quality), ([Some(5.0), None, None, None], "absent"));
    assert!(events.starts_with("no thread"), "{events}");
}

/// Thousands of requests that wait, each grown by bios behind and before it: with `block_getrq`, and without.
#[test]
fn merges_find_their_request_among_thousands() {
    for has_gets in [true, false] {
        let (mut text, mut at) = (String::new(), 1000);
        let mut add = |event: String| {
            text += &format!("{at} 7 {event}\n");
            at += 1;
        };
        const COUNT: u64 = 3000;
        let place = |number: u64| 4096 + number * 1024;
        for number in 0..COUNT {
            add(format!("block_bio_queue: 179,0 W {} + 8 [x]", place(number)));
            if has_gets {
                add(format!("block_getrq: 179,0 W {} + 8 [x]", place(number)));
            }
        }
        for number in 0..COUNT {
            for (name, sector) in
                [("back", place(number) + 8), ("front", place(number) - 8), ("back", place(number) + 16)]
            {
                add(format!("block_bio_queue: 179,0 W {sector} + 8 [x]"));
                add(format!("block_bio_{name}merge: 179,0 W {sector} + 8 [x]"));
            }
        }
        for number in 0..COUNT {
            let sector = place(number) - 8;
            add(format!("block_rq_issue: 179,0 W 16384 () {sector} + 32 [x]"));
            add(format!("block_rq_complete: 179,0 W () {sector} + 32 [0]"));
        }
        let found = analysed(&text);
        assert_eq!((found.requests, found.merges, found.bios), (COUNT, 3 * COUNT, 4 * COUNT), "{has_gets}");
        let row = &found.spans[0];
        assert_eq!((found.spans.len(), row.size_bytes, row.count), (1, 16384, COUNT));
    }
}

/// Without the scheduler's event a request waits since it was queued.
#[test]
fn waiting_is_known_without_the_event_of_the_scheduler() {
    let found = analysed(
        "1000 7 block_bio_queue: 179,0 R 8 + 8 [x]
         1001 7 block_rq_issue: 179,0 R 4096 () 8 + 8 [x]
         1010 7 block_bio_queue: 179,0 R 64 + 8 [x]
         1100 0 block_rq_complete: 179,0 R () 8 + 8 [0]
         1101 7 block_rq_issue: 179,0 R 4096 () 64 + 8 [x]
         1200 0 block_rq_complete: 179,0 R () 64 + 8 [0]",
    );
    assert!((found.spans[0].waited_us - 45.0).abs() < 1e-9, "{}", found.spans[0].waited_us);
}

/// Gaps of a device are between two requests at the driver; processors have the requests that they issued and
/// completed.
#[test]
fn idle_gaps_and_processors_are_counted() {
    let request = |at: u64, sector: u64| {
        format!(
            "{at} 7 block_bio_queue: 179,0 R {sector} + 8 [x]
             {} 7 block_rq_issue: 179,0 R 4096 () {sector} + 8 [x]
             {} 0 irq_handler_entry: irq=11 name=mmc0
             {} 0 block_rq_complete: 179,0 R () {sector} + 8 [0]\n",
            at + 10,
            at + 90,
            at + 100
        )
    };
    let found = analysed(&(request(0, 8) + &request(200, 16) + &request(1000, 24)));
    let device = &found.devices[0];
    // From 100 to 210 us, and from 300 to 1010.
    assert_eq!((device.idle_gaps, device.idle_ms, device.idle_longest_ms), (2, 0.82, 0.71));
    let cpu = found.cpus[0];
    assert_eq!((found.cpus.len(), cpu.cpu, cpu.issued, cpu.completed, cpu.interrupts), (1, 0, 3, 3, 3));
}

/// Requests that wait behind others are named if no command queue is in use, and tasks that software queues always.
#[test]
fn queues_are_named() {
    let task = |first: &str| {
        format!(
            "0 7 block_bio_queue: 179,0 R 8 + 8 [x]
             1 7 block_bio_queue: 179,0 R 800 + 8 [x]
             10 7 block_rq_issue: 179,0 R 4096 () 8 + 8 [x]
             {first}
             20 7 {}
             90 0 {}
             100 0 block_rq_complete: 179,0 R () 8 + 8 [0]
             110 7 block_rq_issue: 179,0 R 4096 () 800 + 8 [x]
             120 7 {}
             190 0 {}
             200 0 block_rq_complete: 179,0 R () 800 + 8 [0]\n",
            start(18, 8, 8, "a"),
            done(18, "a"),
            start(18, 8, 800, "b"),
            done(18, "b"),
        )
    };
    let waits = analysed(&task(""));
    assert!(waits.causes.iter().any(|cause| cause.contains("no command queue is in use")), "{:?}", waits.causes);
    let software = format!("11 7 {}\n 12 0 {}", start(45, 0, 0, "c"), done(45, "c"));
    let queued = analysed(&task(&software));
    assert!(queued.causes.iter().any(|cause| cause.contains("1 tasks were queued by software")), "{:?}", queued.causes);
}
