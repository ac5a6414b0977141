//! What a card's registers say about erasing.

use emmc_port::CardData;
use emmc_regs::csd::Csd;
use emmc_regs::ext_csd::{ExtCsd, reg};
use emmc_regs::{Area, CardKind};
use serde::Serialize;

use super::{EraseKind, areas};

/// The unit of ERASE_TIMEOUT_MULT and TRIM_MULT. Unit: ms.
///
/// Source: JESD84-B51, ERASE_TIMEOUT_MULT, TRIM_MULT.
const TIMEOUT_MS: u64 = 300;
/// One command asks for at most this much, so that a signal ends the work soon. Unit: bytes.
const CHUNK_BYTES_MAX: u64 = 64 << 20;
/// One command may take at most this long by the registers, if a smaller one is possible. Unit: ms.
const CHUNK_MS_MAX: u64 = 60_000;

/// A kind of erase as a target has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Offer {
    /// The kind.
    pub kind: EraseKind,
    /// Whether the target has it; absent: not known until it is tried.
    pub available: Option<bool>,
    /// The registers or the source that say so.
    pub why: String,
    /// Ranges begin and end at multiples of this; absent: the whole card, or not known. Unit: bytes.
    pub unit_bytes: Option<u64>,
    /// The most that the ranges take by the registers; absent: no limit is stated. Unit: ms.
    pub time_ms_max: Option<u64>,
    /// How that is calculated.
    pub time_source: String,
    /// How the range reads afterwards.
    pub reads_as: String,
    /// What can be recovered afterwards.
    pub recoverable: &'static str,
}

impl Offer {
    /// What a range would become if the target rounded it to whole units of this kind; `None` if it is whole, or if no
    /// unit is known. The end of the target counts as whole. Unit: bytes.
    pub fn rounded(&self, [from, to]: [u64; 2], size_bytes: u64) -> Option<[u64; 2]> {
        let unit = self.unit_bytes.filter(|unit| *unit > 0)?;
        let rounded = [from / unit * unit, to.next_multiple_of(unit).min(size_bytes)];
        (rounded != [from, to]).then_some(rounded)
    }
}

/// How a card addresses and groups its sectors for erasing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Which of its areas.
    pub area: Area,
    /// The area. Unit: bytes.
    pub size_bytes: u64,
    /// An erase group as ERASE_GROUP_DEF has it now; absent: not known. Unit: bytes.
    pub group_bytes: Option<u64>,
    /// A group of write protection as ERASE_GROUP_DEF has it now; absent: none, as in boot areas, or not known. Unit:
    /// bytes.
    pub wp_group_bytes: Option<u64>,
    /// A write block: 512, or 4096 with native sectors. Unit: bytes.
    pub sector_bytes: u64,
    /// What erased memory reads as.
    pub erased_byte: u8,
    /// Addresses count sectors of 512 bytes; else bytes.
    is_sector_addressed: bool,
    /// ERASE_TIMEOUT_MULT, TRIM_MULT, SEC_ERASE_MULT, SEC_TRIM_MULT.
    mults: [u64; 4],
    high_capacity_group_bytes: u64,
}

impl Geometry {
    /// Of an area of an eMMC: it has the addresses and groups of the user area, and a size of its own; `None` if the
    /// card does not have it, for RPMB, which has no erase, and as of [`Geometry::of`].
    pub fn of_area(card: &CardData, area: Area) -> Option<Self> {
        let whole = Self::of(card)?;
        let info = card.ext_csd.as_ref()?.decode().0;
        let (_, size) = areas(&info).into_iter().find(|(other, _)| *other == area && area != Area::Rpmb)?;
        // Boot areas have no commands of class 6: JESD84-B51 6.2.2.
        let wp_group_bytes = whole.wp_group_bytes.filter(|_| !matches!(area, Area::Boot(_)));
        Some(Self { area, size_bytes: size.0, wp_group_bytes, ..whole })
    }

