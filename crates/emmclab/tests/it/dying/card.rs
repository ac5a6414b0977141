//! A small virtual card with a fault, served as a file or a loop device.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::loops::Mounted;
use crate::support::served::{ServedCard, small_card};
use crate::support::{save, scratch};

pub(super) const MIB: u64 = 1 << 20;
/// All metadata of such a filesystem is in its first MiB: a fault behind it hits files only.
const PLAIN: [&str; 4] = ["-b", "4096", "-O", "^has_journal"];

pub(super) struct FaultyCard {
    pub(super) served: ServedCard,
    /// Where a filesystem on it is mounted.
    pub(super) point: PathBuf,
    folder: PathBuf,
}

impl FaultyCard {
    /// A card of 64 MiB with these layers as a loop device; `None`, with a message, if the machine does not support it.
    pub(super) fn new(test: &str, layers: &[&str]) -> Option<Self> {
        Self::started(test, layers, &["--loop"])
    }

    /// The same as a file, which needs no root.
    pub(super) fn as_file(test: &str, layers: &[&str]) -> Option<Self> {
        Self::started(test, layers, &[])
    }

    fn started(test: &str, layers: &[&str], options: &[&str]) -> Option<Self> {
        let folder = scratch(test);
        let card = small_card(&folder, "card", 64, &[]);
        let layers = layers.iter().flat_map(|layer| ["--layer", layer]);
        let served = ServedCard::start(&card, &layers.chain(options.iter().copied()).collect::<Vec<_>>())?;
        Some(Self { served, point: folder.join("mount"), folder })
    }

    /// Its registers, as a source.
    pub(super) fn source(&self) -> String {
        format!("sim:{}", self.served.folder.display())
    }

    pub(super) fn device(&self) -> &str {
        self.served.device.as_deref().expect("it is served as a loop device")
    }

    /// A new filesystem on it.
    pub(super) fn mount(&self, options: &[&str]) -> Option<Mounted> {
        let options = if options.is_empty() { &PLAIN } else { options };
        Mounted::new(self.device(), &self.point, options)
    }

    /// The filesystem that is on it.
    pub(super) fn mount_again(&self) -> Option<Mounted> {
        Mounted::again(self.device(), &self.point)
    }

    /// The words of a test with a file of 24 MiB.
    pub(super) fn test(&self, folder: &Path) -> Vec<String> {
        let log = save(folder, "log", "");
        let point = self.point.display().to_string();
        ["--registers", &self.source(), "--log", &log, "--test", &point, "--test-size", "24MiB"]
            .map(String::from)
            .into()
    }

    /// A test with a file names these reasons.
    #[track_caller]
    pub(super) fn dies_by_test(&self, expected: &[&str]) -> Value {
        let witnesses = self.test(&self.folder);
        let witnesses: Vec<&str> = witnesses.iter().map(String::as_str).collect();
        super::dies(&self.folder, &self.source(), &witnesses, expected)
    }
}
