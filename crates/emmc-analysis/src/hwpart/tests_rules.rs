//! Each rule alone: a request that breaks it, one beside it that does not.

use emmc_port::CardData;

use super::fixtures::*;
use super::{HwPartPlan, Refusal};

struct Row {
    rule: &'static str,
    broken: Vec<HwPartPlan>,
    kept: Vec<HwPartPlan>,
    evidence: &'static str,
}

fn rules(plan: &HwPartPlan) -> Vec<&'static str> {
    plan.refusals.iter().map(|refusal| refusal.rule).collect()
}

fn row(rule: &'static str, broken: Vec<HwPartPlan>, kept: Vec<HwPartPlan>, evidence: &'static str) -> Row {
    Row { rule, broken, kept, evidence }
}

fn max(card: &CardData) -> HwPartPlan {
    planned(card, "max", &[], None)
}

fn s0(values: &[(u16, u16, u64)]) -> CardData {
    with(&s0j56(), values)
}

fn uboots_rules() -> Vec<Row> {
    let on = |card: &CardData| planned(card, "max", &[], Some("on"));
    let gp = |gp: &[&str]| planned(&s0j56(), "", gp, None);
    let enh = |enh: &str| planned(&s0j56(), enh, &[], None);
    let rev = |rev| max(&s0(&[(192, 1, rev)]));
    let support = |bits| s0(&[(160, 1, bits)]);
    vec![
        row("sd-card", vec![max(&sd_card())], vec![max(&s0j56())], "card kind is SD"),
        row(
            "version",
            vec![rev(0), rev(4)],
            vec![rev(5), rev(9), rev(200)],
            "is 4 (eMMC 4.4), 5 (4.41) or higher is required",
        ),
        row("partitioning-unsupported", vec![max(&support(6))], vec![max(&support(7))], "PARTITIONING_EN is 0"),
        row(
            "group-size",
            vec![max(&s0(&[(221, 1, 0)])), max(&s0(&[(224, 1, 0)]))],
            vec![max(&s0(&[(221, 1, 8), (224, 1, 2)]))],
            "HC_ERASE_GRP_SIZE[224] is 0",
        ),
        row(
            "enh-unaligned",
            vec![enh("4MiB:80MiB"), enh("0s:4MiB"), enh("1B:max"), enh("8MiB:8193KiB")],
            vec![enh("8MiB:80MiB"), enh("16384s:50%")],
            "its size of 8193 KiB is 1 group of 8 MiB and 2s",
        ),
        row(
            "gp-unaligned",
            vec![gp(&["1:8MiB", "2:12MiB"])],
            vec![gp(&["1:8MiB", "2:16MiB"])],
            "gp2 of 12 MiB is 1 group of",
        ),
        row(
            "enh-unsupported",
            vec![max(&support(5)), planned(&support(5), "", &["1:8MiB:enh"], None)],
            vec![planned(&support(5), "", &["1:8MiB"], None)],
            "ENH_ATTRIBUTE_EN is 0",
        ),
        row(
            "enh-too-large",
            vec![enh("0s:31080448s"), planned(&s0j56(), "0s:15384576s", &["1:8MiB:enh"], None), enh("0s:15400960s")],
            vec![enh("0s:15384576s"), planned(&s0j56(), "0s:15368192s", &["1:8MiB:enh"], None)],
            "940 > 939 groups of 8 MiB",
        ),
        row(
            "wrrel-fixed",
            vec![on(&s0(&[(166, 1, 0x14), (167, 1, 0x1e)]))],
            vec![on(&s0(&[(166, 1, 0x14), (167, 1, 0x1f)])), on(&s0(&[(167, 1, 0x1e)])), on(&klm_8g())],
            "WR_REL_SET[167] is 0x1e, wanted 0x1f",
        ),
        row(
            "already-completed",
            vec![max(&cisco_hynix()), max(&s0(&[(155, 1, 1), (140, 3, 939), (156, 1, 1)]))],
            vec![max(&klm_8g())],
            "ENH_SIZE_MULT[142:140] is 939 groups",
        ),
    ]
}

