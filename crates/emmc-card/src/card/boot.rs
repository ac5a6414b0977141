//! Boot: the boot stream before identification, and its registers.
//!
//! The host requests it by CMD0 with 0xFFFFFFFA (or by holding the command line low) before CMD1; the card sends the
//! boot area selected in PARTITION_CONFIG until it is reset. BOOT_ACK, if enabled, comes first. Absent on purpose: when
//! the data is ready (the data path) and the switching of PARTITION_ACCESS (`switch`).
//!
//! Source: JESD84-B51 clauses 6.3 and 7.4 (BOOT_INFO, BOOT_CONFIG_PROT, BOOT_BUS_CONDITIONS, PARTITION_CONFIG).

use emmc_regs::ext_csd::{EXT_CSD_BYTES, reg};

use super::partition::Refused;
use crate::device::Area;

/// The pattern of the boot acknowledge on line 0: start 0, then 1, then 0.
pub(crate) const BOOT_ACK: u8 = 0b010;

/// The boot source, if any: area and sectors.
pub(crate) fn source(ext_csd: &[u8; EXT_CSD_BYTES]) -> Option<(Area, u64)> {
    let sectors = u64::from(ext_csd[reg::BOOT_SIZE_MULT]) * (128 << 10) / 512;
    let area = match ext_csd[reg::PARTITION_CONFIG] >> 3 & 7 {
        1 => Area::Boot(0),
        2 => Area::Boot(1),
        7 => Area::User,
        _ => return None,
    };
    let offers_alternative = ext_csd[reg::BOOT_INFO] & 1 == 1;
    (offers_alternative && sectors > 0).then_some((area, sectors))
}

/// Whether the boot acknowledge is enabled.
pub(crate) fn acknowledges(ext_csd: &[u8; EXT_CSD_BYTES]) -> bool {
    ext_csd[reg::PARTITION_CONFIG] >> 6 & 1 == 1
}

/// The bus during boot: high speed, lines, both edges.
pub(crate) fn bus(ext_csd: &[u8; EXT_CSD_BYTES]) -> (bool, u8, bool) {
    let conditions = ext_csd[reg::BOOT_BUS_CONDITIONS];
    let (mode, width) = (conditions >> 3 & 3, conditions & 3);
    let is_double = mode == 2;
    let lines = match width {
        1 => 4,
        2 => 8,
        // Width 0 is four lines at double data rate.
        _ if is_double => 4,
        _ => 1,
    };
    (mode > 0, lines, is_double)
}

/// Whether the bus mode persists after boot (RESET_BOOT_BUS_CONDITIONS).
pub(crate) fn keeps_bus(ext_csd: &[u8; EXT_CSD_BYTES]) -> bool {
    ext_csd[reg::BOOT_BUS_CONDITIONS] >> 2 & 1 == 1
}

/// The rules of BOOT_BUS_CONDITIONS: a mode that the card boots in, and not while the boot configuration is protected.
///
/// Errors: a rule broken.
pub(crate) fn check_bus_conditions(ext_csd: &[u8; EXT_CSD_BYTES], new: u8) -> Result<(), Refused> {
    let info = ext_csd[reg::BOOT_INFO];
    let mode_is_offered = match new >> 3 & 3 {
        0 => true,
        1 => info & 4 != 0,
        2 => info & 2 != 0,
        _ => false,
    };
    if mode_is_offered && new & 3 != 3 && !is_configuration_protected(ext_csd) { Ok(()) } else { Err(Refused) }
}

/// The rules of PARTITION_CONFIG's boot bits; those of PARTITION_ACCESS are `switch`'s.
///
/// Errors: a boot area that does not exist, or the boot configuration is protected.
pub(crate) fn check_partition_config(ext_csd: &[u8; EXT_CSD_BYTES], new: u8) -> Result<(), Refused> {
    let changes = (ext_csd[reg::PARTITION_CONFIG] ^ new) & 0x78 != 0;
    let known = match new >> 3 & 7 {
        0 | 7 => true,
        1 | 2 => ext_csd[reg::BOOT_SIZE_MULT] > 0,
        _ => false,
    };
    if changes && (is_configuration_protected(ext_csd) || !known) { Err(Refused) } else { Ok(()) }
}

