//! Which command Linux sends for a discard, and which parts it knows as bad.
//!
//! Source: Linux `drivers/mmc/core/mmc.c`, `mmc_init_card`; `sd.c`, `mmc_read_ssr`; `core.c`, `mmc_can_erase`,
//! `mmc_can_trim`, `mmc_can_discard`, `mmc_can_secure_erase_trim`; `quirks.h`.

use emmc_port::CardData;
use emmc_regs::CardKind;
use emmc_regs::csd::Csd;
use emmc_regs::ext_csd::reg;
use emmc_regs::scr::SD_SPECX;
use emmc_regs::ssr::Ssr;
use serde::Serialize;

/// Class 5 of CSD.CCC: erase.
const CCC_ERASE: u8 = 5;
/// `EXT_CSD_SEC_GB_CL_EN`: trim.
const SEC_GB_CL_EN: u8 = 1 << 4;
/// `EXT_CSD_SEC_ER_EN`: secure erase.
const SEC_ER_EN: u8 = 1 << 0;

/// What Linux sends for a discard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelCommand {
    /// `discard`, `trim`, `erase` or `none`.
    pub name: &'static str,
    /// The argument of CMD38, if one is sent.
    pub argument: Option<u32>,
    /// Whether a secure discard (`blkdiscard -s`) is possible.
    pub secure: bool,
    /// Why, in one sentence.
    pub why: String,
    /// What becomes of a range that is not whole erase groups.
    pub unaligned: &'static str,
}

/// What a known part does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Defect {
    /// Trim damages data, or fails.
    Trim,
    /// Secure erase and secure trim damage data, or fail.
    Secure,
    /// It reports discard and has none.
    Discard,
    /// CMD38 does not take its argument: EXT_CSD does.
    Argument,
}

/// A part that Linux treats specially.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KnownBad {
    /// The product's name; absent: every one of this manufacturer and OEM.
    pub product: Option<&'static str>,
    /// CID.MID.
    pub manufacturer_id: u8,
    /// CID.OID; absent: any.
    pub oem_id: Option<u16>,
    /// What is wrong.
    pub defect: Defect,
    /// The same in words.
    pub what: &'static str,
    /// The kernel's mark.
    pub quirk: &'static str,
    /// Where that is.
    pub source: &'static str,
}

const QUIRKS: &str = "Linux drivers/mmc/core/quirks.h";

const fn bad(
    product: Option<&'static str>,
    (manufacturer_id, oem_id): (u8, Option<u16>),
    defect: Defect,
    what: &'static str,
) -> KnownBad {
    let quirk = match defect {
        Defect::Trim => "MMC_QUIRK_TRIM_BROKEN",
        Defect::Secure => "MMC_QUIRK_SEC_ERASE_TRIM_BROKEN",
        Defect::Discard => "MMC_QUIRK_BROKEN_SD_DISCARD",
        Defect::Argument => "MMC_QUIRK_INAND_CMD38",
    };
    KnownBad { product, manufacturer_id, oem_id, defect, what, quirk, source: QUIRKS }
}

const CORRUPTS: &str = "a secure erase or secure trim can damage data for ever (firmware)";
const KINGSTON: &str = "a trim can damage data for ever (firmware)";
const ZEROES: &str = "it reports trim; trims and zeroing by trim end with errors";
const INAND: &str = "CMD38 takes its argument from EXT_CSD[113], which Linux writes before each";

/// Names in the order of the file.
const KNOWN_BAD: [KnownBad; 18] = [
    bad(None, (0x03, Some(0x5344)), Defect::Discard, "some of these cards report discard and have none"),
    bad(Some("SEM02G"), (0x02, Some(0x100)), Defect::Argument, INAND),
    bad(Some("SEM04G"), (0x02, Some(0x100)), Defect::Argument, INAND),
    bad(Some("SEM08G"), (0x02, Some(0x100)), Defect::Argument, INAND),
    bad(Some("SEM16G"), (0x02, Some(0x100)), Defect::Argument, INAND),
    bad(Some("SEM32G"), (0x02, Some(0x100)), Defect::Argument, INAND),
    bad(Some("M8G2FA"), (0x15, None), Defect::Secure, CORRUPTS),
    bad(Some("MAG4FA"), (0x15, None), Defect::Secure, CORRUPTS),
    bad(Some("MBG8FA"), (0x15, None), Defect::Secure, CORRUPTS),
    bad(Some("MCGAFA"), (0x15, None), Defect::Secure, CORRUPTS),
    bad(Some("VAL00M"), (0x15, None), Defect::Secure, CORRUPTS),
    bad(Some("VYL00M"), (0x15, None), Defect::Secure, CORRUPTS),
    bad(Some("KYL00M"), (0x15, None), Defect::Secure, CORRUPTS),
    bad(Some("VZL00M"), (0x15, None), Defect::Secure, CORRUPTS),
    bad(Some("V10008"), (0x70, None), Defect::Trim, KINGSTON),
    bad(Some("V10016"), (0x70, None), Defect::Trim, KINGSTON),
    bad(Some("Q2J54A"), (0x13, Some(0x014e)), Defect::Trim, ZEROES),
    bad(Some("M62704"), (0x70, Some(0x0100)), Defect::Trim, ZEROES),
];

