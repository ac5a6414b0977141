//! System calls of threads, and the requests that they wait for.

use std::collections::HashMap;

use emmc_units::Nanos;

use super::Unpaired;
use super::open::Access;
use crate::event::{Event, Mark, Syscall};
use crate::notes::Mixer;
use crate::request::{Mode, Request};

/// Threads whose calls are followed, and completed requests that wait for a call to return.
const THREADS_MAX: usize = 1 << 14;
const WAITING_MAX: usize = 1 << 12;

/// A thread in a system call.
#[derive(Debug)]
struct Thread {
    call: Syscall,
    serial: u64,
    /// The call began, or its last request was completed.
    from: Nanos,
    access: Access,
    /// Completed requests of this call.
    done: Vec<Request>,
}

/// All threads in system calls.
#[derive(Debug, Default)]
pub(super) struct Threads {
    all: HashMap<u32, Thread, Mixer>,
    serial: u64,
}

impl Threads {
    pub(super) fn call(
        &mut self,
        event: &Event,
        call: Syscall,
        entered: bool,
        unpaired: &mut Unpaired,
        ready: &mut Vec<Request>,
    ) {
        if !entered {
            if let Some(thread) = self.all.remove(&event.pid) {
                let returned = (thread.call == call).then_some(event.at);
                unpaired.calls_without_return += u64::from(returned.is_none());
                thread.give(returned, ready);
            }
            return;
        }
        if let Some(thread) = self.all.remove(&event.pid) {
            unpaired.calls_without_return += 1;
            thread.give(None, ready);
        }
        if self.all.len() < THREADS_MAX {
            self.serial += 1;
            let thread =
                Thread { call, serial: self.serial, from: event.at, access: Access::Unknown, done: Vec::new() };
            self.all.insert(event.pid, thread);
        }
    }

    pub(super) fn mark(&mut self, pid: u32, mark: Mark) {
        let access = match mark {
            Mark::Direct => Access::Direct,
            Mark::Buffered => Access::Buffered,
            Mark::Commit { .. } => return,
        };
        if let Some(thread) = self.all.get_mut(&pid) {
            thread.access = access;
        }
    }

    /// The call within which a thread queues a bio.
    pub(super) fn queue(&self, pid: u32) -> (Option<(Syscall, Nanos, u64)>, Access) {
        match self.all.get(&pid) {
            Some(thread) => (Some((thread.call, thread.from, thread.serial)), thread.access),
            None => (None, Access::Unknown),
        }
    }

    pub(super) fn complete(
        &mut self,
        call: Option<(Syscall, Nanos, u64)>,
        mut request: Request,
        ready: &mut Vec<Request>,
    ) {
        let thread = call.and_then(|(.., serial)| self.all.get_mut(&request.pid).filter(|now| now.serial == serial));
        if request.mode == Mode::Readahead && thread.as_ref().is_some_and(|thread| thread.call == Syscall::Read) {
            // The page cache reads what a call asks for as read-ahead too, and the call waits for it.
            request.mode = Mode::Sync;
        }
        let waits = !matches!(request.mode, Mode::Async | Mode::Readahead);
        match thread {
            Some(thread) if waits && thread.done.len() < WAITING_MAX => {
                thread.from = request.completed;
                thread.done.push(request);
            }
            // The call returned before.
            None if call.is_some() && waits => {
                request.mode = Mode::Async;
                ready.push(request);
            }
            _ => ready.push(request),
        }
    }

    pub(super) fn end(&mut self, ready: &mut Vec<Request>) {
        let mut all: Vec<Thread> = self.all.drain().map(|(_, thread)| thread).collect();
        all.sort_by_key(|thread| thread.serial);
        all.into_iter().for_each(|thread| thread.give(None, ready));
    }
}

impl Thread {
    /// The request that is completed last has the way back to the caller.
    fn give(mut self, returned: Option<Nanos>, ready: &mut Vec<Request>) {
        if let Some(last) = self.done.last_mut() {
            last.exited = returned;
        }
        ready.append(&mut self.done);
    }
}
