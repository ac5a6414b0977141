//! An access of a machine: its bytes in and out of the machine's memory, and its execution.

use emmc_units::Instant;

use super::machine::MachineError;
use super::pcidev::{self, Access, Act, Space};
use super::ring::Segment;
use crate::pci::{BAR_BYTES, Board, CONFIG_BYTES};
use crate::sdhci::GuestMemory;

/// Executes an access, in parts of at most eight bytes. What is not there reads as ones.
pub(super) fn execute(
    board: &mut Board,
    memory: &dyn GuestMemory,
    access: &Access<'_>,
    now: Instant,
    answer: &mut Vec<u8>,
) {
    let (bytes, space) = (
        match access.act {
            Act::Read(bytes) | Act::Fill(_, bytes) => bytes,
            Act::Write(data) => data.len(),
        },
        match access.space {
            Space::Config => CONFIG_BYTES,
            Space::Bar(0) => BAR_BYTES,
            Space::Bar(_) => 0,
        },
    );
    if access.offset.checked_add(bytes).is_none_or(|end| end > space) {
        if let Act::Read(bytes) = access.act {
            answer.resize(bytes, 0xff);
        }
        return;
    }
    for start in (0..bytes).step_by(8) {
        let (at, part) = (access.offset + start, (bytes - start).min(8));
        let mut raw = [0; 8];
        match access.act {
            Act::Read(_) => {
                let value = match access.space {
                    Space::Config => board.read_config(at, part),
                    Space::Bar(_) => board.read(at, part, memory, now),
                };
                answer.extend_from_slice(&value.to_le_bytes()[..part]);
                continue;
            }
            Act::Write(data) => raw[..part].copy_from_slice(&data[start..start + part]),
            Act::Fill(byte, _) => raw[..part].fill(byte),
        }
        let value = u64::from_le_bytes(raw);
        match access.space {
            Space::Config => board.write_config(at, part, value, now),
            Space::Bar(_) => board.write(at, part, value, memory, now),
        }
    }
}

/// The bytes of a buffer.
pub(super) fn gather(memory: &dyn GuestMemory, segments: &[Segment], into: &mut Vec<u8>) -> Result<(), MachineError> {
    into.clear();
    for segment in segments {
        let from = into.len();
        let end = from.saturating_add(segment.bytes as usize);
        if end > pcidev::MESSAGE_MAX {
            return Err(MachineError::Memory("an access that is too long".into()));
        }
        into.resize(end, 0);
        memory.read(segment.address, &mut into[from..])?;
    }
    Ok(())
}

/// Writes bytes into a buffer, as many as it holds; returns how many.
pub(super) fn scatter(memory: &dyn GuestMemory, segments: &[Segment], from: &[u8]) -> Result<u32, MachineError> {
    let mut left = from;
    for segment in segments {
        let (part, rest) = left.split_at(left.len().min(segment.bytes as usize));
        memory.write(segment.address, part)?;
        left = rest;
    }
    Ok((from.len() - left.len()) as u32)
}
