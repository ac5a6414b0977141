//! A split virtqueue in the machine's memory, from the device's side.
//!
//! Source: Virtual I/O Device (VIRTIO) 1.2, section 2.7. Indirect descriptors and event indices are not offered.

use std::sync::atomic::{Ordering, fence};

use crate::sdhci::{GuestMemory, Unmapped};

/// The largest ring of the standard.
const SIZE_MAX: u32 = 1 << 15;
/// Flags of a descriptor.
const NEXT: u16 = 1;
const WRITE: u16 = 2;

/// A ring that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RingError {
    #[error("a ring of {0} entries")]
    Size(u32),
    #[error("a ring that is not set up")]
    Absent,
    #[error("a ring outside its memory: {0}")]
    Memory(#[from] Unmapped),
    #[error("a chain of descriptors that loops, or leaves its table")]
    Chain,
    #[error("more entries than the ring has")]
    Overrun,
}

/// A part of the machine's memory. Unit: bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) address: u64,
    pub(super) bytes: u32,
}

/// A buffer of the machine: what the device reads, then what it writes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Chain {
    head: u16,
    pub(super) readable: Vec<Segment>,
    pub(super) writable: Vec<Segment>,
}

/// Addresses and positions.
#[derive(Debug, Default)]
pub(super) struct Ring {
    size: u16,
    /// Descriptors, used ring, available ring.
    places: Option<[u64; 3]>,
    taken: u16,
    given: u16,
    is_enabled: bool,
}

impl Ring {
    /// Errors: not a power of two, too large.
    pub(super) fn set_size(&mut self, size: u32) -> Result<(), RingError> {
        let fits = size.is_power_of_two() && size <= SIZE_MAX;
        self.size = u16::try_from(size).ok().filter(|_| fits).ok_or(RingError::Size(size))?;
        Ok(())
    }

    pub(super) fn set_places(&mut self, descriptors: u64, used: u64, available: u64) {
        self.places = Some([descriptors, used, available]);
    }

    /// The position of the next entry, in both rings.
    pub(super) fn set_base(&mut self, base: u16) {
        (self.taken, self.given) = (base, base);
    }

    pub(super) fn set_enabled(&mut self, is_enabled: bool) {
        self.is_enabled = is_enabled;
    }

    /// Whether buffers may be taken.
    pub(super) fn is_ready(&self) -> bool {
        self.is_enabled && self.size > 0 && self.places.is_some()
    }

    /// Takes the next buffer into `chain`; returns whether there is one.
    ///
    /// Errors: the ring is not set up, or damaged.
    pub(super) fn pop(&mut self, memory: &dyn GuestMemory, chain: &mut Chain) -> Result<bool, RingError> {
        let ([descriptors, _, available], true) = (self.places.ok_or(RingError::Absent)?, self.size > 0) else {
            return Err(RingError::Absent);
        };
        let there = u16::from_le_bytes(get(memory, available.wrapping_add(2))?);
        if there == self.taken {
            return Ok(false);
        }
        if there.wrapping_sub(self.taken) > self.size {
            return Err(RingError::Overrun);
        }
        fence(Ordering::SeqCst);
        let slot = u64::from(self.taken & (self.size - 1));
        chain.head = u16::from_le_bytes(get(memory, available.wrapping_add(4 + 2 * slot))?);
        chain.readable.clear();
        chain.writable.clear();
        let mut at = chain.head;
        for _ in 0..self.size {
            if at >= self.size {
                return Err(RingError::Chain);
            }
            let [address @ .., a, b, c, d, e, f, g, h] =
                get::<16>(memory, descriptors.wrapping_add(16 * u64::from(at)))?;
            let segment = Segment { address: u64::from_le_bytes(address), bytes: u32::from_le_bytes([a, b, c, d]) };
            match u16::from_le_bytes([e, f]) {
                flags if flags & !(NEXT | WRITE) != 0 => return Err(RingError::Chain),
                flags => {
                    let part = if flags & WRITE != 0 { &mut chain.writable } else { &mut chain.readable };
                    part.push(segment);
                    if flags & NEXT == 0 {
                        self.taken = self.taken.wrapping_add(1);
                        return Ok(true);
                    }
                }
            }
            at = u16::from_le_bytes([g, h]);
        }
        Err(RingError::Chain)
    }

