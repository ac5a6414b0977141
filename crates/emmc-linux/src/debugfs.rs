//! `/sys/kernel/debug/mmcN`: the host's side of the link, and registers read on access.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use emmc_port::Host;

use crate::tree::Tree;

/// The folders of one card's host and of the card itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Debugfs {
    host: PathBuf,
    card: PathBuf,
}

impl Debugfs {
    /// Finds the host of a disk.
    ///
    /// Linux numbers a disk after its host since 4.6; before that, and in copies with links, the link `device` names
    /// it.
    ///
    /// Errors: debugfs cannot be read, or has no such host.
    pub(crate) fn find(tree: &Tree, disk: &str) -> io::Result<Self> {
        let card = tree.link_name(&tree.block(disk).join("device"));
        let host = match card.as_deref().and_then(|card| card.split_once(':')) {
            Some((host, _)) => host.to_string(),
            None => disk.replace("mmcblk", "mmc"),
        };
        let host_folder = tree.sys("kernel/debug").join(&host);
        let names = tree.names(&host_folder)?;
        let card = card.or_else(|| names.into_iter().find(|name| name.starts_with(&format!("{host}:"))));
        Ok(Self { card: host_folder.join(card.unwrap_or_default()), host: host_folder })
    }

    /// Clock, bus width, timing and voltages, and the errors since boot.
    pub(crate) fn host(&self, tree: &Tree) -> (Host, Vec<(PathBuf, io::Error)>) {
        let mut missing = Vec::new();
        let mut text = |name: &str| {
            let path = self.host.join(name);
            tree.read(&path).map_err(|error| missing.push((path, error))).unwrap_or_default()
        };
        let host = Host { ios: ios(&text("ios")), err_stats: err_stats(&text("err_stats")) };
        (host, missing)
    }

    /// The file of 1024 digits that the kernel reads from the card when it is opened.
    pub(crate) fn ext_csd_path(&self) -> PathBuf {
        self.card.join("ext_csd")
    }

    /// The file that sets the clock.
    #[cfg(feature = "bench")]
    pub(crate) fn clock_path(&self) -> PathBuf {
        self.host.join("clock")
    }

    /// The file with the answer to CMD13.
    pub(crate) fn status_path(&self) -> PathBuf {
        self.card.join("status")
    }
}

/// `clock: 52000000 Hz`: a name, a colon, tabs, a value.
fn ios(text: &str) -> BTreeMap<String, String> {
    lines(text).map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// `# Command CRC Errors Occurred: 0`; a driver without counters prints a sentence, which gives nothing.
fn err_stats(text: &str) -> BTreeMap<String, u64> {
    lines(text).filter_map(|(name, value)| Some((name.to_string(), value.parse().ok()?))).collect()
}

fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let (name, value) = line.trim_start_matches('#').split_once(':')?;
        let (name, value) = (name.trim(), value.trim());
        (!name.is_empty()).then_some((name, value))
    })
}

/// Whether debugfs itself is there.
pub(crate) fn is_mounted(tree: &Tree) -> bool {
    tree.names(&tree.sys("kernel/debug")).is_ok_and(|names| !names.is_empty())
}

/// What a file of debugfs is called in a note.
pub(crate) fn shown(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_is_reported_as_printed() {
        let ios = ios("clock:\t\t200000000 Hz\nactual clock:\t198000000 Hz\nvdd:\t\t21 (3.3 ~ 3.4 V)\nrubbish\n:\n");
        assert_eq!(ios.len(), 3);
        assert_eq!(ios.get("actual clock").map(String::as_str), Some("198000000 Hz"));
        assert_eq!(ios.get("vdd").map(String::as_str), Some("21 (3.3 ~ 3.4 V)"));
    }

    #[test]
    fn errors_are_counted_where_the_driver_counts() {
        let stats = err_stats("# Command Timeout Occurred:\t 3\n# Data CRC Errors Occurred:\t 0\n# Odd:\t -1\n");
        assert_eq!(
            stats.into_iter().collect::<Vec<_>>(),
            [("Command Timeout Occurred".to_string(), 3), ("Data CRC Errors Occurred".to_string(), 0),]
        );
        assert!(err_stats("Not supported by driver\n").is_empty());
    }
}