fn rules_beyond_uboot() -> Vec<Row> {
    let gp = |gp: &[&str]| planned(&s0j56(), "", gp, None);
    let enh = |enh: &str| planned(&s0j56(), enh, &[], None);
    let wrrel = |wrrel| planned(&s0j56(), "", &[], Some(wrrel));
    vec![
        row(
            "request-empty",
            vec![gp(&[]), wrrel("gp1=on"), wrrel("on")],
            vec![wrrel("off"), gp(&["1:8MiB"])],
            "WR_REL_SET[167] is 0x1f already",
        ),
        row("several-max", vec![planned(&s0j56(), "max", &["1:max"], None)], vec![gp(&["1:50%", "2:max"])], "gp1"),
        row("size-zero", vec![enh("0s:0s"), gp(&["1:0%"])], vec![enh("0s:8MiB")], "gp1: 0% is 0 groups on this part"),
        row(
            "register-width",
            vec![gp(&["1:134217728MiB"]), planned(&s0j56(), "2TiB:8MiB", &[], None)],
            vec![gp(&["1:8MiB"])],
            "ENH_START_ADDR holds at most 4294967295",
        ),
        row(
            "past-capacity",
            vec![gp(&["1:15184MiB"]), planned(&s0j56(), "0s:4GiB", &["1:10GiB"], None), gp(&["1:8GiB", "2:4GiB:enh"])],
            vec![gp(&["1:15168MiB"]), planned(&s0j56(), "0s:4GiB", &["1:6GiB"], None)],
            "one enhanced group costs about 2.02 ordinary ones",
        ),
        row(
            "enh-past-user-end",
            vec![enh("15168MiB:16MiB"), enh("8MiB:7512MiB"), enh("8GiB:4GiB")],
            vec![enh("8MiB:7504MiB"), enh("4GiB:4GiB")],
            "sectors of the resulting user area (estimated",
        ),
        row(
            "no-user-area",
            vec![gp(&["1:15176MiB"]), gp(&["1:7512MiB:enh"])],
            vec![gp(&["1:15168MiB"]), gp(&["1:7504MiB:enh"])],
            "0 sectors left (estimated",
        ),
    ]
}

fn rules_of_attributes_and_leftovers() -> Vec<Row> {
    let on = |card: &CardData, gp: &[&str]| planned(card, "", gp, None);
    vec![
        row(
            "ext-unsupported",
            vec![on(&s0(&[(160, 1, 3)]), &["1:8MiB:sys"])],
            vec![on(&s0(&[(160, 1, 3)]), &["1:8MiB"])],
            "EXT_ATTRIBUTE_EN is 0",
        ),
        row(
            "ext-type-unsupported",
            vec![on(&s0(&[(494, 1, 1)]), &["1:8MiB:nonpersist"]), on(&s0(&[(494, 1, 2)]), &["1:8MiB:sys"])],
            vec![on(&s0(&[(494, 1, 1)]), &["1:8MiB:sys"]), on(&s0(&[(494, 1, 2)]), &["1:8MiB:nonpersist"])],
            "gp1 is requested for system code",
        ),
        row(
            "enh-and-ext",
            vec![on(&s0j56(), &["1:8MiB:enh:sys"])],
            vec![on(&s0j56(), &["1:8MiB:enh", "2:8MiB:sys"])],
            "gp1",
        ),
        row(
            "pending-sizes",
            vec![
                max(&s0(&[(143, 3, 5)])),
                on(&s0(&[(136, 4, 16_384)]), &["1:8MiB"]),
                on(&s0(&[(140, 3, 1)]), &["1:8MiB"]),
            ],
            vec![on(&s0(&[(143, 3, 5)]), &["1:8MiB"]), max(&s0(&[(140, 3, 9)]))],
            "ENH_SIZE_MULT[142:140] holds 1",
        ),
        row(
            "pending-attributes",
            vec![
                max(&s0(&[(156, 1, 3)])),
                on(&s0(&[(156, 1, 1)]), &["1:8MiB:enh"]),
                on(&s0(&[(52, 2, 0x20)]), &["2:8MiB:sys"]),
            ],
            vec![max(&s0(&[(156, 1, 1)])), on(&s0(&[(52, 2, 0x20)]), &["2:8MiB:nonpersist"])],
            "EXT_PARTITIONS_ATTRIBUTE[53:52] is 0x0020, wanted 0x0010",
        ),
    ]
}

