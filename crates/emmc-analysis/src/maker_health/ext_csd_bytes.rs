//! The vendor's own bytes inside the EXT_CSD, for makers of whom something is public.
//!
//! VENDOR_PROPRIETARY_HEALTH_REPORT is kept undecoded: its content differs from part to part.

use emmc_regs::ext_csd::{ExtCsd, reg};

use super::Family;
use super::builder::Builder;
use super::meaning::{Group, Limit, Meaning, identity};
use super::model::{Confidence, Value, VendorHealth};
use super::refusal::hex;

/// A byte of unpublished unit.
const fn raw(name: &'static str, group: Group) -> Meaning {
    Meaning { name, unit: None, group, limit: Limit::Free }
}

/// Average wear and life of older SanDisk parts. Source: BlackBerry's kernel tree.
const SANDISK: [(u16, Meaning); 4] = [
    (87, raw("wear_cache_raw", Group::Life)),
    (88, raw("wear_enhanced_raw", Group::Life)),
    (94, raw("wear_mlc_raw", Group::Life)),
    (96, raw("life_raw", Group::Life)),
];

/// Self refresh of Micron parts. Source: Micron's emmcparm, as its output names the bytes.
const MICRON: [(u16, Meaning); 5] = [
    (71, raw("self_refresh_enable_raw", Group::Counters)),
    (72, raw("self_refresh_delay_1_raw", Group::Counters)),
    (73, raw("self_refresh_delay_2_raw", Group::Counters)),
    (74, raw("self_refresh_status_raw", Group::Counters)),
    (80, raw("self_refresh_progress_raw", Group::Counters)),
];

/// Reads the vendor's bytes; `None` where there are none, or none that are known of this maker.
pub(super) fn read(csd: &ExtCsd, manufacturer_id: Option<u8>) -> Option<VendorHealth> {
    let family =
        [Family::Micron, Family::SandiskEmmc, Family::HynixNew, Family::SamsungVsm, Family::ToshibaEmmc, Family::Ymtc]
            .into_iter()
            .find(|family| manufacturer_id.is_some_and(|id| family.manufacturer_ids().contains(&id)));
    let mut builder = Builder::new(family.unwrap_or(Family::Unidentified), "EXT_CSD, vendor's bytes");
    match family {
        Some(Family::Micron) => put_all(&mut builder, csd, &MICRON),
        // Parts since 5.0 have the standard's registers instead.
        Some(Family::SandiskEmmc) if csd.byte(reg::EXT_CSD_REV).is_some_and(|rev| rev <= 6) => {
            put_all(&mut builder, csd, &SANDISK)
        }
        _ => {}
    }
    let field = reg::VENDOR_PROPRIETARY_HEALTH_REPORT;
    if let Some(report) = field.bytes().map(|at| csd.byte(at)).collect::<Option<Vec<u8>>>() {
        if report.iter().any(|&byte| byte != 0) && report.iter().any(|&byte| byte != 0xff) {
            let source = format!("EXT_CSD, bytes {}..{}, not decoded", field.bytes().start, field.bytes().end);
            let meaning = identity("vendor_proprietary_health_report");
            builder.put(&meaning, Value::Text(hex(&report)), source, Confidence::Uncertain);
        }
    }
    let health = builder.finish();
    (!health.is_empty()).then_some(health)
}

/// All of a maker's bytes, or none if all are zero, as on most parts.
fn put_all(builder: &mut Builder, csd: &ExtCsd, bytes: &[(u16, Meaning)]) {
    let number = |at: u16| if at == 80 { csd.uint(at, 2) } else { csd.uint(at, 1) };
    if bytes.iter().all(|&(at, _)| number(at).unwrap_or(0) == 0) {
        return;
    }
    for (at, meaning) in bytes {
        if let Some(value) = number(*at) {
            let source = format!("EXT_CSD, byte {at}");
            builder.put(meaning, Value::Integer(value as i64), source, Confidence::Uncertain);
        }
    }
    builder.note("vendor's bytes of the EXT_CSD, known from one source each and without unit");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csd(bytes: &[(u16, u8)]) -> ExtCsd {
        let mut csd = ExtCsd::from_bytes([0; 512]);
        for &(at, value) in bytes {
            csd.set_bits(at, 0xff, value);
        }
        csd
    }

    #[test]
    fn vendor_bytes_are_decoded_for_their_maker_only() {
        let old = csd(&[(192, 5), (87, 3), (94, 40), (96, 9)]);
        let health = read(&old, Some(0x45)).unwrap();
        assert_eq!((health.family, health.number("wear_mlc_raw")), (Family::SandiskEmmc, Some(40.0)));
        assert!(health.readings().all(|(_, reading)| reading.confidence == Confidence::Uncertain));
        for other in [Some(0x13), Some(0x15), None] {
            assert_eq!(read(&old, other), None);
        }
        assert_eq!(read(&csd(&[(192, 8), (94, 40)]), Some(0x45)), None);
        let health = read(&csd(&[(71, 1), (80, 0x34), (81, 0x12)]), Some(0xfe)).unwrap();
        assert_eq!(health.number("self_refresh_progress_raw"), Some(4660.0));
    }

    #[test]
    fn the_vendors_report_is_kept_unchanged() {
        let health = read(&csd(&[(270, 0xab), (301, 0xcd)]), Some(0x77)).unwrap();
        assert_eq!(health.family, Family::Unidentified);
        let Value::Text(text) = &health.reading("vendor_proprietary_health_report").unwrap().value else { panic!() };
        assert!(text.starts_with("ab 00") && text.ends_with("00 cd"));
        assert_eq!(read(&ExtCsd::unknown(), Some(0x13)), None);
    }
}
