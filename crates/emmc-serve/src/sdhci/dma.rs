//! DMA: ADMA2's lists, and SDMA between boundaries.

use emmc_card::card::{Card, DataStatus};
use emmc_units::Instant;

use super::Sdhci;
use super::descriptor::WalkError;
use super::memory::{GuestMemory, Unmapped};
use super::registers::{ADMA_ERROR, int};
use super::transfer::{Mover, Step, Transfer};

/// Blocks that a list moves in one call.
const CHUNK: u32 = 128;
/// Blocks after which a transfer waits for the bus to catch up, so that a looping list does not block the server for
/// long.
const SLICE: u32 = 1024;

/// What stops a transfer before its end.
enum Stopped {
    /// SDMA is at a boundary.
    Boundary,
    /// A bad list, or a bad segment address.
    List(WalkError),
    /// A bad SDMA address.
    Memory,
}

impl From<WalkError> for Stopped {
    fn from(error: WalkError) -> Self {
        Self::List(error)
    }
}

impl From<Unmapped> for Stopped {
    fn from(_: Unmapped) -> Self {
        Self::Memory
    }
}

impl Sdhci {
    /// Moves blocks from the card to memory; returns the next step and its time.
    pub(super) fn move_to_memory(
        &mut self,
        transfer: &mut Transfer,
        card: &mut Card,
        memory: &dyn GuestMemory,
        now: Instant,
    ) -> Option<(Instant, Step)> {
        let mut staging = std::mem::take(&mut self.staging);
        let mut moved = 0;
        let next = loop {
            staging.clear();
            if let Err(stopped) = finish_carry(transfer, memory) {
                break Some(self.stopped(transfer, stopped));
            }
            if is_over(transfer) {
                break Some(self.finish(transfer));
            }
            if moved >= SLICE {
                break Some((transfer.at, Step::Move));
            }
            moved += chunk(transfer);
            let failed = self.fetch(transfer, card, &mut staging, now);
            if let Err(stopped) = to_memory(transfer, memory, &staging) {
                break Some(self.stopped(transfer, stopped));
            }
            if failed.is_some() {
                break failed;
            }
        };
        self.staging = staging;
        next
    }

    /// Gets blocks from the card; returns the error, if any.
    fn fetch(
        &self,
        transfer: &mut Transfer,
        card: &mut Card,
        staging: &mut Vec<u8>,
        now: Instant,
    ) -> Option<(Instant, Step)> {
        let mut left = chunk(transfer);
        while left > 0 {
            let before = staging.len();
            let many = if transfer.block_bytes == 512 { card.poll_blocks(left, staging, now) } else { None };
            let crossed = many.or_else(|| {
                let block = card.poll_data(now)?;
                staging.extend_from_slice(&block.bytes);
                Some(block.at)
            });
            let Some(crossed) = crossed else {
                return Some((transfer.at + self.data_timeout(), Step::Fail(int::DATA_TIMEOUT)));
            };
            transfer.at = transfer.at.max(crossed);
            let came = staging.len() - before;
            if came == 0 || came % transfer.block_bytes != 0 || many.is_none() && came != transfer.block_bytes {
                return Some((transfer.at, Step::Fail(int::DATA_CRC)));
            }
            let blocks = (came / transfer.block_bytes) as u32;
            left -= blocks;
            transfer.left = transfer.left.map(|left| left - blocks);
        }
        None
    }

    /// Moves blocks from memory to the card; returns the next step and its time.
    pub(super) fn move_to_card(
        &mut self,
        transfer: &mut Transfer,
        card: &mut Card,
        memory: &dyn GuestMemory,
        now: Instant,
    ) -> Option<(Instant, Step)> {
        let mut staging = std::mem::take(&mut self.staging);
        let mut moved = 0;
        let next = loop {
            if is_over(transfer) {
                break Some(self.finish(transfer));
            }
            if moved >= SLICE {
                break Some((transfer.at, Step::Move));
            }
            moved += chunk(transfer);
            staging.clear();
            if let Err(stopped) = from_memory(transfer, memory, &mut staging) {
                break Some(self.stopped(transfer, stopped));
            }
            let failed = self.send(transfer, card, &staging, now);
            if failed.is_some() {
                break failed;
            }
            if is_at_boundary(transfer) && !is_over(transfer) {
                break Some((transfer.at, Step::Pause));
            }
        };
        self.staging = staging;
        next
    }

    /// Sends blocks to the card; returns the error, if any.
    pub(super) fn send(
        &self,
        transfer: &mut Transfer,
        card: &mut Card,
        blocks: &[u8],
        now: Instant,
    ) -> Option<(Instant, Step)> {
        for block in blocks.chunks(transfer.block_bytes) {
            transfer.at = transfer.at + card.device().bus().write(1);
            match card.handle_data(block, now) {
                DataStatus::Accepted { busy_until } => transfer.busy_until = busy_until.or(transfer.busy_until),
                DataStatus::Rejected => return Some((transfer.at, Step::Fail(int::DATA_CRC))),
                // No CRC status arrives.
                DataStatus::Ignored => {
                    return Some((transfer.at + self.data_timeout(), Step::Fail(int::DATA_TIMEOUT)));
                }
            }
            transfer.left = transfer.left.map(|left| left - 1);
        }
        None
    }

