//! The profiles that are shipped with emmclab.

use super::{Profile, ProfileError};

macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../profiles/", $name, ".toml")))),+]
    };
}

/// Name and text of every shipped profile.
const SHIPPED: &[(&str, &str)] = &shipped![
    "friendlyelec-emmc-8g",
    "sandisk-extreme-pro-a2-64g",
    "sandisk-extreme-plus-a2-64g",
    "sandisk-extreme-a1-32g",
    "sandisk-ultra-a1-32g",
    "sandisk-extreme-plus-16g",
    "sandisk-industrial-8g",
    "sandisk-ultra-8g",
    "intenso-class4-4g",
    "toshiba-7au",
    "sandisk-20au",
    "colibri-imx6s-4g",
    "colibri-t30-4g",
    "apalis-imx8qm-16g",
    "odroid-64g",
    "odroid-128g",
    "pine64-64g",
    "jetson-tx1-8g",
    "zynq-32g",
    "generic-8g",
    "generic-32g",
    "generic-128g",
];

/// Names of the shipped profiles, in order.
pub fn names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// The text of a shipped profile.
pub fn text(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// A shipped profile.
///
/// Errors: [`ProfileError::Unknown`] where there is none of that name, with the nearest one.
pub fn named(name: &str) -> Result<Profile, ProfileError> {
    let text = text(name).ok_or_else(|| ProfileError::Unknown { name: name.into(), hint: hint(name) })?;
    Profile::from_toml(text)
}

/// The shipped name with the fewest changes, if they are fewer than half of its letters.
fn hint(name: &str) -> String {
    let list = "`emmclab sim profiles` lists them";
    let asked = name.to_ascii_lowercase();
    let nearest = names().map(|known| (changes(&asked, known), known)).min();
    match nearest.filter(|(changes, known)| *changes * 2 < known.len()) {
        Some((_, known)) => format!("did you mean {known:?}? {list}"),
        None => list.into(),
    }
}

/// Letters to add, drop or replace to get from one word to the other.
fn changes(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, other) in to.bytes().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_profile_keeps_the_rules_and_has_its_own_name() {
        for name in names() {
            let profile = named(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(profile.name, name);
            assert!(!profile.sources.is_empty(), "{name} says where its parameters come from");
            let is_path = |source: &String| source.contains(".csv") || source.contains("data/");
            assert!(!profile.sources.iter().any(is_path), "{name}: sources are kinds of documents, no paths");
        }
    }

    #[test]
    fn an_unknown_name_suggests_the_nearest() {
        for (asked, hinted) in [("generic8g", Some("generic-8g")), ("GENERIC-8G", Some("generic-8g")), ("nvme", None)] {
            let Err(ProfileError::Unknown { name, hint }) = named(asked) else { panic!("{asked} is shipped") };
            assert_eq!(name, asked);
            assert_eq!(hint.contains("did you mean"), hinted.is_some(), "{hint}");
            assert!(hinted.is_none_or(|known| hint.contains(known)), "{hint}");
        }
        assert_eq!((changes("", "abc"), changes("kitten", "sitting"), changes("same", "same")), (3, 3, 0));
    }
}
