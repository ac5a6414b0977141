//! What a power cut may lose, according to the registers.

use emmc_regs::CardKind;
use emmc_regs::ext_csd::reg;

use super::super::findings::power_cut::reliability;
use super::{Answer, Facts};
use crate::finding::Severity;

/// EXT_CSD_REV of eMMC 4.41, which introduced the registers of write reliability.
const REV_WRITE_RELIABILITY: u8 = 5;
/// EXT_CSD_REV of eMMC 4.5, which introduced the cache and the power-off notification.
const REV_CACHE: u8 = 6;

/// State of the volatile cache according to the registers.
#[derive(Clone, Copy, PartialEq)]
enum Cache {
    On,
    Off,
    None,
    Unknown,
}

pub(super) fn answer(facts: &Facts<'_>) -> Answer {
    if facts.study.identity.kind == Some(CardKind::Sd) {
        let text = "the registers promise nothing: expect to lose the writes in progress";
        return Answer::new(Severity::Unknown, text);
    }
    let cache = cache(facts);
    let is_reliable = write_reliability(facts);
    let size = facts
        .info
        .cache
        .filter(|size| size.0 > 0)
        .map_or("the cached writes".into(), |size| format!("up to {size} of cached writes"));
    let (severity, text) = match (cache, is_reliable) {
        (Cache::On, Some(true)) => (Severity::Notice, format!("a power cut loses {size}, nothing older")),
        (Cache::Off | Cache::None, Some(true)) => {
            (Severity::Good, "a power cut loses the write in progress, nothing older".into())
        }
        (Cache::On, Some(false)) => (Severity::Warning, format!("a power cut may damage older data, and loses {size}")),
        (_, Some(false)) => (Severity::Warning, "a power cut during a write may damage older data".into()),
        (Cache::Unknown, Some(true)) => (Severity::Good, "older data survives a power cut".into()),
        (Cache::On, None) => (Severity::Notice, format!("a power cut loses {size}; older data: not known")),
        (Cache::Off | Cache::None, None) => {
            (Severity::Unknown, "a power cut loses the write in progress; older data: not known".into())
        }
        (Cache::Unknown, None) => {
            return Answer::new(Severity::Unknown, "this source does not say what a power cut may lose");
        }
    };
    Answer::new(severity, text).evidence(registers(facts, cache, is_reliable))
}

fn cache(facts: &Facts<'_>) -> Cache {
    let has_cache = facts.info.cache.map(|size| size.0 > 0);
    match (facts.info.cache_on, has_cache) {
        _ if facts.info.rev.is_some_and(|rev| rev < REV_CACHE) => Cache::None,
        (Some(true), _) => Cache::On,
        (_, Some(false)) => Cache::None,
        (Some(false), _) => Cache::Off,
        (None, _) => Cache::Unknown,
    }
}

/// Whether every area protects older data; absent on a part without the register.
fn write_reliability(facts: &Facts<'_>) -> Option<bool> {
    let areas = reliability(facts.csd, facts.info);
    let exists = facts.info.rev.is_none_or(|rev| rev >= REV_WRITE_RELIABILITY);
    (exists && !areas.is_empty()).then(|| areas.iter().all(|area| area.protected))
}

/// The registers behind the answer: `cache off, WR_REL on, reliable write on, power-off notification off`.
fn registers(facts: &Facts<'_>, cache: Cache, is_reliable: Option<bool>) -> String {
    let on_off = |on: bool| if on { "on" } else { "off" };
    let cache = match cache {
        Cache::On => Some("cache on"),
        Cache::Off => Some("cache off"),
        Cache::None => Some("no cache"),
        Cache::Unknown => None,
    };
    let notified =
        facts.csd.byte(reg::POWER_OFF_NOTIFICATION).filter(|_| facts.info.rev.is_some_and(|rev| rev >= REV_CACHE));
    let words = [
        cache.map(str::to_owned),
        is_reliable.map(|on| format!("WR_REL {}", on_off(on))),
        facts
            .info
            .enhanced_reliable_write
            .filter(|_| is_reliable.is_some())
            .map(|enhanced| format!("reliable write {}", if enhanced { "enhanced" } else { "legacy" })),
        notified.map(|value| format!("power-off notice {}", on_off(value != 0))),
    ];
    words.into_iter().flatten().collect::<Vec<String>>().join(", ")
}
