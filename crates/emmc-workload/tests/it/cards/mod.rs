//! Virtual cards with known properties.

use emmc_card::device::{Device, DeviceOptions};
use emmc_card::nand::StoredContent;
use emmc_card::profile::{Profile, shipped};
use emmc_host::HostTarget;
use emmc_port::BlockTarget;
use emmc_sim::SimTarget;
use emmc_units::{Instant, Nanos};
use emmc_workload::{Bench, Options, Outcome, Unwatched, named};

/// A shipped part, changed.
pub(crate) fn card(profile: &str, change: impl FnOnce(&mut Profile)) -> SimTarget {
    queueing_card(profile, change, true)
}

/// The same, with or without command queueing.
pub(crate) fn queueing_card(profile: &str, change: impl FnOnce(&mut Profile), queueing: bool) -> SimTarget {
    let mut made = shipped::named(profile).expect("the profile is shipped");
    change(&mut made);
    let device = Device::new(made, DeviceOptions { keep: StoredContent::Nothing, seed: 1 })
        .expect("the profile keeps the rules");
    SimTarget::new(device, &format!("sim:{profile}"), Instant::START, queueing)
}

/// A shipped part behind the host on which it was measured.
pub(crate) fn behind_host(profile: &str) -> HostTarget<SimTarget> {
    let host = shipped::named(profile).expect("the profile is shipped").host.unwrap_or_default();
    let [read, write, per_kib] = [host.read_us, host.write_us, host.us_per_kib].map(Nanos::from_micros_f64);
    let card = card(profile, |_| ()).with_commands_of(u64::from(host.command_kib) << 10);
    HostTarget::measured(card, read, write, per_kib)
}

/// The same part with a `factor`th of its blocks, each a `factor`th as large: the same shares, in far less time.
pub(crate) fn shrunk(profile: &mut Profile, factor: u32) {
    let unit = 512 << 10;
    profile.areas.user_bytes = profile.areas.user_bytes / u64::from(factor) / u64::from(factor) / unit * unit;
    profile.areas.enhanced_groups_max = 0;
    profile.areas.wp_group_bytes = profile.areas.erase_group_bytes;
    profile.nand.pages_per_block /= factor;
    profile.nand.spare_blocks = profile.nand.spare_blocks / factor + 4;
    profile.nand.factory_bad_blocks = 1;
    profile.nand.native.erase_ms /= f64::from(factor);
    if let Some(slc) = &mut profile.nand.slc {
        slc.erase_ms /= f64::from(factor);
    }
    profile.controller.cache_bytes /= factor;
}

/// The outcome of a suite on a card.
pub(crate) fn told(suite: &str, target: &mut dyn BlockTarget, options: &Options) -> Outcome {
    let suite = named(suite).expect("the suite is known");
    Bench::run(suite, target, options, &mut Unwatched).expect("the suite fits the card")
}

/// The figure of a name.
#[track_caller]
pub(crate) fn figure(outcome: &Outcome, name: &str) -> f64 {
    let found = outcome.figures.iter().find(|figure| figure.name == name);
    let known: Vec<&str> = outcome.figures.iter().map(|figure| figure.name.as_str()).collect();
    found.unwrap_or_else(|| panic!("{name}: {known:?}")).value.unwrap_or_else(|| panic!("{name}: nothing"))
}
