//! Virtual cards by name: a shipped profile, a profile's file, or a card that is kept in a folder.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use emmc_card::device::{Device, DeviceOptions};
use emmc_card::nand::Keep;
use emmc_card::profile::{Profile, shipped};
use emmc_units::Instant;

/// The profile's file in a card's folder.
pub(crate) const PROFILE_FILE: &str = "profile.toml";
/// The state's file in a card's folder.
pub(crate) const STATE_FILE: &str = "card.state";

/// A profile as the user named it.
pub(crate) struct NamedProfile {
    pub(crate) profile: Profile,
    /// Its file, as text.
    pub(crate) text: String,
    /// Share of its life that is used, 0 to 1.
    pub(crate) age: f64,
}

/// A virtual card that is switched on.
pub(crate) struct Powered {
    pub(crate) device: Device,
    /// The time of the card.
    pub(crate) now: Instant,
}

impl NamedProfile {
    /// `NAME`, `NAME@PERCENT` or a file.
    pub(crate) fn open(name: &str) -> anyhow::Result<Self> {
        let (base, age) = match name.rsplit_once('@') {
            Some((base, percent)) => (base, share(percent).with_context(|| format!("profile {name:?}"))?),
            None => (name, 0.0),
        };
        let is_path = base.contains('/') || base.ends_with(".toml");
        if !is_path {
            let profile = shipped::named(base)?;
            return Ok(Self { profile, text: shipped::text(base).unwrap_or_default().into(), age });
        }
        let text = std::fs::read_to_string(base).with_context(|| format!("{base}: cannot read"))?;
        let profile = Profile::from_toml(&text).with_context(|| base.to_owned())?;
        Ok(Self { profile, text, age })
    }

    /// A new card of it, aged as asked.
    pub(crate) fn make(&self, keep: Keep, seed: u64) -> anyhow::Result<Powered> {
        let mut device = Device::new(self.profile.clone(), DeviceOptions { keep, seed })?;
        let mut now = Instant::START;
        if self.age > 0.0 {
            now = device.age(self.age, now)?;
        }
        Ok(Powered { device, now })
    }
}

/// A share of life: `60` or `60%`.
fn share(text: &str) -> anyhow::Result<f64> {
    let percent = text.strip_suffix('%').unwrap_or(text);
    match percent.parse::<f64>() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent / 100.0),
        _ => bail!("@{text}: expected the share of its life that is used, 0 to below 100 percent"),
    }
}

/// Whether a folder holds a virtual card.
pub(crate) fn is_folder(name: &str) -> bool {
    Path::new(name).join(STATE_FILE).is_file()
}

impl crate::cli::SimCardArgs {
    /// The card that was named; a new one remembers what `keep` says.
    pub(crate) fn open(&self, keep: Keep, seed: u64) -> anyhow::Result<Powered> {
        match (&self.card, &self.profile) {
            (Some(folder), _) => Powered::load(folder),
            (None, Some(profile)) => NamedProfile::open(profile)?.make(keep, seed),
            (None, None) => bail!("name a card's folder, or a profile with --profile"),
        }
    }
}

impl Powered {
    /// What `sim:` names: a card's folder, or a profile of which a new card is made.
    pub(crate) fn named(name: &str) -> anyhow::Result<Self> {
        if is_folder(name) { Self::load(Path::new(name)) } else { NamedProfile::open(name)?.make(Keep::Nothing, 1) }
    }

    /// Switches a kept card on.
    pub(crate) fn load(folder: &Path) -> anyhow::Result<Self> {
        let (profile, state) = files(folder);
        ensure!(state.is_file(), "{}: no virtual card (expected {STATE_FILE} in it; see sim create)", folder.display());
        let text = std::fs::read_to_string(&profile).with_context(|| format!("{}: cannot read", profile.display()))?;
        let profile = Profile::from_toml(&text).with_context(|| profile.display().to_string())?;
        let bytes = std::fs::read(&state).with_context(|| format!("{}: cannot read", state.display()))?;
        let (mut device, off) = Device::from_image(profile, &bytes).with_context(|| state.display().to_string())?;
        let now = device.power_on(off)?;
        Ok(Self { device, now })
    }

    /// Brings everything to flash, switches the card off and keeps it.
    pub(crate) fn store(mut self, folder: &Path) -> anyhow::Result<()> {
        let now = self.device.flush(self.now)?.done;
        let (_, state) = files(folder);
        crate::save::write_whole(&state, &self.device.into_image(now), true)
    }
}

fn files(folder: &Path) -> (PathBuf, PathBuf) {
    (folder.join(PROFILE_FILE), folder.join(STATE_FILE))
}
