//! A request, and its form on a command line.

use std::fmt;
use std::str::FromStr;

use emmc_units::{Bytes, SECTOR_BYTES, Size, SizeError};
use serde::Serialize;

use super::AREAS;

/// The requested hardware partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayoutRequest {
    /// The enhanced part of the user area.
    pub enh_user: Option<EnhRequest>,
    /// General purpose partitions 1 to 4.
    pub gp: [Option<GpRequest>; 4],
    /// Write reliability; absent to keep it.
    pub wrrel: Option<WrRelArgument>,
}

/// An enhanced part of the user area, written `START:SIZE` or `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnhRequest {
    /// Where it starts.
    pub start: Bytes,
    /// How large it is.
    pub size: Size,
}

/// A general purpose partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpRequest {
    /// How large it is.
    pub size: Size,
    /// Whether it is enhanced.
    pub enh: bool,
    /// Its extended attribute.
    pub ext: ExtAttribute,
}

/// A general purpose partition and its number, written `N:SIZE[:enh][:sys|:nonpersist]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpArgument {
    /// 1 to 4.
    pub number: u8,
    /// The partition.
    pub gp: GpRequest,
}

/// A nibble of EXT_PARTITIONS_ATTRIBUTE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ExtAttribute {
    /// No extended attribute.
    #[default]
    None,
    /// Rarely updated, for code.
    SystemCode,
    /// Content need not survive a power cycle.
    NonPersistent,
}

impl ExtAttribute {
    /// The nibble.
    pub const fn nibble(self) -> u8 {
        match self {
            Self::None => 0,
            Self::SystemCode => 1,
            Self::NonPersistent => 2,
        }
    }
}

/// Write reliability, written `on`, `off`, or `user=on,gp1=off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrRelArgument {
    /// The same for the user area and every requested partition.
    All(bool),
    /// Per area, as [`AREAS`] orders them; absent to keep it.
    Areas([Option<bool>; 5]),
}

/// Why a request was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// A size was not understood.
    #[error("{argument:?}: {source}")]
    Size {
        /// The argument as given.
        argument: String,
        /// What is wrong with the size.
        source: SizeError,
    },
    /// The argument has another form.
    #[error("{argument:?}: expected {expected}")]
    Form {
        /// The argument as given.
        argument: String,
        /// What should be there.
        expected: &'static str,
    },
    /// A partition or an area is given twice.
    #[error("{0} is given twice")]
    Twice(String),
}

impl LayoutRequest {
    /// Joins the arguments of a command line.
    ///
    /// Errors: a partition number is given twice.
    pub fn new(
        enh_user: Option<EnhRequest>,
        gp: impl IntoIterator<Item = GpArgument>,
        wrrel: Option<WrRelArgument>,
    ) -> Result<Self, RequestError> {
        let mut request = Self { enh_user, gp: [None; 4], wrrel };
        for argument in gp {
            let form =
                || RequestError::Form { argument: argument.to_string(), expected: "a partition number of 1 to 4" };
            let slot = usize::from(argument.number).checked_sub(1).and_then(|index| request.gp.get_mut(index));
            if slot.ok_or_else(form)?.replace(argument.gp).is_some() {
                return Err(RequestError::Twice(format!("general purpose partition {}", argument.number)));
            }
        }
        Ok(request)
    }

    /// What is wanted of an area's write reliability; absent to keep it.
    pub fn wrrel_of(&self, area: usize) -> Option<bool> {
        match self.wrrel? {
            WrRelArgument::All(on) => self.has_area(area).then_some(on),
            WrRelArgument::Areas(areas) => areas.get(area).copied().flatten(),
        }
    }

    /// Whether an area, as [`AREAS`] orders them, is part of the layout; the user area always is.
    pub fn has_area(&self, area: usize) -> bool {
        area.checked_sub(1).is_none_or(|index| self.gp.get(index).is_some_and(Option::is_some))
    }

    /// The request as command line arguments, with sizes exact.
    pub fn arguments(&self) -> Vec<String> {
        let enh = self.enh_user.map(|enh| format!("--enh-user {enh}"));
        let gp = (1..).zip(self.gp).filter_map(|(number, gp)| Some(format!("--gp {}", GpArgument { number, gp: gp? })));
        enh.into_iter().chain(gp).chain(self.wrrel.map(|wrrel| format!("--wrrel {wrrel}"))).collect()
    }
}

fn size_of(argument: &str, size: &str) -> Result<Size, RequestError> {
    size.parse().map_err(|source| RequestError::Size { argument: argument.into(), source })
}

