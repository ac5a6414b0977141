//! SK hynix eMMC: the older report behind CMD60, and the newer one that CMD8 gives for an argument.
//!
//! The newer report fills VENDOR_PROPRIETARY_HEALTH_REPORT, bytes 270..302 of an EXT_CSD: only their content
//! distinguishes it from an echo of the EXT_CSD. Sources: SDeMMCHealth for the layouts, Xiaomi's mi_memory driver for
//! the commands.

use emmc_regs::ext_csd::reg;

use super::builder::Builder;
use super::layout::{Field, Form, at, read};
use super::meaning::{
    FIRMWARE_UPDATES, INITIAL_BAD_BLOCKS, LATER_BAD_BLOCKS, POWER_CYCLES, POWER_LOSSES, READ_BYTES, READ_RECLAIMS,
    SPARE_BLOCKS_LEFT, SPARE_BLOCKS_SLC, Stat, VOLTAGE_DROPS, WRITTEN_BYTES, count, erases, spare_blocks,
};
use super::model::{Area, VendorHealth};
use super::{Family, Refusal, reply_source};

const MB: &str = "100 MB each; MB or MiB is not said";

const OLD: [Field; 15] = [
    at(32, Form::Le32, SPARE_BLOCKS_SLC),
    at(36, Form::Le32, erases(Area::Slc, Stat::Max)),
    at(40, Form::Le32, erases(Area::Slc, Stat::Min)),
    at(44, Form::Le32, erases(Area::Slc, Stat::Average)),
    at(48, Form::Le32, spare_blocks("spare_blocks_mlc")),
    at(52, Form::Le32, erases(Area::Mlc, Stat::Max)),
    at(56, Form::Le32, erases(Area::Mlc, Stat::Min)),
    at(60, Form::Le32, erases(Area::Mlc, Stat::Average)),
    at(64, Form::Le32, SPARE_BLOCKS_LEFT),
    at(92, Form::Le32, POWER_CYCLES),
    at(96, Form::Le32, count("written_units")).remark("unit not known"),
    at(100, Form::Le32, count("read_units")).remark("unit not known"),
    at(104, Form::Le32, LATER_BAD_BLOCKS),
    at(136, Form::Le32, READ_RECLAIMS),
    at(140, Form::Le32, VOLTAGE_DROPS),
];

const NEW: [Field; 12] = [
    at(270, Form::Le16, INITIAL_BAD_BLOCKS),
    at(272, Form::Le16, LATER_BAD_BLOCKS),
    at(274, Form::Le16, erases(Area::Global, Stat::Max)),
    at(276, Form::Le16, erases(Area::Global, Stat::Min)),
    at(278, Form::Le16, erases(Area::Global, Stat::Average)),
    at(280, Form::Le16, READ_RECLAIMS),
    at(282, Form::Le32, POWER_LOSSES),
    at(286, Form::Le32, WRITTEN_BYTES).times(100_000_000).remark(MB),
    at(290, Form::Le32, VOLTAGE_DROPS),
    at(294, Form::Le16, FIRMWARE_UPDATES),
    at(296, Form::Le16, SPARE_BLOCKS_LEFT),
    at(298, Form::Le32, READ_BYTES).times(100_000_000).remark(MB),
];

/// Decodes the older report.
pub(super) fn decode_old(reply: &[u8], argument: Option<u32>) -> Result<VendorHealth, Refusal> {
    let mut builder = Builder::new(Family::HynixOld, reply_source(Family::HynixOld, argument));
    read(&mut builder, reply, &OLD);
    Ok(builder.finish())
}

/// Decodes the newer report.
///
/// Errors: the vendor's bytes are empty, so the card answered as to any CMD8.
pub(super) fn decode_new(reply: &[u8], argument: Option<u32>) -> Result<VendorHealth, Refusal> {
    if reply
        .get(reg::VENDOR_PROPRIETARY_HEALTH_REPORT.range())
        .is_none_or(|report| report.iter().all(|&byte| byte == 0))
    {
        return Err(Refusal::ExtCsdEcho);
    }
    let mut builder = Builder::new(Family::HynixNew, reply_source(Family::HynixNew, argument));
    read(&mut builder, reply, &NEW);
    Ok(builder.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maker_health::decode_reply;

    #[test]
    fn the_older_report_is_decoded() {
        let mut reply = [0u8; 512];
        for (at, value) in [(32, 20u32), (36, 50), (40, 2), (44, 17), (52, 900), (56, 3), (60, 451), (92, 66), (104, 1)]
        {
            reply[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        let health = decode_reply(Some(Family::HynixOld), None, &reply).unwrap();
        let values =
            |area| -> Vec<i64> { health.area(area).unwrap().readings().filter_map(|r| r.value.as_i64()).collect() };
        assert_eq!((values(Area::Slc), values(Area::Mlc)), (vec![2, 50, 17], vec![3, 900, 451]));
        assert_eq!((health.number("power_cycles"), health.number("later_bad_blocks")), (Some(66.0), Some(1.0)));
    }

    #[test]
    fn the_newer_report_is_in_an_ext_csd_and_an_empty_one_is_an_echo() {
        let mut reply = [0u8; 512];
        (reply[192], reply[194], reply[196], reply[221], reply[224]) = (8, 2, 0x57, 1, 1);
        reply[212..216].copy_from_slice(&[0, 0, 0xe9, 0]);
        assert_eq!(decode_reply(Some(Family::HynixNew), None, &reply), Err(Refusal::ExtCsdEcho));
        for (at, value) in [(270, 7u16), (272, 1), (274, 300), (276, 2), (278, 120), (286, 50)] {
            reply[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        let health = decode_reply(None, Some(0x5345_4852), &reply).unwrap();
        assert_eq!(health.family, Family::HynixNew);
        assert_eq!(health.number("initial_bad_blocks"), Some(7.0));
        assert_eq!(health.number("written_bytes"), Some(5_000_000_000.0));
        assert_eq!(decode_reply(Some(Family::HynixOld), None, &reply), Err(Refusal::ExtCsdEcho));
    }
}
