//! eMMC with Phison controllers, and Biwin eMMC.
//!
//! Source: Unisoc's sprd-mmc-health, for `MMC32G`, `MMC64G` and `MMC128G` of several makers' numbers, and for `ARJ21X`.

use super::builder::Builder;
use super::layout::{Field, Form, at, read};
use super::meaning::{
    BAD_BLOCKS_ERASE, BAD_BLOCKS_PROGRAM, FIRMWARE_UPDATES, INITIAL_BAD_BLOCKS, LATER_BAD_BLOCKS, POWER_CYCLES,
    POWER_LOSSES, READ_BYTES, READ_RECLAIMS, READ_RECLAIMS_SLC, READ_RECLAIMS_TLC, SPARE_BLOCKS_LEFT, SPARE_BLOCKS_SLC,
    SPARE_BLOCKS_TLC, Stat, UNCORRECTABLE_ERRORS, VOLTAGE_DROPS, WRITTEN_BYTES, count, erases, life_state,
};
use super::model::{Area, Confidence, VendorHealth};
use super::ymtc::PHISON_35;
use super::{Family, Refusal, reply_source};

use Confidence::{SeveralSources, Uncertain};

/// CMD56 argument 0x0D.
const REPORT_0D: [Field; 19] = [
    at(0, Form::Be16, INITIAL_BAD_BLOCKS).sure(SeveralSources),
    at(2, Form::Be16, LATER_BAD_BLOCKS).sure(SeveralSources),
    at(4, Form::Be16, SPARE_BLOCKS_LEFT),
    at(16, Form::Be32, erases(Area::Tlc, Stat::Min)).sure(SeveralSources),
    at(20, Form::Be32, erases(Area::Tlc, Stat::Max)).sure(SeveralSources),
    at(24, Form::Be32, erases(Area::Tlc, Stat::Average)).sure(SeveralSources),
    at(28, Form::Be32, erases(Area::Tlc, Stat::Total)).sure(SeveralSources),
    at(32, Form::Be32, erases(Area::Slc, Stat::Min)).sure(SeveralSources),
    at(36, Form::Be32, erases(Area::Slc, Stat::Max)).sure(SeveralSources),
    at(40, Form::Be32, erases(Area::Slc, Stat::Average)).sure(SeveralSources),
    at(44, Form::Be32, erases(Area::Slc, Stat::Total)).sure(SeveralSources),
    at(80, Form::Le32, POWER_CYCLES).sure(SeveralSources),
    at(84, Form::Le32, READ_RECLAIMS),
    at(92, Form::Le32, count("write_units")).remark("64 GB parts"),
    at(96, Form::Le32, count("writes")).remark("64 GB parts"),
    at(100, Form::Le32, WRITTEN_BYTES)
        .times(100_000_000)
        .sure(Uncertain)
        .remark("32 GB parts, 100 MB each")
        .unless_zero(),
    at(118, Form::Le16, FIRMWARE_UPDATES).sure(SeveralSources),
    at(192, Form::Le32, POWER_LOSSES).sure(SeveralSources),
    at(392, Form::Le32, READ_BYTES).times(100_000_000).sure(Uncertain).remark("32 GB parts, 100 MB each").unless_zero(),
];

