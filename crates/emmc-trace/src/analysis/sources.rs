//! Which spans a recording has, and from which events.

use super::result::{SpanRow, SpanSource};
use crate::correlate::Correlator;

/// Which spans this recording has, and by which events.
pub(super) fn sources(spans: &[SpanRow], correlator: &Correlator) -> Vec<SpanSource> {
    let (has_calls, commands) = (correlator.has_calls(), correlator.commands());
    let (has_queue, bounded, limited) = (commands.queued_tasks > 0, commands.bounded > 0, commands.limited > 0);
    let has = |of: fn(&SpanRow) -> bool| spans.iter().any(of);
    let source = |span, (quality, events)| SpanSource { span, quality, events };
    let vfs = if has(|row| row.vfs_us.is_some()) {
        ("exact", "sys_enter_* to block_bio_queue")
    } else if has_calls {
        ("absent", "no request was queued within a recorded system call")
    } else {
        ("absent", "needs syscalls:sys_enter_* and sys_exit_*")
    };
    let block = if has(|row| row.block_us.is_some()) {
        ("exact", "block_bio_queue to block_rq_issue")
    } else {
        ("absent", "needs block_bio_queue")
    };
    let (issue, hardware) = match (has(|row| row.hardware_us.is_some()), has_queue) {
        (true, true) => (
            ("derived", "block_rq_issue to mmc_request_start, which is recorded after the doorbell"),
            ("derived", "mmc_request_start to mmc_request_done, or to the middle between it and its interrupt"),
        ),
        (true, false) if commands.written > 0 => (
            ("derived", "block_rq_issue to the middle between the command's time limit and the return of its write"),
            ("derived", "from there to the controller's last interrupt, with the CMD13 polls of a busy card"),
        ),
        (true, false) if limited => (
            ("derived", "block_rq_issue to timer_start of the command's time limit, right before it is written"),
            ("derived", "from there to the controller's last interrupt, with the CMD13 polls of a busy card"),
        ),
        (true, false) if bounded => (
            ("derived", "block_rq_issue to the middle between mmc_request_start and the command's interrupt"),
            ("derived", "from there to the controller's last interrupt, with the CMD13 polls of a busy card"),
        ),
        (true, false) => (
            ("exact", "block_rq_issue to mmc_request_start"),
            ("exact", "mmc_request_start to mmc_request_done, with the CMD13 polls of a busy card"),
        ),
        _ => (
            ("absent", "needs mmc_request_start"),
            ("absent", "needs mmc_request_start and mmc_request_done; device_us has the driver's time too"),
        ),
    };
    let post = match (has(|row| row.post_us.is_some()), has_calls) {
        (true, true) => ("exact", "end of the hardware to sys_exit_*, or to block_rq_complete if nobody waits"),
        (true, false) => ("derived", "end of the hardware to block_rq_complete: the wake-up is missing"),
        _ => ("absent", "needs mmc_request_done or sys_exit_*"),
    };
    vec![
        source("vfs", vfs),
        source("block", block),
        source("issue", issue),
        source("hardware", hardware),
        source("post", post),
        source("wake-up", wake_up(spans, correlator)),
    ]
}

/// The wake-up of the thread that waits, a part of span 5.
fn wake_up(spans: &[SpanRow], correlator: &Correlator) -> (&'static str, &'static str) {
    let (mut with_wake, mut with_run) = (0, 0);
    for parts in spans.iter().filter_map(|row| row.post_parts) {
        (with_wake, with_run) = (with_wake + parts.with_wake, with_run + parts.with_run);
    }
    let counts = correlator.counts;
    match (with_wake > 0, with_run > 0, counts.wakes + counts.switches > 0) {
        (true, true, _) => ("exact", "block_rq_complete to sched_waking, to sched_switch to the thread, to sys_exit_*"),
        (true, false, _) => {
            ("derived", "block_rq_complete to sched_waking, to sys_exit_*: the wait for a processor is in it")
        }
        (false, true, _) => {
            ("derived", "block_rq_complete to sched_switch to the thread, to sys_exit_*: the wake-up is between")
        }
        (false, false, true) => ("absent", "no thread that waits in a recorded call was woken up or got a processor"),
        (false, false, false) => ("absent", "needs sched_waking or sched_switch"),
    }
}
