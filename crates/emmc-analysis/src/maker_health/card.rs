//! Every vendor report in a card's data.

use emmc_port::{CardData, VendorFormat};
use emmc_regs::CardKind;

use super::{Family, Refusal, VendorHealth, decode_reply, ext_csd_bytes, of_maker, parse_emmcparm, parse_sdmon};

/// Decodes the saved reports of a card, in order, and the vendor's bytes of its EXT_CSD.
///
/// Micron spreads one report over several commands and emmcparm over several tables: those that do not contradict each
/// other are merged.
pub fn from_card(card: &CardData) -> Vec<Result<VendorHealth, Refusal>> {
    let manufacturer_id = card.cid.map(|cid| cid.0[0]).or(card.stated.manufacturer_id);
    let mut results = Vec::new();
    for report in &card.reports {
        let decoded = match &report.format {
            VendorFormat::Emmcparm => vec![parse_emmcparm(&report.content)],
            VendorFormat::Sdmon => parse_sdmon(&report.content),
            VendorFormat::Reply { family, argument } => {
                vec![reply(card, manufacturer_id, family.as_deref(), *argument, &report.content)]
            }
        };
        for result in decoded {
            join(&mut results, result.map(|health| with_maker(health, manufacturer_id)));
        }
    }
    results.extend(card.ext_csd.as_ref().and_then(|csd| ext_csd_bytes::read(csd, manufacturer_id)).map(Ok));
    results
}

/// As [`from_card`], the decoded reports apart from the refused.
pub fn sorted(card: &CardData) -> (Vec<VendorHealth>, Vec<Refusal>) {
    let (mut decoded, mut refused) = (Vec::new(), Vec::new());
    for report in from_card(card) {
        match report {
            Ok(report) => decoded.push(report),
            Err(refusal) => refused.push(refusal),
        }
    }
    (decoded, refused)
}

fn reply(
    card: &CardData,
    manufacturer_id: Option<u8>,
    family: Option<&str>,
    argument: Option<u32>,
    content: &[u8],
) -> Result<VendorHealth, Refusal> {
    let family = match family {
        Some(name) => Some(
            Family::from_name(name)
                .ok_or_else(|| Refusal::not_health(format!("no vendor family is called \"{name}\"")))?,
        ),
        // An eMMC's replies have no signature: its maker and the argument identify the family.
        None if card.kind == Some(CardKind::Emmc) => {
            argument.zip(manufacturer_id).and_then(|(argument, id)| of_maker(argument, id))
        }
        None => None,
    };
    // The newer SK hynix report is an EXT_CSD by design, and refused there if the vendor's bytes are empty.
    let own = card.ext_csd.as_ref().filter(|csd| csd.is_complete() && family != Some(Family::HynixNew));
    if own.is_some_and(|csd| csd.bytes().as_slice() == content) {
        return Err(Refusal::ExtCsdEcho);
    }
    decode_reply(family, argument, content)
}

/// Adds a note if a layout is not known from cards of this maker.
fn with_maker(mut health: VendorHealth, manufacturer_id: Option<u8>) -> VendorHealth {
    let known = health.family.manufacturer_ids();
    if let Some(id) = manufacturer_id.filter(|id| !known.is_empty() && !known.contains(id)) {
        health.notes.push(format!("this layout is not known from cards with manufacturer number {id:#04x}"));
    }
    health
}

/// Merges the pieces of one report; only Micron's has pieces.
fn join(results: &mut Vec<Result<VendorHealth, Refusal>>, result: Result<VendorHealth, Refusal>) {
    let result = match result {
        Ok(health) if health.family == Family::Micron => {
            let from_text = health.source.starts_with("emmcparm");
            let ours = results
                .iter_mut()
                .filter_map(|known| known.as_mut().ok())
                .find(|known| known.family == Family::Micron && known.source.starts_with("emmcparm") == from_text);
            match ours {
                Some(ours) => match ours.merge(health) {
                    Ok(()) => return,
                    Err(apart) => Ok(*apart),
                },
                None => Ok(health),
            }
        }
        other => other,
    };
    results.push(result);
}

#[cfg(test)]
mod tests {
    use emmc_port::{Format, SavedReport};
    use emmc_regs::ext_csd::ExtCsd;

