//! Whether a vendor report and the standard's three health registers can both be true.
//!
//! Only certain conclusions are stated. Which area TYP_A and TYP_B cover is the maker's choice, so erase counts give
//! the rating that a register would imply, not a verdict.

use emmc_regs::ext_csd::{DeviceInfo, Field, LifeTime, reg};

use super::model::{Area, AreaWear, VendorHealth};
use crate::{Evidence, Finding, Severity};

/// Compares a vendor report with PRE_EOL_INFO and DEVICE_LIFE_TIME_EST_TYP_A and _B of the same card.
pub fn consistency(health: &VendorHealth, info: &DeviceInfo) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(spare(health, info));
    findings.extend(life(health, info));
    findings.extend(implied_ratings(health, info));
    findings.extend(implausible(health));
    crate::finding::sort(&mut findings);
    findings
}

/// PRE_EOL_INFO counts the same thing as a share of used spare blocks.
fn spare(health: &VendorHealth, info: &DeviceInfo) -> Option<Finding> {
    let reading = health.reading("spare_used_percent")?;
    let used = reading.value.as_f64()?;
    let pre_eol = info.pre_eol?;
    let agrees = match pre_eol.0 {
        1 => used < 80.0,
        2 => used >= 80.0,
        3 => used >= 90.0,
        _ => return None,
    };
    let finding = if agrees {
        Finding::new(
            Severity::Good,
            "vendor-spare-agrees",
            "The vendor's report and PRE_EOL_INFO agree on spare blocks.",
        )
    } else {
        let what = "The vendor's report and PRE_EOL_INFO contradict each other on used spare blocks.";
        Finding::new(Severity::Warning, "vendor-spare-disagrees", what)
            .advice("Use the worse of the two until the maker explains it.")
    };
    let confidence = format!("{}, {}", reading.source, reading.confidence);
    Some(
        finding
            .evidence(format!("{used:.2} % of spare blocks used ({confidence})"))
            .evidence(format!("PRE_EOL_INFO {:#04x}: {pre_eol}", pre_eol.0)),
    )
}

/// A percentage of used life is in at least one of the two registers' ranges, if it has the same meaning.
fn life(health: &VendorHealth, info: &DeviceInfo) -> Vec<Finding> {
    let (Some(a), Some(b)) = (info.life_a, info.life_b) else { return Vec::new() };
    let (Some(range_a), Some(range_b)) = (a.used_percent(), b.used_percent()) else { return Vec::new() };
    let inside = |used: f64, (least, most): (u8, Option<u8>)| {
        used >= f64::from(least) && most.is_none_or(|most| used <= f64::from(most))
    };
    let mut findings = Vec::new();
    for reading in &health.life {
        let Some(value) = reading.value.as_f64() else { continue };
        let used = match reading.name {
            name if name.starts_with("life_used_step") => continue,
            name if name.starts_with("life_used_percent") => value,
            name if name.starts_with("life_left_percent") => 100.0 - value,
            _ => continue,
        };
        if inside(used, range_a) || inside(used, range_b) {
            continue;
        }
        let what = "The vendor's figure for used life is outside both ranges of the standard's registers.";
        findings.push(
            Finding::new(Severity::Warning, "vendor-life-disagrees", what)
                .evidence(format!("{} {} ({}, {})", reading.name, reading.value, reading.source, reading.confidence))
                .evidence(Evidence::of(reg::DEVICE_LIFE_TIME_EST_TYP_A, format!(" = {:#04x}: {a}", a.0)))
                .evidence(Evidence::of(reg::DEVICE_LIFE_TIME_EST_TYP_B, format!(" = {:#04x}: {b}", b.0)))
                .advice("Use the worse of the two until the maker explains it."),
        );
    }
    findings
}

/// What a register would mean for the rating, if it counts the area that it usually counts.
fn implied_ratings(health: &VendorHealth, info: &DeviceInfo) -> Vec<Finding> {
    let register = |area| match area {
        Area::Slc | Area::Enhanced => Some((reg::DEVICE_LIFE_TIME_EST_TYP_A, info.life_a?)),
        Area::Mlc | Area::Tlc => Some((reg::DEVICE_LIFE_TIME_EST_TYP_B, info.life_b?)),
        _ => None,
    };
    health.areas.iter().filter_map(|wear| implied_rating(wear, register(wear.area)?)).collect()
}

