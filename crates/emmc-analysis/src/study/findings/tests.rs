use emmc_port::{CardData, Disk, Format};
use emmc_regs::cid::Cid;
use emmc_units::Bytes;

use super::*;
use crate::finding::Severity::{self, *};
use crate::study::{StudyOptions, study};

type Registers = &'static [(u16, u16, u64)];

/// Findings from registers alone: id, severity, registers that give it, registers that do not.
pub(super) const RULES: [(&str, Severity, Registers, Registers); 26] = [
    ("life-used-a", Critical, &[(268, 1, 0x0b)], &[(268, 1, 0)]),
    ("life-used-b", Warning, &[(269, 1, 0x0a)], &[(269, 1, 7)]),
    ("pre-eol", Critical, &[(267, 1, 3)], &[(267, 1, 1)]),
    ("health-undefined", Unknown, &[], &[(267, 1, 1)]),
    ("no-health-registers", Unknown, &[(192, 1, 6)], &[(192, 1, 7)]),
    ("bkops-outstanding", Warning, &[(502, 1, 1), (246, 1, 2)], &[(502, 1, 1), (246, 1, 1)]),
    ("exception-event", Warning, &[(54, 1, 1)], &[(54, 1, 0)]),
    ("write-reliability-off", Warning, &[(167, 1, 0x1e)], &[(167, 1, 0x01)]),
    ("cache-on", Notice, &[(33, 1, 1), (249, 4, 65_536)], &[(33, 1, 0), (249, 4, 65_536)]),
    ("partitioning-unfinished", Warning, &[(140, 3, 4)], &[(140, 3, 4), (155, 1, 1)]),
    ("partitioning-completed", Notice, &[(155, 1, 1)], &[(155, 1, 0)]),
    ("sectors-4k", Notice, &[(61, 1, 1), (63, 1, 1)], &[(61, 1, 1), (192, 1, 5)]),
    ("sectors-emulated", Notice, &[(63, 1, 1)], &[(63, 1, 1), (61, 1, 1)]),
    ("boot-enabled", Notice, &[(179, 1, 0x48)], &[(179, 1, 0x03)]),
    ("boot-unprotected", Notice, &[(226, 1, 32)], &[(226, 1, 32), (174, 1, 5)]),
    ("boot-protected-for-good", Notice, &[(226, 1, 32), (174, 1, 8)], &[(226, 1, 32), (174, 1, 4)]),
    ("user-area-protection", Warning, &[(171, 1, 4)], &[(171, 1, 0x10)]),
    ("bkops-off", Notice, &[(502, 1, 1)], &[(502, 1, 1), (163, 1, 2)]),
    ("bkops-manual", Notice, &[(502, 1, 1), (163, 1, 1)], &[(502, 1, 1), (163, 1, 3)]),
    ("hardware-reset-off", Notice, &[(162, 1, 2)], &[(162, 1, 1)]),
    ("no-trim", Notice, &[(192, 1, 5), (231, 1, 1)], &[(192, 1, 6), (231, 1, 1)]),
    ("firmware-update-failed", Warning, &[(26, 1, 0x11), (493, 1, 1)], &[(26, 1, 0x11), (493, 1, 0)]),
    ("mode-not-normal", Warning, &[(30, 1, 1)], &[(30, 1, 1), (192, 1, 6)]),
    ("production-state", Warning, &[(133, 1, 1)], &[(133, 1, 0)]),
    ("register-contradiction", Warning, &[(33, 1, 1)], &[(33, 1, 1), (249, 4, 65536)]),
    ("register-anomaly", Notice, &[(510, 1, 9)], &[(212, 4, 8192), (224, 1, 1), (221, 1, 1)]),
];

/// An eMMC of which all registers are 0 but those given; revision 5.1 unless given.
pub(super) fn emmc(registers: &[(u16, u16, u64)]) -> CardData {
    let mut csd = ExtCsd::from_bytes([0; 512]);
    csd.set_uint(192, 1, 8);
    registers.iter().for_each(|&(offset, width, value)| csd.set_uint(offset, width, value));
    CardData { kind: Some(CardKind::Emmc), ext_csd: Some(csd), ..CardData::new("part", Format::ExtCsdBinary) }
}

