//! Concurrent requests with plain calls: one thread per request.
//!
//! For kernels without io_uring and for environments that forbid it. A request's latency is that of the call alone. The
//! submitter may queue more requests than are to be in progress ([`Crew::line_up`]): an idle thread then takes the next
//! one itself, and the two sides wake each other only once in many requests. Without that, every request costs two
//! hand-overs.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use emmc_port::BlockRequest;

use super::calls::{Calls, Files};
use super::clock::Clock;
use super::outcome::Answer;

/// The worker threads.
pub(super) struct Crew {
    files: Files,
    clock: Clock,
    seed: u64,
    table: Arc<Table>,
    threads: Vec<JoinHandle<()>>,
    /// Completed and not fetched yet; the next one last.
    done: Vec<Answer>,
    outstanding: usize,
    /// Most requests in progress.
    most: usize,
    is_lined_up: bool,
}

/// The shared state of both sides.
#[derive(Default)]
struct Table {
    state: Mutex<State>,
    /// Signals new requests.
    orders: Condvar,
    /// Signals completions.
    answers: Condvar,
}

#[derive(Default)]
struct State {
    requests: VecDeque<BlockRequest>,
    answers: Vec<Answer>,
    under_way: usize,
    most: usize,
    /// Threads that wait for a request.
    idle: usize,
    /// Completions are signalled when at most this many requests wait; absent: immediately.
    tell_at: Option<usize>,
    is_asked: bool,
    over: bool,
}

impl Crew {
    pub(super) fn new(files: Files, clock: Clock, seed: u64) -> Self {
        let crew = Self {
            files,
            clock,
            seed,
            table: Arc::default(),
            threads: Vec::new(),
            done: Vec::new(),
            outstanding: 0,
            most: usize::MAX,
            is_lined_up: false,
        };
        crew.table.lock().most = usize::MAX;
        crew
    }

    pub(super) fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Whether more requests can be submitted in advance: there are completions left to fetch, and work for the
    /// threads.
    pub(super) fn can_wait(&self) -> bool {
        self.is_lined_up && !self.done.is_empty()
    }

    /// Allows `depth` requests in progress from now on, and about `ahead` more, at least one, in the queue.
    pub(super) fn line_up(&mut self, depth: usize, ahead: usize) {
        (self.most, self.is_lined_up) = (depth, true);
        let mut state = self.table.lock();
        (state.most, state.tell_at) = (depth, Some(ahead / 2));
    }

    /// Drops queued requests, and lets later ones start immediately. Returns the number dropped.
    pub(super) fn dismiss(&mut self) -> usize {
        (self.most, self.is_lined_up) = (usize::MAX, false);
        let mut state = self.table.lock();
        (state.most, state.tell_at) = (usize::MAX, None);
        let dropped = state.requests.len();
        state.requests.clear();
        self.outstanding -= dropped;
        dropped
    }

    /// Submits requests.
    ///
    /// Errors: no more threads or memory.
    pub(super) fn hand_over(&mut self, requests: &mut Vec<BlockRequest>) -> io::Result<()> {
        self.outstanding += requests.len();
        while self.threads.len() < self.outstanding.min(self.most) {
            self.hire(requests)?;
        }
        let mut state = self.table.lock();
        state.requests.extend(requests.drain(..));
        let wanted = state.requests.len().min(state.most.saturating_sub(state.under_way)).min(state.idle);
        drop(state);
        (0..wanted).for_each(|_| self.table.orders.notify_one());
        Ok(())
    }

    fn hire(&mut self, requests: &[BlockRequest]) -> io::Result<()> {
        let number = self.threads.len() as u64;
        let bytes = requests.iter().map(|request| request.bytes).max().unwrap_or_default().min(1 << 20);
        let calls = Calls::new(self.files.clone(), bytes as usize, self.seed.wrapping_add(number + 1))?;
        let (table, clock) = (Arc::clone(&self.table), self.clock);
        let thread = std::thread::Builder::new().name(format!("io-{number}"));
        self.threads.push(thread.stack_size(128 << 10).spawn(move || table.work(calls, clock))?);
        Ok(())
    }

    /// Waits for the next completion. Something must be outstanding.
    pub(super) fn next(&mut self) -> Option<Answer> {
        if self.done.is_empty() {
            let mut state = self.table.lock();
            while !state.tells() {
                state.is_asked = true;
                state = self.table.answers.wait(state).unwrap_or_else(|poison| poison.into_inner());
            }
            state.is_asked = false;
            std::mem::swap(&mut self.done, &mut state.answers);
            drop(state);
            self.done.reverse();
        }
        self.outstanding -= 1;
        self.done.pop()
    }
}

impl State {
    /// Whether completions should be signalled.
    fn tells(&self) -> bool {
        !self.answers.is_empty() && self.tell_at.is_none_or(|waiting| self.requests.len() <= waiting)
    }
}

impl Table {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// The loop of a thread: takes requests until the end.
    fn work(&self, mut calls: Calls, clock: Clock) {
        let mut state = self.lock();
        let mut tells = false;
        while !state.over {
            let next = if state.under_way < state.most { state.requests.pop_front() } else { None };
            let Some(request) = next else {
                if std::mem::take(&mut tells) {
                    drop(state);
                    self.answers.notify_one();
                    state = self.lock();
                    continue;
                }
                state.idle += 1;
                state = self.orders.wait(state).unwrap_or_else(|poison| poison.into_inner());
                state.idle -= 1;
                continue;
            };
            state.under_way += 1;
            drop(state);
            if std::mem::take(&mut tells) {
                // Not while everybody else waits for the lock.
                self.answers.notify_one();
            }
            let room = calls.make_room(&request);
            let submitted = clock.now();
            let result = room.and_then(|()| calls.call(&request));
            let done = clock.now();
            state = self.lock();
            state.under_way -= 1;
            state.answers.push(Answer { request, submitted, done, result });
            tells = state.is_asked && state.tells();
            state.is_asked &= !tells;
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.table.lock().over = true;
        self.table.orders.notify_all();
        for thread in self.threads.drain(..) {
            // A panic there was printed when it happened.
            let _ = thread.join();
        }
    }
}
