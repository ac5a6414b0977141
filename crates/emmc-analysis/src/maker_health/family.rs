//! The families of vendor reports: one per layout, named after its known users.

use std::fmt;

use serde::{Serialize, Serializer};

/// Whose report it is; a report's layout follows from its family, its argument and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Family {
    /// Micron eMMC: CMD56 with one argument per table.
    Micron,
    /// SanDisk and Western Digital eMMC: CMD62, then CMD63.
    SandiskEmmc,
    /// Samsung moviNAND, eMMC 4.3 to 4.5: CMD62, then CMD17.
    SamsungMovinand,
    /// Samsung eMMC 5.x vendor-specific mode.
    SamsungVsm,
    /// Toshiba and Kioxia eMMC: CMD56 write, then read.
    ToshibaEmmc,
    /// SK hynix eMMC, older: CMD60 twice, then CMD8.
    HynixOld,
    /// SK hynix eMMC, newer: CMD8 with an argument.
    HynixNew,
    /// YMTC eMMC.
    Ymtc,
    /// Longsys (FORESEE) eMMC.
    LongsysEmmc,
    /// Hosin eMMC.
    Hosin,
    /// Phison eMMC controllers under several names.
    Phison,
    /// Biwin eMMC.
    Biwin,
    /// SanDisk SD.
    SandiskSd,
    /// Western Digital SD.
    WesternDigitalSd,
    /// Longsys SD.
    LongsysSd,
    /// Innodisk SD.
    InnodiskSd,
    /// AData SD, and others with the same Silicon Motion controllers.
    AdataSd,
    /// Transcend SD.
    TranscendSd,
    /// Micron SD.
    MicronSd,
    /// Swissbit SD.
    SwissbitSd,
    /// Apacer, Kingston and other SD cards that want a CMD56 write first.
    TwoStepSd,
    /// ATP SD, whose layout is not public.
    AtpSd,
    /// Bytes that are a vendor's own and are kept without being read.
    Unidentified,
}

/// One row per family: its name for scripts, other names it is asked by, who makes such cards.
struct Row {
    family: Family,
    name: &'static str,
    aliases: &'static [&'static str],
    label: &'static str,
}

