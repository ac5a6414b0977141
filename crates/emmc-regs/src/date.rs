//! The manufacture date: four bits of year that eMMC has reused twice, and SD's eight.
//!
//! Absent on purpose: today's date. A candidate in the future is a candidate; whoever knows the time may drop it.

use std::fmt;

use serde::Serialize;

use crate::csd::mmc::SPEC_VERS;

/// The rule for a year code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DateRule {
    /// MMC of before 4.0, which has no EXT_CSD, and eMMC of EXT_CSD_REV 0 to 4: 1997 + code.
    EmmcUpToRev4,
    /// eMMC, EXT_CSD_REV 5 to 8: codes 0 to 12 are 2013 to 2025, 13 to 15 stay 2010 to 2012.
    EmmcRev5To8,
    /// eMMC, EXT_CSD_REV 9 and later: codes 0 to 9 are 2029 to 2038, 13 to 15 are 2026 to 2028.
    ///
    /// The standard's table is empty for codes 10 to 12; Linux keeps 2023 to 2025 for them.
    EmmcFromRev9,
    /// eMMC, EXT_CSD_REV 5 to 8 of makers who did not raise the revision in time: codes 13 to 15 are 2026 to 2028.
    ///
    /// Source: Linux, `MMC_QUIRK_BROKEN_MDT`, applied to manufacturer 0x45.
    EmmcReusedCodes,
    /// SD: 2000 + code.
    Sd,
}

impl DateRule {
    fn year(self, code: u16) -> Option<u16> {
        match (self, code) {
            (Self::EmmcUpToRev4, _) => Some(1997 + code),
            (Self::EmmcRev5To8, 0..=12) => Some(2013 + code),
            (Self::EmmcRev5To8, _) => Some(1997 + code),
            (Self::EmmcFromRev9, 0..=9) => Some(2029 + code),
            (Self::EmmcFromRev9, _) => Some(2013 + code),
            (Self::EmmcReusedCodes, 13..=15) => Some(2013 + code),
            (Self::EmmcReusedCodes, _) => None,
            (Self::Sd, _) => Some(2000 + code),
        }
    }
}

impl fmt::Display for DateRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EmmcUpToRev4 => "MMC up to EXT_CSD_REV 4",
            Self::EmmcRev5To8 => "EXT_CSD_REV 5 to 8",
            Self::EmmcFromRev9 => "EXT_CSD_REV 9 and later",
            Self::EmmcReusedCodes => "year code reused before EXT_CSD_REV 9",
            Self::Sd => "SD",
        })
    }
}

/// A month that the card may have been made in, and the rule that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DateCandidate {
    /// The year, e.g. 2013.
    pub year: u16,
    /// The month, 1 to 12.
    pub month: u8,
    /// Where the year comes from.
    pub rule: DateRule,
}

impl fmt::Display for DateCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:02}", self.year, self.month)
    }
}

/// The MDT field of a CID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ManufactureDate {
    /// One month.
    Known(DateCandidate),
    /// Several months, the likeliest first.
    Ambiguous(Vec<DateCandidate>),
    /// The month is not one: the field was never written, or is damaged.
    Invalid {
        /// The whole field.
        raw: u16,
    },
}

impl ManufactureDate {
    /// The date of an eMMC, from bits 15:8 of its CID.
    ///
    /// Without EXT_CSD_REV every rule gives a candidate.
    pub fn emmc(mdt: u8, ext_csd_rev: Option<u8>) -> Self {
        let rules: &[DateRule] = match ext_csd_rev {
            Some(0..=4) => &[DateRule::EmmcUpToRev4],
            Some(5..=8) => &[DateRule::EmmcRev5To8, DateRule::EmmcReusedCodes],
            Some(9..) => &[DateRule::EmmcFromRev9],
            None => &[DateRule::EmmcRev5To8, DateRule::EmmcUpToRev4, DateRule::EmmcFromRev9],
        };
        Self::by_rules(rules, u16::from(mdt), u16::from(mdt & 0xf), mdt >> 4)
    }

    /// The revision by whose rule an MMC's date counts: of a card of before 4.0, as its CSD says, the oldest.
    ///
    /// Source: Linux `mmc_decode_cid()`, which adds 1997 for every SPEC_VERS, and 16 years more from EXT_CSD_REV 5 on.
    pub fn rev_of(ext_csd_rev: Option<u8>, csd: Option<&[u8; 16]>) -> Option<u8> {
        let spec_vers = csd.map(|csd| SPEC_VERS.get(csd));
        ext_csd_rev.or(spec_vers.filter(|version| *version < 4).map(|_| 0))
    }

