//! Events as requests: real recordings against btt, and the cases that go wrong in other tools.

use emmc_trace::{Correlator, Mode, Op, Request, Unpaired, analyse, open};

use crate::support::{analysis, bytes, done, ftrace, input, requests, start};

/// A table of btt: name, minimum, mean, maximum, count.
fn btt(name: &str, row: &str) -> (String, String, String, u64) {
    let text = String::from_utf8(bytes(name)).unwrap();
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(row)).unwrap().to_string();
    let words: Vec<&str> = line.split_whitespace().collect();
    (words[1].into(), words[2].into(), words[3].into(), words[4].parse().unwrap())
}

/// To the last digit that btt prints. Its D2C and Q2C of the second recording leave out the request that was completed
/// in two parts, so that only its other stages are compared.
#[test]
fn stages_are_those_of_btt() {
    for (name, stages) in [
        ("blk_bread_131072", &["Q2G", "G2I", "I2D", "D2C", "Q2C"][..]),
        ("blk_dwrite_4096", &["Q2G", "G2I", "I2D"][..]),
    ] {
        let files = [0, 1].map(|cpu| format!("{name}.blktrace.{cpu}"));
        let found = analysis(&files.each_ref().map(String::as_str));
        for stage in stages {
            let row = found.stages.iter().find(|row| row.name == *stage).unwrap();
            let printed = [row.min_s, row.mean_s, row.max_s].map(|time| format!("{time:.9}"));
            let [min, mean, max] = printed;
            assert_eq!((min, mean, max, row.count), btt(&format!("{name}.btt.txt"), stage), "{name} {stage}");
        }
        assert_eq!((found.unpaired, found.lost_events), (0, 0));
    }
    let merged = analysis(&["blk_dwrite_4096.blktrace.0", "blk_dwrite_4096.blktrace.1"]);
    // 28 bios, two of them merged, and one flush that the kernel made.
    assert_eq!((merged.requests, merged.bios, merged.merges, merged.requeues), (27, 28, 2, 1));
}

/// Five spans of direct writes; every span bounded by its events, and their sum the time of the call.
#[test]
fn spans_of_direct_writes_add_up_to_their_calls() {
    let mut recording = open(vec![input("f", bytes("mmc_dwrite_4096.dat"))]).unwrap();
    let (mut correlator, mut all) = (Correlator::default(), Vec::new());
    recording.events.run(|event| correlator.take(event, &mut |request| all.push(*request)));
    correlator.end(&mut |request| all.push(*request));
    all.retain(|request| request.device == 179 << 20);
    assert_eq!((all.len(), correlator.unpaired), (8, Unpaired::default()));
    for request in &all {
        let spans = request.spans();
        let five = [spans.vfs, spans.block, spans.issue, spans.hardware, spans.post].map(Option::unwrap);
        assert_eq!(five.iter().map(|span| span.0).sum::<u64>(), request.total().0);
        assert_eq!((request.mode, request.op, request.sectors), (Mode::Direct, Op::Write, 8));
        let hardware = request.hardware.unwrap();
        assert_eq!((hardware.opcode, hardware.polls, hardware.repeats), (25, 1, 0));
    }
    // sys_exit_pwrite64 at 124.889956368 s, sys_enter_pwrite64 at 124.888177534 s.
    assert_eq!(all[1].total().0, 1_778_834);
    assert_eq!(all[1].spans().hardware.unwrap().0, 917_796);
}

#[test]
fn stalls_of_reliable_writes_are_found_and_named() {
    for (name, took) in [("reliable_write_io.ftrace.txt", 269.629), ("reliable_write_io_sched.ftrace.txt", 268.231)] {
        let found = analysis(&[name]);
        let [stall] = &found.stalls[..] else { panic!("{:?}", found.stalls) };
        assert!((stall.took_ms - took).abs() < 1e-6, "{stall:?}");
        assert_eq!((stall.what.as_str(), stall.command.as_str()), ("reliable write of 4 KiB", "CMD25"));
        assert_eq!(stall.who.as_deref(), Some("mmcqd/0"));
        assert!(found.causes[0].starts_with("1 x reliable write of 50 ms or more"), "{:?}", found.causes);
    }
}

#[test]
fn a_card_that_is_asked_twice_was_busy_until_the_last_answer() {
    let text = |polls: usize| {
        let mut text = format!(
            "100 7 block_rq_issue: 179,0 WS 4096 () 8 + 8 [x]
             110 7 {}
             200 0 {}",
            start(25, 8, 8, "a"),
            done(25, "a")
        );
        for poll in 0..polls {
            text +=
                &format!("\n{} 9 {}\n{} 9 {}", 300 + poll * 100, start(13, 0, 0, "b"), 310 + poll * 100, done(13, "b"));
        }
        requests(&ftrace(&(text + "\n900 9 block_rq_complete: 179,0 WS () 8 + 8 [0]"))).0[0]
    };
    assert_eq!([0, 1, 2, 3].map(|polls| text(polls).spans().hardware.unwrap().0 / 1000), [90, 90, 300, 400]);
}

