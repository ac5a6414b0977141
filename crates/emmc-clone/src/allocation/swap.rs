//! Swap space: its content has no meaning after a restart, except for its header and a hibernated system.

use super::bytes::{Reader, Unread};
use super::{Allocation, PROBE_BYTES};
use crate::Ranges;

/// Sizes of a page, at whose end the signature is.
const PAGES: [usize; 4] = [4096, 8192, 16384, 65536];
/// Before the header the first page has room for a boot loader. Unit: bytes.
const SIGNATURE_BYTES: usize = 10;

pub(super) fn read(reader: &mut Reader<'_>, base: u64, size: u64) -> Result<Option<Allocation>, Unread> {
    let head = reader.read(base, (PROBE_BYTES as u64).min(size) as usize)?;
    let page = PAGES.into_iter().find_map(|page| {
        let at = page - SIGNATURE_BYTES;
        let is_swap = head.has(at, b"SWAPSPACE2") || head.has(at, b"SWAP-SPACE");
        let is_image = head.has(at, b"S1SUSPEND") || head.has(at, b"S2SUSPEND") || head.has(at, b"ULSUSPEND");
        (is_swap || is_image).then_some((page, is_image))
    });
    match page {
        None => Ok(None),
        Some((_, true)) => Err(Unread::odd("swap with a hibernated system")),
        Some((page, false)) => {
            Ok(Some(Allocation { filesystem: "swap", used: Ranges::one(0, page as u64), size_bytes: size }))
        }
    }
}
