//! The trial's profile as the guest's controller drives it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Writes a copy of a profile, named or in a file, with the bus of the guest's controller instead of its board's.
pub(crate) fn profile(name: &str, folder: &Path) -> anyhow::Result<PathBuf> {
    let mut path = PathBuf::from(name);
    if !path.is_file() {
        path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/emmc-card/profiles").join(format!("{name}.toml"));
    }
    let text = fs::read_to_string(&path).with_context(|| format!("profile {}", path.display()))?;
    let driven = folder.join("driven.toml");
    fs::write(&driven, as_offered(&text))?;
    Ok(driven)
}

/// A profile in the fastest mode that it offers, as the controllers with eight lines drive it: their clock is 200 MHz
/// or an even part of it, so that modes of 52 MHz run at 50 MHz.
fn as_offered(profile: &str) -> String {
    let of_board = |line: &&str| line.starts_with("bus = ") || line.starts_with("bus_clock_mhz = ");
    let mut text = String::new();
    for line in profile.lines().filter(|line| !of_board(line)) {
        text.push_str(line);
        text.push('\n');
        match line.trim() {
            r#"bus_max = "hs52""# | r#"bus_max = "ddr52""# => text.push_str("bus_clock_mhz = 50.0\n"),
            r#"bus_max = "sdr104""# => text.push_str("bus_clock_mhz = 200.0\n"),
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::as_offered;

    #[test]
    fn a_profile_is_driven_as_its_card_allows() {
        let board = "bus_max = \"hs52\"\n# The board.\nbus = \"hs52x4\"\nbus_clock_mhz = 43.2\n[registers]\n";
        assert_eq!(as_offered(board), "bus_max = \"hs52\"\nbus_clock_mhz = 50.0\n# The board.\n[registers]\n");
        assert_eq!(as_offered("bus_max = \"hs400\"\n"), "bus_max = \"hs400\"\n");
    }
}
