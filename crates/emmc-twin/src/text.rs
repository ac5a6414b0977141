//! A fitted profile as its file.

use emmc_card::profile::Profile;

/// A profile as its file.
///
/// Errors: a value that TOML does not have.
pub fn to_toml(profile: &Profile) -> Result<String, toml::ser::Error> {
    toml::to_string_pretty(profile)
}

/// Digits of a fitted value: more than its interval has.
const DIGITS: usize = 5;

/// The profile with short numbers; unchanged if one then breaks a rule.
pub(crate) fn rounded(profile: Profile) -> Profile {
    let short = || {
        let mut value = toml::Value::try_from(&profile).ok()?;
        round(&mut value);
        Profile::from_toml(&toml::to_string(&value).ok()?).ok()
    };
    short().unwrap_or(profile)
}

fn round(value: &mut toml::Value) {
    match value {
        toml::Value::Float(number) => *number = format!("{number:.*e}", DIGITS - 1).parse().unwrap_or(*number),
        toml::Value::Array(values) => values.iter_mut().for_each(round),
        toml::Value::Table(table) => table.iter_mut().for_each(|(_, value)| round(value)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fitted_profile_has_short_numbers() {
        let mut profile = Profile::from_toml(include_str!("../template/sd.toml")).unwrap();
        (profile.nand.native.read_us, profile.nand.native.program_us) = (20.844_608_37, vec![571.417_115_8]);
        profile.nand.over_provisioning = 0.059_999_999_999;
        let short = rounded(profile.clone());
        assert_eq!((short.nand.native.read_us, short.nand.over_provisioning), (20.845, 0.06));
        assert_eq!(short.nand.native.program_us, [571.42]);
        assert_eq!(short.controller, profile.controller);
        // A number at its limit stays within it.
        profile.nand.over_provisioning = f64::INFINITY;
        assert_eq!(rounded(profile.clone()), profile);
    }
}