impl FromStr for EnhRequest {
    type Err = RequestError;

    fn from_str(text: &str) -> Result<Self, RequestError> {
        let form =
            || RequestError::Form { argument: text.into(), expected: "a START in bytes or sectors before the colon" };
        // Without a start it begins where the card does.
        let Some((start, size)) = text.split_once(':') else {
            return Ok(Self { start: Bytes(0), size: size_of(text, text)? });
        };
        // Zero is zero in every unit; any other number without a unit is refused.
        let start = if start.trim() == "0" { Size::Exact(Bytes(0)) } else { size_of(text, start)? };
        let Size::Exact(start) = start else { return Err(form()) };
        Ok(Self { start, size: size_of(text, size)? })
    }
}

impl FromStr for GpArgument {
    type Err = RequestError;

    fn from_str(text: &str) -> Result<Self, RequestError> {
        let form = || RequestError::Form {
            argument: text.into(),
            expected: "N:SIZE[:enh][:sys|:nonpersist] with N of 1 to 4",
        };
        let mut parts = text.split(':');
        let number = match parts.next().map(str::trim) {
            Some("1") => 1,
            Some("2") => 2,
            Some("3") => 3,
            Some("4") => 4,
            _ => return Err(form()),
        };
        let mut gp =
            GpRequest { size: size_of(text, parts.next().ok_or_else(form)?)?, enh: false, ext: ExtAttribute::None };
        for attribute in parts {
            match (attribute.trim(), gp.ext) {
                ("enh", _) if !gp.enh => gp.enh = true,
                ("sys", ExtAttribute::None) => gp.ext = ExtAttribute::SystemCode,
                ("nonpersist", ExtAttribute::None) => gp.ext = ExtAttribute::NonPersistent,
                _ => return Err(form()),
            }
        }
        Ok(Self { number, gp })
    }
}

impl FromStr for WrRelArgument {
    type Err = RequestError;

    fn from_str(text: &str) -> Result<Self, RequestError> {
        let on_off = |word: &str| match word.trim() {
            "on" => Some(true),
            "off" => Some(false),
            _ => None,
        };
        if let Some(on) = on_off(text) {
            return Ok(Self::All(on));
        }
        let form = || RequestError::Form { argument: text.into(), expected: "on, off, or e.g. user=on,gp1=off" };
        let mut areas = [None; 5];
        for pair in text.split(',') {
            let (name, on) = pair.split_once('=').ok_or_else(form)?;
            let area = AREAS.iter().position(|area| *area == name.trim()).ok_or_else(form)?;
            if areas[area].replace(on_off(on).ok_or_else(form)?).is_some() {
                return Err(RequestError::Twice(format!("write reliability of {}", AREAS[area])));
            }
        }
        Ok(Self::Areas(areas))
    }
}

/// A size in exact form: rounding, as in other displays, would change the request.
fn exact(f: &mut fmt::Formatter<'_>, size: Size) -> fmt::Result {
    match size {
        Size::Exact(Bytes(bytes)) if bytes % SECTOR_BYTES == 0 => write!(f, "{}s", bytes / SECTOR_BYTES),
        Size::Exact(Bytes(bytes)) => write!(f, "{bytes}B"),
        relative => write!(f, "{relative}"),
    }
}

impl fmt::Display for EnhRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        exact(f, Size::Exact(self.start))?;
        f.write_str(":")?;
        exact(f, self.size)
    }
}

impl fmt::Display for GpArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.number)?;
        exact(f, self.gp.size)?;
        f.write_str(if self.gp.enh { ":enh" } else { "" })?;
        f.write_str(match self.gp.ext {
            ExtAttribute::None => "",
            ExtAttribute::SystemCode => ":sys",
            ExtAttribute::NonPersistent => ":nonpersist",
        })
    }
}