/// With a command queue `mmc_request_start` comes after the doorbell, and may come after the end: it is taken to be
/// as long after the issue as that of the task before.
#[test]
fn a_queued_task_may_end_before_it_starts() {
    let text = format!(
        "100 7 block_rq_issue: 179,0 R 4096 () 8 + 8 [x]
         101 7 block_rq_issue: 179,0 R 4096 () 80 + 8 [x]
         102 7 {}
         150 0 {}
         151 7 {}
         160 0 {}
         170 0 block_rq_complete: 179,0 R () 80 + 8 [0]
         171 0 block_rq_complete: 179,0 R () 8 + 8 [0]",
        start(0, 8, 8, "a"),
        done(0, "b"),
        start(0, 8, 80, "b"),
        done(0, "a"),
    );
    let (all, correlator) = requests(&ftrace(&text));
    assert_eq!(correlator.unpaired, Unpaired::default());
    let spans =
        |request: &Request| (request.sector, request.spans().hardware.unwrap().0 / 1000, request.total().0 / 1000);
    assert_eq!(all.iter().map(spans).collect::<Vec<_>>(), [(80, 47, 69), (8, 58, 71)]);
}

#[test]
fn merges_and_splits_count_the_same_bytes_once() {
    let text = "
        10 7 block_bio_queue: 179,0 WS 0 + 2048 [x]
        11 7 block_split: 179,0 WS 0 / 1024 [x]
        12 7 block_getrq: 179,0 WS 0 + 1024 [x]
        13 7 block_getrq: 179,0 WS 1024 + 1024 [x]
        20 7 block_bio_queue: 179,0 WS 2048 + 8 [x]
        21 7 block_bio_backmerge: 179,0 WS 2048 + 8 [x]
        22 7 block_bio_queue: 179,0 WS 4000 + 8 [x]
        23 7 block_getrq: 179,0 WS 4000 + 8 [x]
        24 7 block_bio_queue: 179,0 WS 3992 + 8 [x]
        25 7 block_bio_frontmerge: 179,0 WS 3992 + 8 [x]
        26 7 block_bio_queue: 179,0 WS 4008 + 8 [x]
        27 7 block_getrq: 179,0 WS 4008 + 8 [x]
        28 7 block_rq_merge: 179,0 WS 4096 () 4008 + 8 [x]
        30 7 block_rq_issue: 179,0 WS 524288 () 0 + 1024 [x]
        31 7 block_rq_issue: 179,0 WS 528384 () 1024 + 1032 [x]
        32 7 block_rq_issue: 179,0 WS 12288 () 3992 + 24 [x]
        40 0 block_rq_complete: 179,0 WS () 0 + 1024 [0]
        41 0 block_rq_complete: 179,0 WS () 1024 + 1032 [0]
        42 0 block_rq_complete: 179,0 WS () 3992 + 24 [0]
        43 0 block_rq_complete: 179,0 WS () 3992 + 0 [0]";
    let (all, correlator) = requests(&ftrace(text));
    assert_eq!(correlator.unpaired, Unpaired::default());
    let places: Vec<_> = all.iter().map(|request| (request.sector, request.sectors, request.bios.0)).collect();
    assert_eq!(places, [(0, 1024, 0), (1024, 1032, 1), (3992, 24, 2)]);
    assert_eq!((correlator.counts.bios, correlator.counts.splits, correlator.counts.merges), (5, 1, 3));
    assert!(all.iter().all(|request| request.queued.is_some()));
}

/// Data of a flushing write, its own flush and the one after it: three requests.
#[test]
fn flushes_are_requests_of_their_own() {
    let text = "
        1 7 sys_enter_fsync: fd: 3
        5 7 block_bio_queue: 179,0 FWS 0 + 0 [x]
        6 7 block_getrq: 179,0 FWS 0 + 0 [x]
        7 9 block_rq_issue: 179,0 FF 0 () 0 + 0 [x]
        20 0 block_rq_complete: 179,0 FF () 18446744073709551615 + 0 [0]
        21 0 block_rq_complete: 179,0 FWS () 0 + 0 [0]
        30 7 sys_exit_fsync: 0x0";
    let (all, correlator) = requests(&ftrace(text));
    assert_eq!(correlator.unpaired, Unpaired::default());
    assert_eq!((all.len(), all[0].op, all[0].device_time().0), (1, Op::Flush, 13_000));
    // Another thread issues it; it is for the one that asked, whose bio may be completed without its flag.
    let (all, correlator) = requests(&ftrace(&text.replace("FWS () 0 + 0", "WS () 0 + 0")));
    assert_eq!(correlator.unpaired, Unpaired::default());
    assert_eq!((all.len(), all[0].pid, all[0].mode, all[0].total().0), (1, 7, Mode::Fsync, 29_000));
    assert_eq!(all[0].spans().vfs.unwrap().0, 4000);
}

