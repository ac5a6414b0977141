//! Marks of counterfeit cards: identities that no maker would program.
//!
//! Each mark is a reason to look closer and proves nothing: counterfeits copy good identities, and honest makers of
//! cheap cards leave fields empty. Absent on purpose: a verdict, and the real size, which only a write and read-back
//! test shows.

use emmc_port::{Format, Origin};
use emmc_regs::csd::{mmc, sd};
use emmc_regs::date::ManufactureDate;
use emmc_regs::{CardKind, scr};

use super::super::identity::{Identity, identity};
use super::Facts;
use crate::finding::{Finding, Severity};

/// Product names that counterfeits carry.
///
/// Source: the card inventory of sbc-bench (`00000`, `SMI`, `ASTC`, `AS`, `F0F0`), public tests of fakes (`APPSD`,
/// `TO`).
const NAMES: [&str; 7] = ["00000", "SMI", "ASTC", "AS", "F0F0", "APPSD", "TO"];

/// The maker whose genuine cards are named `00000`: Samsung, OID SM.
const NAMED_ZEROS: (u8, u16) = (0x1b, 0x534d);

/// OEM fields of SD cards that are placeholders, and a description of each.
///
/// Source: the counterfeit rules of sbc-bench.
const OEM_FILLERS: [(u16, &str); 4] =
    [(0x3456, "counts up"), (0x5678, "counts up"), (0x0000, "is empty"), (0xffff, "is empty")];

/// OID and MID of Kingston; counterfeits use the OID with another MID.
///
/// Source: sbc-bench; the forensics of irregular Kingston cards on bunniestudios.com (2010).
const KINGSTON: (u8, u16) = (0x41, 0x3432);

/// The years in which SDHC and SDXC were published.
const SDHC_YEAR: u16 = 2006;
const SDXC_YEAR: u16 = 2009;

pub(super) fn find(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    // A virtual card has made-up numbers.
    if facts.card.origins.iter().flat_map(Origin::forms).any(|form| *form == Format::Virtual) {
        return;
    }
    let who = identity(facts.card);
    let mut marks = Vec::new();
    maker(&who, &mut marks);
    name(&who, &mut marks);
    serial(&who, &mut marks);
    date(facts, &who, &mut marks);
    revision(facts, &who, &mut marks);
    if marks.is_empty() {
        return;
    }
    let what = "The card's identity has marks of counterfeit cards; this is no proof";
    let finding = Finding::new(Severity::Notice, "identity-marks", what);
    findings.push(
        marks
            .into_iter()
            .fold(finding, Finding::evidence)
            .advice(
                "before you trust the card, fill it and read it back (f3write and f3read): a counterfeit lacks part of its size",
            )
            .source(
                "sbc-bench's card inventory and counterfeit rules; f3 issue 15; bunniestudios.com, On MicroSD Problems",
            ),
    );
}

fn maker(who: &Identity, marks: &mut Vec<String>) {
    let (Some(kind), Some(mid)) = (who.kind, who.manufacturer_id) else { return };
    if kind == CardKind::Sd && mid == 0 {
        marks.push("MID = 0x00: no maker has this number".into());
    } else if who.manufacturer.is_none() {
        marks.push(format!("MID = {mid:#04x}: no public list names a maker for it"));
    }
    let Some(oid) = who.oemid.filter(|_| kind == CardKind::Sd) else { return };
    let letters = oid.to_be_bytes().map(|letter| letter.is_ascii_graphic());
    if let Some((_, what)) = OEM_FILLERS.iter().find(|(filler, _)| *filler == oid) {
        marks.push(format!("OID = {oid:#06x}: the field {what}"));
    } else if oid == KINGSTON.1 && mid != KINGSTON.0 {
        marks.push(format!(
            "OID = {oid:#06x} with MID = {mid:#04x}: the OID is Kingston's, whose MID is {:#04x}",
            KINGSTON.0
        ));
    } else if letters != [true; 2] {
        marks.push(format!("OID = {oid:#06x}: on an SD card this field holds two letters"));
    }
}

