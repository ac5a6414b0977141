//! The guest's memory, as the controller accesses it.

/// A range outside memory, or not accessible in this direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("guest memory {address:#x}..+{bytes:#x} is not there")]
pub struct Unmapped {
    /// Where.
    pub address: u64,
    /// How much. Unit: bytes.
    pub bytes: usize,
}

/// Memory of a guest: unmapped addresses are never touched.
pub trait GuestMemory {
    /// Fills `into` from the guest's memory.
    ///
    /// Errors: part of the range is not mapped; `into` is then undefined.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unmapped>;

    /// Copies `from` into the guest's memory.
    ///
    /// Errors: part of the range is not mapped; some of it may have been written.
    fn write(&self, address: u64, from: &[u8]) -> Result<(), Unmapped>;
}

/// Contiguous memory from address 0 on, for tests and fuzzing.
#[derive(Debug)]
pub struct FlatMemory(pub std::cell::RefCell<Vec<u8>>);

impl FlatMemory {
    /// Zero-filled. Unit: bytes.
    pub fn new(size: usize) -> Self {
        Self(std::cell::RefCell::new(vec![0; size]))
    }
}

/// The bytes of a range, if it is in memory of `size` bytes.
fn range(address: u64, bytes: usize, size: usize) -> Result<std::ops::Range<usize>, Unmapped> {
    let unmapped = Unmapped { address, bytes };
    let start = usize::try_from(address).map_err(|_| unmapped)?;
    let end = start.checked_add(bytes).ok_or(unmapped)?;
    if end <= size { Ok(start..end) } else { Err(unmapped) }
}

impl GuestMemory for FlatMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unmapped> {
        let memory = self.0.borrow();
        into.copy_from_slice(&memory[range(address, into.len(), memory.len())?]);
        Ok(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Unmapped> {
        let mut memory = self.0.borrow_mut();
        let range = range(address, from.len(), memory.len())?;
        memory[range].copy_from_slice(from);
        Ok(())
    }
}
