//! The areas of a part according to its registers, the kernel and other tools.

use std::fmt;

use emmc_port::{CardData, Disk};
use emmc_regs::CardKind;
use emmc_regs::csd::Csd;
use emmc_regs::ext_csd::{DeviceInfo, ExtCsd, Field, reg};
use emmc_units::Bytes;
use serde::Serialize;

use super::Amount;

/// An area of the part: a physical partition, not one of a partition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AreaName {
    /// The user area, `mmcblk0`.
    User,
    /// The first boot area, `mmcblk0boot0`.
    Boot1,
    /// The second boot area, `mmcblk0boot1`.
    Boot2,
    /// The replay-protected area.
    Rpmb,
    /// General purpose area 1, `mmcblk0gp0`.
    Gp1,
    /// General purpose area 2.
    Gp2,
    /// General purpose area 3.
    Gp3,
    /// General purpose area 4.
    Gp4,
}

impl AreaName {
    /// Every area, in the order of the standard.
    pub const ALL: [Self; 8] =
        [Self::User, Self::Boot1, Self::Boot2, Self::Rpmb, Self::Gp1, Self::Gp2, Self::Gp3, Self::Gp4];

    /// What the kernel appends to the card's name.
    pub const fn kernel_suffix(self) -> &'static str {
        self.area().kernel_suffix()
    }

    /// The area that owns the names; this type names it in JSON.
    const fn area(self) -> emmc_regs::Area {
        match self {
            Self::User => emmc_regs::Area::User,
            Self::Boot1 => emmc_regs::Area::Boot(0),
            Self::Boot2 => emmc_regs::Area::Boot(1),
            Self::Rpmb => emmc_regs::Area::Rpmb,
            Self::Gp1 => emmc_regs::Area::Gp(0),
            Self::Gp2 => emmc_regs::Area::Gp(1),
            Self::Gp3 => emmc_regs::Area::Gp(2),
            Self::Gp4 => emmc_regs::Area::Gp(3),
        }
    }

    fn gp_index(self) -> Option<usize> {
        if let emmc_regs::Area::Gp(index) = self.area() { Some(usize::from(index)) } else { None }
    }
}

impl fmt::Display for AreaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.area().title())
    }
}

/// One area and its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Area {
    /// Which one.
    pub name: AreaName,
    /// Its size according to the best source.
    pub size: Amount,
    /// Sizes according to other sources, right or wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Amount>,
    /// Whether all of it is enhanced: fewer bits per cell, longer life. Absent if unknown.
    ///
    /// Source: U-Boot `mmc info`, which prints boot areas and RPMB as enhanced on every part.
    pub enhanced: Option<bool>,
    /// The enhanced part of the user area.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enhanced_part: Option<EnhancedPart>,
}

/// The enhanced part of the user area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EnhancedPart {
    /// Where it begins.
    pub start_bytes: Bytes,
    /// Its size.
    pub size_bytes: Bytes,
}

/// Every area that a source mentions; a size of 0 means that it does not exist.
pub(super) fn areas(card: &CardData) -> Vec<Area> {
    let info = card.ext_csd.as_ref().map(|csd| csd.decode().0).unwrap_or_default();
    AreaName::ALL.into_iter().filter_map(|name| area(card, &info, name)).collect()
}

fn area(card: &CardData, info: &DeviceInfo, name: AreaName) -> Option<Area> {
    let mut amounts = amounts(card, info, name).into_iter().filter(|amount| amount.bytes != Some(Bytes(0)));
    let size = amounts.next()?;
    let enhanced_part = if name == AreaName::User { enhanced_part(card, info) } else { None };
    let enhanced = match name {
        AreaName::User => user_enhanced(card, &size, enhanced_part),
        AreaName::Boot1 | AreaName::Boot2 | AreaName::Rpmb => Some(true),
        gp => gp.gp_index().and_then(|gp| enhanced_attribute(card, gp + 1)),
    };
    Some(Area { name, size, also: amounts.collect(), enhanced, enhanced_part })
}

/// All statements of an area's size, the most exact and most direct first.
fn amounts(card: &CardData, info: &DeviceInfo, name: AreaName) -> Vec<Amount> {
    let exact = |bytes: Option<Bytes>, source: &str| bytes.map(|bytes| Amount::exact(bytes, source));
    let register = |bytes: Option<Bytes>, field: &Field| {
        let how = if card.is_inferred(field) { ", inferred from U-Boot's text" } else { "" };
        exact(bytes, &format!("EXT_CSD {}{how}", field.name))
    };
    let mut amounts: Vec<Option<Amount>> = match name {
        AreaName::User => {
            vec![register(user_sectors(info), reg::SEC_COUNT), exact(csd_bytes(card), "CSD C_SIZE")]
        }
        AreaName::Boot1 | AreaName::Boot2 => vec![register(info.boot, reg::BOOT_SIZE_MULT)],
        AreaName::Rpmb => {
            vec![register(info.rpmb, reg::RPMB_SIZE_MULT), exact(sysfs_rpmb(card), "sysfs raw_rpmb_size_mult")]
        }
        gp => {
            vec![gp.gp_index().and_then(|gp| register(gp_bytes(info, gp), reg::GP_SIZE_MULT.get(gp)?))]
        }
    };
    let disk = card_disk(card).and_then(|card_name| disk(card, &format!("{card_name}{}", name.kernel_suffix())));
    amounts.push(exact(disk.and_then(|disk| disk.bytes), "kernel, size of the block device"));
    if let (AreaName::User, Some(stated)) = (name, &card.stated.user_capacity) {
        amounts.push(Some(Amount::between(stated.min, stated.max, format!("rounded text: {}", stated.text))));
    }
    amounts.into_iter().flatten().collect()
}