fn name(who: &Identity, marks: &mut Vec<String>) {
    let Some(name) = &who.product_name else { return };
    let name = name.trim();
    let samsung = (who.manufacturer_id, who.oemid) == (Some(NAMED_ZEROS.0), Some(NAMED_ZEROS.1));
    // Characters that are not letters are escaped in the name: `\x92`.
    let letters = name.split("\\x").enumerate().any(|(index, part)| part.len() > if index == 0 { 0 } else { 2 });
    if !letters {
        marks.push(format!("PNM = {name:?}: the name has no letter"));
    } else if who.kind == Some(CardKind::Sd) && NAMES.contains(&name) && !(samsung && name == "00000") {
        marks.push(format!("PNM = {name:?}: a name found on counterfeit cards"));
    }
}

fn serial(who: &Identity, marks: &mut Vec<String>) {
    match (who.serial_number, who.kind) {
        (Some(serial @ (0 | u32::MAX)), _) => marks.push(format!("PSN = {serial:#010x}: not a serial number")),
        // AData and Phison also count from low numbers.
        (Some(serial), Some(CardKind::Sd))
            if serial < 0x1_0000 && !matches!(who.manufacturer_id, Some(0x1d | 0x27)) =>
        {
            marks.push(format!("PSN = {serial:#010x}: a very low serial number"));
        }
        _ => {}
    }
}

fn date(facts: &Facts<'_>, who: &Identity, marks: &mut Vec<String>) {
    match &who.manufacture_date {
        Some(ManufactureDate::Invalid { raw }) => marks.push(format!("MDT = {raw:#05x}: not a valid month")),
        Some(ManufactureDate::Known(date)) if who.kind == Some(CardKind::Sd) => {
            let Some((class, since)) = facts.card.csd.as_ref().and_then(class) else { return };
            if date.year < since {
                marks.push(format!("MDT = {date}: the first {class} cards are from {since}"));
            }
        }
        _ => {}
    }
}

/// The capacity class by an SD card's CSD, and the year of the first such cards.
fn class(csd: &[u8; 16]) -> Option<(&'static str, u16)> {
    // Version 2 counts units of 512 KiB; 32 GiB is where SDXC begins.
    let units = sd::C_SIZE_V2.get(csd) + 1;
    match sd::CSD_STRUCTURE.get(csd) {
        1 if units > 65_536 => Some(("SDXC", SDXC_YEAR)),
        1 => Some(("SDHC", SDHC_YEAR)),
        _ => None,
    }
}

