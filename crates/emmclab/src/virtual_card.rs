//! Virtual cards by name: a shipped profile, a profile file, or a card stored in a folder.

use std::path::Path;

use anyhow::{Context, anyhow, bail};
use emmc_card::card::Card;
use emmc_card::device::{DeviceOptions, StorageError};
use emmc_card::ftl::FtlError;
use emmc_card::nand::StoredContent;
use emmc_card::profile::{Profile, ProfileError, shipped};
use emmc_serve::store::{Purpose, STATE_FILE, Store};
use emmc_units::Instant;

use crate::progress::Bar;

/// The prefix of a virtual card's name where files and folders are accepted too.
const PREFIX: &str = "sim:";

/// A profile has some kilobytes. Unit: bytes.
const PROFILE_BYTES_MAX: u64 = 1 << 20;

/// A profile that the user named.
pub(crate) struct NamedProfile {
    pub(crate) profile: Profile,
    /// Its file, as text.
    pub(crate) text: String,
    /// Used share of its life, 0 to 1.
    pub(crate) age: f64,
}

/// A powered virtual card.
pub(crate) struct Powered {
    pub(crate) card: Card,
    /// The time of the card.
    pub(crate) now: Instant,
    /// Its folder, if it is stored in one and opened for changes.
    pub(crate) store: Option<Store>,
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
        let bytes = crate::input::read(Path::new(base), PROFILE_BYTES_MAX)?;
        let text = String::from_utf8(bytes).with_context(|| format!("{base}: cannot read"))?;
        let profile = Profile::from_toml(&text).with_context(|| base.to_owned())?;
        Ok(Self { profile, text, age })
    }

    /// The same where the name could have been a card's folder.
    pub(crate) fn of_card(name: &str) -> anyhow::Result<Self> {
        Self::open(name).map_err(|error| match error.downcast_ref() {
            Some(ProfileError::Unknown { name, hint }) if Path::new(name).is_dir() => {
                anyhow!("{name}: the folder holds no virtual card, and no profile has this name; {hint}")
            }
            Some(ProfileError::Unknown { name, .. }) if Path::new(name).is_file() => {
                anyhow!("{name}: is a file; the folder of a card is expected, or sim:FILE for a profile's file")
            }
            Some(ProfileError::Unknown { name, hint }) => {
                anyhow!("{name}: there is no such folder, and no profile has this name; {hint}")
            }
            _ => error,
        })
    }

    /// Makes a new card, aged as named.
    pub(crate) fn make(&self, keep: StoredContent, seed: u64) -> anyhow::Result<Powered> {
        let mut card = Card::new(self.profile.clone(), DeviceOptions { keep, seed })?;
        let mut now = Instant::START;
        if self.age > 0.0 {
            let mut bar = Bar::new();
            let what = format!("ageing {}", self.profile.name);
            let aged = card.device_mut().age_watched(self.age, now, &mut |share| bar.show(Some(share), &what));
            bar.finish();
            now = aged.with_context(|| {
                let percent = 100.0 * self.age;
                format!("{}@{percent}%: the card wears out before; expected a smaller share", self.profile.name)
            })?;
        }
        Ok(Powered { card, now, store: None })
    }
}

/// A share of life: `60` or `60%`.
fn share(text: &str) -> anyhow::Result<f64> {
    let percent = text.strip_suffix('%').unwrap_or(text);
    match percent.parse::<f64>() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent / 100.0),
        _ => bail!("@{text}: expected the used share of its life in percent, from 0 to below 100"),
    }
}

/// Whether a folder holds a virtual card.
pub(crate) fn is_folder(name: &str) -> bool {
    Path::new(name).join(STATE_FILE).is_file()
}

/// The folder of a card, named with or without `sim:`.
#[cfg(feature = "serve")]
pub(crate) fn folder(name: &Path) -> &Path {
    name.to_str().and_then(|name| name.strip_prefix(PREFIX)).map_or(name, Path::new)
}

/// A virtual card as named by an argument.
enum Named<'a> {
    Folder(&'a Path),
    Profile(&'a str),
}

impl crate::cli::SimCardArgs {
    fn named(&self) -> anyhow::Result<Named<'_>> {
        Ok(match (&self.card, &self.profile) {
            (Some(card), _) => match card.strip_prefix(PREFIX) {
                Some(profile) if !is_folder(profile) => Named::Profile(profile),
                folder => Named::Folder(Path::new(folder.unwrap_or(card))),
            },
            (None, Some(profile)) => Named::Profile(profile.strip_prefix(PREFIX).unwrap_or(profile)),
            (None, None) => bail!("name a card's folder, or a new card: sim:PROFILE"),
        })
    }

    /// Whether it is stored in a folder.
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self.named(), Ok(Named::Folder(_)))
    }

    /// Opens the named card without changing it; a new card stores the content that `keep` says.
    pub(crate) fn look(&self, keep: StoredContent, seed: u64) -> anyhow::Result<Powered> {
        match self.named()? {
            Named::Folder(folder) => Powered::look(folder),
            Named::Profile(profile) => NamedProfile::of_card(profile)?.make(keep, seed),
        }
    }

    /// Opens the named card for changes; a card in a folder is locked until it is stored.
    pub(crate) fn open(&self, keep: StoredContent, seed: u64) -> anyhow::Result<Powered> {
        match self.named()? {
            Named::Folder(folder) => Powered::open(folder),
            Named::Profile(_) => self.look(keep, seed),
        }
    }
}

impl crate::cli::SimProfileArgs {
    /// The name of the profile without `sim:`.
    pub(crate) fn name(&self) -> &str {
        let name = self.part.as_deref().or(self.profile.as_deref()).unwrap_or_default();
        name.strip_prefix(PREFIX).unwrap_or(name)
    }
}

impl Powered {
    /// The card that `sim:` names: one in a folder, or a new one of a profile, which stores the content that `keep`
    /// says.
    pub(crate) fn named(name: &str, keep: StoredContent) -> anyhow::Result<Self> {
        if is_folder(name) { Self::look(Path::new(name)) } else { NamedProfile::of_card(name)?.make(keep, 1) }
    }

    /// Powers on a stored card without changing its folder.
    fn look(folder: &Path) -> anyhow::Result<Self> {
        let (mut card, off) = Store::look(folder)?;
        let now = card.power_on(off)?;
        Ok(Self { card, now, store: None })
    }

    /// Powers on a stored card.
    fn open(folder: &Path) -> anyhow::Result<Self> {
        let (store, mut card, off) = Store::open(folder, Purpose::Simulate)?;
        let now = card.power_on(off)?;
        Ok(Self { card, now, store: Some(store) })
    }

    /// Flushes the card, powers it off and stores it in its folder, if it was opened for changes.
    pub(crate) fn store(mut self) -> anyhow::Result<()> {
        let now = self.switch_off()?;
        if let Some(store) = self.store {
            store.finish(&mut self.card, now)?;
        }
        Ok(())
    }

    /// Flushes the card, powers it off and stores it in an existing folder.
    pub(crate) fn create(mut self, folder: &Path, profile: &str) -> anyhow::Result<()> {
        let now = self.switch_off()?;
        Ok(Store::create(folder, profile, &self.card, now)?)
    }

    /// A worn-out card loses what is in its cache: it has no block to write that to.
    fn switch_off(&mut self) -> anyhow::Result<Instant> {
        let now = match self.card.device_mut().flush(self.now) {
            Ok(flushed) => flushed.done,
            Err(StorageError::Ftl(FtlError::WornOut)) => self.now,
            Err(error) => return Err(error.into()),
        };
        self.card.power_off(now);
        Ok(now)
    }
}