/// The driver wrote the command between `mmc_request_start` and the first interrupt, the card was done at the last.
#[test]
fn interrupts_bound_the_span_of_the_card() {
    let text = |first: &str, opcode: u8| {
        format!(
            "100 7 block_rq_issue: 179,0 WS 4096 () 8 + 8 [x]
             110 7 {}
             {first}
             115 0 irq_handler_entry: irq=9 name=sdhci-other
             200 0 irq_handler_entry: irq=8 name=mmc0
             230 0 {}
             300 9 block_rq_complete: 179,0 WS () 8 + 8 [0]",
            start(opcode, 8, 8, "a"),
            done(opcode, "a")
        )
    };
    let spans = |text: String| {
        let (all, _) = requests(&ftrace(&text));
        let spans = all[0].spans();
        assert_eq!(spans.issue.unwrap() + spans.hardware.unwrap() + spans.post.unwrap(), all[0].total());
        [spans.issue, spans.hardware].map(|span| span.unwrap().0 / 1000)
    };
    assert_eq!(spans(text("114 0 irq_handler_entry: irq=8 name=mmc0", 25)), [12, 88]);
    // One interrupt: its handler may have waited for the end.
    assert_eq!(spans(text(" ", 25)), [10, 120]);
    // A task of a queue ends in the middle of the handler's time, as its start is recorded late.
    assert_eq!(spans(text("114 0 irq_handler_entry: irq=8 name=mmc0", 0)), [10, 105]);
    // Without a handler since the start, or on another processor, when it is recorded.
    assert_eq!(spans(text(" ", 0).replace("200 0 irq_handler_entry: irq=8 name=mmc0", " ")), [10, 120]);
}

/// Linux looks at the data line after a switch, and asks the card when it is free.
#[test]
fn a_flush_lasts_until_the_card_is_asked() {
    let flush = start(6, 0, 0, "a").replace("cmd_arg=0x0", "cmd_arg=0x3200101");
    let text = format!(
        "100 9 block_rq_issue: 179,0 FF 0 () 0 + 0 [x]
         110 9 {flush}
         117 0 {}
         900 9 {}
         907 0 {}
         908 9 block_rq_complete: 179,0 FF () 18446744073709551615 + 0 [0]",
        done(6, "a"),
        start(13, 0, 0, "b"),
        done(13, "b"),
    );
    let (all, correlator) = requests(&ftrace(&text));
    assert_eq!(correlator.unpaired, Unpaired::default());
    assert_eq!(all[0].spans().hardware.map(|span| span.0 / 1000), Some(790), "{text}");
}

/// A block device has no event for direct I/O; the page cache has read-ahead, and pages that become dirty.
#[test]
fn direct_io_of_a_block_device_is_known_by_what_is_missing() {
    let text = "
        100 7 sys_enter_pwrite64: fd: 3
        101 7 writeback_dirty_folio: bdi 179:0: ino=3 index=1
        102 7 block_bio_queue: 179,0 WS 8 + 8 [x]
        103 7 block_rq_issue: 179,0 WS 4096 () 8 + 8 [x]
        110 0 block_rq_complete: 179,0 WS () 8 + 8 [0]
        111 7 sys_exit_pwrite64: 0x1000
        200 7 sys_enter_pwrite64: fd: 3
        202 7 block_bio_queue: 179,0 WS 16 + 8 [x]
        203 7 block_rq_issue: 179,0 WS 4096 () 16 + 8 [x]
        210 0 block_rq_complete: 179,0 WS () 16 + 8 [0]
        211 7 sys_exit_pwrite64: 0x1000
        300 7 sys_enter_pread64: fd: 3
        302 7 block_bio_queue: 179,0 R 24 + 8 [x]
        303 7 block_rq_issue: 179,0 R 4096 () 24 + 8 [x]
        310 0 block_rq_complete: 179,0 R () 24 + 8 [0]
        311 7 sys_exit_pread64: 0x1000
        400 7 sys_enter_pread64: fd: 3
        402 7 block_bio_queue: 179,0 RA 32 + 8 [x]
        403 7 block_rq_issue: 179,0 RA 4096 () 32 + 8 [x]
        410 0 block_rq_complete: 179,0 RA () 32 + 8 [0]
        411 7 sys_exit_pread64: 0x1000
        500 7 sys_enter_pread64: fd: 3
        502 7 block_bio_queue: 179,0 RA 40 + 8 [x]
        503 7 block_rq_issue: 179,0 RA 4096 () 40 + 8 [x]
        505 7 sys_exit_pread64: 0x1000
        510 0 block_rq_complete: 179,0 RA () 40 + 8 [0]";
    let (all, _) = requests(&ftrace(text));
    let modes: Vec<_> = all.iter().map(|request| (request.sector, request.mode)).collect();
    let (direct, sync) = (Mode::Direct, Mode::Sync);
    assert_eq!(modes, [(8, sync), (16, direct), (24, direct), (32, sync), (40, Mode::Readahead)]);
}

