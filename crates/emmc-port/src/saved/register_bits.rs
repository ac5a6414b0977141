//! EXT_CSD from text: some bits per line, never two different values for one bit.

use emmc_regs::ext_csd::{EXT_CSD_BYTES, ExtCsd, Field};

use super::text::Text;
use crate::SourceError;

/// EXT_CSD as given by the lines of one text so far.
pub(super) struct RegisterBits<'t> {
    text: &'t Text<'t>,
    ext_csd: ExtCsd,
    /// The line that gave each byte, 0 for none; the earliest if several gave it.
    told_by: [u64; EXT_CSD_BYTES],
}

impl<'t> RegisterBits<'t> {
    /// Nothing is known yet.
    pub(super) fn new(text: &'t Text<'t>) -> Self {
        Self { text, ext_csd: ExtCsd::unknown(), told_by: [0; EXT_CSD_BYTES] }
    }

    /// A line gives a whole little-endian register of `width` bytes.
    ///
    /// Errors: the value needs more bytes, or another line gave another value.
    pub(super) fn set(
        &mut self,
        line: u64,
        name: &str,
        offset: u16,
        width: u16,
        value: u64,
    ) -> Result<(), SourceError> {
        let bits = 8 * u32::from(width.min(8));
        if bits < 64 && value >> bits != 0 {
            let expected = format!("a value of {width} byte{} for {name}", if width == 1 { "" } else { "s" });
            return Err(self.text.malformed(line, expected, format!("{value:#x}")));
        }
        if let (Some(before), Some(known)) = (self.teller(offset, width), self.ext_csd.uint(offset, width)) {
            if known != value {
                let expected = format!("{name} to be {known:#x} as line {before} says");
                return Err(self.text.malformed(line, expected, format!("{value:#x}")));
            }
        }
        for index in 0..width.min(8) {
            self.set_bits(line, name, offset.saturating_add(index), 0xff, (value >> (8 * index)) as u8)?;
        }
        Ok(())
    }

    /// A line gives some bits of a byte.
    ///
    /// Errors: another line gave another value.
    pub(super) fn set_bits(
        &mut self,
        line: u64,
        name: &str,
        offset: u16,
        mask: u8,
        value: u8,
    ) -> Result<(), SourceError> {
        let index = usize::from(offset);
        let (Some(&byte), Some(&known)) = (self.ext_csd.bytes().get(index), self.ext_csd.mask().get(index)) else {
            return Err(self.text.malformed(line, "an offset from 0 to 511", offset.to_string()));
        };
        if (byte ^ value) & known & mask != 0 {
            let before = self.teller(offset, 1).unwrap_or_default();
            let bits = if known & mask == 0xff { String::new() } else { format!(" in bits {:#04x}", known & mask) };
            let expected = format!("{name}, byte {offset}, to be {byte:#04x}{bits} as line {before} says");
            return Err(self.text.malformed(line, expected, format!("{value:#04x}")));
        }
        self.ext_csd.set_bits(offset, mask, value);
        if let Some(told_by) = self.told_by.get_mut(index) {
            *told_by = if *told_by == 0 { line } else { *told_by };
        }
        Ok(())
    }

    /// A line gives a whole field.
    ///
    /// Errors: those of [`Self::set`].
    pub(super) fn set_field(&mut self, line: u64, field: &Field, value: u64) -> Result<(), SourceError> {
        self.set(line, field.name, field.offset, field.width, value)
    }

    /// A line gives some bits of a field's first byte.
    ///
    /// Errors: those of [`Self::set_bits`].
    pub(super) fn set_field_bits(&mut self, line: u64, field: &Field, mask: u8, value: u8) -> Result<(), SourceError> {
        self.set_bits(line, field.name, field.offset, mask, value)
    }

    /// Makes bytes unknown again.
    pub(super) fn forget(&mut self, offsets: impl IntoIterator<Item = u16>) {
        let forgotten: Vec<usize> = offsets.into_iter().map(usize::from).collect();
        let mut kept = ExtCsd::unknown();
        let known = (0u16..).zip(self.ext_csd.bytes().iter().zip(self.ext_csd.mask()));
        for (offset, (&byte, &mask)) in known.filter(|(offset, _)| !forgotten.contains(&usize::from(*offset))) {
            kept.set_bits(offset, mask, byte);
        }
        self.ext_csd = kept;
    }

    /// Whether any bit is known.
    pub(super) fn is_empty(&self) -> bool {
        self.ext_csd.mask().iter().all(|&mask| mask == 0)
    }

    /// The register, if any bit of it is known.
    pub(super) fn finish(self) -> Option<ExtCsd> {
        if self.is_empty() { None } else { Some(self.ext_csd) }
    }

    fn teller(&self, offset: u16, width: u16) -> Option<u64> {
        let start = usize::from(offset);
        let lines = self.told_by.get(start..start + usize::from(width))?;
        lines.iter().copied().filter(|&line| line != 0).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: u64, expected: &str) {
        let text = Text::new("log", b"x").unwrap().unwrap();
        let mut bits = RegisterBits::new(&text);
        assert!(bits.is_empty());
        bits.set(3, "SEC_COUNT", 212, 4, 0xe9_0000).unwrap();
        bits.set(4, "SEC_COUNT", 212, 4, 0xe9_0000).unwrap();
        let message = bits.set(9, "SEC_COUNT", 212, 4, value).unwrap_err().to_string();
        assert_eq!(message, expected);
        assert_eq!(bits.finish().unwrap().uint(212, 4), Some(0xe9_0000));
    }

    #[test]
    fn conflicting_values_are_refused_with_both_lines() {
        check(0xe9_0001, "log: at line 9: expected SEC_COUNT to be 0xe90000 as line 3 says, found 0xe90001");
        check(1 << 32, "log: at line 9: expected a value of 4 bytes for SEC_COUNT, found 0x100000000");
    }

    #[test]
    fn bits_of_a_byte_are_compared() {
        let text = Text::new("log", b"x").unwrap().unwrap();
        let mut bits = RegisterBits::new(&text);
        bits.set_bits(1, "WR_REL_SET", 167, 1, 1).unwrap();
        bits.set(2, "WR_REL_SET", 167, 1, 0x1f).unwrap();
        let message = bits.set_bits(5, "WR_REL_SET", 167, 3, 2).unwrap_err().to_string();
        assert_eq!(
            message,
            "log: at line 5: expected WR_REL_SET, byte 167, to be 0x1f in bits 0x03 as line 1 says, found 0x02"
        );
        let message = bits.set_bits(5, "NONE", 512, 1, 0).unwrap_err().to_string();
        assert_eq!(message, "log: at line 5: expected an offset from 0 to 511, found 512");
        assert_eq!(bits.finish().unwrap().byte(167), Some(0x1f));
    }
}
