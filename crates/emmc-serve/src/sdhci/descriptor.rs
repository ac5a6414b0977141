//! Scatter lists in the guest's memory: ADMA2's and CQHCI's descriptors, which have the same form.
//!
//! A walk always ends: transfers make progress, and the number of consecutive descriptors without data (links, nops) is
//! limited.
//!
//! Source: SD Host Controller Simplified Specification 4.20, clause 1.13; Linux `sdhci.h`, `cqhci-core.c`.

use super::memory::GuestMemory;

/// Most consecutive links and nops.
const IDLE_DESCRIPTORS_MAX: u32 = 256;

/// How long descriptors are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// 32-bit addresses.
    Bits64,
    /// 64-bit addresses, of version 3.
    Bits96,
    /// 64-bit addresses, of version 4.
    Bits128,
}

impl Form {
    /// Unit: bytes.
    fn bytes(self) -> usize {
        match self {
            Self::Bits64 => 8,
            Self::Bits96 => 12,
            Self::Bits128 => 16,
        }
    }
}

/// Why a walk ended early: ADMA_ERROR's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalkError {
    /// The descriptor is not valid, or outside memory, or the list is a loop.
    Fetch,
    /// The list ended before the transfer.
    Length,
    /// The memory that it points to does not exist.
    Transfer,
}

/// Position in a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    form: Form,
    /// The next descriptor.
    pub(crate) next: u64,
    /// The rest of the current segment.
    address: u64,
    left: u32,
    ended: bool,
    /// A descriptor requested an interrupt.
    pub(crate) interrupt: bool,
}

impl Walk {
    /// Starts at the first descriptor.
    pub(crate) fn new(form: Form, base: u64) -> Self {
        Self { form, next: base, address: 0, left: 0, ended: false, interrupt: false }
    }

    /// Whether the list has ended and its last segment is used up.
    pub(crate) fn is_over(&self) -> bool {
        self.ended && self.left == 0
    }

    /// Copies all of `from` to the list's segments.
    ///
    /// Errors: the fault of the list.
    pub(crate) fn scatter(&mut self, memory: &dyn GuestMemory, mut from: &[u8]) -> Result<(), WalkError> {
        while !from.is_empty() {
            let (address, bytes) = self.segment(memory, from.len())?;
            let (part, rest) = from.split_at(bytes);
            memory.write(address, part).map_err(|_| WalkError::Transfer)?;
            from = rest;
        }
        Ok(())
    }

    /// Fills `into` from the list's segments.
    ///
    /// Errors: the fault of the list.
    pub(crate) fn gather(&mut self, memory: &dyn GuestMemory, mut into: &mut [u8]) -> Result<(), WalkError> {
        while !into.is_empty() {
            let (address, bytes) = self.segment(memory, into.len())?;
            let (part, rest) = std::mem::take(&mut into).split_at_mut(bytes);
            memory.read(address, part).map_err(|_| WalkError::Transfer)?;
            into = rest;
        }
        Ok(())
    }

    /// The next piece of at most `most` bytes.
    fn segment(&mut self, memory: &dyn GuestMemory, most: usize) -> Result<(u64, usize), WalkError> {
        let mut idle = 0;
        while self.left == 0 {
            if self.ended {
                return Err(WalkError::Length);
            }
            if idle == IDLE_DESCRIPTORS_MAX {
                return Err(WalkError::Fetch);
            }
            idle += 1;
            self.fetch(memory)?;
        }
        let bytes = most.min(self.left as usize);
        let address = self.address;
        self.address = self.address.wrapping_add(bytes as u64);
        self.left -= bytes as u32;
        Ok((address, bytes))
    }