    /// Of the user area of an eMMC; `None` if its EXT_CSD is not known, or it is another card.
    pub fn of(card: &CardData) -> Option<Self> {
        let ext_csd = card.ext_csd.as_ref().filter(|_| card.kind != Some(CardKind::Sd))?;
        let (info, _) = ext_csd.decode();
        let size_bytes = ext_csd.raw(reg::SEC_COUNT)? * 512;
        let high_capacity = info.hc_erase_group.map_or(0, |bytes| bytes.0);
        let csd = card.csd.map(|csd| Csd::new(CardKind::Emmc, csd));
        let bytes = |sectors: Option<u64>| sectors.map(|sectors| sectors * 512);
        let [group_bytes, wp_group_bytes] = match info.erase_group_def {
            Some(true) if high_capacity > 0 => [Some(high_capacity), info.hc_wp_group.map(|bytes| bytes.0)],
            Some(_) => [
                bytes(csd.and_then(|csd| csd.erase_group_sectors())),
                bytes(csd.and_then(|csd| csd.write_protect_group_sectors())),
            ],
            None => [None, None],
        };
        let mult = |field| ext_csd.raw(field).unwrap_or(0);
        Some(Self {
            area: Area::User,
            size_bytes,
            group_bytes,
            wp_group_bytes: wp_group_bytes.filter(|bytes| *bytes > 0),
            sector_bytes: if info.data_sector_4k == Some(true) { 4096 } else { 512 },
            erased_byte: if ext_csd.raw(reg::ERASED_MEM_CONT) == Some(1) { 0xff } else { 0 },
            is_sector_addressed: size_bytes > 2 << 30,
            mults: [
                mult(reg::ERASE_TIMEOUT_MULT),
                mult(reg::TRIM_MULT),
                mult(reg::SEC_ERASE_MULT),
                mult(reg::SEC_TRIM_MULT),
            ],
            high_capacity_group_bytes: high_capacity,
        })
    }

    /// The unit of a kind's ranges; absent: not known. Unit: bytes.
    pub fn unit_bytes(&self, kind: EraseKind) -> Option<u64> {
        if kind.is_by_group() { self.group_bytes } else { Some(self.sector_bytes) }
    }

    /// The most that a range takes. Unit: ms.
    pub fn time_ms_max(&self, kind: EraseKind, range_bytes: u64) -> Option<u64> {
        let groups = range_bytes.div_ceil(self.counted_group()?);
        Some(self.group_ms(kind).filter(|ms| *ms > 0)? * groups)
    }

    /// What the timeouts are of. Unit: bytes.
    fn counted_group(&self) -> Option<u64> {
        let group = self.group_bytes.unwrap_or(self.high_capacity_group_bytes);
        (group > 0).then_some(group)
    }

    fn group_ms(&self, kind: EraseKind) -> Option<u64> {
        let [erase, trim, secure_erase, secure_trim] = self.mults;
        match kind {
            EraseKind::Discard | EraseKind::Trim => Some(TIMEOUT_MS * trim),
            EraseKind::Erase => Some(TIMEOUT_MS * erase),
            EraseKind::SecureErase => Some(TIMEOUT_MS * erase * secure_erase),
            EraseKind::SecureTrim => Some(TIMEOUT_MS * erase * secure_trim),
            EraseKind::Sanitize | EraseKind::Zero => None,
        }
    }

    fn time_source(&self, kind: EraseKind) -> String {
        let [erase, trim, secure_erase, secure_trim] = self.mults;
        let group = self.counted_group().map_or("an unknown size".into(), |bytes| emmc_units::Bytes(bytes).rounded());
        let factors = match kind {
            EraseKind::Discard | EraseKind::Trim => format!("TRIM_MULT {trim}"),
            EraseKind::Erase => format!("ERASE_TIMEOUT_MULT {erase}"),
            EraseKind::SecureErase => format!("ERASE_TIMEOUT_MULT {erase} x SEC_ERASE_MULT {secure_erase}"),
            EraseKind::SecureTrim => format!("ERASE_TIMEOUT_MULT {erase} x SEC_TRIM_MULT {secure_trim}"),
            EraseKind::Sanitize => return "the standard states no limit; Linux waits 240 s".into(),
            EraseKind::Zero => return "no limit is stated".into(),
        };
        format!("{TIMEOUT_MS} ms x {factors} for each erase group of {group}")
    }

    /// How much one command erases: whole groups. Unit: bytes.
    pub fn chunk_bytes(&self, kind: EraseKind) -> u64 {
        let group = self.counted_group().unwrap_or(512 << 10);
        let by_time = self.group_ms(kind).filter(|ms| *ms > 0).map_or(u64::MAX, |ms| CHUNK_MS_MAX / ms);
        by_time.clamp(1, (CHUNK_BYTES_MAX / group).max(1)) * group
    }

    /// The addresses of CMD35 and CMD36 for a range; `None` if the card cannot address it.
    pub fn addresses(&self, [from, to]: [u64; 2]) -> Option<[u32; 2]> {
        let last = to.checked_sub(self.sector_bytes).filter(|last| *last >= from)?;
        let scale = if self.is_sector_addressed { 512 } else { 1 };
        Some([u32::try_from(from / scale).ok()?, u32::try_from(last / scale).ok()?])
    }
}

