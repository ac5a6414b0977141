//! Facts about the card that a plan needs; unknown facts are absent.

use emmc_port::CardData;
use emmc_regs::CardKind;
use emmc_regs::csd::Csd;
use emmc_regs::ext_csd::{DeviceInfo, ExtCsd, reg};
use emmc_regs::ocr::Ocr;
use emmc_units::{Bytes, SECTOR_BYTES, Sectors};

static NOTHING: ExtCsd = ExtCsd::unknown();

/// SEC_COUNT above which a part is sector addressed, whatever else is known: 2 GiB.
const BYTE_ADDRESSED_SECTORS_MAX: u64 = 4_194_304;

pub(super) struct Facts<'a> {
    pub(super) is_sd: bool,
    pub(super) ext_csd: &'a ExtCsd,
    pub(super) info: DeviceInfo,
    /// The write-protect group, the unit of every size; absent where it is not known or 0.
    pub(super) group: Option<Bytes>,
    /// The present user area; absent if unknown or 0.
    pub(super) user: Option<Sectors>,
    /// The unit of ENH_START_ADDR in bytes.
    pub(super) address_bytes: Option<u64>,
}

impl<'a> Facts<'a> {
    pub(super) fn new(card: &'a CardData) -> Self {
        let ext_csd = card.ext_csd.as_ref().unwrap_or(&NOTHING);
        let (info, _) = ext_csd.decode();
        let is_sd = card.kind == Some(CardKind::Sd);
        Self {
            is_sd,
            ext_csd,
            group: info.hc_wp_group.filter(|group| group.0 > 0),
            user: user_sectors(card, &info).filter(|user| user.0 > 0),
            address_bytes: address_bytes(card, &info),
            info,
        }
    }

    /// Whether the one-time registers are permanently closed.
    pub(super) fn is_completed(&self) -> bool {
        self.info.hw_partition.completed == Some(true)
    }

    /// The present WR_REL_SET.
    pub(super) fn wr_rel_set(&self) -> Option<u8> {
        self.ext_csd.byte(reg::WR_REL_SET)
    }

    /// A number of groups in readable form.
    pub(super) fn groups_text(&self, groups: u64) -> String {
        let Some(group) = self.group else { return format!("{groups} groups") };
        let text = count(groups, group);
        match group.checked_mul(groups) {
            Some(bytes) if groups != 0 => format!("{text} = {bytes} = {}s", bytes.0 / SECTOR_BYTES),
            _ => text,
        }
    }
}

/// `1 group of 8 MiB`, `2 groups of 8 MiB`.
pub(super) fn count(groups: u64, group: Bytes) -> String {
    format!("{groups} group{} of {group}", if groups == 1 { "" } else { "s" })
}

/// SEC_COUNT is valid on parts above 2 GiB; smaller parts give the size in CSD, so SEC_COUNT is used only without a
/// CSD.
fn user_sectors(card: &CardData, info: &DeviceInfo) -> Option<Sectors> {
    let sec_count = info.user_sectors?;
    if sec_count.0 > BYTE_ADDRESSED_SECTORS_MAX {
        return Some(sec_count);
    }
    let csd = card.csd.and_then(|bytes| Csd::new(CardKind::Emmc, bytes).capacity_bytes());
    csd.map(|bytes| Sectors(bytes / SECTOR_BYTES)).or(Some(sec_count))
}

/// An OCR without its power-up bit is not the card's answer (sysfs prints such values), so its bit 30 is meaningless.
fn address_bytes(card: &CardData, info: &DeviceInfo) -> Option<u64> {
    if info.user_sectors.is_some_and(|sectors| sectors.0 > BYTE_ADDRESSED_SECTORS_MAX) {
        return Some(SECTOR_BYTES);
    }
    let ocr = Ocr(card.ocr?);
    match ocr.contains(Ocr::SECTOR_MODE) {
        true => Some(SECTOR_BYTES),
        false => ocr.powered_up().then_some(1),
    }
}