#[test]
fn every_rule_refuses_a_violation_and_accepts_the_nearest_valid_value() {
    let rows = [uboots_rules(), rules_beyond_uboot(), rules_of_attributes_and_leftovers()];
    for Row { rule, broken, kept, evidence } in rows.into_iter().flatten() {
        for plan in &broken {
            assert!(rules(plan).contains(&rule), "{rule}: {:?} {:?}", plan.requested, plan.refusals);
            assert!(!plan.ok && plan.writes.is_empty() && plan.commands.is_none() && plan.after.is_none(), "{rule}");
        }
        for plan in &kept {
            assert!(plan.ok && plan.refusals.is_empty(), "{rule}: {:?} {:?}", plan.requested, plan.refusals);
            assert!(plan.layout.is_some() && !plan.writes.is_empty(), "{rule}");
        }
        let refusals = broken.iter().flat_map(|plan| &plan.refusals).filter(|refusal| refusal.rule == rule);
        let lines: Vec<String> = refusals.flat_map(|refusal| refusal.evidence.texts()).collect();
        assert!(lines.iter().any(|line| line.contains(evidence)), "{rule}: {lines:?}");
    }
}

#[test]
fn unknown_decisive_registers_refuse_a_plan() {
    let unknown = |plan: &HwPartPlan| -> Vec<String> {
        let refusal = plan.refusals.iter().find(|refusal| refusal.rule == "register-unknown");
        refusal.map(|refusal| refusal.evidence.texts()).unwrap_or_default()
    };
    let all = |card: &CardData| planned(card, "8MiB:8MiB", &["1:8MiB:sys"], Some("on"));
    assert!(all(&s0j56()).ok);
    for (offset, width, name) in [
        (192, 1, "EXT_CSD_REV"),
        (160, 1, "PARTITIONING_EN"),
        (160, 1, "ENH_ATTRIBUTE_EN"),
        (160, 1, "EXT_ATTRIBUTE_EN"),
        (221, 1, "HC_WP_GRP_SIZE"),
        (224, 1, "HC_ERASE_GRP_SIZE"),
        (212, 4, "SEC_COUNT"),
        (155, 1, "PARTITION_SETTING_COMPLETED"),
        (136, 1, "ENH_START_ADDR"),
        (141, 1, "ENH_SIZE_MULT"),
        (154, 1, "GP_SIZE_MULT"),
        (156, 1, "PARTITIONS_ATTRIBUTE"),
        (157, 3, "MAX_ENH_SIZE_MULT"),
        (166, 1, "WR_REL_PARAM"),
        (167, 1, "WR_REL_SET"),
        (494, 1, "EXT_SUPPORT"),
        (52, 2, "EXT_PARTITIONS_ATTRIBUTE"),
    ] {
        let plan = all(&without(&s0j56(), offset, width));
        assert!(unknown(&plan).iter().any(|line| line.contains(name)), "{name}: {:?}", plan.refusals);
        assert!(!plan.ok && plan.writes.is_empty(), "{name}");
    }
    // What the request does not need may stay unknown.
    let partial = without(&without(&without(&s0j56(), 157, 3), 166, 2), 494, 1);
    assert!(planned(&partial, "", &["1:8MiB"], None).ok);
    assert!(planned(&without(&s0j56(), 175, 1), "max", &[], None).writes[0].old.is_none());
    assert_eq!(unknown(&planned(&CardData::default(), "max", &[], None)).len(), 15);
}

