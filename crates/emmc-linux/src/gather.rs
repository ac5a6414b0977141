//! Reads one card's data from /sys, /proc and debugfs, of this machine or of a copy.

use std::io;
use std::path::Path;

use emmc_port::saved::SavedSource;
use emmc_port::{CardData, SourceError};
use emmc_regs::CardKind;
use emmc_regs::ext_csd::ExtCsd;

use crate::debugfs::Debugfs;
use crate::sysfs::note;
use crate::tree::Tree;
use crate::{blocks, card_name, debugfs, sysfs};

/// The note on stale health values, for all sources.
const AS_OLD_AS_THE_PROBE: &str = "EXT_CSD is known only in the parts that sysfs shows; life_time and pre_eol_info are as \
old as the kernel's last probe of the card (boot, insertion or reset)";

/// Fills in everything but EXT_CSD and the card status; the folder of debugfs is for those.
pub(crate) fn gather(tree: &Tree, disk: &str, data: &mut CardData) -> Option<Debugfs> {
    match sysfs::attributes(tree, disk) {
        Ok(attributes) => sysfs::apply(attributes, data),
        Err(error) => {
            let folder = tree.block(disk).join("device");
            note(data, [missing("the kernel's attributes", &folder, &error, "read access to /sys")]);
        }
    }
    data.blocks = blocks::read(tree, disk);
    let debugfs = find_debugfs(tree, disk, data)?;
    let (host, absent) = debugfs.host(tree);
    data.host = host;
    note(data, absent.iter().map(|(path, error)| missing(&debugfs::shown(path), path, error, "root")));
    Some(debugfs)
}

fn find_debugfs(tree: &Tree, disk: &str, data: &mut CardData) -> Option<Debugfs> {
    let error = match Debugfs::find(tree, disk) {
        Ok(debugfs) => return Some(debugfs),
        Err(error) => error,
    };
    let folder = tree.sys("kernel/debug");
    let text = match error.kind() {
        io::ErrorKind::NotFound if debugfs::is_mounted(tree) => {
            format!(
                "{}: no host of this card in it; ios, err_stats and ext_csd are unknown from here",
                folder.display()
            )
        }
        io::ErrorKind::NotFound if tree.is_live() => {
            "ios and err_stats: debugfs is not mounted (mount -t debugfs none /sys/kernel/debug)".into()
        }
        io::ErrorKind::NotFound => format!("ios and err_stats: the copy has no {}", folder.display()),
        _ => missing("ios and err_stats", &folder, &error, "root"),
    };
    note(data, [text]);
    None
}

/// Fills in EXT_CSD and the card status as debugfs has them, where they are not known yet.
pub(crate) fn registers_of_debugfs(tree: &Tree, debugfs: &Debugfs, data: &mut CardData) {
    if data.ext_csd.is_none() && data.kind != Some(CardKind::Sd) {
        match ext_csd(tree, &debugfs.ext_csd_path()) {
            Ok(ext_csd) => data.ext_csd = Some(ext_csd),
            Err(why) => note(data, [why]),
        }
    }
    if data.status.is_none() {
        let text = tree.read(&debugfs.status_path()).ok();
        data.status = text.and_then(|text| u32::try_from(sysfs::hex(&text)?).ok());
    }
}

fn ext_csd(tree: &Tree, path: &Path) -> Result<ExtCsd, String> {
    let text = tree.read(path).map_err(|error| missing("EXT_CSD by debugfs", path, &error, "root"))?;
    let saved = SavedSource::new(path.display().to_string(), text.into_bytes());
    let read = saved.read().map_err(|error| error.to_string())?;
    read.ext_csd
        .filter(ExtCsd::is_complete)
        .ok_or_else(|| format!("{}: expected 1024 hexadecimal digits", path.display()))
}

/// The fallback: the parts of EXT_CSD that the kernel caches.
pub(crate) fn ext_csd_of_sysfs(data: &mut CardData) {
    data.ext_csd = sysfs::ext_csd(&data.sysfs);
    if data.ext_csd.is_some() {
        note(data, [AS_OLD_AS_THE_PROBE.into()]);
    }
}

/// Names the missing value, the place, the reason, and the remedy.
pub(crate) fn missing(what: &str, path: &Path, error: &io::Error, need: &str) -> String {
    let cause = match error.kind() {
        io::ErrorKind::PermissionDenied => format!("{error}; needs {need}"),
        _ => error.to_string(),
    };
    format!("{what}: {}: {cause}", path.display())
}

/// The error of a missing card, with the existing ones.
pub(crate) fn no_such_card(tree: &Tree, name: &str, place: &str) -> SourceError {
    let names = tree.names(&tree.sys("block")).unwrap_or_default();
    let cards: Vec<&str> =
        names.iter().filter_map(|name| card_name::disk_of(name).filter(|disk| disk == name)).collect();
    let cards = if cards.is_empty() { "no cards".to_string() } else { cards.join(", ") };
    SourceError::Read { name: name.into(), reason: format!("no such card; {place} has {cards}") }
}