/// CMD56 argument 0xF0000061.
const BIWIN: [Field; 26] = [
    at(0, Form::Be64, READ_BYTES).times(512),
    at(8, Form::Be64, WRITTEN_BYTES).times(512),
    at(16, Form::Be32, erases(Area::Slc, Stat::Min)),
    at(20, Form::Be32, erases(Area::Slc, Stat::Max)),
    at(24, Form::Be32, erases(Area::Slc, Stat::Average)),
    at(28, Form::Be32, erases(Area::Tlc, Stat::Min)),
    at(32, Form::Be32, erases(Area::Tlc, Stat::Max)),
    at(36, Form::Be32, erases(Area::Tlc, Stat::Average)),
    at(40, Form::Be32, INITIAL_BAD_BLOCKS),
    at(44, Form::Be32, LATER_BAD_BLOCKS),
    at(48, Form::Be32, SPARE_BLOCKS_LEFT),
    at(52, Form::Be32, count("metadata_corruptions")),
    at(56, Form::Be32, POWER_CYCLES),
    at(60, Form::Be32, UNCORRECTABLE_ERRORS),
    at(64, Form::Be32, SPARE_BLOCKS_SLC),
    at(68, Form::Be32, SPARE_BLOCKS_TLC),
    at(76, Form::Be32, READ_RECLAIMS_SLC),
    at(80, Form::Be32, READ_RECLAIMS_TLC),
    at(88, Form::Be32, VOLTAGE_DROPS),
    at(92, Form::Be32, POWER_LOSSES),
    at(96, Form::U8, life_state("device_life_time_est_typ_a")),
    at(97, Form::U8, life_state("device_life_time_est_typ_b")),
    at(106, Form::U8, life_state("pre_eol_info")),
    at(116, Form::Be32, BAD_BLOCKS_PROGRAM),
    at(120, Form::Be32, BAD_BLOCKS_ERASE),
    at(132, Form::Be32, count("uncorrectable_errors_slc")),
];

/// Decodes a Phison report; which of the two it is follows from the argument, 0x0D where none is known.
///
/// Errors: an argument of no known report.
pub(super) fn decode(reply: &[u8], argument: Option<u32>) -> Result<VendorHealth, Refusal> {
    let mut builder = Builder::new(Family::Phison, reply_source(Family::Phison, argument));
    match argument {
        None | Some(0x0d) => read(&mut builder, reply, &REPORT_0D),
        Some(0x35) => read(&mut builder, reply, &PHISON_35),
        Some(other) => {
            return Err(Refusal::not_health(format!("no Phison report is known for CMD56 argument {other:#010x}")));
        }
    }
    Ok(builder.finish())
}

/// Decodes a Biwin report.
pub(super) fn decode_biwin(reply: &[u8], argument: Option<u32>) -> Result<VendorHealth, Refusal> {
    let mut builder = Builder::new(Family::Biwin, reply_source(Family::Biwin, argument));
    read(&mut builder, reply, &BIWIN);
    Ok(builder.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maker_health::decode_reply;

    #[test]
    fn a_report_is_read_in_both_byte_orders() {
        let mut reply = [0u8; 512];
        reply[1] = 8;
        reply[23] = 90;
        reply[27] = 44;
        reply[80] = 3;
        reply[118] = 1;
        let health = decode_reply(Some(Family::Phison), Some(0x0d), &reply).unwrap();
        let tlc = health.area(Area::Tlc).unwrap();
        assert_eq!(tlc.max.as_ref().unwrap().value.as_i64(), Some(90));
        assert_eq!((health.number("power_cycles"), health.number("firmware_updates")), (Some(3.0), Some(1.0)));
        assert_eq!(health.number("written_bytes"), None);
        assert!(decode_reply(Some(Family::Phison), Some(0x35), &reply).is_ok());
        assert!(matches!(decode_reply(Some(Family::Phison), Some(0x11), &reply), Err(Refusal::NotHealth { .. })));
    }

    #[test]
    fn biwin_counts_sectors() {
        let mut reply = [0u8; 512];
        reply[15] = 2;
        reply[59] = 12;
        let health = decode_reply(None, Some(0xf000_0061), &reply).unwrap();
        assert_eq!((health.family, health.number("written_bytes")), (Family::Biwin, Some(1024.0)));
        assert_eq!(health.number("power_cycles"), Some(12.0));
        reply[..8].fill(0xfe);
        let health = decode_reply(Some(Family::Biwin), None, &reply).unwrap();
        assert_eq!(health.implausible[0].name, "read_bytes");
    }
}