const fn row(family: Family, name: &'static str, aliases: &'static [&'static str], label: &'static str) -> Row {
    Row { family, name, aliases, label }
}

const ROWS: [Row; 23] = [
    row(Family::Micron, "micron", &["micron-emmc"], "Micron"),
    row(
        Family::SandiskEmmc,
        "sandisk-emmc",
        &["sandisk", "wd", "wd-emmc", "western-digital"],
        "SanDisk / Western Digital",
    ),
    row(Family::SamsungMovinand, "samsung-movinand", &["samsung", "samsung-old"], "Samsung (moviNAND)"),
    row(Family::SamsungVsm, "samsung-vsm", &[], "Samsung (vendor-specific mode)"),
    row(Family::ToshibaEmmc, "toshiba-emmc", &["toshiba", "kioxia"], "Toshiba / Kioxia"),
    row(Family::HynixOld, "hynix-old", &[], "SK hynix (older report)"),
    row(Family::HynixNew, "hynix-new", &["hynix"], "SK hynix (newer report)"),
    row(Family::Ymtc, "ymtc", &[], "YMTC"),
    row(Family::LongsysEmmc, "longsys-emmc", &["longsys", "foresee"], "Longsys (FORESEE)"),
    row(Family::Hosin, "hosin", &["hfcs"], "Hosin"),
    row(Family::Phison, "phison", &[], "a Phison controller (sold under several names)"),
    row(Family::Biwin, "biwin", &["baiwei"], "Biwin"),
    row(Family::SandiskSd, "sandisk-sd", &[], "SanDisk"),
    row(Family::WesternDigitalSd, "wd-sd", &["western-digital-sd"], "Western Digital"),
    row(Family::LongsysSd, "longsys-sd", &[], "Longsys"),
    row(Family::InnodiskSd, "innodisk-sd", &["innodisk"], "Innodisk"),
    row(
        Family::AdataSd,
        "adata-sd",
        &["adata", "sm2706"],
        "vendor uncertain: a Silicon Motion SM270x controller, as in AData, Transcend 460T and PNY cards",
    ),
    row(Family::TranscendSd, "transcend-sd", &["transcend"], "Transcend (AData cards answer so too)"),
    row(Family::MicronSd, "micron-sd", &[], "Micron"),
    row(Family::SwissbitSd, "swissbit-sd", &["swissbit"], "Swissbit"),
    row(
        Family::TwoStepSd,
        "two-step-sd",
        &["2step", "apacer", "apacer-sd", "kingston", "kingston-sd"],
        "vendor uncertain: the two-step report of Apacer, Kingston and other cards",
    ),
    row(Family::AtpSd, "atp-sd", &["atp"], "ATP"),
    row(Family::Unidentified, "unidentified", &[], "vendor's own bytes, not read"),
];

impl Family {
    /// Every family.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.family)
    }

    /// The family of that name or alias, in any case; `_` and blanks count as `-`.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase().replace(['_', ' '], "-");
        ROWS.iter().find(|row| row.name == name || row.aliases.contains(&name.as_str())).map(|row| row.family)
    }

    /// Its name for scripts.
    pub fn name(self) -> &'static str {
        ROWS.iter().find(|row| row.family == self).map_or("unidentified", |row| row.name)
    }

    /// The makers of such cards, as far as known.
    pub fn label(self) -> &'static str {
        ROWS.iter().find(|row| row.family == self).map_or("", |row| row.label)
    }

    /// The two bytes that its reply starts with, if it has such.
    pub fn signature(self) -> Option<[u8; 2]> {
        match self {
            Self::SandiskSd => Some(*b"DS"),
            Self::WesternDigitalSd => Some(*b"DW"),
            Self::LongsysSd => Some(*b"pX"),
            Self::InnodiskSd => Some(*b"LX"),
            Self::AdataSd => Some([0x09, 0x41]),
            Self::TranscendSd => Some(*b"Tr"),
            Self::MicronSd => Some(*b"ME"),
            Self::SwissbitSd => Some(*b"Sw"),
            _ => None,
        }
    }

    /// The manufacturer numbers in whose cards the layout was seen; empty where none is known.
    pub fn manufacturer_ids(self) -> &'static [u8] {
        match self {
            Self::Micron => &[0x13, 0xfe],
            Self::SandiskEmmc => &[0x02, 0x45],
            Self::SamsungMovinand | Self::SamsungVsm => &[0x15],
            Self::ToshibaEmmc => &[0x11],
            Self::HynixOld | Self::HynixNew => &[0x90],
            Self::Ymtc => &[0x9b],
            Self::LongsysEmmc => &[0x88, 0xd6],
            Self::Hosin => &[0xd6],
            Self::Phison => &[0x32, 0x6b, 0x9d],
            Self::Biwin => &[0xf4],
            Self::SandiskSd | Self::WesternDigitalSd => &[0x03],
            Self::LongsysSd => &[0xad],
            Self::TranscendSd => &[0x1c, 0x1e, 0x74],
            Self::AdataSd => &[0x1c, 0x1d, 0x1e, 0x74],
            Self::SwissbitSd => &[0x5d],
            Self::AtpSd => &[0x09],
            Self::InnodiskSd | Self::MicronSd | Self::TwoStepSd | Self::Unidentified => &[],
        }
    }

    /// The family whose replies start with these bytes.
    pub fn from_signature(signature: [u8; 2]) -> Option<Self> {
        Self::all().find(|family| family.signature() == Some(signature))
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Family {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Family {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Family".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
        schemars::json_schema!({ "type": "string", "description": "Whose report it is.", "enum": names })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_one_row_and_every_name_finds_it() {
        for (place, row) in ROWS.iter().enumerate() {
            assert!(ROWS[..place].iter().all(|other| other.family != row.family), "{}", row.name);
            assert_eq!(Family::from_name(row.name), Some(row.family));
            assert_eq!((row.family.name(), row.family.label()), (row.name, row.label));
            for alias in row.aliases {
                assert_eq!(Family::from_name(&alias.to_uppercase().replace('-', "_")), Some(row.family), "{alias}");
            }
        }
        assert_eq!(Family::from_name("no such card"), None);
    }

    #[test]
    fn signatures_are_distinguished() {
        assert_eq!(Family::from_signature([0x44, 0x53]), Some(Family::SandiskSd));
        assert_eq!(Family::from_signature([0x44, 0x57]), Some(Family::WesternDigitalSd));
        assert_eq!(Family::from_signature([0x70, 0x58]), Some(Family::LongsysSd));
        assert_eq!(Family::from_signature([0x4c, 0x58]), Some(Family::InnodiskSd));
        assert_eq!(Family::from_signature([0x54, 0x72]), Some(Family::TranscendSd));
        assert_eq!(Family::from_signature([0x4d, 0x45]), Some(Family::MicronSd));
        assert_eq!(Family::from_signature([0x53, 0x77]), Some(Family::SwissbitSd));
        assert_eq!(Family::from_signature([0x00, 0x04]), None);
        assert_eq!(Family::from_signature([0xa4, 0x81]), None);
    }
}
