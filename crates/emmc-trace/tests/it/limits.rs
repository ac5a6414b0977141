//! Commands whose time limit is recorded: the driver starts it right before it writes the command.

use crate::support::{done, ftrace, requests, start};

const LIMIT: &str = "timer_start: timer=00000000aa function=sdhci_timeout_data_timer [sdhci] expires=4294895912 \
                     [timeout=2500] cpu=0 idx=1 flags=";

/// The answer's interrupt of the second comes after the thread went to sleep, and bounds nothing: the command was
/// written as long after its limit as the first at most. A timer of another function is of no command.
#[test]
fn a_command_begins_after_its_limit_and_not_with_a_late_answer() {
    let other = LIMIT.replace("sdhci_timeout_data_timer [sdhci]", "process_timeout");
    let text = format!(
        "100 7 block_bio_queue: 179,0 R 8 + 8 [x]
         110 7 block_rq_issue: 179,0 R 4096 () 8 + 8 [x]
         120 7 {first}
         121 7 {other}
         122 7 {LIMIT}
         126 7 irq_handler_entry: irq=11 name=mmc0
         220 0 irq_handler_entry: irq=11 name=mmc0
         224 0 {first_done}
         230 9 block_rq_complete: 179,0 R () 8 + 8 [0]
         300 7 block_bio_queue: 179,0 R 80 + 8 [x]
         310 7 block_rq_issue: 179,0 R 4096 () 80 + 8 [x]
         320 7 {second}
         322 7 {LIMIT}
         334 0 irq_handler_entry: irq=11 name=mmc0
         420 0 irq_handler_entry: irq=11 name=mmc0
         424 0 {second_done}
         430 9 block_rq_complete: 179,0 R () 80 + 8 [0]",
        first = start(18, 8, 8, "a"),
        first_done = done(18, "a"),
        second = start(18, 8, 80, "b"),
        second_done = done(18, "b"),
    );
    let (all, correlator) = requests(&ftrace(&text));
    assert_eq!((correlator.unpaired.total(), correlator.commands().limited, all.len()), (0, 2, 2));
    for request in &all {
        let spans = request.spans();
        let us = |span: Option<emmc_units::Nanos>| span.map(|span| span.0 / 1000);
        assert_eq!((us(spans.issue), us(spans.hardware), us(spans.post)), (Some(14), Some(96), Some(10)));
    }
}

/// Without an answer in time the limit itself is the begin.
#[test]
fn a_command_begins_with_its_limit_if_no_answer_came_in_time() {
    let text = format!(
        "310 7 block_rq_issue: 179,0 R 4096 () 80 + 8 [x]
         320 7 {}
         322 7 {LIMIT}
         334 0 irq_handler_entry: irq=11 name=mmc0
         420 0 irq_handler_entry: irq=11 name=mmc0
         424 0 {}
         430 9 block_rq_complete: 179,0 R () 80 + 8 [0]",
        start(18, 8, 80, "b"),
        done(18, "b"),
    );
    let (all, _) = requests(&ftrace(&text));
    let spans = all[0].spans();
    assert_eq!([spans.issue, spans.hardware].map(|span| span.map(|span| span.0)), [Some(12_000), Some(98_000)]);
}

/// The return of the function that writes a command bounds it, whether its limit is recorded or not.
#[test]
fn a_command_begins_before_the_function_that_writes_it_returns() {
    const WRITTEN: &str = "sdhci_send_command__exit: (sdhci_send_command_retry+0x1a/0x90 <- sdhci_send_command)";
    let text = format!(
        "310 7 block_rq_issue: 179,0 R 4096 () 80 + 8 [x]
         320 7 {first}
         322 7 {LIMIT}
         324 7 {WRITTEN}
         334 0 irq_handler_entry: irq=11 name=mmc0
         420 0 irq_handler_entry: irq=11 name=mmc0
         424 0 {first_done}
         430 9 block_rq_complete: 179,0 R () 80 + 8 [0]
         510 7 block_rq_issue: 179,0 R 4096 () 88 + 8 [x]
         520 7 {second}
         524 7 {WRITTEN}
         534 0 irq_handler_entry: irq=11 name=mmc0
         540 0 {WRITTEN}
         620 0 irq_handler_entry: irq=11 name=mmc0
         624 0 {second_done}
         630 9 block_rq_complete: 179,0 R () 88 + 8 [0]
         710 7 block_rq_issue: 179,0 R 4096 () 8 + 8 [x]
         720 7 {third}
         722 7 {LIMIT}
         724 7 {WRITTEN}
         728 7 irq_handler_entry: irq=11 name=mmc0
         820 0 irq_handler_entry: irq=11 name=mmc0
         824 0 {third_done}
         830 9 block_rq_complete: 179,0 R () 8 + 8 [0]",
        first = start(18, 8, 80, "b"),
        first_done = done(18, "b"),
        second = start(18, 8, 88, "b"),
        second_done = done(18, "b"),
        third = start(18, 8, 8, "c"),
        third_done = done(18, "c"),
    );
    let (all, correlator) = requests(&ftrace(&text));
    assert_eq!((correlator.unpaired.total(), correlator.commands().written), (0, 3));
    let spans = |request: &emmc_trace::Request| [request.spans().issue, request.spans().hardware];
    let found: Vec<_> = all.iter().map(|request| spans(request).map(|span| span.map(|span| span.0 / 1000))).collect();
    // An interrupt of the third needs at most 4 us to its handler: the end is 2 us before it.
    assert_eq!(found, [[Some(13), Some(97)], [Some(12), Some(98)], [Some(13), Some(95)]]);
}
