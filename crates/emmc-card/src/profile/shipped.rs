//! The profiles that come with emmclab.

use super::{Profile, ProfileError};

/// Name and text of every shipped profile.
const SHIPPED: [(&str, &str); 1] = [("generic-8g", include_str!("../../profiles/generic-8g.toml"))];

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
/// Errors: [`ProfileError::Unknown`] where there is none of that name.
pub fn named(name: &str) -> Result<Profile, ProfileError> {
    let text = text(name)
        .ok_or_else(|| ProfileError::Unknown { name: name.into(), hint: "`emmclab sim profiles` lists them".into() })?;
    Profile::from_toml(text)
}
