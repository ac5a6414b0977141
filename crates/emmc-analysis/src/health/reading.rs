//! Single register readings: the value and its meaning, or the reason why it is missing.

use emmc_port::CardData;
use emmc_regs::CardKind;
use emmc_regs::ext_csd::{Field, LifeTime, PreEol, reg};
use serde::{Serialize, Serializer};

use super::HealthOptions;
use crate::evidence::Evidence;
use crate::finding::Severity;

/// From this wear on there is a notice, although no action is needed yet.
///
/// Unit: percent of estimated life. Assumed: early enough to order spares; the standard defines no such threshold.
const NOTICE_PERCENT: f64 = 70.0;

/// With this many impossible fields an EXT_CSD counts as damaged, and none of its health fields is used.
///
/// No real register in testdata has more than one; a copy that lost a byte before the health registers has three or
/// more.
const IMPOSSIBLE_FIELDS_MIN: usize = 3;

/// What a value was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ReadFrom {
    /// The register itself.
    ExtCsd,
    /// An attribute in sysfs, with the value that the kernel read when it last probed the card.
    Sysfs,
}

/// Why a value is missing; no reason means that the card is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Absent {
    /// The register is 0: the part does not report the value.
    NotDefined,
    /// The register holds a value that the standard does not assign.
    NotAssigned,
    /// The part follows a standard that does not have the register.
    PartTooOld,
    /// The part says that it lacks the feature.
    NotSupported,
    /// SD cards have no such register.
    SdCard,
    /// The source does not hold the register; the card may.
    NotInSource,
    /// The source has it in a form that no tool prints: cut off or altered.
    Damaged,
    /// The EXT_CSD around it holds values that no part can have: a shifted or mixed copy, or no register at all.
    Implausible,
}

impl Absent {
    /// Whether another copy of the same card could have the value: until then the severity is unknown.
    pub(crate) const fn is_lost(self) -> bool {
        matches!(self, Self::NotInSource | Self::Damaged | Self::Implausible | Self::NotAssigned)
    }
}

/// One register: its value and meaning, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reading {
    /// The field of EXT_CSD; in JSON its name.
    #[serde(rename = "register", serialize_with = "name")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub field: &'static Field,
    /// Its value, even if it has no meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<u16>,
    /// How much it matters.
    pub severity: Severity,
    /// What it means.
    pub text: String,
    /// Its source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_from: Option<ReadFrom>,
    /// Why there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absent: Option<Absent>,
}

impl Reading {
    /// Whether the register has a meaningful value.
    pub fn is_known(&self) -> bool {
        self.absent.is_none()
    }

    /// The register with its value, as evidence: `PRE_EOL_INFO[267] = 0x02 (EXT_CSD)`.
    pub fn evidence(&self) -> Evidence {
        let text = match (self.raw, self.read_from) {
            (Some(raw), Some(ReadFrom::Sysfs)) => format!(" = {raw:#04x} (sysfs)"),
            (Some(raw), _) => format!(" = {raw:#04x} (EXT_CSD)"),
            (None, _) => format!(": {}", self.text),
        };
        Evidence::of(self.field, text)
    }
}

/// The cells that a life time register covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Area {
    A,
    B,
}

/// Used life as a range: the registers move in steps of 10 %.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LifeReading {
    /// The register.
    #[serde(flatten)]
    pub reading: Reading,
    /// At least this much of the estimated life is used.
    ///
    /// Unit: percent.
    pub used_lower_percent: Option<u8>,
    /// At most this much is used; absent past 100 %.
    ///
    /// Unit: percent.
    pub used_upper_percent: Option<u8>,
    /// Which cells are meant.
    pub cells: &'static str,
}

/// A value or the reason for none, before it is judged.
type Found = Result<(u8, ReadFrom), Absent>;

/// Reads DEVICE_LIFE_TIME_EST_TYP_A or _B.
pub(crate) fn life(card: &CardData, area: Area, options: &HealthOptions) -> LifeReading {
    let (field, word, cells) = match area {
        Area::A => (reg::DEVICE_LIFE_TIME_EST_TYP_A, 0, "type A cells: the vendor chooses which; usually SLC or pSLC"),
        Area::B => (reg::DEVICE_LIFE_TIME_EST_TYP_B, 1, "type B cells: the vendor chooses which; usually MLC or TLC"),
    };
    let found = health_byte(card, field, "life_time", word);
    let used = found.ok().and_then(|(raw, _)| LifeTime(raw).used_percent());
    let reading = judge(field, found, |raw| match (used, raw) {
        (Some((lower, _)), _) => Ok((life_severity(lower.into(), options), LifeTime(raw).to_string())),
        (None, 0) => Err(Absent::NotDefined),
        (None, _) => Err(Absent::NotAssigned),
    });
    LifeReading {
        reading,
        used_lower_percent: used.map(|(lower, _)| lower),
        used_upper_percent: used.and_then(|(_, upper)| upper),
        cells,
    }
}

