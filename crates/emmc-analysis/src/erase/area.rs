//! The areas of an eMMC beside the one that is erased: their sizes, what protects a whole one, what starts from one.

use emmc_port::CardData;
use emmc_regs::Area;
use emmc_regs::csd::mmc;
use emmc_regs::ext_csd::{DeviceInfo, ExtCsd, reg};
use emmc_units::Bytes;

/// EXT_CSD_REV since which BOOT_WP_STATUS reports each boot area.
///
/// Source: JESD84-B451, BOOT_WP_STATUS.
const STATUS_REV: u64 = 6;
/// BOOT_WP.B_PERM_WP_EN and BOOT_WP.B_PWR_WP_EN, which older cards have for both boot areas together.
const BOOT_WP_EN: u64 = 1 << 2 | 1;

/// An area with both of its names: `boot area 2 (boot1)`.
pub fn called(area: Area) -> String {
    match area {
        Area::User | Area::Rpmb => area.title().into(),
        Area::Boot(_) | Area::Gp(_) => format!("{} ({area})", area.title()),
    }
}

/// The areas that a card has, with their sizes; general purpose partitions once they are completed.
///
/// Source: JESD84-B51, SEC_COUNT, BOOT_SIZE_MULT, RPMB_SIZE_MULT, GP_SIZE_MULT_GP0 to GP3.
pub fn areas(info: &DeviceInfo) -> Vec<(Area, Bytes)> {
    let group = info.hc_wp_group.map_or(0, |bytes| bytes.0);
    let size = |area| match area {
        Area::User => info.user_sectors.and_then(|sectors| sectors.bytes()),
        Area::Boot(_) => info.boot,
        Area::Rpmb => info.rpmb,
        Area::Gp(index) => {
            let groups = info.hw_partition.gp_groups.get(usize::from(index)).copied().flatten();
            groups.filter(|_| info.hw_partition.completed == Some(true)).map(|groups| Bytes(groups * group))
        }
    };
    Area::ALL.into_iter().filter_map(|area| Some((area, size(area).filter(|bytes| bytes.0 > 0)?))).collect()
}

/// The areas of a card that an erase of `area` does not touch, with their sizes.
pub fn untouched(info: &DeviceInfo, area: Area) -> Vec<String> {
    let others = areas(info).into_iter().filter(|(other, _)| *other != area);
    others.map(|(other, bytes)| format!("{}, {}", called(other), bytes.rounded())).collect()
}

/// Why the card changes nothing of a whole area; `None` if nothing is known that prevents it.
///
/// Source: JESD84-B51 7.4 (BOOT_WP, BOOT_WP_STATUS) and 7.3 (PERM_WRITE_PROTECT, TMP_WRITE_PROTECT).
pub fn protection(card: &CardData, area: Area) -> Option<String> {
    let of_card = [(mmc::PERM_WRITE_PROTECT, "PERM_WRITE_PROTECT"), (mmc::TMP_WRITE_PROTECT, "TMP_WRITE_PROTECT")];
    if let Some((_, name)) = card.csd.and_then(|csd| of_card.into_iter().find(|(field, _)| field.is_set(&csd))) {
        return Some(format!("the whole card is write-protected: {name} of its CSD is 1"));
    }
    let (Area::Boot(number), Some(ext_csd)) = (area, &card.ext_csd) else { return None };
    boot_protection(ext_csd, number).map(|why| format!("{} is write-protected: {why}", called(area)))
}

fn boot_protection(ext_csd: &ExtCsd, number: u8) -> Option<String> {
    if ext_csd.raw(reg::EXT_CSD_REV)? >= STATUS_REV {
        let status = ext_csd.raw(reg::BOOT_WP_STATUS)?;
        let until = match status >> (2 * number) & 3 {
            0 => return None,
            1 => "until the card is powered off",
            _ => "permanently",
        };
        return Some(format!("BOOT_WP_STATUS is {status:#04x}, {until}"));
    }
    let boot_wp = ext_csd.raw(reg::BOOT_WP).filter(|boot_wp| boot_wp & BOOT_WP_EN != 0)?;
    Some(format!("BOOT_WP is {boot_wp:#04x}"))
}

/// That the card is set to boot from an area: what erasing it costs beside the content.
///
/// Source: JESD84-B51, PARTITION_CONFIG.BOOT_PARTITION_ENABLE.
pub fn boots(card: &CardData, area: Area) -> Option<String> {
    let config = card.ext_csd.as_ref()?.decode().0.boot_config.boot_partition_enable?;
    let from = match area {
        Area::User => 7,
        Area::Boot(number) => number + 1,
        Area::Rpmb | Area::Gp(_) => return None,
    };
    let what = "the card is set to boot from it";
    (config == from).then(|| format!("{what}: PARTITION_CONFIG.BOOT_PARTITION_ENABLE is {config}"))
}