    /// Processes one descriptor.
    fn fetch(&mut self, memory: &dyn GuestMemory) -> Result<(), WalkError> {
        let mut raw = [0; 16];
        memory.read(self.next, &mut raw[..self.form.bytes()]).map_err(|_| WalkError::Fetch)?;
        let word = |at: usize| u32::from_le_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]]);
        let attributes = word(0);
        if attributes & 1 == 0 {
            return Err(WalkError::Fetch);
        }
        let high = if self.form == Form::Bits64 { 0 } else { word(8) };
        let address = u64::from(high) << 32 | u64::from(word(4));
        self.ended = attributes & 2 != 0;
        self.interrupt |= attributes & 4 != 0;
        self.next = self.next.wrapping_add(self.form.bytes() as u64);
        match attributes >> 3 & 7 {
            4 => {
                self.address = address;
                self.left = match attributes >> 16 {
                    0 => 0x1_0000,
                    bytes => bytes,
                };
            }
            6 => self.next = address,
            // 0 and 2 have no effect; 1, 3, 5 and 7 belong to ADMA3 and CQE, and have no meaning in a list of segments.
            0 | 2 => {}
            _ => return Err(WalkError::Fetch),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::FlatMemory;
    use super::*;

    fn put(memory: &FlatMemory, at: u64, form: Form, attributes: u16, bytes: u16, address: u64) {
        let mut raw = [0; 16];
        raw[0..2].copy_from_slice(&attributes.to_le_bytes());
        raw[2..4].copy_from_slice(&bytes.to_le_bytes());
        raw[4..12].copy_from_slice(&address.to_le_bytes());
        memory.write(at, &raw[..form.bytes()]).unwrap();
    }

    #[test]
    fn segments_links_and_nops_are_read_in_every_form() {
        for form in [Form::Bits64, Form::Bits96, Form::Bits128] {
            let memory = FlatMemory::new(0x4000);
            let size = form.bytes() as u64;
            put(&memory, 0, form, 0x01, 0, 0);
            put(&memory, size, form, 0x21, 3, 0x1000);
            put(&memory, 2 * size, form, 0x31, 0, 0x800);
            put(&memory, 0x800, form, 0x27, 5, 0x2000);
            let mut walk = Walk::new(form, 0);
            walk.scatter(&memory, b"abcdefgh").unwrap();
            assert!(walk.is_over() && walk.interrupt);
            assert_eq!(walk.scatter(&memory, b"i"), Err(WalkError::Length));
            let mut back = [0; 8];
            Walk::new(form, 0).gather(&memory, &mut back).unwrap();
            assert_eq!(&back, b"abcdefgh");
            assert_eq!(&memory.0.borrow()[0x1000..0x1004], b"abc\0");
            assert_eq!(&memory.0.borrow()[0x2000..0x2005], b"defgh");
        }
    }

    #[test]
    fn an_invalid_descriptor_ends_the_list() {
        let memory = FlatMemory::new(0x1000);
        let walk = |base| Walk::new(Form::Bits128, base).scatter(&memory, &[0; 16]);
        assert_eq!(walk(0), Err(WalkError::Fetch), "not valid");
        assert_eq!(walk(0xff8), Err(WalkError::Fetch), "half outside");
        assert_eq!(walk(u64::MAX - 3), Err(WalkError::Fetch), "at the end of all addresses");
        put(&memory, 0x40, Form::Bits128, 0x31, 0, 0x40);
        assert_eq!(walk(0x40), Err(WalkError::Fetch), "a link to itself");
        put(&memory, 0x80, Form::Bits128, 0x23, 64, 0xfff_ffff_0000);
        assert_eq!(walk(0x80), Err(WalkError::Transfer), "data outside");
        put(&memory, 0xc0, Form::Bits128, 0x23, 8, 0x100);
        assert_eq!(walk(0xc0), Err(WalkError::Length), "too short");
        put(&memory, 0x100, Form::Bits128, 0x2b, 8, 0x100);
        assert_eq!(walk(0x100), Err(WalkError::Fetch), "an act that is none");
    }

    #[test]
    fn a_length_of_zero_is_64_kib() {
        let memory = FlatMemory::new(0x2_0000);
        put(&memory, 0, Form::Bits64, 0x23, 0, 0x8000);
        let mut walk = Walk::new(Form::Bits64, 0);
        walk.scatter(&memory, &[7; 0x1_0000]).unwrap();
        assert!(walk.is_over());
        assert!(memory.0.borrow()[0x8000..0x1_8000].iter().all(|byte| *byte == 7));
    }
}
