//! Requests with content, on a card that stores data.

use emmc_card::device::{Device, HostDone, StorageError, WriteFlags};
use emmc_port::{Access, BlockContent, BlockDone, BlockOp, BlockRequest, TargetError};
use emmc_units::{Instant, SECTOR_BYTES};

use crate::SimTarget;

impl BlockContent for SimTarget {
    fn read_into(&mut self, offset_bytes: u64, into: &mut [u8]) -> Result<BlockDone, TargetError> {
        let bytes = into.len() as u64;
        let request = BlockRequest { op: BlockOp::Read, offset_bytes, bytes, through: false, tag: 0 };
        self.exchange(request, |device, access, start| {
            device.read(access.area, offset_bytes / SECTOR_BYTES, (bytes / SECTOR_BYTES) as u32, Some(into), start)
        })
    }

    fn write_from(&mut self, offset_bytes: u64, data: &[u8], through: bool) -> Result<BlockDone, TargetError> {
        let bytes = data.len() as u64;
        let request = BlockRequest { op: BlockOp::Write, offset_bytes, bytes, through, tag: 0 };
        self.exchange(request, |device, access, start| {
            let flags = WriteFlags { reliable: access.reliable, force: through };
            let (lba, sectors) = (offset_bytes / SECTOR_BYTES, (bytes / SECTOR_BYTES) as u32);
            device.write(access.area, lba, sectors, flags, Some(data), start)
        })
    }
}

impl SimTarget {
    /// Performs a request with content.
    fn exchange(
        &mut self,
        request: BlockRequest,
        call: impl FnOnce(&mut Device, Access, Instant) -> Result<HostDone, StorageError>,
    ) -> Result<BlockDone, TargetError> {
        self.check(&request)?;
        let (submitted, start) = (self.now, self.start(self.now));
        let (done, error) = match call(&mut self.device, self.access, start) {
            Ok(done) => {
                self.moved = self.moved.max(done.transferred);
                (done.done, None)
            }
            Err(error) => self.failed_request(error, start)?,
        };
        self.now = self.now.max(done);
        Ok(BlockDone { request, submitted, done, error })
    }
}
