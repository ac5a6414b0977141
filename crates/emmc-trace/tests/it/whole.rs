//! What an analysis says of a recording as a whole: the white paper's tables, reasons and files.

use emmc_trace::{analyse, open};

use crate::support::{done, ftrace, input, start};

/// A commit without anybody in fsync is for nobody, one of another file system neither; a device without FUA flushes
/// after the write too.
#[test]
fn flushes_belong_to_those_who_asked() {
    let commit = |at: u64, on: &str| {
        format!(
            "{at} 60 jbd2_start_commit: dev {on} transaction 5 sync 0
             {} 60 block_bio_queue: 7,0 FWFSM 1016 + 8 [x]
             {} 90 block_rq_issue: 7,0 FF 0 () 18446744073709551615 + 0 [x]
             {} 0 block_rq_complete: 7,0 FF () 18446744073709551615 + 0 [0]
             {} 90 block_rq_issue: 7,0 WFSM 4096 () 1016 + 8 [x]
             {} 0 block_rq_complete: 7,0 WFSM () 1016 + 8 [0]
             {} 90 block_rq_issue: 7,0 FF 0 () 18446744073709551615 + 0 [x]
             {} 0 block_rq_complete: 7,0 FF () 18446744073709551615 + 0 [0]
             {} 60 jbd2_end_commit: dev {on} transaction 5 sync 0 head 4\n",
            at + 1,
            at + 2,
            at + 3,
            at + 4,
            at + 5,
            at + 6,
            at + 7,
            at + 8,
        )
    };
    let mut text = commit(1000, "7,0");
    text += "2000 7 sys_enter_fsync: fd: 4\n2001 7 ext4_sync_file_enter: dev 7,0 ino 13 parent 2 datasync 0\n";
    text += &commit(2010, "7,0");
    text += &commit(2030, "7,1");
    text += "2100 7 sys_exit_fsync: 0x0\n";
    let found = analyse(open(vec![input("f", ftrace(&text).into())]).unwrap(), None);
    assert_eq!((found.unpaired, found.requests), (0, 9), "{:?}", found.unpaired_by);
    let rows: Vec<_> =
        found.reasons.iter().map(|row| (row.why.as_str(), row.requests, row.threads.join(","))).collect();
    let threads = "task 60,task 60 for task 7".to_string();
    assert_eq!(rows.len(), 2, "{rows:?}");
    for (why, count) in [("flush", 6), ("journal", 3)] {
        assert!(rows.contains(&(why, count, threads.clone())), "{rows:?}");
    }
}

/// A clock that moves by jiffies says nothing of requests.
#[test]
fn a_clock_that_stands_gives_no_limit() {
    let request = |at: u64, until: u64, sector: u64| {
        format!(
            "{at} 7 block_bio_queue: 179,0 R {sector} + 8 [x]
             {at} 7 block_rq_issue: 179,0 R 4096 () {sector} + 8 [x]
             {until} 7 block_rq_complete: 179,0 R () {sector} + 8 [0]\n"
        )
    };
    let of = |until: u64| {
        let text = request(1000, until, 8) + &request(20_000, 20_000 + until - 1000, 16) + &request(30_000, 40_000, 24);
        analyse(open(vec![input("f", ftrace(&text).into())]).unwrap(), None)
    };
    let (stands, moves) = (of(1000), of(1001));
    assert!(stands.limit.is_none() && moves.limit.is_some());
    let said = "the clock of the recording did not move during 2 of 3 requests";
    assert!(stands.causes[0].starts_with(said), "{:?}", stands.causes);
    assert!(moves.causes.is_empty(), "{:?}", moves.causes);
}

/// 40 requests with a processor that is idle while the card works, then 40 for which it works all the time.
fn with_idle_times(form: impl Fn(u64, bool) -> String) -> String {
    let (mut text, mut at) = (format!("990 7 {}\n", form(9, false)), 1000);
    for number in 0..80 {
        let (sector, works) = (8 + 8 * number, number >= 40);
        // The program works for 30 us, or for 90 us.
        let from = at + if works { 90 } else { 30 };
        text += &format!(
            "{from} 7 block_bio_queue: 179,0 R {sector} + 8 [x]
             {} 7 block_rq_issue: 179,0 R 4096 () {sector} + 8 [x]
             {} 7 {}\n",
            from + 2,
            from + 3,
            start(17, 8, sector, "a"),
        );
        if !works {
            text += &format!("{} 7 {}\n", from + 5, form(7, true));
        }
        text += &format!(
            "{} 0 irq_handler_entry: irq=8 name=mmc0
             {} 0 {}
             {} 0 block_rq_complete: 179,0 R () {sector} + 8 [0]\n",
            from + 103,
            from + 104,
            done(17, "a"),
            from + 106,
        );
        at = from + 106;
        if !works {
            text += &format!("{} 0 {}\n", at + 1, form(7, false));
        }
    }
    text
}

