//! A request that is complete, and who waited for it.

use emmc_units::Nanos;

use super::open::{Access, Open};
use crate::event::{Event, Flags, Op, Syscall};
use crate::request::{Mode, Request};

/// A request that is complete.
pub(super) fn finish(open: &Open, event: &Event, has_calls: bool, has_page_cache: bool) -> Request {
    let hardware = open.hardware.map(|mut hardware| {
        // With a command queue the end may be recorded before the start, by another processor.
        hardware.ended = hardware.ended.min(event.at);
        hardware.started = hardware.started.max(open.issued).min(event.at);
        hardware.ended = hardware.ended.max(hardware.started);
        hardware
    });
    let mode = match open.call {
        _ if open.flags.has(Flags::AHEAD) => Mode::Readahead,
        None if !has_calls => Mode::Unknown,
        // A read is never written back: its system call is not recorded, or it is the kernel's own.
        None if open.op == Op::Read => Mode::Async,
        None => Mode::Writeback,
        Some((Syscall::Submit, ..)) => Mode::Async,
        Some((Syscall::Sync, ..)) => Mode::Fsync,
        Some((call, ..)) if is_direct(open, call, has_page_cache) => Mode::Direct,
        Some(_) => Mode::Sync,
    };
    Request {
        device: open.device,
        op: open.op,
        flags: open.flags,
        sector: open.sector - u64::from(open.done).min(open.sector),
        sectors: open.sectors.saturating_add(open.done),
        pid: open.pid,
        asked_by: open.asked_by,
        call: open.call.map(|(call, ..)| call),
        file: open.file,
        is_journal: open.is_journal,
        parts: open.parts,
        mode,
        entered: open.call.map(|(_, entered, _)| entered),
        queued: open.queued,
        bios: open.bios,
        queued_last: open.queued_last,
        got: open.got,
        inserted: open.inserted,
        issued: open.issued,
        hardware,
        completed: event.at,
        exited: None,
        woken: None,
        ran: None,
        waited: Nanos(open.waited),
        requeues: open.requeues,
        error: open.error,
        effort: None,
        cpus: (open.issued_cpu, event.cpu),
    }
}

/// A block device has no event of its own for direct I/O: a read that is none of the page cache's read-ahead (which
/// all of its reads are since Linux 4.19) is direct, and a write before which no page became dirty.
fn is_direct(open: &Open, call: Syscall, has_page_cache: bool) -> bool {
    match open.access {
        Access::Direct => true,
        Access::Buffered => false,
        Access::Unknown if open.flags.has(Flags::META) => false,
        Access::Unknown => match (open.op, call) {
            (Op::Read, Syscall::Read) => true,
            (Op::Write, Syscall::Write) => has_page_cache,
            _ => false,
        },
    }
}