fn revision(facts: &Facts<'_>, who: &Identity, marks: &mut Vec<String>) {
    let (Some(kind), csd) = (who.kind, facts.card.csd.as_ref()) else { return };
    let version = csd.map(|csd| (mmc::CSD_STRUCTURE.get(csd), mmc::SPEC_VERS.get(csd)));
    match kind {
        CardKind::Sd => {
            let prv = facts.card.cid.map(|cid| cid.decode(kind, None).product_revision);
            if let Some(prv) = prv.filter(|prv| prv.major() > 9 || prv.minor() > 9) {
                marks.push(format!("PRV = {:#04x}: the standard defines two decimal digits", prv.0));
            }
            let specification = facts.card.scr.map(|scr| scr::SD_SPEC.get(&scr));
            if let (Some(old @ 0..=1), Some((1, _))) = (specification, version) {
                marks.push(format!(
                    "SD_SPEC = {old} with a CSD of version 2.0: such a card must follow SD 2.00 or later"
                ));
            }
        }
        CardKind::Emmc => {
            if let (Some(rev), Some((_, spec_vers @ 0..=3))) = (who.ext_csd_rev, version) {
                marks.push(format!(
                    "EXT_CSD_REV = {rev} with SPEC_VERS = {spec_vers}: a card older than MMC 4.0 has no EXT_CSD"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use emmc_port::CardData;
    use emmc_regs::cid::Cid;

    use super::*;
    use crate::study::{StudyOptions, study};

    fn marks(kind: CardKind, cid: &str, change: impl Fn(&mut CardData)) -> Vec<String> {
        let mut card = CardData { kind: Some(kind), ..CardData::new("card", Format::RegisterHex) };
        card.cid = Cid::parse_hex(cid).ok();
        change(&mut card);
        let findings = study(&card, &StudyOptions::default()).findings;
        let found = findings.iter().find(|finding| finding.id == "identity-marks");
        assert!(found.is_none_or(|finding| finding.severity == Severity::Notice));
        found.map(|finding| finding.evidence.iter().map(ToString::to_string).collect()).unwrap_or_default()
    }

    #[test]
    fn a_published_fake_names_its_reasons() {
        // Source: f3 issue 15, a card sold as Samsung's whose upper 27 of 31 GiB lose data.
        let found = marks(CardKind::Sd, "0000000000000000000000375600ea00", |_| {});
        let expected = ["MID = 0x00", "OID = 0x0000: the field is empty", "PNM = \"\"", "PSN = 0x00003756"];
        assert!(expected.iter().zip(&found).all(|(start, mark)| mark.starts_with(start)), "{found:?}");
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn impossible_names_numbers_dates_and_revisions_are_marks() {
        let sdhc = |card: &mut CardData| {
            card.csd = Some([0x40, 0x0e, 0, 0x32, 0x5b, 0x59, 0, 0, 0x73, 0xa7, 0x7f, 0x80, 0x0a, 0x40, 0, 0xeb]);
        };
        // MID 03, OID SD, PNM TO, PRV 8.0, PSN, MDT 2005-05.
        let found = marks(CardKind::Sd, "035344544f2020208012345678005501", sdhc);
        assert_eq!(
            found,
            ["PNM = \"TO\": a name found on counterfeit cards", "MDT = 2005-05: the first SDHC cards are from 2006"]
        );
        let found = marks(CardKind::Sd, "f1343253443136478f12345678010501", |_| {});
        assert!(found[0].starts_with("MID = 0xf1: no public list"), "{found:?}");
        assert!(found[1].contains("the OID is Kingston's") && found[2].starts_with("PRV = 0x8f"), "{found:?}");
        let found = marks(CardKind::Sd, "123456415354432080123456780105", |_| {});
        assert!(found.is_empty(), "a CID of 15 bytes is none");
        let found = marks(CardKind::Sd, "12345641535443208012345678010d01", |_| {});
        assert!(found.iter().any(|mark| mark.starts_with("OID = 0x3456: the field counts up")), "{found:?}");
        assert!(found.iter().any(|mark| mark.starts_with("MDT = 0x10d: not a valid month")), "{found:?}");
        let found = marks(CardKind::Sd, "035344534431364780123456780105ff", |card| {
            sdhc(card);
            card.scr = Some([0x01, 0x35, 0x80, 0, 0, 0, 0, 0]);
        });
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("SD_SPEC = 1 with a CSD of version 2.0"), "{found:?}");
    }

    #[test]
    fn real_cards_have_no_marks() {
        for (kind, cid) in [
            (CardKind::Emmc, "150100424a4e4234520fdac7c038141f"),
            (CardKind::Emmc, "1501004d384731474303dc0db061506f"),
            (CardKind::Emmc, "90014a484247346505814afb2d634400"),
            (CardKind::Emmc, "11010030303847453000912d76b6b000"),
            (CardKind::Emmc, "4501005344573136470143aaa4ee5100"),
            (CardKind::Sd, "275048534431364730da89b82900fb61"),
            (CardKind::Sd, "035054534c31364730da0a5d93010101"),
            (CardKind::Sd, "744a605553442020104182bbc7010600"),
            (CardKind::Sd, "1b534d3030303030101234567800f101"),
        ] {
            assert_eq!(marks(kind, cid, |_| {}), [""; 0], "{cid}");
        }
        let virtual_card = |card: &mut CardData| card.origins[0].format = Format::Virtual;
        assert_eq!(marks(CardKind::Sd, "0000000000000000000000375600ea00", virtual_card), [""; 0]);
    }
}