/// A request that the driver did half, and returned.
#[test]
fn a_request_in_two_parts_is_one() {
    let text = "
        1 7 block_bio_queue: 179,0 W 8 + 16 [x]
        2 7 block_getrq: 179,0 W 8 + 16 [x]
        3 7 block_rq_issue: 179,0 W 8192 () 8 + 16 [x]
        5 0 block_rq_complete: 179,0 W () 8 + 8 [0]
        6 0 block_rq_requeue: 179,0 W () 16 + 8 [0]
        7 9 block_rq_issue: 179,0 W 4096 () 16 + 8 [x]
        9 0 block_rq_complete: 179,0 W () 16 + 8 [0]";
    let (all, correlator) = requests(&ftrace(text));
    assert_eq!(correlator.unpaired, Unpaired::default());
    let [request] = all[..] else { panic!("{all:?}") };
    assert_eq!((request.sector, request.sectors, request.requeues, request.device_time().0), (8, 16, 1, 6000));
}

/// Without the loss, the first issue would be paired with the second completion.
#[test]
fn nothing_is_paired_across_a_loss() {
    let text = |loss: &str| {
        let before = ftrace("10 7 block_rq_issue: 179,0 W 4096 () 8 + 8 [x]");
        let after = ftrace(
            "50 7 block_rq_complete: 179,0 W () 8 + 8 [0]
             60 7 block_rq_issue: 179,0 W 4096 () 8 + 8 [x]
             70 7 block_rq_complete: 179,0 W () 8 + 8 [0]",
        );
        requests(&(before + loss + &after))
    };
    let (all, _) = text("");
    assert_eq!(all.iter().map(|request| request.device_time().0).collect::<Vec<_>>(), [40_000, 10_000]);
    let (all, correlator) = text("CPU:0 [LOST 9 EVENTS]\n");
    assert_eq!(all.iter().map(|request| request.device_time().0).collect::<Vec<_>>(), [10_000]);
    assert!(correlator.unpaired.near_losses >= 1, "{:?}", correlator.unpaired);
}

/// Two requests in one fsync: the second one's span 1 begins when the first is complete; only the last goes back to the
/// caller.
#[test]
fn requests_of_a_call_fill_its_time() {
    let text = "
        100 7 sys_enter_fsync: fd: 3
        110 7 block_bio_queue: 179,0 WS 8 + 8 [x]
        120 7 block_rq_issue: 179,0 WS 4096 () 8 + 8 [x]
        200 0 block_rq_complete: 179,0 WS () 8 + 8 [0]
        230 7 block_bio_queue: 179,0 WS 80 + 8 [x]
        240 7 block_rq_issue: 179,0 WS 4096 () 80 + 8 [x]
        300 0 block_rq_complete: 179,0 WS () 80 + 8 [0]
        350 7 sys_exit_fsync: 0x0";
    let (all, _) = requests(&ftrace(text));
    assert!(all.iter().all(|request| request.mode == Mode::Fsync));
    assert_eq!(all.iter().map(|request| request.total().0 / 1000).collect::<Vec<_>>(), [100, 150]);
    assert_eq!(all.iter().map(|request| request.spans().vfs.unwrap().0 / 1000).collect::<Vec<_>>(), [10, 30]);
}

/// Times as long as the clock goes: sums stay at their longest.
#[test]
fn times_of_centuries_do_not_overflow() {
    let mut text = String::new();
    for number in 0..4 {
        text += &format!("x-7 [000] ..... 1.0: block_rq_issue: 179,0 W 4096 () {} + 8 [x]\n", number * 8);
    }
    for number in 0..4 {
        let at = "18446744073.709551615";
        text += &format!("x-7 [000] ..... {at}: block_rq_complete: 179,0 W () {} + 8 [0]\n", number * 8);
    }
    let found = analyse(open(vec![input("f", text.into())]).unwrap(), None);
    assert_eq!((found.requests, found.devices[0].depth_max), (4, 4));
}
