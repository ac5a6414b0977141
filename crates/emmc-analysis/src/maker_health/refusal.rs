//! The reasons why a reply is not decoded, and the checks of every reply.
//!
//! A card without a vendor command replies anyway: with ones or zeros only, with the sector that an ordinary read would
//! give, or with its EXT_CSD. Such bytes decode into numbers that look like health.

use emmc_regs::ext_csd::{Field, reg};
use serde::Serialize;

use super::Family;

/// Why a report was not decoded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "refusal", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Refusal {
    /// Nothing but 0xFF.
    #[error("vendor reply: every byte is 0xff: the card did not answer the request")]
    AllOnes,
    /// Nothing but zeros.
    #[error("vendor reply: every byte is 0x00: the card has no such report")]
    AllZeros,
    /// A boot sector.
    #[error("vendor reply: this is a boot sector: the card answered with sector 0 instead of a report")]
    Mbr,
    /// The card's EXT_CSD.
    #[error("vendor reply: this is the card's EXT_CSD: the card answered like to an ordinary CMD8")]
    ExtCsdEcho,
    /// Not the bytes that the family's reports start with.
    #[error("vendor reply, bytes 0..2: expected {expected} of {family}, found {found}")]
    WrongSignature {
        /// The requested family.
        family: Family,
        /// What its reports hold there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// Not the length of a report.
    #[error("vendor reply: expected {expected} bytes, found {found}")]
    Length {
        /// Bytes of a report.
        expected: usize,
        /// Bytes there are.
        found: usize,
    },
    /// The other tool could not read the card.
    #[error("the tool that read the card failed: {text}")]
    CommandFailed {
        /// What it said.
        text: String,
    },
    /// The other tool's text was damaged on its way, so that its figures cannot be trusted.
    #[error("the report's text is damaged: {text}")]
    Damaged {
        /// Where and how.
        text: String,
    },
    /// Starts with bytes that no known family uses.
    #[error("vendor reply, bytes 0..2: {found} is not the signature of a known family, so the numbers are meaningless")]
    UnknownSignature {
        /// What is there.
        found: String,
    },
    /// Several families send such replies.
    #[error("vendor reply: could be from {}: name the family", names(candidates))]
    Ambiguous {
        /// Who could have sent it.
        candidates: Vec<Family>,
    },
    /// Known, but nobody published what the bytes mean.
    #[error("vendor reply: {family} cards send it, but its layout is not public")]
    LayoutNotPublic {
        /// Whose it is.
        family: Family,
    },
    /// Something else.
    #[error("no vendor health in it: {why}")]
    NotHealth {
        /// The actual content.
        why: String,
    },
}

impl Refusal {
    /// A refusal for bytes that are something else.
    pub fn not_health(why: impl Into<String>) -> Self {
        Self::NotHealth { why: why.into() }
    }
}

fn names(families: &[Family]) -> String {
    families.iter().map(|family| family.name()).collect::<Vec<_>>().join(" or ")
}

/// Refuses replies that are not a vendor report, for any maker.
///
/// `from_cmd8` is for reports that are an EXT_CSD with the vendor's bytes filled in.
pub(super) fn screen(reply: &[u8], from_cmd8: bool) -> Result<(), Refusal> {
    if reply.is_empty() {
        return Err(Refusal::Length { expected: 512, found: 0 });
    }
    if reply.iter().all(|&byte| byte == 0xff) {
        return Err(Refusal::AllOnes);
    }
    if reply.iter().all(|&byte| byte == 0) {
        return Err(Refusal::AllZeros);
    }
    if is_boot_sector(reply) {
        return Err(Refusal::Mbr);
    }
    if !from_cmd8 && looks_like_ext_csd(reply) {
        return Err(Refusal::ExtCsdEcho);
    }
    Ok(())
}

/// The mark at the sector's end, or at its start x86 code that sets up segments, as every MBR since 1983 does.
fn is_boot_sector(reply: &[u8]) -> bool {
    if reply.get(510..512) == Some(&[0x55, 0xaa]) {
        return true;
    }
    let start = reply.get(..reply.len().min(48)).unwrap_or_default();
    // mov es, ax; mov ss, ax; mov ds, ax
    let loads = [0xc0, 0xd0, 0xd8].iter().filter(|&&to| start.windows(2).any(|code| code == [0x8e, to])).count();
    loads >= 2
}

/// What every EXT_CSD since 4.3 has: nothing in bytes 0..15, then structure, revision, bus modes, groups and size.
fn looks_like_ext_csd(reply: &[u8]) -> bool {
    let byte = |field: &Field| reply.get(field.index()).copied().unwrap_or(0);
    reply.get(..15).is_some_and(|reserved| reserved == [0; 15])
        && byte(reg::CSD_STRUCTURE) == 2
        && (3..=9).contains(&byte(reg::EXT_CSD_REV))
        && byte(reg::DEVICE_TYPE) & 1 == 1
        && byte(reg::HC_WP_GRP_SIZE) != 0
        && byte(reg::HC_ERASE_GRP_SIZE) != 0
        && reply.get(reg::SEC_COUNT.range()).is_some_and(|count| count != [0; 4])
}

/// Bytes as in a dump.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");

    #[test]
    fn a_boot_sector_is_recognised_whole_or_cut() {
        let text = std::fs::read_to_string(format!("{TESTDATA}/cmd56_raw/negative-mbr-in-cmd56/cmd56.partial.hex"));
        let reply: Vec<u8> =
            text.unwrap().split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
        assert_eq!(reply.len(), 80);
        for family in Family::all().map(Some).chain([None]) {
            assert_eq!(crate::maker_health::decode_reply(family, Some(1), &reply), Err(Refusal::Mbr));
        }
        let mut marked = [0u8; 512];
        marked[510..].copy_from_slice(&[0x55, 0xaa]);
        assert_eq!(screen(&marked, false), Err(Refusal::Mbr));
    }

    #[test]
    fn a_real_ext_csd_is_recognised() {
        for part in ["aaru-64g", "samsung-klm-8g", "samsung-bjnb4r-32g", "ac100-mmc32g"] {
            let text = std::fs::read_to_string(format!("{TESTDATA}/ext_csd_raw/{part}/{part}.ext_csd.hex")).unwrap();
            let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
            assert_eq!(digits.len(), 1024, "{part}");
            let reply: Vec<u8> =
                (0..512).map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap()).collect();
            assert_eq!(screen(&reply, false), Err(Refusal::ExtCsdEcho), "{part}");
            assert_eq!(screen(&reply, true), Ok(()), "{part}");
        }
    }

    #[test]
    fn replies_of_ones_zeros_or_no_bytes_are_refused_by_name() {
        assert_eq!(screen(&[0xff; 512], false), Err(Refusal::AllOnes));
        assert_eq!(screen(&[0; 512], false), Err(Refusal::AllZeros));
        assert_eq!(screen(&[], false), Err(Refusal::Length { expected: 512, found: 0 }));
    }
}
