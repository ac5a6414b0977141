//! Tasks of a command queue whose start is recorded after their end, as a busy machine records them.

use emmc_trace::{Correlator, Request, Unpaired};

use crate::support::{done, ftrace, requests, start};

fn card_us(request: &Request) -> (u64, u64, u64) {
    let spans = request.spans();
    let us = |span: Option<emmc_units::Nanos>| span.map_or(0, |span| span.0 / 1000);
    (request.sector, us(spans.issue), us(spans.hardware))
}

/// Events with their times and threads.
fn events(lines: &[(u32, u32, String)]) -> (Vec<Request>, Correlator) {
    let line = |(us, pid, event): &(u32, u32, String)| format!("{us} {pid} {event}\n");
    requests(&ftrace(&lines.iter().map(line).collect::<String>()))
}

/// In the order of a guest's recording: the processor that rang the doorbell takes the interrupt first, completes the
/// request in it, and records its start afterwards.
#[test]
fn a_request_waits_for_the_start_of_its_task() {
    let text = format!(
        "100 7 sys_enter_pread64: fd: 3, buf: 0x1, count: 0x1000, pos: 0x0
         110 7 block_bio_queue: 179,0 R 8 + 8 [x]
         120 7 block_rq_issue: 179,0 R 4096 () 8 + 8 [x]
         150 7 irq_handler_entry: irq=11 name=mmc0
         160 7 {}
         170 7 block_rq_complete: 179,0 R () 8 + 8 [0]
         180 7 {}
         200 7 sys_exit_pread64: 0x1000
         300 7 sys_enter_pread64: fd: 3, buf: 0x1, count: 0x1000, pos: 0x0
         310 7 block_bio_queue: 179,0 R 80 + 8 [x]
         320 7 block_rq_issue: 179,0 R 4096 () 80 + 8 [x]
         324 7 {}
         420 7 {}
         430 7 block_rq_complete: 179,0 R () 80 + 8 [0]
         440 7 sys_exit_pread64: 0x1000
         500 7 sys_enter_pread64: fd: 3, buf: 0x1, count: 0x1000, pos: 0x0
         510 7 block_bio_queue: 179,0 R 8 + 8 [x]
         520 7 block_rq_issue: 179,0 R 4096 () 8 + 8 [x]
         550 7 irq_handler_entry: irq=11 name=mmc0
         560 7 {}
         570 7 block_rq_complete: 179,0 R () 8 + 8 [0]
         580 7 {}
         600 7 sys_exit_pread64: 0x1000",
        done(0, "a"),
        start(0, 8, 8, "a"),
        start(0, 8, 80, "a"),
        done(0, "a"),
        done(0, "a"),
        start(0, 8, 8, "a"),
    );
    let (all, correlator) = requests(&ftrace(&text));
    assert_eq!((correlator.unpaired, correlator.commands().started_late), (Unpaired::default(), 2));
    // The first has no other to compare with: its start is in the middle. The controller was not known to have a queue
    // at its interrupt. The third starts as long after its issue as the second.
    assert_eq!(all.iter().map(card_us).collect::<Vec<_>>(), [(8, 20, 20), (80, 4, 96), (8, 4, 31)]);
    for request in &all {
        let spans = request.spans();
        let five = [spans.vfs, spans.block, spans.issue, spans.hardware, spans.post].map(Option::unwrap);
        assert_eq!(five.iter().map(|span| span.0).sum::<u64>(), request.total().0);
    }
    assert_eq!(correlator.commands().busy_ns(), 147_000);
}

