//! The kind of unnamed bytes: a CID or a CSD, and its family of cards.
//!
//! Both are 16 bytes with a CRC7 at the same place, which distinguishes them from other numbers; their fields
//! distinguish them from each other.

use emmc_regs::crc::Crc;
use emmc_regs::csd::mmc;
use emmc_regs::{CardKind, scr, ssr};

use super::labels::Register;

/// Codes of TRAN_SPEED that cards use: 20, 25, 26, 50, 100 and 200 MHz, and those of the first MMC cards.
///
/// Source: Linux and mmc-utils decode them; the multipliers of a random byte would nearly always be legal.
const TRAN_SPEEDS: [u64; 8] = [0x2a, 0x32, 0x5a, 0x0b, 0x2b, 0x0a, 0x22, 0x1a];

/// The register that bytes without a label are, if only one makes sense.
pub(super) fn register(bytes: &[u8]) -> Option<Register> {
    match bytes.len() {
        8 => is_scr_like(bytes).then_some(Register::Scr),
        64 => is_ssr_like(bytes).then_some(Register::Ssr),
        _ => sixteen(bytes.try_into().ok()?),
    }
}

/// Tells a CID from a CSD; a wrong checksum leaves it unclear.
fn sixteen(bytes: &[u8; 16]) -> Option<Register> {
    match (Crc::of(bytes), is_cid_like(bytes), is_csd_like(bytes)) {
        (Crc::Matches | Crc::Stripped, true, false) => Some(Register::Cid),
        (Crc::Matches | Crc::Stripped, false, true) => Some(Register::Csd),
        _ => None,
    }
}

/// Structure 0, a known SD_SPEC, and the two bus widths that every card has.
fn is_scr_like(bytes: &[u8]) -> bool {
    !scr::SCR_STRUCTURE.is_set(bytes) && scr::SD_SPEC.get(bytes) <= 2 && scr::SD_BUS_WIDTHS.get(bytes) == 0b0101
}

/// A bus width of 1 or 4 lines, a known SD_CARD_TYPE and SPEED_CLASS, and not one byte over and over.
fn is_ssr_like(bytes: &[u8]) -> bool {
    let repeated = bytes.iter().zip(bytes.iter().skip(1)).all(|(byte, next)| byte == next);
    matches!(ssr::DAT_BUS_WIDTH.get(bytes), 0 | 2)
        && ssr::SD_CARD_TYPE.get(bytes) <= 2
        && ssr::SPEED_CLASS.get(bytes) <= 4
        && !repeated
}

/// A product name of letters, followed by blanks or zeros only, and an OEM field of either family.
fn is_cid_like(bytes: &[u8; 16]) -> bool {
    let [_, high, low, name @ .., _, _, _, _, _, _, _, _] = bytes;
    let letters = name.iter().take_while(|letter| letter.is_ascii_graphic()).count();
    let named = letters > 0 && name.iter().skip(letters).all(|letter| matches!(letter, 0 | b' '..=0x7e));
    // Where the CID has its OEM, the CSD has TAAC and NSAC.
    named && (matches!(high, 0..=3) || (high.is_ascii_graphic() && low.is_ascii_graphic()))
}

/// A known bus speed, the basic command class, and blocks of 512 to 4096 bytes.
fn is_csd_like(bytes: &[u8; 16]) -> bool {
    TRAN_SPEEDS.contains(&mmc::TRAN_SPEED.get(bytes))
        && mmc::CCC.get(bytes) & 1 == 1
        && (9..=12).contains(&mmc::READ_BL_LEN.get(bytes))
        && !mmc::RESERVED_120.is_set(bytes)
        && mmc::TAAC.get(bytes) < 0x80
}

/// The family that a CID's OEM field speaks for: two letters of SD, package and number of eMMC.
pub(super) fn kind_of_cid(cid: &[u8; 16]) -> Option<CardKind> {
    let [_, high, low, ..] = *cid;
    if high.is_ascii_graphic() && low.is_ascii_graphic() {
        Some(CardKind::Sd)
    } else if matches!(high, 1..=2) {
        Some(CardKind::Emmc)
    } else {
        None
    }
}

/// The family that a CSD's version field speaks for: SPEC_VERS of MMC, where SD has zeros.
pub(super) fn kind_of_csd(csd: &[u8; 16]) -> Option<CardKind> {
    match (mmc::CSD_STRUCTURE.get(csd), mmc::SPEC_VERS.get(csd)) {
        (_, 1..=4) => Some(CardKind::Emmc),
        (0 | 1, 0) => Some(CardKind::Sd),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emmc_regs::cid::Cid;

    fn check(hex: &str, expected: Option<Register>, kind: Option<CardKind>) {
        let bytes = Cid::parse_hex(hex).unwrap().0;
        assert_eq!(register(&bytes), expected, "{hex}");
        let found = if expected == Some(Register::Csd) { kind_of_csd(&bytes) } else { kind_of_cid(&bytes) };
        assert_eq!(found, kind, "{hex}");
    }

    #[test]
    fn real_registers_are_distinguished() {
        let (emmc, sd) = (Some(CardKind::Emmc), Some(CardKind::Sd));
        check("150100424a4e4234520fdac7c0381400", Some(Register::Cid), emmc);
        check("90014a484247346505814afb2d634400", Some(Register::Cid), emmc);
        check("1501004d384731474303dc0db061506f", Some(Register::Cid), emmc);
        check("275048534431364730da89b82900fb61", Some(Register::Cid), sd);
        check("035054534c31364730da0a5d93010101", Some(Register::Cid), sd);
        check("900e00320f5903ffffffffe796400000", Some(Register::Csd), emmc);
        check("d02701320f5903fff6dbffef8e40400d", Some(Register::Csd), emmc);
        check("400e00325b59000073a77f800a4000eb", Some(Register::Csd), sd);
        check("00260032575983bce9db97ff9e400083", Some(Register::Csd), sd);
    }

    #[test]
    fn other_bytes_are_ambiguous() {
        check("00000000000000000000000000000000", None, None);
        check("ffffffffffffffffffffffffffffffff", None, None);
        check("900e00320f5003ffffffffe796400000", None, None);
        check("0101002a0f5900313030303030303000", None, Some(CardKind::Emmc));
        check("1501004d384731474303dc0db061516f", None, Some(CardKind::Emmc));
    }

    #[test]
    fn sd_registers_are_recognised_by_address_and_checksum() {
        assert_eq!(register(&[0x02, 0x35, 0x80, 0x43, 0, 0, 0, 0]), Some(Register::Scr));
        assert_eq!(register(&[0xff, 0xff, 0xff, 0xc0, 0x10, 0x5b, 0x12, 0x34]), None);
        let mut ssr = [0; 64];
        ssr[0] = 0x80;
        assert_eq!(register(&ssr), Some(Register::Ssr));
        assert_eq!((register(&[0x77; 64]), register(&[0xaa; 64]), register(&[0; 64])), (None, None, None));
        ssr[8] = 4;
        assert_eq!(register(&ssr), Some(Register::Ssr));
        ssr[8] = 5;
        assert_eq!(register(&ssr), None);
        assert_eq!(register(&[0; 20]), None);
    }
}