impl fmt::Display for WrRelArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |on: bool| if on { "on" } else { "off" };
        match self {
            Self::All(on) => f.write_str(word(*on)),
            Self::Areas(areas) => {
                let given =
                    AREAS.iter().zip(areas).filter_map(|(name, on)| on.map(|on| format!("{name}={}", word(on))));
                f.write_str(&given.collect::<Vec<_>>().join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn message<T: FromStr<Err = RequestError> + fmt::Debug>(text: &str) -> String {
        text.parse::<T>().unwrap_err().to_string()
    }

    #[test]
    fn enhanced_areas_are_parsed_strictly_and_printed_exactly() {
        for (text, start, size, written) in [
            ("max", 0, Size::Max, "0s:max"),
            ("4GiB", 0, Size::Exact(Bytes(4096 * MIB)), "0s:8388608s"),
            ("50%", 0, Size::Percent(50), "0s:50%"),
            ("0s:7512MiB", 0, Size::Exact(Bytes(7512 * MIB)), "0s:15384576s"),
            ("0:15384576s", 0, Size::Exact(Bytes(7512 * MIB)), "0s:15384576s"),
            ("0MiB:50%", 0, Size::Percent(50), "0s:50%"),
            ("8 MiB: max", 8 * MIB, Size::Max, "16384s:max"),
            ("16384s:1000001B", 8 * MIB, Size::Exact(Bytes(1_000_001)), "16384s:1000001B"),
        ] {
            let request: EnhRequest = text.parse().unwrap();
            assert_eq!(request, EnhRequest { start: Bytes(start), size }, "{text}");
            assert_eq!(request.to_string(), written, "{text}");
            assert_eq!(written.parse(), Ok(request), "{text}");
        }
        for (text, expected) in [
            ("50%:max", "\"50%:max\": expected a START in bytes or sectors before the colon"),
            ("max:max", "\"max:max\": expected a START in bytes or sectors before the colon"),
            ("", "\"\": size is empty; expected e.g. 7512MiB, 15384576s, 50% or max"),
            ("0s:", "\"0s:\": size is empty; expected e.g. 7512MiB, 15384576s, 50% or max"),
        ] {
            assert_eq!(message::<EnhRequest>(text), expected, "{text}");
        }
        for text in ["7512", "0s:7512", "4096:81920", "8:max", "0s:1MB", "0s:1MiB:2MiB"] {
            assert!(message::<EnhRequest>(text).contains("size"), "{text}");
        }
    }

    #[test]
    fn partitions_and_write_reliability_round_trip() {
        let gp = |size, enh, ext| GpRequest { size, enh, ext };
        for (text, number, expected) in [
            ("1:max", 1, gp(Size::Max, false, ExtAttribute::None)),
            ("2:2048s:enh", 2, gp(Size::Exact(Bytes(MIB)), true, ExtAttribute::None)),
            ("4:10%:sys", 4, gp(Size::Percent(10), false, ExtAttribute::SystemCode)),
            ("3:2048s:enh:nonpersist", 3, gp(Size::Exact(Bytes(MIB)), true, ExtAttribute::NonPersistent)),
        ] {
            let argument: GpArgument = text.parse().unwrap();
            assert_eq!(argument, GpArgument { number, gp: expected }, "{text}");
            assert_eq!(argument.to_string(), text);
        }
        for text in ["0:1MiB", "5:1MiB", "1", "1:1MiB:fast", "1:1MiB:enh:enh", "1:1MiB:sys:nonpersist", "gp1:1MiB", ""]
        {
            assert!(message::<GpArgument>(text).contains("expected N:SIZE"), "{text}");
        }
        assert!(message::<GpArgument>("1:64").contains("has no unit"));
        for (text, expected) in [
            ("on", WrRelArgument::All(true)),
            ("off", WrRelArgument::All(false)),
            ("user=on,gp2=off", WrRelArgument::Areas([Some(true), None, Some(false), None, None])),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
            assert_eq!(expected.to_string(), text);
        }
        for text in ["", "yes", "user", "user=1", "gp5=on", "user=on,", "user=on gp1=on"] {
            assert!(message::<WrRelArgument>(text).contains("expected on, off"), "{text}");
        }
        assert_eq!(message::<WrRelArgument>("gp1=on,gp1=on"), "write reliability of gp1 is given twice");
    }

    #[test]
    fn arguments_are_merged_and_printed_back() {
        let gp = |text: &str| text.parse::<GpArgument>().unwrap();
        let request =
            LayoutRequest::new("max".parse().ok(), [gp("2:50%:enh"), gp("1:16384s")], "on".parse().ok()).unwrap();
        assert_eq!(request.arguments(), ["--enh-user 0s:max", "--gp 1:16384s", "--gp 2:50%:enh", "--wrrel on"]);
        assert_eq!(
            [0, 1, 2, 3, 4, 5].map(|area| request.wrrel_of(area).is_some()),
            [true, true, true, false, false, false]
        );
        let twice = LayoutRequest::new(None, [gp("1:max"), gp("1:max")], None);
        assert_eq!(twice, Err(RequestError::Twice("general purpose partition 1".into())));
        let outside = LayoutRequest::new(None, [GpArgument { number: 5, ..gp("1:max") }], None);
        assert!(outside.unwrap_err().to_string().contains("1 to 4"));
    }
}
