//! Registers as bytes, described by a table: writable bits, bits cleared by writing ones, reset values.
//!
//! Accesses of any width and alignment are split into bytes, as on the bus. Absent on purpose: the effects of
//! registers.

/// How software's writes reach a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Writable bits take the written value.
    Rw,
    /// Writable bits that are written as 1 become 0.
    W1c,
}

/// A row of a register table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Register {
    /// The specification's name.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the tests of tables"))]
    pub(crate) name: &'static str,
    /// Unit: bytes from the start of the block.
    pub(crate) offset: u16,
    /// Unit: bytes, up to 4.
    pub(crate) bytes: u8,
    /// Effect of a write.
    pub(crate) access: Access,
    /// Bits that software can change; 0: read-only.
    pub(crate) writable: u32,
    /// After reset.
    pub(crate) reset: u32,
}

/// Makes a table and a constant for each offset in it.
macro_rules! registers {
    ($($name:ident $offset:literal $bytes:literal $access:ident $writable:literal $reset:literal;)*) => {
        $(
            #[allow(dead_code, reason = "a register that nothing but software touches")]
            pub(crate) const $name: u16 = $offset;
        )*
        /// Every register of the block.
        pub(crate) const TABLE: &[$crate::sdhci::register_file::Register] = &[
            $($crate::sdhci::register_file::Register {
                name: stringify!($name),
                offset: $offset,
                bytes: $bytes,
                access: $crate::sdhci::register_file::Access::$access,
                writable: $writable,
                reset: $reset,
            },)*
        ];
    };
}
pub(crate) use registers;

/// A block of registers.
#[derive(Clone, Debug)]
pub(crate) struct RegisterFile {
    values: Box<[u8]>,
    reset: Box<[u8]>,
    writable: Box<[u8]>,
    cleared_by_ones: Box<[bool]>,
}

impl RegisterFile {
    /// Registers after reset. Shape: a block of `size` bytes, rows in it.
    pub(crate) fn new(table: &[Register], size: usize) -> Self {
        let mut file = Self {
            values: vec![0; size].into(),
            reset: vec![0; size].into(),
            writable: vec![0; size].into(),
            cleared_by_ones: vec![false; size].into(),
        };
        for row in table {
            for index in 0..usize::from(row.bytes) {
                let at = usize::from(row.offset) + index;
                file.reset[at] = row.reset.to_le_bytes()[index];
                file.writable[at] = row.writable.to_le_bytes()[index];
                file.cleared_by_ones[at] = row.access == Access::W1c;
            }
        }
        file.reset_all();
        file
    }

    /// Sets this part's reset value of a register, in place of the table's.
    pub(crate) fn set_reset(&mut self, offset: u16, value: u32, bytes: usize) {
        let at = usize::from(offset);
        self.reset[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        self.values[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
    }

    /// Resets all registers.
    pub(crate) fn reset_all(&mut self) {
        self.values.copy_from_slice(&self.reset);
    }

    /// Software reads. Beyond the block it reads 0.
    pub(crate) fn read(&self, offset: usize, bytes: usize) -> u64 {
        let byte = |index: usize| u64::from(self.values.get(offset + index).copied().unwrap_or(0));
        (0..bytes.min(8)).fold(0, |value, index| value | byte(index) << (8 * index))
    }

    /// Software writes. Beyond the block writes are dropped.
    pub(crate) fn write(&mut self, offset: usize, bytes: usize, value: u64) {
        for (at, byte) in (offset..self.values.len()).zip(value.to_le_bytes().into_iter().take(bytes)) {
            let writable = self.writable[at];
            self.values[at] = match self.cleared_by_ones[at] {
                true => self.values[at] & !(byte & writable),
                false => self.values[at] & !writable | byte & writable,
            };
        }
    }

    /// A register of one byte.
    pub(crate) fn get8(&self, offset: u16) -> u8 {
        self.values[usize::from(offset)]
    }

    /// A register of two bytes.
    pub(crate) fn get16(&self, offset: u16) -> u16 {
        self.read(offset.into(), 2) as u16
    }

    /// A register of four bytes.
    pub(crate) fn get32(&self, offset: u16) -> u32 {
        self.read(offset.into(), 4) as u32
    }

    /// Two registers of four bytes, the lower half first.
    pub(crate) fn get64(&self, offset: u16) -> u64 {
        self.read(offset.into(), 8)
    }

    /// The hardware changes a register of one byte.
    pub(crate) fn set8(&mut self, offset: u16, value: u8) {
        self.values[usize::from(offset)] = value;
    }

    /// The hardware changes a register of two bytes.
    pub(crate) fn set16(&mut self, offset: u16, value: u16) {
        self.set(offset, &value.to_le_bytes());
    }

    /// The hardware changes a register of four bytes.
    pub(crate) fn set32(&mut self, offset: u16, value: u32) {
        self.set(offset, &value.to_le_bytes());
    }

    /// The hardware changes two registers of four bytes.
    pub(crate) fn set64(&mut self, offset: u16, value: u64) {
        self.set(offset, &value.to_le_bytes());
    }

    fn set(&mut self, offset: u16, bytes: &[u8]) {
        let at = usize::from(offset);
        self.values[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// Whether an access of `bytes` at `offset` touches the byte at `at`.
pub(crate) fn touches(offset: usize, bytes: usize, at: u16) -> bool {
    (offset..offset + bytes).contains(&usize::from(at))
}

/// What is wrong with a table: rows out of order or overlapping, bits outside a row.
#[cfg(test)]
pub(crate) fn faults(table: &[Register], size: u16) -> Vec<&'static str> {
    let mut end = 0;
    let mut faults = Vec::new();
    for row in table {
        let mask = u32::MAX >> (32 - 8 * u32::from(row.bytes));
        if row.offset < end || row.writable & !mask != 0 || row.reset & !mask != 0 {
            faults.push(row.name);
        }
        end = row.offset + u16::from(row.bytes);
    }
    if end > size {
        faults.push("the block's size");
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    registers! {
        FIRST 0x00 4 Rw 0x00ff_00f0 0x1234_5678;
        SECOND 0x04 2 W1c 0x00ff 0x0fff;
    }

    #[test]
    fn writes_follow_the_table_at_every_width() {
        let mut file = RegisterFile::new(TABLE, 8);
        assert_eq!(faults(TABLE, 8), [] as [&str; 0]);
        assert_eq!((file.get32(FIRST), file.get16(SECOND)), (0x1234_5678, 0x0fff));
        file.write(0, 8, u64::MAX);
        assert_eq!((file.get32(FIRST), file.get16(SECOND)), (0x12ff_56f8, 0x0f00));
        file.write(2, 1, 0);
        assert_eq!(file.get32(FIRST), 0x1200_56f8);
        file.write(6, 4, u64::MAX);
        assert_eq!((file.read(6, 8), file.get64(FIRST)), (0, 0x0f00_1200_56f8));
        file.reset_all();
        assert_eq!(file.get64(FIRST), 0x0fff_1234_5678);
    }
}
