//! PIO: data that software moves through the buffer port, block by block.

use emmc_card::card::Card;
use emmc_units::Instant;

use super::Sdhci;
use super::registers::int;
use super::transfer::{Mover, Step, Transfer};

/// The controller's buffer: a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    /// Bytes that software has read or written.
    position: usize,
    /// Software may read, or write.
    ready: bool,
}

impl Buffer {
    /// Whether software may read or write.
    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }
}

impl Sdhci {
    /// Moves the next block between card and buffer; returns the next step and its time.
    pub(super) fn move_by_software(
        &mut self,
        transfer: &mut Transfer,
        card: &mut Card,
        now: Instant,
    ) -> Option<(Instant, Step)> {
        let Mover::Pio(buffer) = &mut transfer.mover else { return None };
        if transfer.read {
            if transfer.left == Some(0) {
                return Some(self.finish(transfer));
            }
            let Some(block) = card.poll_data(now) else {
                return Some((transfer.at + self.data_timeout(), Step::Fail(int::DATA_TIMEOUT)));
            };
            transfer.at = block.at.max(now);
            if block.bytes.len() != transfer.block_bytes {
                return Some((transfer.at, Step::Fail(int::DATA_CRC)));
            }
            *buffer = Buffer { bytes: block.bytes, position: 0, ready: true };
            transfer.left = transfer.left.map(|left| left - 1);
            self.raise(int::BUFFER_READ);
            return None;
        }
        if buffer.bytes.len() == transfer.block_bytes {
            let block = std::mem::take(&mut buffer.bytes);
            if let Some(failed) = self.send(transfer, card, &block, now) {
                return Some(failed);
            }
        }
        if transfer.left == Some(0) {
            return Some(self.finish(transfer));
        }
        transfer.mover = Mover::Pio(Buffer { ready: true, ..Buffer::default() });
        self.raise(int::BUFFER_WRITE);
        None
    }

    /// Software reads the buffer port; zeros if there is no data.
    pub(super) fn read_buffer(&mut self, bytes: usize, now: Instant) -> u64 {
        let Some(transfer) = &mut self.transfer else { return 0 };
        let (true, Mover::Pio(buffer)) = (transfer.read, &mut transfer.mover) else { return 0 };
        if !buffer.ready {
            return 0;
        }
        let rest = &buffer.bytes[buffer.position..];
        let taken = bytes.min(rest.len()).min(4);
        let value = rest[..taken].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        buffer.position += taken;
        if buffer.position == buffer.bytes.len() {
            buffer.ready = false;
            self.next = Some((transfer.at.max(now), Step::Move));
        }
        value
    }

    /// Software writes the buffer port; unexpected data is dropped.
    pub(super) fn write_buffer(&mut self, written: &[u8], now: Instant) {
        let Some(transfer) = &mut self.transfer else { return };
        let (false, Mover::Pio(buffer)) = (transfer.read, &mut transfer.mover) else { return };
        if !buffer.ready {
            return;
        }
        let taken = written.len().min(transfer.block_bytes - buffer.bytes.len());
        buffer.bytes.extend_from_slice(&written[..taken]);
        if buffer.bytes.len() == transfer.block_bytes {
            buffer.ready = false;
            self.next = Some((transfer.at.max(now), Step::Move));
        }
    }
}