/// What the processor does between two requests counts one at a time, and all that it does if it is never idle.
#[test]
fn the_processors_work_is_in_the_prediction() {
    let kernel = |pid: u64, idle: bool| {
        let (from, to) = if idle { (pid, 0) } else { (0, pid) };
        format!(
            "sched_switch: prev_comm=a prev_pid={from} prev_prio=120 prev_state=R ==> next_comm=b c next_pid={to} \
             next_prio=120"
        )
    };
    let report = |pid: u64, idle: bool| {
        let (from, to) = if idle { (pid, 0) } else { (0, pid) };
        format!("sched_switch: a:{from} [120] S ==> b: c:{to} [120]")
    };
    let texts = [with_idle_times(kernel), with_idle_times(report)];
    let without: String =
        texts[0].lines().filter(|line| !line.contains("sched_")).map(|line| format!("{line}\n")).collect();
    let of = |text: &str| analyse(open(vec![input("f", ftrace(text).into())]).unwrap(), None);
    for text in texts {
        let found = of(&text);
        assert_eq!((found.unpaired, found.damaged, found.requests), (0, 0, 80), "{:?}", found.damage);
        let limit = found.limit.unwrap();
        assert_eq!(limit.ceiling, "processor");
        assert_eq!((limit.own_us, limit.processor_us), (Some(30.0), Some(196.0)));
        let predicted: Vec<_> = limit.predicted.iter().map(|at| (at.depth, at.cores, 4096.0 / at.mb_per_s)).collect();
        // 106 us and the program's 30 us; 196 us of one processor; of two, the card's 100 us and the driver's 1 us.
        for (depth, cores, us) in [(1, 1, 136.0), (32, 1, 196.0), (1, 2, 136.0), (32, 2, 101.0)] {
            let wanted = |at: &&(u32, u32, f64)| (at.0, at.1) == (depth, cores);
            let found = predicted.iter().find(wanted).unwrap().2;
            assert!((found - us).abs() < 1.5, "depth {depth}, {cores} processors: {found} us, expected {us} us");
        }
        let [processor] = found.processors[..] else { panic!("{:?}", found.processors) };
        // Idle from 5 us after each of the first 40 bios to the interrupt, 98 us later.
        let all = 10.0 + 40.0 * 136.0 + 40.0 * 196.0;
        let busy = 100.0 - 100.0 * 40.0 * 98.0 / all;
        assert!((processor.busy_percent - busy).abs() < 0.1, "{} %, expected {busy} %", processor.busy_percent);
    }
    let unknown = of(&without);
    let limit = unknown.limit.unwrap();
    assert_eq!((limit.ceiling.as_str(), limit.own_us, limit.processor_us), ("hardware", None, None));
    assert!(unknown.processors.is_empty());
}