#[test]
fn small_parts_take_size_and_addressing_from_csd_and_ocr() {
    // 2 GiB or less: only the card's own OCR says whether ENH_START_ADDR counts bytes or sectors.
    let mut small = s0(&[(212, 4, 3_735_552), (157, 3, 100)]);
    assert!(planned(&small, "0s:8MiB", &[], None).ok);
    assert_eq!(rules(&planned(&small, "8MiB:8MiB", &[], None)), ["register-unknown"]);
    small.ocr = Some(0x0000_0080);
    assert_eq!(rules(&planned(&small, "8MiB:8MiB", &[], None)), ["register-unknown"]);
    for (ocr, start) in [(0x80ff_8080, 8 << 20), (0xc0ff_8080, 16_384)] {
        small.ocr = Some(ocr);
        let plan = planned(&small, "8MiB:8MiB", &[], None);
        let after = plan.after.expect("plan");
        let check = after.checks.iter().find(|check| check.name == "ENH_START_ADDR");
        assert_eq!(check.map(|check| check.expected), Some(start));
    }
    // CSD of 1 GiB: C_SIZE 4095 would mean EXT_CSD, so 2047 with C_SIZE_MULT 7 and blocks of 1024 bytes.
    let mut tiny = s0(&[(212, 4, 0), (157, 3, 50)]);
    assert_eq!(rules(&planned(&tiny, "0s:8MiB", &[], None)), ["register-unknown"]);
    let (c_size, mult, block) = (2047u128, 7u128, 10u128);
    tiny.csd = Some((c_size << 62 | mult << 47 | block << 80).to_be_bytes());
    let layout = planned(&tiny, "", &["1:8MiB"], None).layout.expect("layout");
    assert_eq!(layout.user_sectors.0, (1 << 21) - 16_384);
}

#[test]
fn all_broken_rules_are_reported_in_sequence() {
    let card = s0(&[(192, 1, 4), (160, 1, 0), (155, 1, 1), (166, 1, 0)]);
    let plan = planned(&card, "4MiB:12GiB", &["1:1MiB:enh:sys"], Some("off"));
    let expected = [
        "version",
        "partitioning-unsupported",
        "enh-unaligned",
        "gp-unaligned",
        "enh-unsupported",
        "enh-too-large",
        "wrrel-fixed",
        "already-completed",
        "ext-unsupported",
        "enh-and-ext",
    ];
    assert_eq!(rules(&plan), expected);
    assert!(plan.layout.is_none());
    let nearest: Vec<&String> = plan.refusals.iter().flat_map(|refusal: &Refusal| &refusal.advice).collect();
    assert!(nearest.contains(&&"its start: 0s (group 0) or 16384s (group 1)".to_string()), "{nearest:?}");
}

#[test]
fn advice_for_a_size_below_one_group_is_one_group() {
    let advice = |gp: &str| planned(&s0j56(), "", &[gp], None).refusals[0].advice.clone();
    assert_eq!(advice("1:1s"), ["gp1: 16384s (group 1)"]);
    assert_eq!(advice("1:16385s"), ["gp1: 16384s (group 1) or 32768s (group 2)"]);
}

#[test]
fn a_misaligned_request_is_refused_with_the_nearest_sizes() {
    // commands.txt: `mmc enh_area set -y 4096 81920`, in KiB, on a part with groups of 8 MiB.
    let commands = include_str!("../../../../testdata/hwpartition/copyright1999-klm8g-enh/commands.txt");
    assert!(commands.contains("4096 81920"));
    let plan = planned(&klm_8g(), "4096KiB:81920KiB", &[], None);
    assert_eq!(rules(&plan), ["enh-unaligned"]);
    assert_eq!(plan.refusals[0].evidence.texts(), ["its start of 4 MiB is 0 groups of 8 MiB and 8192s"]);
    assert!(plan.layout.is_some());
    assert!(!max(&at91_partial()).ok);
}

#[test]
fn accepted_plans_can_have_warnings() {
    for (plan, id) in [
        (planned(&s0j56(), "", &["2:8MiB"], None), "gp-gap"),
        (planned(&s0j56(), "max", &[], Some("gp1=off")), "wrrel-unused"),
        (planned(&s0j56(), "max", &[], Some("off")), "wrrel-off"),
        (max(&s0(&[(167, 1, 0x1e)])), "wrrel-last-chance"),
        (planned(&s0j56(), "", &[], Some("off")), "commits-only-wrrel"),
        (max(&s0(&[(140, 3, 9)])), "pending-overwritten"),
        (max(&s0(&[(157, 3, 100)])), "cost-unclear"),
        (max(&s0(&[(241, 1, 0)])), "wait-unknown"),
        (planned(&s0j56(), "", &["1:max"], None), "small-user-area"),
    ] {
        assert!(plan.ok, "{id}: {:?}", plan.refusals);
        assert!(plan.warnings.iter().any(|warning| warning.id == id), "{id}: {:?}", plan.warnings);
    }
    assert_eq!(max(&s0j56()).warnings, []);
}
