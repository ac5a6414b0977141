//! CRC7, the checksum of commands, responses, CID and CSD.
//!
//! Absent on purpose: CRC16 of data blocks, which host controllers compute.

use std::fmt;

use serde::Serialize;

use crate::row::FieldValue;

const CRC7: crc::Crc<u8> = crc::Crc::<u8>::new(&crc::CRC_7_MMC);

/// CRC7 of a command, a response or a register: 7 bits, in the low bits of the byte.
pub fn crc7(bytes: &[u8]) -> u8 {
    CRC7.checksum(bytes)
}

/// The checksum state of a CID or CSD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Crc {
    /// The checksum is right.
    Matches,
    /// The byte is 0x00 or 0x01: many host controllers keep the checksum, so that Linux prints a register without it.
    Stripped,
    /// The checksum is wrong: the register was not read or not copied correctly.
    Wrong {
        /// The 7 bits computed from the other 15 bytes.
        expected: u8,
        /// The 7 bits that are there.
        found: u8,
    },
}

impl Crc {
    /// Compares bits 7:1 of a register with the checksum of the bits above.
    pub fn of(register: &[u8; 16]) -> Self {
        let [body @ .., last] = register;
        let (expected, found) = (crc7(body), last >> 1);
        if expected == found {
            Self::Matches
        } else if found == 0 {
            Self::Stripped
        } else {
            Self::Wrong { expected, found }
        }
    }
}

/// The checksum of a CID or CSD as the value of a field.
pub(crate) fn crc_value(register: &[u8]) -> FieldValue {
    let register: Option<&[u8; 16]> = register.try_into().ok();
    register.map(|register| Crc::of(register).to_string()).into()
}

impl fmt::Display for Crc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Matches => f.write_str("matches"),
            Self::Stripped => f.write_str("stripped by the host controller"),
            Self::Wrong { expected, found } => write!(f, "wrong: expected 0x{expected:02x}, found 0x{found:02x}"),
        }
    }
}

/// The register with bits 7:0 made right: the checksum and the end bit, which is always 1.
pub fn sealed(mut register: [u8; 16]) -> [u8; 16] {
    let [body @ .., last] = &mut register;
    *last = crc7(body) << 1 | 1;
    register
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cid::Cid;

    #[test]
    fn checksums_agree_with_published_vectors() {
        // Commands as every SPI driver sends them: CMD0, CMD8 with 0x1AA, CMD17 at 0.
        for (body, last) in [([0x40, 0, 0, 0, 0], 0x95), ([0x48, 0, 0, 1, 0xaa], 0x87), ([0x51, 0, 0, 0, 0], 0x55)] {
            assert_eq!(crc7(&body) << 1 | 1, last);
        }
    }

    #[test]
    fn registers_are_checked_if_the_host_kept_the_checksum() {
        for (cid, expected) in [
            ("1501004d384731474303dc0db061506f", Crc::Matches),
            ("275048534431364730da89b82900fb61", Crc::Matches),
            ("1501004d384731474303dc0db0615000", Crc::Stripped),
            ("035054534c31364730da0a5d93010101", Crc::Stripped),
            ("1501004d384731474303dc0db061516f", Crc::Wrong { expected: 0x3e, found: 0x37 }),
        ] {
            assert_eq!(Cid::parse_hex(cid).unwrap().crc(), expected, "{cid}");
        }
    }

    #[test]
    fn a_register_with_a_computed_checksum_matches() {
        for seed in 0..=255 {
            let register = sealed([seed; 16]);
            assert_eq!(Crc::of(&register), Crc::Matches);
            assert_eq!(register[15] & 1, 1);
        }
    }
}