/// Severity of used life, by the lower end of its band.
pub(super) fn life_severity(used_percent: f64, options: &HealthOptions) -> Severity {
    match used_percent {
        used if used >= f64::from(options.crit_percent()) => Severity::Critical,
        used if used >= f64::from(options.warn_percent()) => Severity::Warning,
        used if used >= NOTICE_PERCENT => Severity::Notice,
        _ => Severity::Good,
    }
}

/// Reads PRE_EOL_INFO.
pub(crate) fn pre_eol(card: &CardData) -> Reading {
    judge(reg::PRE_EOL_INFO, health_byte(card, reg::PRE_EOL_INFO, "pre_eol_info", 0), |raw| match raw {
        1 => Ok((Severity::Good, PreEol(raw).to_string())),
        2 => Ok((Severity::Warning, PreEol(raw).to_string())),
        3 => Ok((Severity::Critical, PreEol(raw).to_string())),
        0 => Err(Absent::NotDefined),
        _ => Err(Absent::NotAssigned),
    })
}

/// Reads BKOPS_STATUS: outstanding background operations.
pub(crate) fn bkops(card: &CardData) -> Reading {
    let supported = card.ext_csd.as_ref().and_then(|csd| csd.bit(reg::BKOPS_SUPPORT, 0));
    let found = match (supported, ext_csd_byte(card, reg::BKOPS_STATUS)) {
        (Some(false), Ok(_)) => Err(Absent::NotSupported),
        (_, found) => found,
    };
    judge(reg::BKOPS_STATUS, found, |raw| match raw & 3 {
        0 => Ok((Severity::Good, "no background operations outstanding".into())),
        1 => Ok((Severity::Good, "background operations outstanding, not critical".into())),
        2 => Ok((Severity::Warning, "background operations outstanding: performance suffers".into())),
        _ => Ok((Severity::Warning, "background operations outstanding: critical".into())),
    })
}

/// Reads EXCEPTION_EVENTS_STATUS.
pub(crate) fn exception_events(card: &CardData) -> Reading {
    const EVENTS: [(u8, &str, Severity); 5] = [
        (0, "URGENT_BKOPS: the card asks for background operations", Severity::Warning),
        (1, "DYNCAP_NEEDED: the card asks the host to give up capacity", Severity::Warning),
        (2, "SYSPOOL_EXHAUSTED: no room left for data tagged as system data", Severity::Notice),
        (3, "PACKED_FAILURE: a packed command failed", Severity::Notice),
        (4, "EXTENDED_SECURITY_FAILURE: an extended security command failed", Severity::Notice),
    ];
    judge(reg::EXCEPTION_EVENTS_STATUS, ext_csd_byte(card, reg::EXCEPTION_EVENTS_STATUS), |raw| {
        let set = EVENTS.iter().filter(|(bit, _, _)| raw >> bit & 1 == 1);
        let severity = set.clone().map(|(_, _, severity)| *severity).min().unwrap_or(Severity::Good);
        let names: Vec<&str> = set.map(|(_, name, _)| *name).collect();
        Ok((severity, if names.is_empty() { "no event".into() } else { names.join("; ") }))
    })
}

fn name<S: Serializer>(field: &&'static Field, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(field.name)
}

fn judge(
    field: &'static Field,
    found: Found,
    meaning: impl FnOnce(u8) -> Result<(Severity, String), Absent>,
) -> Reading {
    let (raw, read_from) = (found.ok().map(|(raw, _)| u16::from(raw)), found.ok().map(|(_, from)| from));
    match found.and_then(|(raw, _)| meaning(raw)) {
        Ok((severity, text)) => Reading { field, raw, severity, text, read_from, absent: None },
        Err(absent) => {
            let text = absent_text(field, absent, raw);
            Reading { field, raw, severity: Severity::Unknown, text, read_from, absent: Some(absent) }
        }
    }
}