pub(super) fn found(card: &CardData) -> Vec<Finding> {
    study(card, &StudyOptions::default()).findings
}

fn severity_of(card: &CardData, id: &str) -> Option<Severity> {
    found(card).iter().find(|finding| finding.id == id).map(|finding| finding.severity)
}

#[test]
fn each_rule_fires_on_its_registers_only() {
    for (id, severity, fires, silent) in RULES {
        assert_eq!(severity_of(&emmc(fires), id), Some(severity), "{id} {fires:?}");
        assert_eq!(severity_of(&emmc(silent), id), None, "{id} {silent:?}");
    }
}

#[test]
fn missing_values_give_no_finding() {
    assert_eq!(found(&CardData::default()), []);
    let mut nothing_known = emmc(&[]);
    nothing_known.ext_csd = Some(ExtCsd::unknown());
    assert_eq!(found(&nothing_known), []);
}

#[test]
fn write_reliability_advice_depends_on_the_partitioning_state() {
    let advice = |registers: &[(u16, u16, u64)]| {
        let findings = found(&emmc(registers));
        findings.into_iter().find(|finding| finding.id == "write-reliability-off").unwrap().advice.join(" ")
    };
    assert!(advice(&[(166, 1, 5)]).contains("set it before the part goes into service"));
    assert!(advice(&[(166, 1, 4)]).contains("the maker fixed the setting"));
    assert!(advice(&[(166, 1, 5), (155, 1, 1)]).contains("the setting is fixed, because partitioning is completed"));
    // General purpose areas count once they exist.
    let gp = found(&emmc(&[(167, 1, 1), (155, 1, 1), (143, 3, 4)]));
    let finding = gp.iter().find(|finding| finding.id == "write-reliability-off").unwrap();
    assert!(finding.what.contains("general purpose area 1") && !finding.what.contains("user"), "{}", finding.what);
    assert_eq!(severity_of(&emmc(&[(192, 1, 3)]), "write-reliability-off"), None);
}

#[test]
fn the_kernels_bus_mode_overrides_the_register() {
    let mut card = emmc(&[(196, 1, 0x57), (185, 1, 1)]);
    assert_eq!(severity_of(&card, "bus-slower-than-offered"), None, "the register of a dump is of that moment");
    card.origins[0].format = Format::MmcUtilsExtCsd;
    assert_eq!(severity_of(&card, "bus-slower-than-offered"), Some(Warning));
    card.host.ios.insert("timing spec".into(), "10 (mmc HS400 enhanced strobe)".into());
    assert_eq!(severity_of(&card, "bus-slower-than-offered"), None);
    card.host.ios.insert("timing spec".into(), "1 (mmc high-speed)".into());
    card.host.ios.insert("bus width".into(), "0 (1 bits)".into());
    assert_eq!(severity_of(&card, "bus-slower-than-offered"), Some(Warning));
    assert_eq!(severity_of(&card, "bus-narrow"), Some(Warning));
    // DDR52 has the code of High Speed, so a part that offers no more is not accused.
    assert_eq!(severity_of(&emmc(&[(196, 1, 0x07), (185, 1, 1)]), "bus-slower-than-offered"), None);
}

#[test]
fn only_the_kernel_reports_a_disabled_queue() {
    let mut card = emmc(&[(308, 1, 1), (307, 1, 31)]);
    assert_eq!(severity_of(&card, "command-queue-off"), None);
    card.sysfs.insert("cmdq_en".into(), "0\n".into());
    assert_eq!(severity_of(&card, "command-queue-off"), Some(Notice));
    card.sysfs.insert("cmdq_en".into(), "1\n".into());
    assert_eq!(severity_of(&card, "command-queue-off"), None);
}