fn user_sectors(info: &DeviceInfo) -> Option<Bytes> {
    info.user_sectors?.bytes()
}

fn csd_bytes(card: &CardData) -> Option<Bytes> {
    Csd::new(card.kind?, card.csd?).capacity_bytes().map(Bytes)
}

fn sysfs_rpmb(card: &CardData) -> Option<Bytes> {
    let mult = crate::health::reading::sysfs_byte(card, "raw_rpmb_size_mult", 0)?;
    Bytes(131_072).checked_mul(mult.into())
}

/// General purpose areas exist only once partitioning is completed.
fn gp_bytes(info: &DeviceInfo, gp: usize) -> Option<Bytes> {
    let groups = (*info.hw_partition.gp_groups.get(gp)?)?;
    if info.hw_partition.completed != Some(true) && groups > 0 {
        return None;
    }
    info.hc_wp_group?.checked_mul(groups)
}

/// A bit of PARTITIONS_ATTRIBUTE, which text may state without the others; it applies once partitioning is completed.
fn enhanced_attribute(card: &CardData, bit: usize) -> Option<bool> {
    let csd: &ExtCsd = card.ext_csd.as_ref()?;
    Some(csd.bit(reg::PARTITION_SETTING_COMPLETED, 0)? && csd.bit(reg::PARTITIONS_ATTRIBUTE, u8::try_from(bit).ok()?)?)
}

fn enhanced_part(card: &CardData, info: &DeviceInfo) -> Option<EnhancedPart> {
    if enhanced_attribute(card, 0) != Some(true) {
        return None;
    }
    let size_bytes = info.hc_wp_group?.checked_mul(info.hw_partition.enh_user_groups?)?;
    Some(EnhancedPart { start_bytes: info.hw_partition.enh_start?, size_bytes })
}

fn user_enhanced(card: &CardData, size: &Amount, part: Option<EnhancedPart>) -> Option<bool> {
    match (enhanced_attribute(card, 0), part, size.bytes) {
        (Some(false), _, _) => Some(false),
        (Some(true), Some(part), Some(user)) => Some(part.start_bytes.0 == 0 && part.size_bytes >= user),
        // U-Boot prints the same size twice if all of the user area is enhanced.
        _ => match (&card.stated.enh_user_size, &card.stated.user_capacity) {
            (Some(enhanced), Some(user)) => Some(enhanced.text == user.text),
            _ => None,
        },
    }
}

/// The sum of the exactly known areas, and the areas of an eMMC whose size no source has.
pub(super) fn sum(card: &CardData, areas: &[Area]) -> (Option<Amount>, Vec<AreaName>) {
    let exact: Vec<(AreaName, Bytes)> = areas.iter().filter_map(|area| Some((area.name, area.size.bytes?))).collect();
    let is_exact = |name: AreaName| exact.iter().any(|(known, _)| *known == name);
    let bytes = exact.iter().try_fold(Bytes(0), |sum, (_, bytes)| sum.checked_add(*bytes));
    let names: Vec<String> = exact.iter().map(|(name, _)| name.to_string()).collect();
    let source = format!("sum of {}", names.join(", "));
    // Without the user area the sum would mislead.
    let accounted = bytes.filter(|_| is_exact(AreaName::User)).map(|bytes| Amount::exact(bytes, source));
    let missing = |name: &AreaName| {
        // A register of 0 means that the area does not exist; only an unknown size is missing.
        let told = card.ext_csd.as_ref().is_some_and(|csd| match name {
            AreaName::Boot1 | AreaName::Boot2 => csd.byte(reg::BOOT_SIZE_MULT).is_some(),
            AreaName::Rpmb => csd.byte(reg::RPMB_SIZE_MULT).is_some(),
            _ => false,
        });
        !told && !is_exact(*name)
    };
    let emmc = card.kind == Some(CardKind::Emmc) && !areas.is_empty();
    let fixed = [AreaName::User, AreaName::Boot1, AreaName::Boot2, AreaName::Rpmb];
    (accounted, fixed.into_iter().filter(|name| emmc && missing(name)).collect())
}

/// The kernel's name of the card, `mmcblk0`: the only one, or the one of the right size.
pub(super) fn card_disk(card: &CardData) -> Option<&str> {
    let mut cards = card.blocks.disks.iter().filter(|disk| is_card(&disk.name));
    let first = cards.next()?;
    if cards.next().is_none() {
        return Some(&first.name);
    }
    let info = card.ext_csd.as_ref().map(|csd| csd.decode().0).unwrap_or_default();
    let bytes = user_sectors(&info).filter(|bytes| bytes.0 > 0).or_else(|| csd_bytes(card))?;
    let mut fitting = card.blocks.disks.iter().filter(|disk| is_card(&disk.name) && disk.bytes == Some(bytes));
    let only = fitting.next()?;
    fitting.next().is_none().then_some(&only.name)
}

fn is_card(name: &str) -> bool {
    name.strip_prefix("mmcblk").is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether a block device is one of a card's areas: `mmcblk1boot0` is of `mmcblk1`, `mmcblk10` is not.
pub(super) fn is_area_of(card_name: &str, disk: &Disk) -> bool {
    disk.name.strip_prefix(card_name).is_some_and(|rest| !rest.starts_with(|first: char| first.is_ascii_digit()))
}

fn disk<'a>(card: &'a CardData, name: &str) -> Option<&'a Disk> {
    card.blocks.disks.iter().find(|disk| disk.name == name)
}
