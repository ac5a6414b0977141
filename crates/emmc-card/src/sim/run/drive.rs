//! The loops that hand requests to the device: where a run spends its time.

use emmc_units::Instant;

use super::latency::Kind;
use super::phase::{Active, Task};
use super::plan::{Request, Source};
use super::queue::Queue;
use super::{Ended, Run, RunError};
use crate::device::{HostDone, StorageError};
use crate::ftl::FtlError;

impl Run {
    /// Goes on with a phase for at most `requests` requests; answers whether it is still not over.
    pub(super) fn drive(&mut self, active: &mut Active, requests: u64) -> Result<bool, RunError> {
        let result = match &mut active.task {
            Task::Requests(source, queue) => {
                let latencies = &mut active.latencies;
                self.requests(source, queue, latencies, active.started, requests)
            }
            Task::Idle { until, worked_to } => self.idle(*until, worked_to, requests),
            Task::Flush => self.flush(active),
            Task::PowerCycle { notify } => self.power_cycle(*notify),
        };
        match result {
            Ok(going_on) => Ok(going_on),
            Err(StorageError::Ftl(FtlError::WornOut)) => {
                self.ended = Some(Ended::WornOut);
                Ok(false)
            }
            Err(error) => Err(self.storage_error(active.index, error)),
        }
    }

    fn requests(
        &mut self,
        source: &mut Source,
        queue: &mut Queue,
        latencies: &mut super::latency::Latencies,
        began: Instant,
        requests: u64,
    ) -> Result<bool, StorageError> {
        for _ in 0..requests {
            let Some(request) = source.next() else { return Ok(false) };
            let slot = match request.at {
                None => queue.next(),
                Some(at) => queue.next_at(Instant(began.0.saturating_add(at))),
            };
            if self.buckets.is_over(slot.started) {
                self.sums = self.sums.with(&self.device);
                self.buckets.advance(slot.started, &self.sums);
            }
            let done = match self.hand_over(&request, slot.started) {
                Ok(done) => done.done,
                Err(StorageError::Ftl(FtlError::Uncorrectable { .. })) => {
                    self.read_errors += 1;
                    slot.started
                }
                Err(error) => return Err(error),
            };
            queue.end(done);
            latencies.record(request.kind, done.since(slot.made));
            self.sums.requests += 1;
            let bytes = u64::from(request.sectors) * 512;
            match request.kind {
                Kind::Write => self.sums.written_bytes += bytes,
                Kind::Read => self.sums.read_bytes += bytes,
                Kind::Trim => self.sums.trimmed_bytes += bytes,
                Kind::Flush => {}
            }
        }
        self.now = queue.now();
        Ok(true)
    }

    /// Gives the device a request.
    #[inline]
    fn hand_over(&mut self, request: &Request, now: Instant) -> Result<HostDone, StorageError> {
        let Request { area, lba, sectors, .. } = *request;
        if self.device.keeps_data() {
            return self.hand_over_data(request, now);
        }
        match request.kind {
            Kind::Write => self.device.write(area, lba, sectors, request.flags, None, now),
            Kind::Read => self.device.read(area, lba, sectors, None, now),
            Kind::Trim => self.device.trim(area, lba, u64::from(sectors), request.trim, now),
            Kind::Flush => self.device.flush(now),
        }
    }

    /// The same with content, for a device that keeps it: every sector holds its number and that of the request.
    #[cold]
    fn hand_over_data(&mut self, request: &Request, now: Instant) -> Result<HostDone, StorageError> {
        let Request { area, lba, sectors, .. } = *request;
        self.payload.resize(sectors as usize * 512, 0);
        let payload = &mut self.payload[..];
        match request.kind {
            Kind::Write => {
                for (sector, number) in payload.chunks_exact_mut(512).zip(lba..) {
                    sector[..8].copy_from_slice(&number.to_le_bytes());
                    sector[8..16].copy_from_slice(&self.sums.requests.to_le_bytes());
                }
                self.device.write(area, lba, sectors, request.flags, Some(payload), now)
            }
            Kind::Read => self.device.read(area, lba, sectors, Some(payload), now),
            Kind::Trim => self.device.trim(area, lba, u64::from(sectors), request.trim, now),
            Kind::Flush => self.device.flush(now),
        }
    }

    /// Background work until there is none, or the time is over.
    fn idle(&mut self, until: Instant, worked_to: &mut Option<Instant>, steps: u64) -> Result<bool, StorageError> {
        for _ in 0..steps {
            let Some(now) = worked_to.filter(|now| *now < until) else { break };
            match self.device.background(now) {
                Ok(done) => *worked_to = done.map(|done| done.max(now)),
                // A card that cannot write any more has no background work either.
                Err(StorageError::Ftl(FtlError::WornOut)) => *worked_to = None,
                Err(error) => return Err(error),
            }
        }
        if worked_to.is_some_and(|now| now < until) {
            return Ok(true);
        }
        self.now = self.now.max(until);
        Ok(false)
    }

    fn flush(&mut self, active: &mut Active) -> Result<bool, StorageError> {
        let done = self.device.flush(self.now)?.done;
        active.latencies.record(Kind::Flush, done.since(self.now));
        self.sums.requests += 1;
        self.now = done;
        Ok(false)
    }

    fn power_cycle(&mut self, notify: bool) -> Result<bool, StorageError> {
        if notify {
            self.now = self.device.flush(self.now)?.done;
        }
        self.device.power_off(self.now);
        self.now = self.device.power_on(self.now)?;
        Ok(false)
    }
}
