//! The pipeline as a discrete-event model: queues and resources, without formulas.

use std::collections::VecDeque;

use emmc_units::{Agenda, Instant, Nanos};

use crate::Pipeline;

/// The times of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestTimes {
    /// Start of pre.
    pub pre_start: Instant,
    /// Submitted to the card.
    pub pre_end: Instant,
    /// Start of the transfer.
    pub hw_start: Instant,
    /// End of the transfer.
    pub hw_end: Instant,
    /// Start of post.
    pub post_start: Instant,
    /// End of post.
    pub post_end: Instant,
}

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simulated {
    /// The end of the last request.
    pub end: Instant,
    /// The requested number of first requests.
    pub first: Vec<RequestTimes>,
    /// Busy time of all cores.
    pub cores_busy: Nanos,
    /// Busy time of the card.
    pub device_busy: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    ParallelDone,
    SerialDone,
    TransferDone,
    DeviceReady,
    PostDone,
}

struct Model<'a> {
    pipeline: &'a Pipeline,
    requests: u64,
    now: Instant,
    events: Agenda<(Event, u64)>,
    cores_free: u32,
    lock_free: bool,
    device_free: bool,
    begun: u64,
    through: u64,
    /// Requests waiting for the serial part, for the card, for a core for post.
    to_serial: VecDeque<u64>,
    to_device: VecDeque<u64>,
    to_post: VecDeque<u64>,
    times: Vec<RequestTimes>,
    cores_busy: Nanos,
    device_busy: Nanos,
}

impl Pipeline {
    /// Simulates `requests` requests, event by event, and records the times of the first `keep`.
    ///
    /// Time is proportional to `requests`, memory is not.
    pub fn simulate(&self, requests: u64, keep: usize) -> Simulated {
        let mut model = Model {
            pipeline: self,
            requests,
            now: Instant::START,
            events: Agenda::new(),
            cores_free: self.cores,
            lock_free: true,
            device_free: true,
            begun: 0,
            through: 0,
            to_serial: VecDeque::new(),
            to_device: VecDeque::new(),
            to_post: VecDeque::new(),
            times: vec![RequestTimes::default(); keep.min(usize::try_from(requests).unwrap_or(usize::MAX))],
            cores_busy: Nanos::ZERO,
            device_busy: Nanos::ZERO,
        };
        model.run();
        let Model { now, times, cores_busy, device_busy, .. } = model;
        Simulated { end: now, first: times, cores_busy, device_busy }
    }
}

impl Model<'_> {
    fn run(&mut self) {
        while self.through < self.requests {
            self.dispatch();
            // A request in progress always has a future event: no core, lock or card is idle while one waits.
            let Some((at, (event, request))) = self.events.pop() else { return };
            self.now = at;
            self.handle(event, request);
            // All events of one instant are processed before anything is scheduled.
            while self.events.next_at() == Some(self.now) {
                if let Some((_, (event, request))) = self.events.pop() {
                    self.handle(event, request);
                }
            }
        }
    }

    /// Assigns work to free cores and the free card; completed requests first.
    fn dispatch(&mut self) {
        let spans = self.pipeline.spans;
        let parallel = spans.pre - self.pipeline.serial;
        while self.cores_free > 0 {
            if let Some(request) = self.to_post.pop_front() {
                self.note(request, |times, now| times.post_start = now);
                self.work(spans.post, Event::PostDone, request);
            } else if self.lock_free && !self.to_serial.is_empty() {
                let request = self.to_serial.pop_front().unwrap_or_default();
                self.lock_free = false;
                self.work(self.pipeline.serial, Event::SerialDone, request);
            } else if self.may_begin(parallel) {
                let request = self.begun;
                self.begun += 1;
                self.note(request, |times, now| times.pre_start = now);
                if parallel > Nanos::ZERO {
                    self.work(parallel, Event::ParallelDone, request);
                } else {
                    self.lock_free = false;
                    self.work(self.pipeline.serial, Event::SerialDone, request);
                }
            } else {
                break;
            }
        }
        if self.device_free {
            if let Some(request) = self.to_device.pop_front() {
                self.device_free = false;
                self.device_busy += spans.hw;
                self.note(request, |times, now| times.hw_start = now);
                self.after(spans.hw, Event::TransferDone, request);
            }
        }
    }

    fn may_begin(&self, parallel: Nanos) -> bool {
        let in_flight = self.begun - self.through;
        let has_room = self.begun < self.requests && in_flight < u64::from(self.pipeline.depth);
        has_room && (parallel > Nanos::ZERO || self.lock_free)
    }

    fn work(&mut self, time: Nanos, event: Event, request: u64) {
        self.cores_free -= 1;
        self.cores_busy += time;
        self.after(time, event, request);
    }

    fn after(&mut self, time: Nanos, event: Event, request: u64) {
        self.events.push(self.now + time, (event, request));
    }

    fn handle(&mut self, event: Event, request: u64) {
        match event {
            Event::ParallelDone => {
                self.cores_free += 1;
                self.to_serial.push_back(request);
            }
            Event::SerialDone => {
                self.cores_free += 1;
                self.lock_free = true;
                self.note(request, |times, now| times.pre_end = now);
                self.to_device.push_back(request);
            }
            Event::TransferDone => {
                self.note(request, |times, now| times.hw_end = now);
                self.to_post.push_back(request);
                match self.pipeline.gap_in_effect() {
                    Nanos::ZERO => self.device_free = true,
                    gap => self.after(gap, Event::DeviceReady, request),
                }
            }
            Event::DeviceReady => self.device_free = true,
            Event::PostDone => {
                self.cores_free += 1;
                self.through += 1;
                self.note(request, |times, now| times.post_end = now);
            }
        }
    }

    fn note(&mut self, request: u64, set: impl FnOnce(&mut RequestTimes, Instant)) {
        let now = self.now;
        if let Some(times) = usize::try_from(request).ok().and_then(|index| self.times.get_mut(index)) {
            set(times, now);
        }
    }
}
