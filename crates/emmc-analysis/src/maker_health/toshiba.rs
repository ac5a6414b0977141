//! Toshiba and Kioxia eMMC: the reply to a CMD56 read after a CMD56 write selected the sub-report.
//!
//! Sources: BlackBerry's kernel tree and SDeMMCHealth. They agree on the erase counts, and differ on what the three
//! bytes of used life are about. Absent on purpose: how to ask, which is a write with a password.

use super::builder::Builder;
use super::layout::{Field, Form, at, read};
use super::meaning::{Stat, erases, life};
use super::model::{Area, Confidence, VendorHealth};
use super::{Family, Refusal, reply_source};

use Confidence::{SeveralSources, Uncertain};

/// Status byte: the sub-report was granted.
const STATUS_OK: u8 = 0xa0;

const LIFE: [Field; 3] = [
    at(4, Form::U8, life("life_used_percent_mlc"))
        .times(10)
        .sure(Uncertain)
        .remark("MLC, or the whole card: sources differ"),
    at(5, Form::U8, life("life_used_percent_slc"))
        .times(10)
        .sure(Uncertain)
        .remark("SLC, or reserved blocks: sources differ"),
    at(6, Form::U8, life("life_used_percent_all"))
        .times(10)
        .sure(Uncertain)
        .remark("the whole card, or average erases: sources differ"),
];

const ERASES: [Field; 4] = [
    at(4, Form::Be32, erases(Area::Mlc, Stat::Max)).sure(SeveralSources),
    at(8, Form::Be32, erases(Area::Mlc, Stat::Average)).sure(SeveralSources),
    at(12, Form::Be32, erases(Area::Slc, Stat::Max)).sure(SeveralSources),
    at(16, Form::Be32, erases(Area::Slc, Stat::Average)).sure(SeveralSources),
];

/// Decodes a reply; its first byte repeats the requested sub-report.
///
/// Errors: the card refused the sub-report, or it is of no known kind.
pub(super) fn decode(reply: &[u8], argument: Option<u32>) -> Result<VendorHealth, Refusal> {
    let status = reply.get(3).copied().unwrap_or_default();
    if status != STATUS_OK {
        let (family, expected) = (Family::ToshibaEmmc, "status 0xa0 in byte 3".to_owned());
        return Err(Refusal::WrongSignature { family, expected, found: format!("{status:#04x}") });
    }
    let mut builder = Builder::new(Family::ToshibaEmmc, reply_source(Family::ToshibaEmmc, argument));
    match reply.first() {
        Some(5) => read(&mut builder, reply, &LIFE),
        Some(7) => read(&mut builder, reply, &ERASES),
        other => {
            let found = other.copied().unwrap_or_default();
            return Err(Refusal::not_health(format!("Toshiba sub-report {found}: known are 5 (life) and 7 (erases)")));
        }
    }
    Ok(builder.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maker_health::decode_reply;

    #[test]
    fn a_real_reply_gives_the_published_erase_counts() {
        // First bytes of a reply that SDeMMCHealth's author left in a comment.
        let mut reply = [0u8; 512];
        reply[..12].copy_from_slice(&[7, 0, 0, 0xa0, 0, 0, 1, 0xf8, 0, 0, 1, 0x9d]);
        let health = decode_reply(Some(Family::ToshibaEmmc), Some(1), &reply).unwrap();
        let mlc = health.area(Area::Mlc).unwrap();
        assert_eq!(mlc.max.as_ref().unwrap().value.as_i64(), Some(504));
        assert_eq!(mlc.average.as_ref().unwrap().value.as_i64(), Some(413));
    }

    #[test]
    fn life_is_in_tenths_and_a_refused_request_is_reported() {
        let mut reply = [0u8; 512];
        reply[..7].copy_from_slice(&[5, 0, 0, 0xa0, 3, 1, 11]);
        let health = decode_reply(Some(Family::ToshibaEmmc), None, &reply).unwrap();
        assert_eq!(health.number("life_used_percent_mlc"), Some(30.0));
        assert_eq!(health.number("life_used_percent_all"), None);
        assert_eq!(health.implausible[0].found, "110");
        reply[3] = 0xe0;
        let refused = decode_reply(Some(Family::ToshibaEmmc), None, &reply);
        assert!(matches!(refused, Err(Refusal::WrongSignature { .. })));
        reply[..4].copy_from_slice(&[9, 0, 0, 0xa0]);
        assert!(matches!(decode_reply(Some(Family::ToshibaEmmc), None, &reply), Err(Refusal::NotHealth { .. })));
    }
}