fn implied_rating(wear: &AreaWear, (field, life): (&'static Field, LifeTime)) -> Option<Finding> {
    let reading = wear.average.as_ref()?;
    let average = reading.value.as_f64().filter(|&average| average > 0.0)?;
    let (least, most) = life.used_percent()?;
    let rating = |percent: u8| (average * 100.0 / f64::from(percent)).round();
    let implied = match (least, most) {
        (0, Some(most)) => format!("for at least {} erases", rating(most)),
        (least, Some(most)) => format!("for {} to {} erases", rating(most), rating(least)),
        (least, None) => format!("for at most {} erases", rating(least)),
    };
    let what = format!("If {} covers the {} area, its blocks are rated {implied}.", field.name, wear.area);
    Some(
        Finding::new(Severity::Notice, "vendor-implied-rating", what)
            .evidence(format!("{average} erases on average ({}, {})", reading.source, reading.confidence))
            .evidence(Evidence::of(field, format!(" = {:#04x}: {life}", life.0))),
    )
}

fn implausible(health: &VendorHealth) -> Option<Finding> {
    let first = health.implausible.first()?;
    let what = "The vendor's report has impossible values: the layout may not fit this card.";
    let shown = health.implausible.iter().take(8).map(|flagged| {
        let area = flagged.area.map(|area| format!(" of {area}")).unwrap_or_default();
        format!("{}{area}: found {}, expected {}", flagged.name, flagged.found, flagged.expected)
    });
    let mut finding = Finding::new(Severity::Unknown, "vendor-implausible", what);
    finding.evidence.0.extend(shown.map(Evidence::from));
    Some(finding.advice(format!("Do not rely on the rest of the report ({}) without a second source.", first.source)))
}

#[cfg(test)]
mod tests {
    use emmc_regs::ext_csd::PreEol;

    use super::*;
    use crate::maker_health::{Family, decode_reply, parse_emmcparm};

    const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");

    fn info(pre_eol: u8, life_a: u8, life_b: u8) -> DeviceInfo {
        DeviceInfo {
            pre_eol: Some(PreEol(pre_eol)),
            life_a: Some(LifeTime(life_a)),
            life_b: Some(LifeTime(life_b)),
            ..DeviceInfo::default()
        }
    }

    fn ids(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|finding| finding.id).collect()
    }

    fn emmcparm(name: &str) -> VendorHealth {
        parse_emmcparm(&std::fs::read(format!("{TESTDATA}/seeds_console/emmcparm_{name}.txt")).unwrap()).unwrap()
    }

    #[test]
    fn the_board_vendors_spare_blocks_agree_with_its_registers() {
        let findings = consistency(&emmcparm("spare_block"), &info(1, 2, 1));
        assert_eq!(ids(&findings), ["vendor-spare-agrees"]);
        assert_eq!(ids(&consistency(&emmcparm("spare_block"), &info(3, 2, 1))), ["vendor-spare-disagrees"]);
        assert!(consistency(&emmcparm("spare_block"), &info(0, 2, 1)).is_empty());
    }

    #[test]
    fn the_board_vendors_erase_counts_imply_ratings() {
        let findings = consistency(&emmcparm("erase_count"), &info(1, 2, 1));
        assert_eq!(ids(&findings), ["vendor-implied-rating"; 2]);
        assert!(findings[0].what.contains("for 2835 to 5670 erases"), "{}", findings[0].what);
        assert!(findings[1].what.contains("for at least 14410 erases"), "{}", findings[1].what);
        assert!(consistency(&emmcparm("erase_count"), &info(1, 0, 0)).is_empty());
    }

    #[test]
    fn a_life_outside_both_ranges_is_a_contradiction() {
        let mut reply = [0u8; 512];
        (reply[8], reply[0x70], reply[0xb8]) = (1, 2, 51);
        let health = decode_reply(Some(Family::SandiskEmmc), None, &reply).unwrap();
        assert_eq!(health.number("life_left_percent_mlc"), Some(50.0));
        let disagrees = |info: &DeviceInfo| ids(&consistency(&health, info)).contains(&"vendor-life-disagrees");
        assert!(disagrees(&info(1, 1, 2)));
        assert!(!disagrees(&info(1, 1, 5)));
        assert!(!disagrees(&info(1, 6, 1)));
        assert!(!disagrees(&info(1, 0, 1)), "an unknown register contradicts nothing");
    }

    #[test]
    fn implausible_values_make_the_report_doubtful() {
        let mut reply = [0u8; 512];
        (reply[1], reply[5]) = (80, 72);
        let health = decode_reply(Some(Family::Micron), Some(0x11), &reply).unwrap();
        let findings = consistency(&health, &info(1, 1, 1));
        assert_eq!((ids(&findings), findings[0].severity), (vec!["vendor-implausible"], Severity::Unknown));
    }
}