/// Recordings with the white paper's spans: its tables and overhead lists come out as its model computes them.
#[test]
fn the_tables_of_the_white_paper_come_from_spans() {
    use emmc_host::{Access, Operation, Order, PLATFORMS, paper};
    let mut text = String::new();
    let (mut at, mut sector) = (1000, 0);
    let mut rows = Vec::new();
    for workload in PLATFORMS.iter().flat_map(|platform| platform.workloads) {
        let us = [workload.spans.pre, workload.spans.hw, workload.spans.post].map(|span| span.0 / 1000);
        let (is_write, sectors) = (workload.operation == Operation::Write, workload.chunk.0 / 512);
        let (call, opcode) = if is_write { ("pwrite64", 25) } else { ("pread64", 18) };
        let op = if is_write { "WS" } else { "R" };
        let mark = match (workload.access, is_write) {
            (Access::Direct, _) => "iomap_dio_rw_begin: dev 179:0 ino 0xc size 0x0",
            (_, true) => "ext4_da_write_begin: dev 179,0 ino 12 pos 0 len 4096",
            (_, false) => "mm_filemap_add_to_page_cache: dev 179:0 ino c pfn=0x1 ofs=0",
        };
        for _ in 0..4 {
            let (begin, end) = (at + us[0], at + us[0] + us[1]);
            text += &format!(
                "{at} 7 sys_enter_{call}: fd: 3
                 {at} 7 {mark}
                 {} 7 block_bio_queue: 179,0 {op} {sector} + {sectors} [x]
                 {} 7 block_rq_issue: 179,0 {op} 4096 () {sector} + {sectors} [x]
                 {begin} 7 {}
                 {end} 0 {}
                 {} 0 block_rq_complete: 179,0 {op} () {sector} + {sectors} [0]
                 {} 7 sys_exit_{call}: 0x1000\n",
                at + 10,
                at + 20,
                start(opcode, sectors as u32, sector, "a"),
                done(opcode, "a"),
                end + 5,
                end + us[2],
            );
            at = end + us[2] + 100;
            sector += if workload.order == Order::Sequential { sectors } else { 8 * sectors };
        }
        sector += 10_000;
        rows.push(workload);
    }
    let found = analyse(open(vec![input("f", ftrace(&text).into())]).unwrap(), None);
    assert_eq!((found.unpaired, found.paper.len(), rows.len()), (0, 6, 6), "{:?}", found.unpaired_by);
    let of = |name: &str| {
        let workload = rows.iter().find(|workload| workload.name == name).unwrap();
        let mode = if workload.access == Access::Direct { "direct" } else { "sync" };
        let op = if workload.operation == Operation::Write { "write" } else { "read" };
        let wanted = (mode, op, workload.chunk.0, workload.order == Order::Sequential);
        let is = |row: &&emmc_trace::result::PaperRow| {
            (row.mode.as_str(), row.op.as_str(), row.size_bytes, row.is_sequential) == wanted
        };
        found.paper.iter().find(is).unwrap_or_else(|| panic!("{wanted:?}: {:?}", found.paper))
    };
    let reproduction = paper::reproduce();
    let mut compared = 0;
    for cell in &reproduction.cells {
        let row = of(cell.workload);
        let speed = match cell.figure {
            paper::Figure::Theoretical => row.theoretical_mib_per_s,
            paper::Figure::ZeroHardwareTime => row.zero_hardware_mib_per_s,
            paper::Figure::MultiThread => row.many_threads_mib_per_s,
            paper::Figure::OtherHardwareTime | paper::Figure::Loss => continue,
        };
        assert!((speed - cell.computed.mib_s).abs() < 1e-9, "{cell:?}: {row:?}");
        compared += 1;
    }
    for share in reproduction.overheads {
        let Some((name, computed)) = share.workload.zip(share.computed_percent) else { continue };
        assert!((of(name).overhead_percent - computed).abs() < 1e-9, "{share:?}");
        compared += 1;
    }
    assert_eq!(compared, 12 + 7);
}