fn absent_text(field: &Field, absent: Absent, raw: Option<u16>) -> String {
    match (absent, raw) {
        (Absent::NotDefined, _) => "unknown: the part reports 0, not defined".into(),
        (Absent::NotAssigned, Some(raw)) => format!("unknown: {raw:#04x} is not assigned by the standard"),
        (Absent::NotAssigned, None) => "unknown: a value that the standard does not assign".into(),
        (Absent::PartTooOld, _) => format!("the part does not report it (EXT_CSD_REV < {})", field.since_rev),
        (Absent::NotSupported, _) => "not supported by the part".into(),
        (Absent::SdCard, _) => "SD cards have no such register".into(),
        (Absent::NotInSource, _) => "not in this source".into(),
        (Absent::Damaged, _) => "unknown: its digits in this source are damaged; read the card again".into(),
        (Absent::Implausible, _) => {
            "unknown: EXT_CSD holds values that no part can have; the copy is damaged, read the card again".into()
        }
    }
}

/// A health byte from EXT_CSD, or from the sysfs attribute's word where EXT_CSD does not have it.
///
/// Wear never falls, so a higher value in sysfs, which is older, belongs to another card, or one of the two is damaged.
/// The higher value counts then: a contradiction may alarm, and never calm.
fn health_byte(card: &CardData, field: &Field, attribute: &str, word: usize) -> Found {
    let of_sysfs = |bytes: Option<Vec<u8>>| bytes.and_then(|bytes| bytes.get(word).copied()).ok_or(Absent::Damaged);
    match (ext_csd_byte(card, field), health_attribute(card, attribute)) {
        (Err(Absent::NotInSource), Some(bytes)) => of_sysfs(bytes).map(|raw| (raw, ReadFrom::Sysfs)),
        (Ok((raw, from)), Some(bytes)) => {
            let higher = of_sysfs(bytes).ok().filter(|cached| *cached > raw);
            Ok(higher.map_or((raw, from), |cached| (cached, ReadFrom::Sysfs)))
        }
        (found, _) => found,
    }
}

/// The bytes of `life_time` or `pre_eol_info`; the inner `None` is a text that no kernel prints.
///
/// Source: Linux drivers/mmc/core/mmc.c prints `0x%02x 0x%02x` and `0x%02x`; before 4.18 `%02x` for `pre_eol_info`.
pub(crate) fn health_attribute(card: &CardData, attribute: &str) -> Option<Option<Vec<u8>>> {
    let text = card.sysfs.get(attribute)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let byte = |word: &&str| {
        let digits = match word.strip_prefix("0x") {
            Some(digits) => digits,
            None if attribute == "pre_eol_info" => word,
            None => return None,
        };
        let whole = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        u8::from_str_radix(digits, 16).ok().filter(|_| whole)
    };
    let expected = if attribute == "life_time" { 2 } else { 1 };
    Some(words.iter().map(byte).collect::<Option<Vec<u8>>>().filter(|bytes| bytes.len() == expected))
}

/// The fields of EXT_CSD with impossible values, if there are too many for a faithful copy.
pub(crate) fn impossible_fields(card: &CardData) -> Option<Vec<&'static Field>> {
    let fields = card.ext_csd.as_ref()?.impossible_fields();
    (fields.len() >= IMPOSSIBLE_FIELDS_MIN).then_some(fields)
}

fn ext_csd_byte(card: &CardData, field: &Field) -> Found {
    let since_rev = field.since_rev;
    if card.kind == Some(CardKind::Sd) {
        return Err(Absent::SdCard);
    }
    if impossible_fields(card).is_some() {
        return Err(Absent::Implausible);
    }
    if rev(card).map_or_else(|| stated_older(card, since_rev), |rev| rev < since_rev) {
        return Err(Absent::PartTooOld);
    }
    let byte = card.ext_csd.as_ref().and_then(|csd| csd.byte(field));
    byte.map(|raw| (raw, ReadFrom::ExtCsd)).ok_or(Absent::NotInSource)
}

/// EXT_CSD_REV, from the register or from sysfs.
pub(crate) fn rev(card: &CardData) -> Option<u8> {
    card.ext_csd.as_ref().and_then(|csd| csd.byte(reg::EXT_CSD_REV)).or_else(|| sysfs_byte(card, "rev", 0))
}

/// Whether a stated version of the standard (`4.5`) is older than the revision that brought a register.
fn stated_older(card: &CardData, since_rev: u8) -> bool {
    let number = |text: &str| text.get(..3).and_then(|start| start.parse::<f32>().ok());
    let since = emmc_regs::ext_csd::mmc_version(since_rev).and_then(number);
    let stated = card.stated.mmc_version.as_deref().map(str::trim).and_then(number);
    matches!((stated, since), (Some(stated), Some(since)) if stated < since)
}

/// Word `word` of a sysfs attribute that prints bytes: `0x01 0x02`.
pub(crate) fn sysfs_byte(card: &CardData, attribute: &str, word: usize) -> Option<u8> {
    let text = card.sysfs.get(attribute)?.split_whitespace().nth(word)?;
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
