//! Virtual cards in memory, and raw commands to them; the same in folders.

use std::path::Path;

use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::Profile;
use emmc_sim::CommandTarget;
use emmc_units::Instant;

use super::{emmclab, save};

/// The serial number of the cards.
pub(crate) const SERIAL: u32 = 0x1234_5678;

/// A small card with every feature of 5.1, as the trials in the guest use it. It ends with its registers.
fn text() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/guest/small.toml");
    std::fs::read_to_string(path).unwrap()
}

pub(crate) fn profile() -> Profile {
    Profile::from_toml(&text()).unwrap()
}

/// A new one in a folder, with other `registers`, in lines.
pub(crate) fn in_folder(folder: &Path, registers: &str) -> String {
    let card = folder.join("card").display().to_string();
    let profile = save(folder, "profile.toml", text() + registers + "\n");
    emmclab(["sim", "create", &card, "--profile", &profile]).exits(0);
    card
}

/// A new one, identified.
pub(crate) fn emmc() -> CommandTarget {
    let card = Card::new(profile(), DeviceOptions { keep: StoredContent::Nothing, seed: 1 }).unwrap();
    CommandTarget::new(card, Instant::START).unwrap()
}