fn is_configuration_protected(ext_csd: &[u8; EXT_CSD_BYTES]) -> bool {
    ext_csd[reg::BOOT_CONFIG_PROT] & 0x11 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(partition_config: u8) -> [u8; EXT_CSD_BYTES] {
        let mut ext_csd = [0; EXT_CSD_BYTES];
        (ext_csd[reg::PARTITION_CONFIG], ext_csd[reg::BOOT_SIZE_MULT], ext_csd[reg::BOOT_INFO]) =
            (partition_config, 32, 7);
        ext_csd
    }

    #[test]
    fn partition_config_selects_the_boot_data() {
        for (config, area, ack) in [
            (0x00, None, false),
            (0x08, Some(Area::Boot(0)), false),
            (0x50, Some(Area::Boot(1)), true),
            (0x79, Some(Area::User), true),
            (0x18, None, false),
        ] {
            let ext_csd = part(config);
            assert_eq!(source(&ext_csd), area.map(|area| (area, 8192)), "{config:#x}");
            assert_eq!(acknowledges(&ext_csd), ack, "{config:#x}");
        }
        let mut ext_csd = part(0x08);
        ext_csd[reg::BOOT_INFO] = 6;
        assert_eq!(source(&ext_csd), None, "a part without the alternative boot mode");
        ext_csd[reg::BOOT_INFO] = 7;
        ext_csd[reg::BOOT_SIZE_MULT] = 0;
        assert_eq!(source(&ext_csd), None, "a part without boot areas");
    }

    #[test]
    fn boot_bus_conditions_follow_boot_info() {
        let mut ext_csd = part(0);
        for (conditions, expected) in [
            (0x00, Some((false, 1, false))),
            (0x02, Some((false, 8, false))),
            (0x0a, Some((true, 8, false))),
            (0x0d, Some((true, 4, false))),
            (0x10, Some((true, 4, true))),
            (0x12, Some((true, 8, true))),
            (0x18, None),
            (0x03, None),
        ] {
            let allowed = check_bus_conditions(&ext_csd, conditions).is_ok();
            ext_csd[reg::BOOT_BUS_CONDITIONS] = conditions;
            assert_eq!(allowed.then(|| bus(&ext_csd)), expected, "{conditions:#x}");
            assert_eq!(keeps_bus(&ext_csd), conditions & 4 != 0);
        }
        ext_csd[reg::BOOT_INFO] = 1;
        assert!(check_bus_conditions(&ext_csd, 0x0a).is_err() && check_bus_conditions(&ext_csd, 0x12).is_err());
    }

    #[test]
    fn protection_blocks_the_boot_configuration_only() {
        for protection in [1, 0x10, 0x11] {
            let mut ext_csd = part(0x48);
            assert_eq!(check_partition_config(&ext_csd, 0x10), Ok(()));
            ext_csd[reg::BOOT_CONFIG_PROT] = protection;
            assert_eq!(check_partition_config(&ext_csd, 0x10), Err(Refused));
            assert_eq!(check_partition_config(&ext_csd, 0x49), Ok(()), "PARTITION_ACCESS is free");
            assert_eq!(check_bus_conditions(&ext_csd, 0), Err(Refused));
        }
        assert_eq!(check_partition_config(&part(0), 0x18), Err(Refused), "3 is reserved");
        let mut ext_csd = part(0);
        ext_csd[reg::BOOT_SIZE_MULT] = 0;
        assert_eq!(check_partition_config(&ext_csd, 0x08), Err(Refused));
        assert_eq!(check_partition_config(&ext_csd, 0x38), Ok(()));
    }
}