    use super::*;
    use crate::maker_health::Area;

    const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");

    fn card(reports: Vec<SavedReport>) -> CardData {
        let mut card = CardData::new("test", Format::VendorReport);
        card.reports = reports;
        card
    }

    fn text(format: VendorFormat, path: &str) -> SavedReport {
        SavedReport { format, content: std::fs::read(format!("{TESTDATA}/{path}")).unwrap() }
    }

    fn micron(argument: u32, words: &[(usize, u16)]) -> SavedReport {
        let mut content = vec![0u8; 512];
        for &(at, word) in words {
            content[at..at + 2].copy_from_slice(&word.to_be_bytes());
        }
        SavedReport {
            format: VendorFormat::Reply { family: Some("micron".to_owned()), argument: Some(argument) },
            content,
        }
    }

    #[test]
    fn four_tables_of_the_board_vendor_make_one_report() {
        let reports = ["spare_block", "bad_block", "erase_count", "sect_count"]
            .map(|name| text(VendorFormat::Emmcparm, &format!("seeds_console/emmcparm_{name}.txt")));
        let mut results = from_card(&card(reports.to_vec()));
        assert_eq!(results.len(), 1);
        let health = results.remove(0).unwrap();
        assert_eq!((health.number("spare_blocks_total"), health.number("later_bad_blocks")), (Some(72.0), Some(0.0)));
        assert_eq!((health.areas.len(), health.blocks.len()), (3, 4));
    }

    #[test]
    fn replies_merge_unless_they_contradict() {
        let reports = vec![
            micron(0x11, &[(4, 72)]),
            micron(0x21, &[(0, 1), (2, 1689), (4, 619)]),
            micron(0x21, &[(0, 1), (2, 1700), (4, 620)]),
            text(VendorFormat::Sdmon, "sdmon/unsupported/sdmon.json.txt"),
        ];
        let results = from_card(&card(reports));
        assert_eq!(results.len(), 3);
        let first = results[0].as_ref().unwrap();
        assert_eq!(first.number("spare_blocks_total"), Some(72.0));
        assert!(first.area(Area::Global).is_some());
        assert!(matches!(results[2], Err(Refusal::CommandFailed { .. })));
    }

    #[test]
    fn a_reply_equal_to_ext_csd_is_an_echo() {
        let mut bytes = [0u8; 512];
        bytes[4] = 9;
        let mut card = card(vec![SavedReport {
            format: VendorFormat::Reply { family: Some("Micron".to_owned()), argument: Some(0x11) },
            content: bytes.to_vec(),
        }]);
        assert!(from_card(&card)[0].is_ok());
        card.ext_csd = Some(ExtCsd::from_bytes(bytes));
        assert_eq!(from_card(&card), [Err(Refusal::ExtCsdEcho)]);
    }

    #[test]
    fn another_makers_card_and_an_unknown_family_are_refused() {
        let mut card = card(vec![micron(0x11, &[(4, 72)])]);
        card.stated.manufacturer_id = Some(0x15);
        assert!(from_card(&card)[0].as_ref().unwrap().notes.iter().any(|note| note.contains("0x15")));
        card.reports[0].format = VendorFormat::Reply { family: Some("nobody".to_owned()), argument: None };
        assert!(matches!(&from_card(&card)[0], Err(Refusal::NotHealth { why }) if why.contains("nobody")));
    }

    #[test]
    fn every_allowed_read_of_an_emmc_is_decoded_by_its_maker() {
        for manufacturer_id in 0..=u8::MAX {
            for step in crate::maker_health::allowed_reads(CardKind::Emmc, manufacturer_id) {
                let mut content = vec![0u8; step.bytes];
                // A start that alone would look like a NAND chip's ID, and figures where every layout has some.
                (content[0], content[26], content[274]) = (0x01, 7, 9);
                let format = VendorFormat::Reply { family: None, argument: Some(step.argument) };
                let mut card = card(vec![SavedReport { format, content }]);
                card.kind = Some(CardKind::Emmc);
                card.stated.manufacturer_id = Some(manufacturer_id);
                let health = from_card(&card).remove(0).unwrap();
                assert!(health.family.manufacturer_ids().contains(&manufacturer_id), "{step:?}");
            }
        }
    }
}