/// Each request by its reason, also where only its thread or its file system says so.
#[test]
fn requests_have_a_reason_and_a_file() {
    let mut text = String::new();
    let mut at = 1000;
    let mut line = |thread: &str, event: &str| {
        text += &format!("{thread} [000] ..... {}.{:06}: {event}\n", at / 1_000_000, at % 1_000_000);
        at += 10;
    };
    // The events of a bio that becomes a request.
    let request = |line: &mut dyn FnMut(&str, &str), thread: &str, op: &str, place: &str| {
        line(thread, &format!("block_bio_queue: 179,0 {op} {place} [x]"));
        line("kworker/1:1H-90", &format!("block_rq_issue: 179,0 {op} 4096 () {place} [x]"));
        line("<idle>-0", &format!("block_rq_complete: 179,0 {op} () {place} [0]"));
    };
    line("app-7", "sys_enter_write: fd: 3");
    line("app-7", "ext4_da_write_end: dev 179,2 ino 12 pos 0 len 4096 copied 4096");
    request(&mut line, "app-7", "WS", "8 + 8");
    line("app-7", "sys_exit_write: 0x1000");
    // fsync writes the data itself, then waits for the journal.
    line("app-7", "sys_enter_fsync: fd: 4");
    line("app-7", "ext4_sync_file_enter: dev 179,2 ino 13 parent 2 datasync 0");
    request(&mut line, "app-7", "WS", "80 + 16");
    line("jbd2/mmcblk0p2-8-60", "jbd2_start_commit: dev 179,2 transaction 5 sync 0");
    request(&mut line, "jbd2/mmcblk0p2-8-60", "WS", "1000 + 16");
    line("jbd2/mmcblk0p2-8-60", "block_bio_queue: 179,0 FWFSM 1016 + 8 [x]");
    line("kworker/1:1H-90", "block_rq_issue: 179,0 FF 0 () 0 + 0 [x]");
    line("<idle>-0", "block_rq_complete: 179,0 FF () 18446744073709551615 + 0 [0]");
    line("kworker/1:1H-90", "block_rq_issue: 179,0 WFSM 4096 () 1016 + 8 [x]");
    line("<idle>-0", "block_rq_complete: 179,0 WFSM () 1016 + 8 [0]");
    line("jbd2/mmcblk0p2-8-60", "jbd2_end_commit: dev 179,2 transaction 5 sync 0 head 4");
    line("app-7", "sys_exit_fsync: 0x0");
    // Write-back of a file, then of an inode table by the same thread.
    let flusher = "kworker/u4:2-33";
    line(flusher, "writeback_single_inode_start: bdi 179:0: ino=77 state=I_DIRTY_PAGES dirtied_when=1 age=0");
    request(&mut line, flusher, "W", "2000 + 64");
    request(&mut line, flusher, "WM", "4096 + 8");
    request(&mut line, flusher, "D", "9000 + 1024");
    request(&mut line, "kswapd0-40", "W", "20000 + 8");
    // The journal's thread without its events.
    request(&mut line, "jbd2/mmcblk0p3-8-61", "WSM", "30000 + 8");
    // Reads: direct, of the page cache, and ahead of it.
    line("app-8", "sys_enter_pread64: fd: 3");
    line("app-8", "iomap_dio_rw_begin: dev 179:2 ino 0x2a size 0x100000 offset 0x0 length 0x1000");
    request(&mut line, "app-8", "R", "40000 + 8");
    line("app-8", "sys_exit_pread64: 0x1000");
    line("app-8", "sys_enter_read: fd: 3");
    line("app-8", "mm_filemap_add_to_page_cache: dev 179:2 ino 1f pfn=0x10 ofs=0 order=0");
    request(&mut line, "app-8", "R", "50000 + 8");
    line("app-8", "block_bio_queue: 179,0 RA 50008 + 32 [x]");
    line("app-8", "block_rq_issue: 179,0 RA 16384 () 50008 + 32 [x]");
    line("app-8", "sys_exit_read: 0x1000");
    line("<idle>-0", "block_rq_complete: 179,0 RA () 50008 + 32 [0]");
    line("app-8", "sys_enter_read: fd: 3");
    request(&mut line, "app-8", "RM", "4104 + 8");
    line("app-8", "sys_exit_read: 0x1000");

    let found = analyse(open(vec![input("f", text.into())]).unwrap(), None);
    assert_eq!((found.unpaired, found.requests, found.commits), (0, 14, 1), "{:?}", found.unpaired_by);
    // The write: 10 us to the dirty page. The data of fsync: the commit of 90 us is in its span 5.
    let parts = |mode: &str| found.spans.iter().find(|row| row.mode == mode).unwrap().named_parts.unwrap();
    assert_eq!(parts("sync").page_cache.map(|part| (part.count, part.us.mean)), Some((1, 10.0)));
    let fsync = parts("fsync");
    assert_eq!(fsync.journal_after.map(|part| (part.count, part.us.mean)), Some((1, 90.0)));
    assert_eq!((fsync.page_cache, fsync.journal_before), (None, None));
    let columns = found.over_time.as_ref().unwrap();
    assert_eq!(columns.columns.iter().map(|column| column.requests).sum::<u64>(), 14);
    assert_eq!(columns.columns.iter().flat_map(|column| &column.counts).sum::<u64>(), 14);
    let mut reasons: Vec<_> = found
        .reasons
        .iter()
        .map(|row| {
            (row.why.as_str(), row.requests, row.read_bytes / 512, row.written_bytes / 512, row.threads.join(","))
        })
        .collect();
    reasons.sort();
    let expected = [
        ("direct I/O", 1, 8, 0, "app 8"),
        ("discard", 1, 0, 0, "kworker/u4:2 33"),
        ("flush", 1, 0, 0, "jbd2/mmcblk0p2-8 60 for app 7"),
        ("journal", 3, 0, 32, "jbd2/mmcblk0p2-8 60 for app 7,jbd2/mmcblk0p3-8 61"),
        ("metadata", 2, 8, 8, "app 8,kworker/u4:2 33"),
        ("read", 1, 8, 0, "app 8"),
        ("read-ahead", 1, 32, 0, "app 8"),
        ("swap", 1, 0, 8, "kswapd0 40"),
        ("sync write", 2, 0, 24, "app 7"),
        ("write-back", 1, 0, 64, "kworker/u4:2 33"),
    ];
    assert_eq!(reasons, expected.map(|(why, count, read, written, of)| (why, count, read, written, of.to_string())));
    let mut files: Vec<_> = found
        .files
        .iter()
        .map(|file| (file.device.as_str(), file.inode, file.read_bytes, file.written_bytes))
        .collect();
    files.sort();
    let expected = [
        ("179:0", 77, 0, 64 * 512),
        ("179:2", 12, 0, 4096),
        ("179:2", 13, 0, 8192),
        ("179:2", 31, 20480, 0),
        ("179:2", 42, 4096, 0),
    ];
    assert_eq!(files, expected);
    // What a thread waits for is the sum of its requests.
    let sum = |ms: &mut dyn Iterator<Item = f64>| ms.sum::<f64>();
    let reasons = sum(&mut found.reasons.iter().map(|row| row.waited_ms));
    assert!((reasons - sum(&mut found.waiters.iter().map(|row| row.waited_ms))).abs() < 1e-9);
}