    /// Gives a buffer back, of which `written` bytes were written.
    ///
    /// Errors: the ring is not set up, or not in memory.
    pub(super) fn push(&mut self, memory: &dyn GuestMemory, chain: &Chain, written: u32) -> Result<(), RingError> {
        let ([_, used, _], true) = (self.places.ok_or(RingError::Absent)?, self.size > 0) else {
            return Err(RingError::Absent);
        };
        let slot = u64::from(self.given & (self.size - 1));
        let mut entry = [0; 8];
        entry[..4].copy_from_slice(&u32::from(chain.head).to_le_bytes());
        entry[4..].copy_from_slice(&written.to_le_bytes());
        memory.write(used.wrapping_add(4 + 8 * slot), &entry)?;
        self.given = self.given.wrapping_add(1);
        fence(Ordering::SeqCst);
        Ok(memory.write(used.wrapping_add(2), &self.given.to_le_bytes())?)
    }
}

fn get<const N: usize>(memory: &dyn GuestMemory, at: u64) -> Result<[u8; N], Unmapped> {
    let mut bytes = [0; N];
    memory.read(at, &mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::sdhci::FlatMemory;

    /// Descriptors, available ring, used ring of eight entries in the first KiB.
    const DESCRIPTORS: u64 = 0;
    const AVAILABLE: u64 = 0x100;
    const USED: u64 = 0x200;

    fn ring() -> Ring {
        let mut ring = Ring::default();
        ring.set_size(8).unwrap();
        ring.set_places(DESCRIPTORS, USED, AVAILABLE);
        ring.set_base(0xfffe);
        ring.set_enabled(true);
        ring
    }

    fn describe(memory: &FlatMemory, index: u64, address: u64, bytes: u32, flags: u16, next: u16) {
        let entry = [&address.to_le_bytes()[..], &bytes.to_le_bytes(), &flags.to_le_bytes(), &next.to_le_bytes()];
        memory.write(DESCRIPTORS + 16 * index, &entry.concat()).unwrap();
    }

    /// Makes the chain at `head` the entry at position `index`.
    fn offer(memory: &FlatMemory, index: u16, head: u16) {
        memory.write(AVAILABLE + 4 + 2 * u64::from(index % 8), &head.to_le_bytes()).unwrap();
        memory.write(AVAILABLE + 2, &index.wrapping_add(1).to_le_bytes()).unwrap();
    }

    #[test]
    fn buffers_are_taken_and_given_back() {
        let (memory, mut ring, mut chain) = (FlatMemory::new(0x400), ring(), Chain::default());
        memory.write(AVAILABLE + 2, &0xfffeu16.to_le_bytes()).unwrap();
        assert_eq!(ring.pop(&memory, &mut chain), Ok(false));
        describe(&memory, 3, 0x1000, 16, NEXT, 5);
        describe(&memory, 5, 0x2000, 8, WRITE, 0);
        // The position wraps around after the second.
        for index in [0xfffe, 0xffff, 0u16] {
            offer(&memory, index, 3);
            assert_eq!(ring.pop(&memory, &mut chain), Ok(true));
            assert_eq!(chain.readable, [Segment { address: 0x1000, bytes: 16 }]);
            assert_eq!(chain.writable, [Segment { address: 0x2000, bytes: 8 }]);
            ring.push(&memory, &chain, 8).unwrap();
            assert_eq!(get(&memory, USED + 2).map(u16::from_le_bytes), Ok(index.wrapping_add(1)));
            assert_eq!(get(&memory, USED + 4 + 8 * u64::from(index % 8)), Ok([3, 0, 0, 0, 8, 0, 0, 0]));
        }
        assert_eq!(ring.pop(&memory, &mut chain), Ok(false));
    }

    #[test]
    fn damaged_rings_are_refused() {
        let mut chain = Chain::default();
        for size in [0, 3, 1 << 16, u32::MAX] {
            assert_eq!(Ring::default().set_size(size), Err(RingError::Size(size)));
        }
        let memory = FlatMemory::new(0x400);
        assert_eq!(Ring::default().pop(&memory, &mut chain), Err(RingError::Absent));
        assert_eq!(Ring::default().push(&memory, &chain, 0), Err(RingError::Absent));
        for (what, head, flags, next) in [("a loop", 1, NEXT, 1), ("far away", 1, NEXT, 8), ("no such head", 8, 0, 0)] {
            let (memory, mut ring) = (FlatMemory::new(0x400), ring());
            describe(&memory, 1, 0, 0, flags, next);
            offer(&memory, 0xfffe, head);
            assert_eq!(ring.pop(&memory, &mut chain), Err(RingError::Chain), "{what}");
        }
        let mut far = ring();
        offer(&memory, 9, 0);
        assert_eq!(far.pop(&memory, &mut chain), Err(RingError::Overrun));
        far.set_places(u64::MAX, u64::MAX, u64::MAX - 2);
        assert!(matches!(far.pop(&memory, &mut chain), Err(RingError::Memory(_))));
    }
}
