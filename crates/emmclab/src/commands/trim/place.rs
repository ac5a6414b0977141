//! A place on a card: which disk it is on, and what is known of that.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use emmc_port::{CardData, Stack};

use crate::output::Output;
use crate::source;

/// A disk, of this machine or of a copied tree.
pub(crate) struct Place {
    /// `mmcblk0`.
    pub(crate) disk: String,
    pub(crate) sysroot: Option<PathBuf>,
}

impl Place {
    /// The disk below a place; without one the only card.
    ///
    /// Errors: nothing of this name; no card, or several.
    pub(crate) fn of(place: Option<&str>, sysroot: Option<&Path>) -> anyhow::Result<Self> {
        let disk = match place {
            Some(place) => emmc_linux::disk_below(place, sysroot)?,
            None => only_card(sysroot)?,
        };
        Ok(Self { disk, sysroot: sysroot.map(Path::to_owned) })
    }

    pub(crate) fn stack(&self) -> anyhow::Result<Stack> {
        Ok(emmc_linux::stack(&self.disk, self.sysroot.as_deref())?)
    }

    /// The card's registers; nothing, with a message, if they cannot be read, or it is no card.
    ///
    /// Errors: a file of registers that cannot be read.
    pub(crate) fn card(&self, registers: Option<&str>, output: &Output) -> anyhow::Result<Option<CardData>> {
        if let Some(file) = registers {
            return source::open_one(file, None).map(Some);
        }
        let node = format!("/dev/{}", self.disk);
        if !emmc_linux::is_card_name(&node) {
            return Ok(None);
        }
        match source::open_one(&node, self.sysroot.as_deref()) {
            Ok(card) => Ok(Some(card)),
            Err(error) => {
                output.error(&format!("{error:#}; what the card can do is not judged"));
                Ok(None)
            }
        }
    }

    /// The present time, for this machine; a copy's time is unknown.
    pub(crate) fn now(&self) -> Option<jiff::Timestamp> {
        self.sysroot.is_none().then(jiff::Timestamp::now)
    }
}

fn only_card(sysroot: Option<&Path>) -> anyhow::Result<String> {
    let cards = emmc_linux::list(sysroot)?.cards;
    let names: Vec<String> = cards.into_iter().map(|card| card.device).collect();
    ensure!(!names.is_empty(), "no card found: no /sys/block/mmcblkN; name a disk or where a filesystem is mounted");
    ensure!(names.len() == 1, "several cards: name one of {}", names.join(", "));
    Ok(names[0].trim_start_matches("/dev/").to_owned())
}