/// Another processor may even read the same place again before the start of the first is recorded, and calls return.
#[test]
fn a_late_start_is_of_the_request_that_its_end_was_of() {
    let text = format!(
        "100 7 sys_enter_pread64: fd: 3, buf: 0x1, count: 0x1000, pos: 0x0
         110 7 block_bio_queue: 179,0 R 8 + 8 [x]
         120 9 block_rq_issue: 179,0 R 4096 () 8 + 8 [x]
         160 0 {}
         170 0 block_rq_complete: 179,0 R () 8 + 8 [0]
         180 7 sys_exit_pread64: 0x1000
         200 7 sys_enter_pread64: fd: 3, buf: 0x1, count: 0x1000, pos: 0x0
         210 7 block_bio_queue: 179,0 R 8 + 8 [x]
         220 7 block_rq_issue: 179,0 R 4096 () 8 + 8 [x]
         224 7 {}
         240 9 {}
         320 0 {}
         330 0 block_rq_complete: 179,0 R () 8 + 8 [0]
         340 7 sys_exit_pread64: 0x1000",
        done(0, "a"),
        start(0, 8, 8, "b"),
        start(0, 8, 8, "a"),
        done(0, "b"),
    );
    let (all, correlator) = requests(&ftrace(&text));
    assert_eq!((correlator.unpaired, correlator.commands().started_late), (Unpaired::default(), 1));
    assert_eq!(all.iter().map(card_us).collect::<Vec<_>>(), [(8, 4, 36), (8, 4, 96)]);
    assert!(all.iter().all(|request| request.exited.is_some()));
}

/// The driver may use the same request for the next task before the start of the first is recorded, and once more.
#[test]
fn a_late_start_is_of_its_own_end_if_its_request_is_used_again() {
    let text = format!(
        "80 9 block_rq_issue: 179,0 R 4096 () 800 + 8 [x]
         84 9 {}
         95 0 {}
         96 0 block_rq_complete: 179,0 R () 800 + 8 [0]
         120 9 block_rq_issue: 179,0 R 4096 () 8 + 8 [x]
         160 0 {}
         170 0 block_rq_complete: 179,0 R () 8 + 8 [0]
         220 7 block_rq_issue: 179,0 R 4096 () 80 + 8 [x]
         224 7 {}
         320 0 {}
         330 0 block_rq_complete: 179,0 R () 80 + 8 [0]
         420 7 block_rq_issue: 179,0 R 4096 () 88 + 8 [x]
         460 0 {}
         470 0 block_rq_complete: 179,0 R () 88 + 8 [0]
         480 7 {}
         490 9 {}",
        start(0, 8, 800, "a"),
        done(0, "a"),
        done(0, "a"),
        start(0, 8, 80, "a"),
        done(0, "a"),
        done(0, "a"),
        start(0, 8, 88, "a"),
        start(0, 8, 8, "a"),
    );
    let (all, correlator) = requests(&ftrace(&text));
    assert_eq!((correlator.unpaired, correlator.commands().started_late), (Unpaired::default(), 2));
    assert_eq!(all.iter().map(card_us).collect::<Vec<_>>(), [(800, 4, 11), (80, 4, 96), (88, 4, 36), (8, 4, 36)]);
}

/// A start that never comes keeps no request back for ever, and an old end is of no later task.
#[test]
fn an_end_alone_is_counted_and_is_of_no_later_task() {
    let text = format!(
        "90 0 {}
         100 7 block_rq_issue: 179,0 R 4096 () 8 + 8 [x]
         104 7 {}
         200 0 {}
         210 0 block_rq_complete: 179,0 R () 8 + 8 [0]
         300 7 block_rq_issue: 179,0 R 4096 () 80 + 8 [x]
         400 0 {}
         410 0 block_rq_complete: 179,0 R () 80 + 8 [0]
         2000000 7 block_rq_issue: 179,0 R 4096 () 800 + 8 [x]
         2000004 7 {}
         2000100 0 {}
         2000110 0 block_rq_complete: 179,0 R () 800 + 8 [0]",
        done(0, "a"),
        start(0, 8, 8, "a"),
        done(0, "a"),
        done(0, "c"),
        start(0, 8, 800, "c"),
        done(0, "c"),
    );
    let (all, correlator) = requests(&ftrace(&text));
    assert_eq!(correlator.unpaired, Unpaired { commands_without_start: 2, ..Unpaired::default() });
    let mut found: Vec<_> = all.iter().map(card_us).collect();
    found.sort_unstable();
    assert_eq!(found, [(8, 4, 96), (80, 0, 0), (800, 4, 96)]);
}

