//! Several requests at once with plain calls: as many threads as there are requests.
//!
//! For kernels without io_uring and for places that forbid it. Each request costs two hand-overs between threads more
//! than with io_uring; its latency is that of the call alone.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use emmc_port::BlockRequest;

use super::calls::{Calls, Files};
use super::clock::Clock;
use super::outcome::Answer;

/// Threads that do requests.
pub(super) struct Crew {
    files: Files,
    clock: Clock,
    seed: u64,
    orders: Arc<Orders>,
    sender: Sender<Answer>,
    done: Receiver<Answer>,
    threads: Vec<JoinHandle<()>>,
    outstanding: usize,
}

#[derive(Default)]
struct Orders {
    queue: Mutex<Queue>,
    news: Condvar,
}

#[derive(Default)]
struct Queue {
    requests: VecDeque<BlockRequest>,
    over: bool,
}

impl Crew {
    pub(super) fn new(files: Files, clock: Clock, seed: u64) -> Self {
        let (sender, done) = channel();
        Self { files, clock, seed, orders: Arc::default(), sender, done, threads: Vec::new(), outstanding: 0 }
    }

    pub(super) fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Hands requests over.
    ///
    /// Errors: no more threads or memory.
    pub(super) fn hand_over(&mut self, requests: &mut Vec<BlockRequest>) -> io::Result<()> {
        self.outstanding += requests.len();
        while self.threads.len() < self.outstanding {
            self.hire(requests)?;
        }
        let one = requests.len() == 1;
        self.orders.queue.lock().unwrap_or_else(|poison| poison.into_inner()).requests.extend(requests.drain(..));
        if one {
            self.orders.news.notify_one()
        } else {
            self.orders.news.notify_all()
        }
        Ok(())
    }

    fn hire(&mut self, requests: &[BlockRequest]) -> io::Result<()> {
        let number = self.threads.len() as u64;
        let bytes = requests.iter().map(|request| request.bytes).max().unwrap_or_default().min(1 << 20);
        let calls = Calls::new(self.files.clone(), bytes as usize, self.seed.wrapping_add(number + 1))?;
        let (orders, sender, clock) = (Arc::clone(&self.orders), self.sender.clone(), self.clock);
        let thread = std::thread::Builder::new().name(format!("io-{number}"));
        self.threads.push(thread.stack_size(128 << 10).spawn(move || work(&orders, calls, clock, &sender))?);
        Ok(())
    }

    /// The next one that is done.
    pub(super) fn next(&mut self) -> Option<Answer> {
        let done = self.done.recv().ok()?;
        self.outstanding -= 1;
        Some(done)
    }
}

fn work(orders: &Orders, mut calls: Calls, clock: Clock, sender: &Sender<Answer>) {
    while let Some(request) = orders.take() {
        let room = calls.make_room(&request);
        let submitted = clock.now();
        let result = room.and_then(|()| calls.call(&request));
        // Who does not wait for it any more does not need it.
        let _ = sender.send(Answer { request, submitted, done: clock.now(), result });
    }
}

impl Orders {
    /// The next request; nothing when there will be no more.
    fn take(&self) -> Option<BlockRequest> {
        let mut queue = self.queue.lock().unwrap_or_else(|poison| poison.into_inner());
        loop {
            if queue.over {
                return None;
            }
            if let Some(request) = queue.requests.pop_front() {
                return Some(request);
            }
            queue = self.news.wait(queue).unwrap_or_else(|poison| poison.into_inner());
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.orders.queue.lock().unwrap_or_else(|poison| poison.into_inner()).over = true;
        self.orders.news.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that has panicked has said so.
            let _ = thread.join();
        }
    }
}
