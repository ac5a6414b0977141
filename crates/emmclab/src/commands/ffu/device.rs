//! A card of this machine as target: identified, in no use, agreed to, held exclusively.

use emmc_analysis::plan::CardIdentity;

use super::FfuDocument;
use super::update::Wanted;
use crate::commands::apply::device::work_on_held;

/// Updates its firmware.
pub(super) fn update(name: &str, wanted: &Wanted<'_>) -> anyhow::Result<FfuDocument> {
    work_on_held(
        name,
        |card| wanted.check(card),
        |card, before, _| wanted.ask(&CardIdentity::of(card), before),
        |port, (card, before), consent, stop| {
            let mut document = wanted.document(&CardIdentity::of(card), &before);
            wanted.carry(port, consent, stop, &mut document);
            document
        },
    )
}
