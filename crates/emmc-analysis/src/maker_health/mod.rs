//! Makers' health reports beyond the standard's three bytes, in one model.
//!
//! Nothing here is standardised, and most layouts are known from drivers and tools alone. So every reading names its
//! source and how sure it is; a reply that is no report is refused with the reason; a value that cannot be is named and
//! not repeated. Absent on purpose: sending a command ([`allowed_reads`] says which may be sent), and any way into a
//! vendor's mode.

mod builder;
mod card;
mod consistency;
mod emmcparm;
mod ext_csd_bytes;
mod family;
mod hynix;
mod layout;
mod live;
mod longsys;
mod meaning;
mod merge;
mod micron;
mod model;
mod phison;
mod refusal;
mod samsung;
mod sandisk;
mod sd_cards;
mod sdmon;
mod sdmon_keys;
mod sdmon_text;
mod silicon_motion;
mod toshiba;
#[cfg(test)]
mod totality;
mod ymtc;

pub use card::{from_card, sorted};
pub use consistency::consistency;
pub use emmcparm::parse_emmcparm;
pub use family::Family;
pub use live::{ReadStep, allowed_reads};
pub use model::{Area, AreaWear, BlockWear, Cell, Confidence, Implausible, Reading, Value, VendorHealth};
pub use refusal::Refusal;
pub use sdmon::parse_sdmon;

use refusal::{hex, screen};

/// Bytes of a reply, but for YMTC's longer report.
const REPLY_BYTES: usize = 512;
const YMTC_LONG_BYTES: usize = 1536;

/// Decodes a vendor command's reply.
///
/// Without a family it is recognised: by its first two bytes, or by an argument that only one family uses.
///
/// Errors: the reply is no report, is of another family, or could be of several.
pub fn decode_reply(family: Option<Family>, argument: Option<u32>, reply: &[u8]) -> Result<VendorHealth, Refusal> {
    let from_cmd8 = family == Some(Family::HynixNew) || (family.is_none() && argument == Some(HYNIX_NEW_ARGUMENT));
    screen(reply, from_cmd8)?;
    let (family, by) = match family {
        Some(family) => (family, None),
        None => recognise(argument, reply).map(|(family, by)| (family, Some(by)))?,
    };
    let long = family == Family::Ymtc && reply.len() == YMTC_LONG_BYTES;
    if reply.len() != REPLY_BYTES && !long {
        return Err(Refusal::Length { expected: REPLY_BYTES, found: reply.len() });
    }
    if let (Some(expected), Some(found)) = (family.signature(), reply.get(..2)) {
        if found != expected {
            return Err(Refusal::WrongSignature { family, expected: hex(&expected), found: hex(found) });
        }
    }
    let mut health = decode_as(family, argument, reply)?;
    if let Some(by) = by {
        health.notes.push(format!("family identified only by {by}"));
    }
    match health.is_empty() {
        true => Err(Refusal::not_health("the report holds nothing that is known")),
        false => Ok(health),
    }
}

fn decode_as(family: Family, argument: Option<u32>, reply: &[u8]) -> Result<VendorHealth, Refusal> {
    match family {
        Family::Micron => micron::decode(reply, argument),
        Family::SandiskEmmc => sandisk::decode(reply, argument),
        Family::SamsungMovinand => samsung::decode(reply, argument),
        Family::SamsungVsm => samsung::decode_vsm(reply, argument),
        Family::ToshibaEmmc => toshiba::decode(reply, argument),
        Family::HynixOld => hynix::decode_old(reply, argument),
        Family::HynixNew => hynix::decode_new(reply, argument),
        Family::Ymtc => ymtc::decode(reply, argument),
        Family::LongsysEmmc => longsys::decode(reply, argument),
        Family::Hosin => ymtc::decode_hosin(reply, argument),
        Family::Phison => phison::decode(reply, argument),
        Family::Biwin => phison::decode_biwin(reply, argument),
        Family::SandiskSd | Family::WesternDigitalSd => sandisk::decode_sd(family, reply, argument),
        Family::LongsysSd => longsys::decode_sd(reply, argument),
        Family::InnodiskSd => sd_cards::decode_innodisk(reply, argument),
        Family::AdataSd => silicon_motion::decode_adata(reply, argument),
        Family::TranscendSd => silicon_motion::decode_transcend(reply, argument),
        Family::MicronSd => micron::decode_sd(reply, argument),
        Family::SwissbitSd => sd_cards::decode_swissbit(reply, argument),
        Family::TwoStepSd => sd_cards::decode_two_step(reply, argument),
        Family::AtpSd => Err(Refusal::LayoutNotPublic { family }),
        Family::Unidentified => Err(Refusal::not_health("bytes of no known family")),
    }
}

const HYNIX_NEW_ARGUMENT: u32 = 0x5345_4852;

