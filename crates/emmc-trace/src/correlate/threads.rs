//! System calls of threads, and the requests that they wait for.

use std::collections::HashMap;

use emmc_units::Nanos;

use super::Unpaired;
use super::commits::Commits;
use super::open::Access;
use crate::event::{Event, File, Mark, Syscall};
use crate::notes::Mixer;
use crate::request::{Mode, Parts, Request, since};

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
    file: File,
    /// The file system that is synced, if an event said so; 0 is any.
    on: u32,
    /// It waits until a file is durable.
    syncs: bool,
    /// Since `from`: the last event of the page cache, and the first of write-back.
    cached: Option<Nanos>,
    written: Option<Nanos>,
    /// Completed requests of this call.
    done: Vec<Request>,
    /// After the last of them: the last wake-up, and when it had a processor then.
    woken: Option<Nanos>,
    ran: Option<Nanos>,
}

/// What a thread outside of system calls works on: write-back, or a journal's commit.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    file: File,
    is_journal: bool,
    /// The file system of a commit.
    on: u32,
}

/// Where a bio comes from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Origin {
    /// The call, when it began, and its number.
    pub(super) call: Option<(Syscall, Nanos, u64)>,
    pub(super) access: Access,
    pub(super) file: File,
    pub(super) is_journal: bool,
    /// The thread whose fsync a commit is for.
    pub(super) asked_by: Option<u32>,
    pub(super) parts: Parts,
}

/// All threads in system calls, and those that the kernel works with.
#[derive(Debug, Default)]
pub(super) struct Threads {
    all: HashMap<u32, Thread, Mixer>,
    workers: HashMap<u32, Work, Mixer>,
    commits: Commits,
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
                thread.give(returned, ready, &self.commits);
            }
            return;
        }
        if let Some(thread) = self.all.remove(&event.pid) {
            unpaired.calls_without_return += 1;
            thread.give(None, ready, &self.commits);
        }
        if self.all.len() < THREADS_MAX {
            self.serial += 1;
            let thread = Thread {
                call,
                serial: self.serial,
                from: event.at,
                access: Access::Unknown,
                file: File::default(),
                on: 0,
                syncs: call == Syscall::Sync,
                cached: None,
                written: None,
                done: Vec::new(),
                woken: None,
                ran: None,
            };
            self.all.insert(event.pid, thread);
        }
    }

    /// A thread was woken up.
    pub(super) fn wake(&mut self, pid: u32, at: Nanos, began: bool) {
        if let Some(thread) = self.waiting(pid) {
            // `sched_wakeup` may be the second event of a wake-up.
            if began || thread.woken.is_none() || thread.ran.is_some() {
                (thread.woken, thread.ran) = (Some(at), None);
            }
        }
    }

    /// A thread has a processor.
    pub(super) fn run(&mut self, pid: u32, at: Nanos) {
        if let Some(thread) = self.waiting(pid) {
            // After a wake-up the first time counts: later ones are of a thread that was interrupted by another.
            if thread.woken.is_none() || thread.ran.is_none() {
                thread.ran = Some(at);
            }
        }
    }

    /// A thread whose call has a completed request.
    fn waiting(&mut self, pid: u32) -> Option<&mut Thread> {
        self.all.get_mut(&pid).filter(|thread| !thread.done.is_empty())
    }

    pub(super) fn mark(&mut self, event: &Event, mark: Mark, file: File) {
        let pid = event.pid;
        let access = match mark {
            Mark::Direct => Access::Direct,
            Mark::Buffered => Access::Buffered,
            Mark::WriteBack | Mark::Sync => Access::Unknown,
            Mark::Commit { began } => {
                self.commits.take(event, file.device, began);
                return self.work(pid, Work { file: File::default(), is_journal: began, on: file.device });
            }
        };
        if let Some(thread) = self.all.get_mut(&pid) {
            if access != Access::Unknown {
                thread.access = access;
            }
            match mark {
                Mark::Buffered => thread.cached = Some(event.at),
                Mark::WriteBack => thread.written = thread.written.or(Some(event.at)),
                _ => {}
            }
            if mark == Mark::Sync {
                (thread.syncs, thread.on) = (true, file.device);
            }
            if file.inode != 0 {
                thread.file = file;
            }
        } else if mark == Mark::WriteBack {
            let before = self.workers.get(&pid).copied().unwrap_or_default();
            self.work(pid, Work { file, ..before });
        }
    }

    fn work(&mut self, pid: u32, work: Work) {
        if self.workers.len() < THREADS_MAX || self.workers.contains_key(&pid) {
            self.workers.insert(pid, work);
        }
    }

    /// What a thread that queues a bio is at.
    pub(super) fn queue(&self, pid: u32, at: Nanos) -> Origin {
        if let Some(thread) = self.all.get(&pid) {
            let call = Some((thread.call, thread.from, thread.serial));
            let (access, file, parts) = (thread.access, thread.file, thread.before(at, &self.commits));
            return Origin { call, access, file, is_journal: false, asked_by: None, parts };
        }
        let Work { file, is_journal, on } = self.workers.get(&pid).copied().unwrap_or_default();
        let asked_by = if is_journal { self.syncing(on) } else { None };
        Origin { call: None, access: Access::Unknown, file, is_journal, asked_by, parts: Parts::default() }
    }

    /// The thread that waits longest until a file of this file system is durable.
    fn syncing(&self, on: u32) -> Option<u32> {
        let waits = |(_, thread): &(&u32, &Thread)| thread.syncs && (thread.on == on || thread.on == 0 || on == 0);
        self.all.iter().filter(waits).min_by_key(|(_, thread)| thread.serial).map(|(pid, _)| *pid)
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
                (thread.woken, thread.ran) = (None, None);
                (thread.cached, thread.written) = (None, None);
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
        self.workers.clear();
        let mut all: Vec<Thread> = self.all.drain().map(|(_, thread)| thread).collect();
        all.sort_by_key(|thread| thread.serial);
        all.into_iter().for_each(|thread| thread.give(None, ready, &self.commits));
    }
}

impl Thread {
    /// What it did until it queues a bio.
    fn before(&self, at: Nanos, commits: &Commits) -> Parts {
        let write_back = self.written.map_or(Nanos::ZERO, |written| since(written.max(self.from), at));
        Parts {
            page_cache: self.cached.map_or(Nanos::ZERO, |last| since(self.from, last)),
            // Pages that are written back may become dirty in it.
            write_back: self.cached.map_or(write_back, |cached| write_back.min(since(cached, at))),
            journal_before: if self.syncs { commits.within(self.on, self.from, at) } else { Nanos::ZERO },
            journal_after: Nanos::ZERO,
        }
    }

    /// The request that is completed last has the way back to the caller.
    fn give(mut self, returned: Option<Nanos>, ready: &mut Vec<Request>, commits: &Commits) {
        if let Some(last) = self.done.last_mut() {
            if let Some(returned) = returned.filter(|_| self.syncs) {
                let ended = last.hardware.map_or(last.completed, |hardware| hardware.ended);
                last.parts.journal_after = commits.within(self.on, ended, returned);
            }
            last.exited = returned;
            (last.woken, last.ran) = (self.woken, self.ran);
        }
        ready.append(&mut self.done);
    }
}