#[test]
fn link_errors_stale_values_and_damaged_registers_are_findings() {
    let mut card = emmc(&[(268, 1, 3), (269, 1, 3), (267, 1, 1)]);
    card.host.err_stats.insert("Data CRC Errors Occurred".into(), 4711);
    card.sysfs.insert("life_time".into(), "0x02 0x03".into());
    card.cid = Cid::parse_hex("1501004d384731474303dc0db061516f").ok();
    card.blocks.disks =
        vec![Disk { name: "mmcblk0".into(), bytes: Some(Bytes(4096)), read_only: Some(true), partitions: Vec::new() }];
    for (id, severity) in [
        ("host-link-errors", Warning),
        ("sysfs-stale", Notice),
        ("checksum-wrong", Warning),
        ("disk-read-only", Warning),
    ] {
        assert_eq!(severity_of(&card, id), Some(severity), "{id}");
    }
}

#[test]
fn conflicting_sources_are_a_finding_and_prevent_a_good_verdict() {
    use crate::health::{CheckStatus, HealthOptions, check};

    let mut card = emmc(&[(268, 1, 1), (269, 1, 1), (267, 1, 1)]);
    assert_eq!(severity_of(&card, "sources-conflict"), None);
    card.conflicts = (0..14).map(|number| format!("FIELD_{number} is 0x01 in a, 0x02 in b")).collect();
    let finding = found(&card).into_iter().find(|finding| finding.id == "sources-conflict").unwrap();
    assert_eq!((finding.severity, finding.evidence.len()), (Warning, 13));
    assert_eq!(
        (finding.evidence[0].text.as_str(), finding.evidence[12].text.as_str()),
        (card.conflicts[0].as_str(), "and 2 more")
    );
    let result = check(&card, &HealthOptions::default());
    assert_eq!(result.status, CheckStatus::Warning);
    assert!(
        result.line.contains("; sources disagree: FIELD_0 is 0x01 in a, 0x02 in b (and 13 more) |"),
        "{}",
        result.line
    );
    // A warning does not hide what is worse.
    let worn = CardData { conflicts: card.conflicts, ..emmc(&[(268, 1, 0x0b)]) };
    assert_eq!(check(&worn, &HealthOptions::default()).status, CheckStatus::Critical);
}

#[test]
fn csd_protection_and_a_lock_are_findings_for_emmc_and_sd() {
    for (kind, bits, id, severity) in
        [(CardKind::Emmc, 0x20, "card-protected-for-good", Critical), (CardKind::Sd, 0x10, "card-protected", Warning)]
    {
        let mut csd = [0; 16];
        csd[14] = bits;
        let card = CardData { kind: Some(kind), csd: Some(csd), ..CardData::default() };
        assert_eq!(severity_of(&card, id), Some(severity), "{id}");
    }
    let locked = CardData { status: Some(1 << 25 | 0x900), ..emmc(&[]) };
    assert_eq!(severity_of(&locked, "card-locked"), Some(Warning));
}

#[test]
fn sd_cards_are_judged_by_their_classes() {
    // Four lines, class 10, U3, V30, A2; then nothing at all, on one line of four.
    let fast = "8000000000000000040090000f053a1e000800000002ff0003".to_owned() + &"0".repeat(78);
    let card = |ssr: &str| CardData {
        kind: Some(CardKind::Sd),
        ssr: emmc_regs::ssr::Ssr::parse_hex(ssr).ok().map(|ssr| ssr.0),
        scr: Some([0x02, 0x35, 0x80, 0x02, 0x01, 0, 0, 0]),
        ..CardData::default()
    };
    let ids = |ssr: &str| found(&card(ssr)).iter().map(|finding| finding.id).collect::<Vec<_>>();
    assert_eq!(ids(&fast), ["sd-a2-needs-queue"]);
    assert_eq!(ids(&"0".repeat(128)), ["sd-one-line", "sd-no-application-class", "sd-slow-class"]);
}

#[test]
fn findings_come_worst_first() {
    let severities: Vec<Severity> =
        found(&emmc(&[(268, 1, 0x0b), (167, 1, 0), (179, 1, 8)])).iter().map(|finding| finding.severity).collect();
    assert!(severities.windows(2).all(|pair| pair[0] <= pair[1]) && severities[0] == Critical, "{severities:?}");
}
