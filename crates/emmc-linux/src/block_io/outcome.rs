//! The meaning of the kernel's result for a request, and for the whole run.

use std::io;

use emmc_port::{BlockDone, BlockOp, BlockRequest, TargetError};
use emmc_units::Instant;
use libc::{EBADMSG, EILSEQ, EIO, ENODATA, EREMOTEIO, ETIMEDOUT};

/// A request with the kernel's result.
pub(super) struct Answer {
    pub(super) request: BlockRequest,
    pub(super) submitted: Instant,
    pub(super) done: Instant,
    /// How many bytes were moved.
    pub(super) result: io::Result<usize>,
}

/// Errors that concern one place of a device only.
const ALONE: [i32; 6] = [EIO, EILSEQ, ENODATA, EREMOTEIO, ETIMEDOUT, EBADMSG];

/// The completed request.
///
/// Errors: the device is gone, full or refuses.
#[inline]
pub(super) fn done(name: &str, answer: Answer) -> Result<BlockDone, TargetError> {
    let Answer { request, submitted, done: ended, result } = answer;
    let done = |error| Ok(BlockDone { request, submitted, done: ended, error });
    match result {
        Ok(_) if matches!(request.op, BlockOp::Flush | BlockOp::Trim) => done(None),
        Ok(bytes) if bytes as u64 == request.bytes => done(None),
        Ok(bytes) => done(Some(format!("{bytes} of {} bytes", request.bytes))),
        Err(error) if error.raw_os_error().is_some_and(|code| ALONE.contains(&code)) => done(Some(error.to_string())),
        Err(error) => Err(failed(name, &request, &error)),
    }
}

/// Why the run cannot continue.
pub(super) fn failed(name: &str, request: &BlockRequest, error: &io::Error) -> TargetError {
    let op = match request.op {
        BlockOp::Read => "read",
        BlockOp::Write => "write",
        BlockOp::Trim => "trim",
        BlockOp::Flush => "flush",
    };
    let place = match request.op {
        BlockOp::Flush => String::new(),
        _ => format!(" of {} bytes at byte {}", request.bytes, request.offset_bytes),
    };
    TargetError::Failed { name: name.into(), reason: format!("{op}{place}: {error}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_block_is_counted_and_a_lost_device_ends_the_work() {
        let request = BlockRequest { op: BlockOp::Read, offset_bytes: 8192, bytes: 4096, through: false, tag: 0 };
        let ended = |result| done("d", Answer { request, submitted: Instant(1), done: Instant(3), result });
        assert_eq!(ended(Ok(4096)).unwrap().error, None);
        assert_eq!(ended(Ok(512)).unwrap().error.as_deref(), Some("512 of 4096 bytes"));
        assert!(ended(Err(io::Error::from_raw_os_error(EIO))).unwrap().error.is_some());
        let error = ended(Err(io::Error::from_raw_os_error(libc::ENOSPC))).unwrap_err().to_string();
        assert!(error.starts_with("d: read of 4096 bytes at byte 8192: "), "{error}");
    }
}
