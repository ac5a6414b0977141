//! The card below a simulated host, which owns the time.

use std::cmp::Reverse;

use emmc_port::{BlockRequest, SimulatedTarget, TargetError};
use emmc_units::Instant;

use super::SimTarget;
use crate::device::StorageError;
use crate::ftl::FtlError;

impl SimulatedTarget for SimTarget {
    fn serve(&mut self, request: &BlockRequest, at: Instant) -> Result<(Instant, Option<String>), TargetError> {
        self.check(request)?;
        self.now = self.now.max(at);
        let start = self.start();
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