    /// The step after a stop.
    fn stopped(&mut self, transfer: &Transfer, stopped: Stopped) -> (Instant, Step) {
        let state = match stopped {
            Stopped::Boundary => return (transfer.at, Step::Pause),
            // SDMA has no own error bit: its errors are reported as an ADMA error in the data state.
            Stopped::Memory => 3,
            Stopped::List(WalkError::Fetch) => 1,
            Stopped::List(WalkError::Length) => 3 | 1 << 2,
            Stopped::List(WalkError::Transfer) => 3,
        };
        self.registers.set8(ADMA_ERROR, state);
        (transfer.at, Step::Fail(int::ADMA))
    }

    /// Software has written SDMA's next address.
    pub(super) fn resume_dma(&mut self, now: Instant) {
        let given = if self.dma_trigger() < 0x10 {
            self.registers.get32(super::registers::SDMA_ADDRESS).into()
        } else {
            self.registers.get64(super::registers::ADMA_ADDRESS)
        };
        if let (None, Some(Transfer { mover: Mover::Sdma { address, .. }, at, .. })) = (&self.next, &mut self.transfer)
        {
            *address = given;
            self.next = Some(((*at).max(now), Step::Move));
        }
    }
}

/// Blocks to move in one call. SDMA moves one block at a time, because a boundary may be anywhere; so does a list
/// without a block count, which ends at its last descriptor.
fn chunk(transfer: &Transfer) -> u32 {
    match (&transfer.mover, transfer.left) {
        (Mover::Adma(_), Some(left)) => left.min(CHUNK),
        _ => 1,
    }
}

fn is_over(transfer: &Transfer) -> bool {
    match (&transfer.mover, transfer.left) {
        (_, Some(left)) => left == 0,
        (Mover::Adma(walk), None) => walk.is_over(),
        (_, None) => false,
    }
}

/// Whether SDMA has reached a boundary.
fn is_at_boundary(transfer: &Transfer) -> bool {
    matches!(&transfer.mover, Mover::Sdma { address, boundary, .. } if *address % *boundary == 0)
}

/// How far SDMA gets from an address before it stops; 512 KiB at most. Unit: bytes.
fn room(address: u64, boundary: u64) -> usize {
    (boundary - address % boundary) as usize
}

/// Writes the rest of a block that a boundary has split.
fn finish_carry(transfer: &mut Transfer, memory: &dyn GuestMemory) -> Result<(), Stopped> {
    let Mover::Sdma { carry, .. } = &mut transfer.mover else { return Ok(()) };
    let kept = std::mem::take(carry);
    to_memory(transfer, memory, &kept)
}

/// Writes blocks to memory. At a boundary the rest is stored.
fn to_memory(transfer: &mut Transfer, memory: &dyn GuestMemory, bytes: &[u8]) -> Result<(), Stopped> {
    let more_follows = transfer.left != Some(0);
    match &mut transfer.mover {
        Mover::Adma(walk) => walk.scatter(memory, bytes)?,
        Mover::Sdma { address, boundary, carry } => {
            let fits = room(*address, *boundary).min(bytes.len());
            let (part, rest) = bytes.split_at(fits);
            memory.write(*address, part)?;
            *address = address.wrapping_add(fits as u64);
            let at_boundary = fits > 0 && *address % *boundary == 0;
            carry.extend_from_slice(rest);
            if at_boundary && (!rest.is_empty() || more_follows) {
                return Err(Stopped::Boundary);
            }
        }
        Mover::Pio(_) => {}
    }
    Ok(())
}

/// Reads blocks from memory. At a boundary the part of a block that was read is stored.
fn from_memory(transfer: &mut Transfer, memory: &dyn GuestMemory, staging: &mut Vec<u8>) -> Result<(), Stopped> {
    let blocks = chunk(transfer) as usize;
    match &mut transfer.mover {
        Mover::Adma(walk) => {
            staging.resize(blocks * transfer.block_bytes, 0);
            walk.gather(memory, staging)?;
        }
        Mover::Sdma { address, boundary, carry } => {
            let kept = carry.len();
            let wanted = transfer.block_bytes - kept;
            let fits = room(*address, *boundary).min(wanted);
            carry.resize(kept + fits, 0);
            memory.read(*address, &mut carry[kept..])?;
            *address = address.wrapping_add(fits as u64);
            if fits < wanted {
                return Err(Stopped::Boundary);
            }
            staging.append(carry);
        }
        Mover::Pio(_) => {}
    }
    Ok(())
}
