//! Vendor commands that may be sent to a live card: reads without side effects, for makers known to answer them.
//!
//! Absent on purpose, because the card must be put into a vendor's mode first, which may not be left again: SanDisk
//! eMMC (CMD62), Samsung (CMD62; while in that mode a read of sector 0 returns the report), older SK hynix (CMD60),
//! YMTC, Hosin and most Phison (a magic CMD56 or CMD60). Because something must be written first: Toshiba and Kioxia,
//! newer Samsung, and Apacer, Kingston and the other two-step SD cards. Because the maker's number is not known or is
//! shared: Innodisk and Micron SD. Because one driver alone names the command: Biwin, Phison without a magic read. ATP
//! SD cards answer a read, but nobody published what.

use emmc_regs::CardKind;
use serde::Serialize;

/// One command that may be sent: a single-block read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadStep {
    /// Command index: 8 or 56.
    pub opcode: u8,
    /// Its argument; bit 0 of a CMD56 argument says read.
    pub argument: u32,
    /// Bytes that it answers.
    pub bytes: usize,
}

const fn cmd56(argument: u32) -> ReadStep {
    ReadStep { opcode: 56, argument, bytes: 512 }
}

const MICRON: [ReadStep; 4] = [cmd56(0x11), cmd56(0x21), cmd56(0x23), cmd56(0x25)];
/// The standard gives CMD8 no argument: a part that does not know this one sends its EXT_CSD.
const HYNIX: [ReadStep; 1] = [ReadStep { opcode: 8, argument: 0x5345_4852, bytes: 512 }];
const LONGSYS: [ReadStep; 1] = [cmd56(0x1100_05f1)];
/// SanDisk, Western Digital and Longsys SD.
const SD_ONE: [ReadStep; 1] = [cmd56(0x01)];
const ADATA: [ReadStep; 1] = [cmd56(0x1100_05f1)];
const TRANSCEND: [ReadStep; 2] = [cmd56(0x1100_05f9), cmd56(0x1100_05f1)];
const SWISSBIT: [ReadStep; 1] = [cmd56(0x5342_0001)];

/// The commands that may be sent to a card of this kind and CID.MID; empty for every other maker.
pub fn allowed_reads(kind: CardKind, manufacturer_id: u8) -> &'static [ReadStep] {
    match (kind, manufacturer_id) {
        (CardKind::Emmc, 0x13 | 0xfe) => &MICRON,
        (CardKind::Emmc, 0x90) => &HYNIX,
        (CardKind::Emmc, 0x88 | 0xd6) => &LONGSYS,
        (CardKind::Sd, 0x03 | 0xad) => &SD_ONE,
        (CardKind::Sd, 0x1d) => &ADATA,
        (CardKind::Sd, 0x1c | 0x1e | 0x74) => &TRANSCEND,
        (CardKind::Sd, 0x5d) => &SWISSBIT,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_step_is_a_write_or_enters_a_mode() {
        let mut steps = 0;
        for kind in [CardKind::Emmc, CardKind::Sd] {
            for manufacturer_id in 0..=u8::MAX {
                for step in allowed_reads(kind, manufacturer_id) {
                    steps += 1;
                    match step.opcode {
                        56 => assert_eq!(step.argument & 1, 1, "{step:?} writes"),
                        8 => assert_eq!(kind, CardKind::Emmc, "CMD8 of an SD card sets its voltage"),
                        _ => panic!("{step:?}"),
                    }
                    assert_eq!(step.bytes, 512);
                    // Magic reads that unlock a mode, and the refresh of Micron's 0xA7.
                    assert!(![0x594d_54fb, 0x4b53_4bfb, 0xa7].contains(&step.argument), "{step:?}");
                }
            }
        }
        assert!(steps >= 15);
    }

    #[test]
    fn makers_that_need_a_mode_or_a_write_have_no_steps() {
        for manufacturer_id in [0x02, 0x45, 0x15, 0x11, 0x9b, 0x70, 0x00, 0x32] {
            assert!(allowed_reads(CardKind::Emmc, manufacturer_id).is_empty(), "{manufacturer_id:#x}");
        }
        for manufacturer_id in [0x27, 0x9f, 0x09, 0x1b, 0x00] {
            assert!(allowed_reads(CardKind::Sd, manufacturer_id).is_empty(), "{manufacturer_id:#x}");
        }
        assert_eq!(allowed_reads(CardKind::Emmc, 0x13).len(), 4);
    }
}