fn recoverable(kind: EraseKind, rev: u64) -> &'static str {
    match kind {
        EraseKind::Discard => "all of it, perhaps: the card need not remove anything, now or later",
        EraseKind::Trim | EraseKind::Erase => {
            "nothing by commands; from the flash chips all of it, until the card has collected those blocks"
        }
        EraseKind::SecureTrim | EraseKind::SecureErase if rev >= 7 => {
            "nothing by commands; from the flash chips perhaps: obsolete since 4.51, so a card may only trim"
        }
        EraseKind::SecureTrim | EraseKind::SecureErase => {
            "nothing, by the standard before 4.51: every copy is removed from the flash"
        }
        EraseKind::Sanitize => "nothing of what was unmapped before; what is mapped stays as it is",
        EraseKind::Zero => "nothing by reading; from the flash chips earlier copies, until they are collected",
    }
}

/// The kinds of an area of an eMMC, for ranges of `range_bytes` bytes in all. No register says whether the kinds of the
/// user area work in a boot area too: there they are known only when they are tried.
///
/// Source: JESD84-B51, SEC_FEATURE_SUPPORT; discard since 4.5.
pub fn offers(card: &CardData, area: Area, range_bytes: u64) -> Option<Vec<Offer>> {
    let (geometry, ext_csd) = (Geometry::of_area(card, area)?, card.ext_csd.as_ref()?);
    let of = |kind: EraseKind| {
        let mut offer = offer(kind, ext_csd, &geometry, range_bytes);
        if matches!(area, Area::Boot(_)) && kind.has_range() && offer.available == Some(true) {
            offer.available = None;
            offer.why += "; no register says so of boot areas: known only when it is tried";
        }
        offer
    };
    Some(EraseKind::ALL.into_iter().filter(|kind| *kind != EraseKind::Zero).map(of).collect())
}

fn offer(kind: EraseKind, ext_csd: &ExtCsd, geometry: &Geometry, range_bytes: u64) -> Offer {
    let (rev, features) = (ext_csd.raw(reg::EXT_CSD_REV), ext_csd.raw(reg::SEC_FEATURE_SUPPORT));
    let bit = |number: u32, name: &str| {
        let has = features.map(|features| features >> number & 1 == 1);
        let value = has.map_or("?".into(), |has| u8::from(has).to_string());
        (has, format!("SEC_FEATURE_SUPPORT.{name} is {value}"))
    };
    let (available, why) = match kind {
        EraseKind::Erase => (Some(true), "every eMMC has it".into()),
        EraseKind::Discard => {
            let value = rev.map_or("?".into(), |rev| rev.to_string());
            (rev.map(|rev| rev >= 6), format!("EXT_CSD_REV is {value}; since 6 (4.5)"))
        }
        EraseKind::Trim => bit(4, "SEC_GB_CL_EN"),
        EraseKind::SecureErase => bit(0, "SECURE_ER_EN"),
        EraseKind::SecureTrim => {
            let ((trim, why), (secure, too)) = (bit(4, "SEC_GB_CL_EN"), bit(0, "SECURE_ER_EN"));
            (trim.zip(secure).map(|(trim, secure)| trim && secure), format!("{why}, {too}"))
        }
        EraseKind::Sanitize => bit(6, "SEC_SANITIZE"),
        EraseKind::Zero => (Some(false), "the kernel's, not a card's".into()),
    };
    let reads_as = match kind {
        EraseKind::Discard => "as before, or as erased memory: the card's choice".into(),
        EraseKind::Sanitize => "as before".into(),
        _ => format!("as {:#04x} (ERASED_MEM_CONT)", geometry.erased_byte),
    };
    Offer {
        kind,
        available,
        why,
        unit_bytes: geometry.unit_bytes(kind).filter(|_| kind.has_range()),
        time_ms_max: geometry.time_ms_max(kind, range_bytes),
        time_source: geometry.time_source(kind),
        reads_as,
        recoverable: recoverable(kind, rev.unwrap_or(0)),
    }
}

/// The kinds of a block device or a file that is no eMMC: what the kernel has for it.
pub fn offers_of_kernel(is_device: bool, can_discard: Option<bool>, unit_bytes: u64) -> Vec<Offer> {
    let offer = |kind, available, why: &str, reads_as: &str| Offer {
        kind,
        available,
        why: why.into(),
        unit_bytes: Some(unit_bytes),
        time_ms_max: None,
        time_source: "no limit is stated".into(),
        reads_as: reads_as.into(),
        recoverable: recoverable(kind, 0),
    };
    let unknown = "as before, as zeros, or as anything: the device's choice";
    let zeros = "as zeros";
    if !is_device {
        return vec![
            offer(EraseKind::Discard, can_discard, "a punched hole in the file; known only when it is tried", zeros),
            offer(EraseKind::Zero, Some(true), "fallocate, or written", zeros),
        ];
    }
    vec![
        offer(EraseKind::Discard, can_discard, "BLKDISCARD; queue/discard_max_bytes", unknown),
        offer(EraseKind::SecureErase, None, "BLKSECDISCARD; known only when it is tried", unknown),
        offer(EraseKind::Zero, Some(true), "BLKZEROOUT", zeros),
    ]
}