    /// The date of an SD card, from MDT of its CID; bits past the twelfth are ignored.
    pub fn sd(mdt: u16) -> Self {
        let mdt = mdt & 0xfff;
        Self::by_rules(&[DateRule::Sd], mdt, mdt >> 4, (mdt & 0xf) as u8)
    }

    fn by_rules(rules: &[DateRule], raw: u16, code: u16, month: u8) -> Self {
        if !(1..=12).contains(&month) {
            return Self::Invalid { raw };
        }
        let mut candidates: Vec<DateCandidate> = Vec::new();
        for &rule in rules {
            if let Some(year) = rule.year(code) {
                if candidates.iter().all(|other| other.year != year) {
                    candidates.push(DateCandidate { year, month, rule });
                }
            }
        }
        match candidates.as_slice() {
            [] => Self::Invalid { raw },
            [only] => Self::Known(*only),
            _ => Self::Ambiguous(candidates),
        }
    }

    /// Every month that the card may have been made in, the likeliest first.
    pub fn candidates(&self) -> &[DateCandidate] {
        match self {
            Self::Known(date) => std::slice::from_ref(date),
            Self::Ambiguous(dates) => dates,
            Self::Invalid { .. } => &[],
        }
    }
}

impl fmt::Display for ManufactureDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Invalid { raw } = self {
            return write!(f, "invalid (0x{raw:02x})");
        }
        for (index, date) in self.candidates().iter().enumerate() {
            write!(f, "{}{date}", if index == 0 { "" } else { " or " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_revision_selects_the_range_of_years() {
        for (mdt, rev, expected) in [
            (0x50, Some(4), "1997-05"),
            (0x50, Some(0), "1997-05"),
            (0x50, Some(5), "2013-05"),
            (0x50, Some(8), "2013-05"),
            (0x50, Some(9), "2029-05"),
            (0x50, Some(255), "2029-05"),
            (0x50, None, "2013-05 or 1997-05 or 2029-05"),
            (0x1c, Some(8), "2025-01"),
            (0x1d, Some(4), "2010-01"),
            (0x1d, Some(8), "2010-01 or 2026-01"),
            (0xcf, Some(5), "2012-12 or 2028-12"),
            (0x1a, Some(9), "2023-01"),
            (0x1c, Some(9), "2025-01"),
            (0x1d, Some(9), "2026-01"),
            (0x19, Some(9), "2038-01"),
            (0x1d, None, "2010-01 or 2026-01"),
            (0x00, Some(8), "invalid (0x00)"),
            (0xd4, Some(8), "invalid (0xd4)"),
            (0xff, None, "invalid (0xff)"),
        ] {
            assert_eq!(ManufactureDate::emmc(mdt, rev).to_string(), expected, "{mdt:#04x}, {rev:?}");
        }
    }

    #[test]
    fn an_mmc_before_4_0_has_one_date() {
        let csd = |spec_vers: u8| [spec_vers << 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for (spec_vers, rev, date) in [
            (0, None, "2005-05"),
            (3, None, "2005-05"),
            (4, None, "2021-05 or 2005-05 or 2037-05"),
            (3, Some(8), "2021-05"),
        ] {
            let rev = ManufactureDate::rev_of(rev, Some(&csd(spec_vers)));
            assert_eq!(ManufactureDate::emmc(0x58, rev).to_string(), date, "{spec_vers}, {rev:?}");
        }
        assert_eq!(ManufactureDate::rev_of(None, None), None);
    }

    #[test]
    fn sd_counts_months_from_one_and_years_from_2000() {
        for (mdt, expected) in [
            (0x0fb, "2015-11"),
            (0x101, "2016-01"),
            (0x157, "2021-07"),
            (0xffc, "2255-12"),
            (0x100, "invalid (0x100)"),
            (0xf00d, "invalid (0x0d)"),
            (0x001, "2000-01"),
        ] {
            assert_eq!(ManufactureDate::sd(mdt).to_string(), expected, "{mdt:#05x}");
        }
    }

    #[test]
    fn every_code_has_a_candidate_from_each_rule_that_applies() {
        for mdt in 0..=255 {
            let month = mdt >> 4;
            for rev in (0..=255).map(Some).chain([None]) {
                let date = ManufactureDate::emmc(mdt, rev);
                assert_eq!(date.candidates().is_empty(), !(1..=12).contains(&month));
                assert!(date.candidates().iter().all(|date| (1997..=2038).contains(&date.year) && date.month == month));
            }
        }
    }
}