/// The entries that a card matches.
pub fn known_bad(card: &CardData) -> Vec<KnownBad> {
    let (Some(cid), Some(kind)) = (card.cid, card.kind) else { return Vec::new() };
    let identity = cid.decode(kind, None);
    let name = String::from_utf8_lossy(&identity.product_name_raw);
    let name = name.trim_end_matches(['\0', ' ']);
    let is_it = |entry: &&KnownBad| {
        entry.manufacturer_id == identity.manufacturer_id
            && entry.oem_id.is_none_or(|oem_id| oem_id == identity.oemid)
            && entry.product.is_none_or(|product| product == name)
            && (entry.defect == Defect::Discard) == (kind == CardKind::Sd)
    };
    KNOWN_BAD.iter().filter(is_it).copied().collect()
}

/// What Linux sends to this card for a discard; nothing if its registers do not say.
pub fn kernel_command(card: &CardData) -> Option<KernelCommand> {
    let kind = card.kind?;
    let none = |why: String| KernelCommand { name: "none", argument: None, secure: false, why, unaligned: "" };
    if let Some(csd) = card.csd {
        if !Csd::new(kind, csd).has_class(CCC_ERASE) {
            return Some(none("CSD.CCC has no class 5 (erase): Linux sends nothing".into()));
        }
    }
    let bad = known_bad(card);
    let is_bad = |defect: Defect| bad.iter().any(|entry| entry.defect == defect);
    let aligned = "the parts of erase groups at both ends are dropped";
    if kind == CardKind::Sd {
        let discards = Ssr(card.ssr?).supports_discard() && SD_SPECX.get(&card.scr?) != 0;
        return Some(if discards && !is_bad(Defect::Discard) {
            let why = "SSR.DISCARD_SUPPORT is set and SCR.SD_SPECX is not 0".into();
            KernelCommand { name: "discard", argument: Some(1), secure: false, why, unaligned: "all of it is sent" }
        } else {
            let why = match is_bad(Defect::Discard) {
                true => "the card is one of those that only claim to discard".into(),
                false => "the card states no discard, which SD cards have from version 5.1 on".into(),
            };
            // `mmc_align_erase_size` rounds for an erase only; an SD card erases single blocks.
            KernelCommand { name: "erase", argument: Some(0), secure: false, why, unaligned: "all of it is sent" }
        });
    }
    let csd = card.ext_csd.as_ref()?;
    let (rev, features) = (csd.byte(reg::EXT_CSD_REV)?, csd.byte(reg::SEC_FEATURE_SUPPORT)?);
    let secure = features & SEC_ER_EN != 0 && !is_bad(Defect::Secure);
    let can_trim = features & SEC_GB_CL_EN != 0;
    let (name, argument, why, unaligned) = if rev >= 6 {
        ("discard", 3, format!("EXT_CSD_REV is {rev}: every part from 4.5 on has discard"), "all of it is sent")
    } else if can_trim && !is_bad(Defect::Trim) {
        ("trim", 1, format!("EXT_CSD_REV is {rev}, and SEC_GB_CL_EN is set"), "all of it is sent")
    } else {
        let why = match can_trim {
            true => format!("EXT_CSD_REV is {rev}, and the trim of this part is known as broken"),
            false => format!("EXT_CSD_REV is {rev}, and SEC_GB_CL_EN is clear"),
        };
        ("erase", 0, why, aligned)
    };
    Some(KernelCommand { name, argument: Some(argument), secure, why, unaligned })
}
