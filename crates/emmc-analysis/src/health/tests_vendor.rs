//! Vendor reports in the verdict, in the check and in the unknown values.

use emmc_port::{CardData, Format, SavedReport, VendorFormat};
use emmc_regs::CardKind;

use super::tests::emmc;
use super::*;

const SDMON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/sdmon/adata-iudd33k-64g/sdmon.json.txt");

/// A real card's report, with another figure in place of its `Remaining life: 100%` and its grown bad blocks.
fn adata(remaining_percent: &str) -> SavedReport {
    let text = std::fs::read_to_string(SDMON).unwrap();
    assert!(text.contains("\"Remaining life\": 100%") && text.contains("\"Grown bad block cnt\": 0"));
    let text = text.replace("\"Remaining life\": 100%", &format!("\"Remaining life\": {remaining_percent}%"));
    let text = text.replace("\"Grown bad block cnt\": 0", "\"Grown bad block cnt\": 900");
    SavedReport { format: VendorFormat::Sdmon, content: text.into_bytes() }
}

fn sd(report: SavedReport) -> CardData {
    let card = CardData::new("sdmon", Format::VendorReport);
    CardData { kind: Some(CardKind::Sd), reports: vec![report], ..card }
}

fn of(card: &CardData) -> Health {
    health(card, &HealthOptions::default())
}

#[test]
fn the_vendor_report_decides_when_registers_are_unknown() {
    for (left, severity, code) in [
        ("100", Severity::Good, 0),
        ("25", Severity::Notice, 0),
        ("3", Severity::Warning, 1),
        ("0", Severity::Critical, 2),
        // More than any remaining value: no value is reported.
        ("453", Severity::Unknown, 3),
    ] {
        let card = sd(adata(left));
        assert_eq!(of(&card).verdict.severity, severity, "{left} % left: {:?}", of(&card).verdict);
        assert_eq!(check(&card, &HealthOptions::default()).exit_code, code, "{left} % left");
    }
    let worn = of(&sd(adata("3")));
    assert_eq!(worn.verdict.sentence, "97 % of life used (vendor's report: sdmon, \"Remaining life\")");
    let line = check(&sd(adata("3")), &HealthOptions::default()).line;
    assert!(line.starts_with("SD WARNING - 97 %") && line.ends_with("| vendor_life_used=97%;89;99;0;100"), "{line}");
}

#[test]
fn the_worse_of_registers_and_vendor_report_counts() {
    let with = |registers: &[(u16, u8)], left| CardData { reports: vec![adata(left)], ..emmc(registers) };
    let good = [(268, 2), (269, 1), (267, 1)];
    let verdict = of(&with(&good, "3")).verdict;
    assert_eq!(verdict.severity, Severity::Warning);
    assert!(verdict.sentence.starts_with("10 % to 20 % of life used (type A cells)"), "{}", verdict.sentence);
    assert!(verdict.sentence.contains("; 97 % of life used (vendor's report: sdmon"), "{}", verdict.sentence);
    assert_eq!(of(&with(&good, "90")).verdict.severity, Severity::Good);
    assert_eq!(of(&with(&[(268, 0x0b)], "90")).verdict.severity, Severity::Critical);
    let options = HealthOptions::new(99, 100).unwrap();
    assert_eq!(health(&with(&good, "3"), &options).verdict.severity, Severity::Notice);
}

#[test]
fn values_of_a_vendor_report_are_not_listed_as_missing() {
    let untold = |card: &CardData| {
        let list = of(card).cannot_tell;
        let of_vendor = list.iter().find(|one| one.why.starts_with("no standard register has them")).cloned();
        (of_vendor.map(|one| (one.what, one.why)), list.iter().any(|one| one.what == "wear"))
    };
    let all = "bytes written, erase counts, bad blocks";
    let (nothing, wear) = untold(&CardData { kind: Some(CardKind::Sd), ..CardData::default() });
    assert_eq!((nothing.unwrap().0.as_str(), wear), (all, true));
    let (with, wear) = untold(&sd(adata("3")));
    let (what, why) = with.unwrap();
    assert_eq!((what.as_str(), wear), ("bytes written", false));
    assert!(why.ends_with("the vendor's report does not either"), "{why}");
    let refused = SavedReport { format: VendorFormat::Sdmon, content: b"{\"success\":false}".to_vec() };
    let (refused, wear) = untold(&sd(refused));
    let (what, why) = refused.unwrap();
    assert!(what == all && why.ends_with("no vendor report could be decoded") && wear, "{what} {why}");
}
