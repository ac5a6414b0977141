//! Virtual cards in memory, and raw commands to them.

use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::Profile;
use emmc_sim::CommandTarget;
use emmc_units::Instant;

/// The serial number of the cards.
pub(crate) const SERIAL: u32 = 0x1234_5678;

/// A small card with every feature of 5.1, as the trials in the guest use it, but with 1 GiB fewer cells to make.
pub(crate) fn profile() -> Profile {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../xtask/guest/small.toml");
    Profile::from_toml(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A new one, identified.
pub(crate) fn emmc() -> CommandTarget {
    let card = Card::new(profile(), DeviceOptions { keep: StoredContent::Nothing, seed: 1 }).unwrap();
    CommandTarget::new(card, Instant::START).unwrap()
}
