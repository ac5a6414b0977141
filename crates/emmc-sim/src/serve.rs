//! The card below a simulated host, which owns the time.

use std::cmp::Reverse;

use emmc_card::device::StorageError;
use emmc_card::ftl::FtlError;
use emmc_port::{BlockRequest, SimulatedTarget, TargetError};
use emmc_units::Instant;

use crate::{DEPTH_MAX, Outstanding, SimTarget};

impl SimTarget {
    /// A place for an outstanding request.
    fn place(&mut self, made: Outstanding) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.requests[place as usize] = made;
                place
            }
            None => {
                self.requests.push(made);
                self.requests.len() as u32 - 1
            }
        }
    }
}

impl SimulatedTarget for SimTarget {
    fn reorders(&self) -> bool {
        self.polling.is_some()
    }

    #[inline]
    fn submit_at(&mut self, request: BlockRequest, at: Instant) -> Result<(), TargetError> {
        self.check(&request)?;
        if self.requests.len() - self.free.len() >= DEPTH_MAX as usize {
            return Err(self.failed(format!("more than {DEPTH_MAX} requests outstanding")));
        }
        let place = self.place(Outstanding { submitted: at, request, is_merged: false, next: None });
        self.enter(place, at)
    }

    fn serve(&mut self, request: &BlockRequest, at: Instant) -> Result<(Instant, Option<String>), TargetError> {
        self.check(request)?;
        self.transfer_all()?;
        self.now = self.now.max(at);
        let start = self.start(self.now);
        let (done, error) = self.outcome(request, start)?;
        self.taken.push(Reverse(done));
        Ok((done, error))
    }

    fn rest(&mut self, from: Instant, until: Instant) -> Result<Instant, TargetError> {
        let mut at = from;
        while at < until {
            match self.device.background(at) {
                Ok(Some(done)) => at = done.max(at),
                Ok(None) | Err(StorageError::Ftl(FtlError::WornOut)) => break,
                Err(error) => return Err(self.failed(error)),
            }
        }
        self.now = self.now.max(at);
        Ok(at)
    }
}
