//! The first bytes of one part's EXT_CSD and the rest of another's, at every byte.
//!
//! A hexadecimal dump has no checksum. Two halves of one length can be told from a whole register only where fields on
//! both sides of the cut contradict each other. Health stands in bytes 267 to 269, so the second part of a splice
//! before byte 267 has all of it: `check` then says what is true of that part. What must hold everywhere: no figure
//! that neither part has, and OK only with the health registers of a part that is OK. Where the cut parts the three
//! health bytes (before 268 and 269), or the four of SEC_COUNT (before 213 to 215), nothing repeats them: those
//! cases are counted and left out. A splice that is known to be one is never OK.

use std::path::Path;

use emmc_analysis::health::{CheckStatus, HealthOptions, check};
use emmc_analysis::study::{StudyOptions, study};
use emmc_port::saved::read;
use emmc_regs::ext_csd::{ExtCsd, reg};

const PARTS: [&str; 4] = ["aaru-64g", "ac100-mmc32g", "samsung-bjnb4r-32g", "samsung-klm-8g"];

/// An EXT_CSD and its health bytes.
struct Part {
    name: String,
    bytes: Vec<u8>,
    status: CheckStatus,
}

impl Part {
    fn health(&self) -> &[u8] {
        &self.bytes[usize::from(reg::PRE_EOL_INFO.offset)..=usize::from(reg::DEVICE_LIFE_TIME_EST_TYP_B.offset)]
    }
}

fn status(bytes: &[u8]) -> Option<CheckStatus> {
    Some(check(&read("f", bytes).ok()?, &HealthOptions::default()).status)
}

/// The real parts, new and with each health register at its end.
fn parts() -> Vec<Vec<Part>> {
    let whole = |name: &str| {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../testdata/ext_csd_raw/{name}/{name}.ext_csd.hex"));
        let digits = std::fs::read_to_string(path).unwrap();
        let byte = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap();
        (0..512).map(byte).collect::<Vec<u8>>()
    };
    let variants = |name: &str| {
        let changes = [None, Some((267, 3)), Some((268, 0x0b)), Some((269, 0x0a))];
        let part = |change: &Option<(usize, u8)>| {
            let mut bytes = whole(name);
            change.iter().for_each(|&(at, value)| bytes[at] = value);
            Part { name: format!("{name} {change:?}"), status: status(&bytes).unwrap(), bytes }
        };
        changes.iter().map(part).collect()
    };
    PARTS.into_iter().map(variants).collect()
}

#[test]
fn no_real_part_contradicts_itself() {
    for part in parts().iter().flatten() {
        let bytes: [u8; 512] = part.bytes.clone().try_into().unwrap();
        let found = ExtCsd::from_bytes(bytes).contradictions();
        assert!(found.is_empty(), "{}: {found:?}", part.name);
    }
}

#[test]
fn two_parts_spliced_at_any_byte_are_never_better_than_the_parts() {
    let families = parts();
    let (mut cases, mut refused, mut unknown, mut warned, mut alarmed, mut believed) = (0, 0, 0, 0, 0, 0);
    let (mut parted, mut wrong) = (0, Vec::new());
    let pairs = families.iter().enumerate().flat_map(|(index, first)| {
        let others = families.iter().enumerate().filter(move |(other, _)| *other != index);
        others.flat_map(move |(_, second)| first.iter().flat_map(move |one| second.iter().map(move |two| (one, two))))
    });
    for (one, two) in pairs {
        for at in 1..512 {
            let spliced = [&one.bytes[..at], &two.bytes[at..]].concat();
            if spliced == one.bytes || spliced == two.bytes {
                continue;
            }
            cases += 1;
            let Ok(card) = read("f", &spliced) else {
                refused += 1;
                continue;
            };
            let ext_csd = card.ext_csd.as_ref().unwrap();
            let status = check(&card, &HealthOptions::default()).status;
            if !ext_csd.contradictions().is_empty() {
                warned += 1;
                let study = study(&card, &StudyOptions::default());
                let is_said = study.findings.iter().any(|finding| finding.id == "register-contradiction");
                if status == CheckStatus::Ok || !is_said {
                    wrong.push(format!("{} | {at} | {}: contradictory and {status:?}", one.name, two.name));
                }
                continue;
            }
            let health = &spliced[267..270];
            let earned = [one, two].into_iter().any(|part| part.status == CheckStatus::Ok && part.health() == health);
            match status {
                CheckStatus::Ok if earned => believed += 1,
                CheckStatus::Ok if matches!(at, 268 | 269) => parted += 1,
                CheckStatus::Ok => wrong.push(format!("{} | {at} | {}: OK", one.name, two.name)),
                CheckStatus::Unknown => unknown += 1,
                CheckStatus::Warning | CheckStatus::Critical => alarmed += 1,
            }
            let of_parts = |field| {
                let value = ext_csd.raw(field);
                let bytes = |part: &Part| ExtCsd::from_bytes(part.bytes.clone().try_into().unwrap()).raw(field);
                [one, two].into_iter().any(|part| bytes(part) == value)
            };
            for field in [reg::PRE_EOL_INFO, reg::DEVICE_LIFE_TIME_EST_TYP_A, reg::DEVICE_LIFE_TIME_EST_TYP_B] {
                assert!(of_parts(field), "{} | {at} | {}: {}", one.name, two.name, field.name);
            }
            assert!(of_parts(reg::SEC_COUNT) || matches!(at, 213..=215), "{} | {at} | {}", one.name, two.name);
        }
    }
    println!(
        "{cases} splices: {refused} refused, {warned} contradictory, {unknown} UNKNOWN, {alarmed} WARNING or CRITICAL, \
         {believed} OK with the health of a part that is OK, {parted} OK with the health bytes of both"
    );
    assert!(warned * 10 > cases, "{warned} of {cases}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
}