/// The families that answer to an argument without a signature.
fn by_argument(argument: u32) -> &'static [Family] {
    match argument {
        0x11 | 0x23 | 0x25 | 0x39 | 0x83 => &[Family::Micron],
        0x21 => &[Family::Micron, Family::TwoStepSd],
        0x0d => &[Family::Micron, Family::Phison],
        0x29 => &[Family::Ymtc, Family::Hosin],
        0x35 => &[Family::Phison],
        0x96c9_d71c => &[Family::SandiskEmmc],
        HYNIX_NEW_ARGUMENT => &[Family::HynixNew],
        0x2000_05f1 => &[Family::LongsysEmmc],
        0xf000_0061 => &[Family::Biwin],
        0x1100_0001 => &[Family::AtpSd],
        table if table <= 0xffff && matches!(table & 0xff, 0x85 | 0x87) => &[Family::Micron],
        _ => &[],
    }
}

/// The one family that an eMMC of this maker answers an argument as.
fn of_maker(argument: u32, manufacturer_id: u8) -> Option<Family> {
    // SD cards with a signature share this argument, so it tells nothing without the maker.
    let candidates = if argument == 0x1100_05f1 { &[Family::LongsysEmmc] } else { by_argument(argument) };
    let mut of_maker = candidates.iter().filter(|family| family.manufacturer_ids().contains(&manufacturer_id));
    of_maker.next().copied().filter(|_| of_maker.next().is_none())
}

/// Identifies the family by its unique bytes.
fn recognise(argument: Option<u32>, reply: &[u8]) -> Result<(Family, &'static str), Refusal> {
    let mut candidates = argument.map(by_argument).unwrap_or_default();
    if argument == Some(0x21) && !reply.first().copied().is_some_and(sd_cards::is_nand_maker) {
        candidates = &[Family::Micron];
    }
    match candidates {
        [family] => return Ok((*family, "the command's argument")),
        [] => {}
        several => return Err(Refusal::Ambiguous { candidates: several.to_vec() }),
    }
    let Some(&[first, second]) = reply.get(..2) else {
        return Err(Refusal::Length { expected: REPLY_BYTES, found: reply.len() });
    };
    Family::from_signature([first, second])
        .map(|family| (family, "its first two bytes"))
        .ok_or_else(|| Refusal::UnknownSignature { found: hex(&[first, second]) })
}

/// The command of a family's report, for the source of each reading.
fn reply_source(family: Family, argument: Option<u32>) -> String {
    let fixed = match family {
        Family::SandiskEmmc => Some("CMD62 argument 0x96c9d71c, CMD63 argument 0"),
        Family::SamsungMovinand => Some("CMD62 (moviNAND report), CMD17 argument 0"),
        Family::SamsungVsm => Some("vendor-specific mode, CMD17 argument 0xc7810000"),
        Family::ToshibaEmmc => Some("CMD56 write, CMD56 read"),
        Family::HynixOld => Some("CMD60 arguments 0x534d4900 and 0x48525054, CMD8"),
        Family::HynixNew => Some("CMD8 argument 0x53454852"),
        _ => None,
    };
    match (fixed, argument) {
        (Some(fixed), _) => fixed.to_owned(),
        (None, Some(argument)) => format!("CMD56 argument {argument:#010x}"),
        (None, None) => "CMD56".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_without_family_argument_or_signature_is_refused() {
        let mut reply = [0u8; 512];
        reply[..2].copy_from_slice(&[0x00, 0x04]);
        assert_eq!(decode_reply(None, Some(1), &reply), Err(Refusal::UnknownSignature { found: "00 04".to_owned() }));
        assert_eq!(decode_reply(None, None, &reply), Err(Refusal::UnknownSignature { found: "00 04".to_owned() }));
    }

    #[test]
    fn ambiguity_is_reported() {
        let mut reply = [0u8; 512];
        reply[0] = 0x98;
        let refused = decode_reply(None, Some(0x21), &reply);
        assert_eq!(refused, Err(Refusal::Ambiguous { candidates: vec![Family::Micron, Family::TwoStepSd] }));
        reply[0] = 0;
        reply[1] = 1;
        let health = decode_reply(None, Some(0x21), &reply).unwrap();
        assert!(health.notes.iter().any(|note| note.contains("only by the command's argument")));
    }

    #[test]
    fn a_wrong_length_is_refused() {
        for length in [1, 511, 513, 1024, 4096] {
            let refused = decode_reply(Some(Family::Micron), Some(0x11), &vec![1; length]);
            assert_eq!(refused, Err(Refusal::Length { expected: 512, found: length }));
        }
    }

    #[test]
    fn refusals_and_reports_serialise() {
        let refusal = decode_reply(Some(Family::SandiskSd), None, &[7; 512]).unwrap_err();
        let json = serde_json::to_value(&refusal).unwrap();
        assert_eq!(json["refusal"], "wrong-signature");
        assert_eq!(json["family"], "sandisk-sd");
        assert_eq!(json["found"], "07 07");
        let mut reply = [0u8; 512];
        reply[5] = 72;
        let json = serde_json::to_value(decode_reply(Some(Family::Micron), Some(0x11), &reply).unwrap()).unwrap();
        assert_eq!(json["family"], "micron");
        assert_eq!(json["spares"][0]["name"], "spare_blocks_total");
        assert_eq!(json["spares"][0]["value"], 72);
        assert_eq!(json["spares"][0]["confidence"], "uncertain");
    }
}