/// A flush is a direct command of the queue.
#[test]
fn a_flush_may_complete_before_its_start() {
    let text = format!(
        "80 7 block_rq_issue: 179,0 W 4096 () 8 + 8 [x]
         84 7 {}
         90 7 {}
         95 7 block_rq_complete: 179,0 W () 8 + 8 [0]
         100 7 block_rq_issue: 179,0 FF 0 () 0 + 0 [x]
         160 7 {}
         170 7 block_rq_complete: 179,0 FF () 18446744073709551615 + 0 [0]
         180 7 {}",
        start(0, 8, 8, "a"),
        done(0, "a"),
        done(6, "f"),
        start(6, 0, 0, "f").replace("cmd_arg=0x0", "cmd_arg=0x3200101"),
    );
    let (all, correlator) = requests(&ftrace(&text));
    assert_eq!((correlator.unpaired, correlator.commands().started_late), (Unpaired::default(), 1));
    assert_eq!(all.iter().map(card_us).map(|(_, issue, card)| (issue, card)).collect::<Vec<_>>(), [(4, 6), (4, 56)]);
}

/// Without events of the block layer nothing says whether an end without a start is of the next start: only the end of
/// a task that began before in the recording is.
#[test]
fn an_end_from_before_the_recording_is_of_no_later_start() {
    let (_, correlator) = events(&[
        (90, 0, done(0, "a")),
        (100, 7, start(0, 8, 8, "a")),
        (200, 0, done(0, "a")),
        (300, 7, start(0, 8, 16, "a")),
        (390, 0, done(0, "a")),
    ]);
    let commands = correlator.commands();
    assert_eq!(correlator.unpaired, Unpaired { commands_without_start: 1, ..Unpaired::default() });
    assert_eq!((commands.count, commands.started_late, commands.busy_ns()), (2, 0, 190_000));
    assert_eq!(commands.sizes.get(&(false, 8)), Some(&(2, 190_000)));
}

/// A task that ends twice began in between. How long it took is not known.
#[test]
fn a_late_start_without_a_request_has_no_time() {
    let (_, correlator) = events(&[
        (100, 7, start(0, 8, 8, "a")),
        (200, 0, done(0, "a")),
        (300, 0, done(0, "a")),
        (310, 7, start(0, 8, 16, "a")),
        (400, 7, start(0, 8, 24, "a")),
        (490, 0, done(0, "a")),
    ]);
    let commands = correlator.commands();
    assert_eq!(correlator.unpaired, Unpaired::default());
    assert_eq!((commands.count, commands.started_late), (3, 1));
    assert_eq!(commands.sizes.get(&(false, 8)), Some(&(2, 190_000)));
    assert!(commands.slowest().iter().all(|command| command.took.0 > 0), "{:?}", commands.slowest());
}

/// The same beside a device with requests of other tasks: an end from before the recording is of none of them.
#[test]
fn an_old_end_beside_requests_is_of_no_later_start() {
    let (all, correlator) = events(&[
        (80, 0, "block_rq_issue: 179,0 R 4096 () 80 + 8 [x]".into()),
        (84, 7, start(0, 8, 80, "b")),
        (90, 0, done(0, "a")),
        (100, 7, start(0, 8, 8, "a")),
        (180, 0, done(0, "b")),
        (185, 0, "block_rq_complete: 179,0 R () 80 + 8 [0]".into()),
        (200, 0, done(0, "a")),
    ]);
    assert_eq!((all.len(), correlator.commands().started_late), (1, 0));
    let expected = Unpaired { commands_without_start: 1, commands_without_request: 1, ..Unpaired::default() };
    assert_eq!((correlator.unpaired, card_us(&all[0])), (expected, (80, 4, 96)));
}
