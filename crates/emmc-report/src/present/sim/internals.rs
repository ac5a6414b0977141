//! The internals of a virtual card.

use emmc_card::condition::Internals;
use emmc_card::ftl::FtlStats;
use emmc_card::nand::Counters;
use emmc_units::{Bytes, SECTOR_BYTES};

use super::{charts, count, duration};
use crate::{Align, Cell, Document, KeyValue, Table, Tone};

/// The report of a card's internals.
pub fn inside(inside: &Internals) -> Document {
    let mut document = Document::new(format!("Virtual card {}", inside.profile));
    document.subtitle = Some(inside.description.clone());
    let section = document.section("card", "Card");
    let (block, page) = (Bytes(inside.block_bytes), Bytes(u64::from(inside.page_bytes)));
    let unit = Bytes(u64::from(inside.unit_bytes));
    section.push(vec![
        KeyValue::new("simulated time", duration(inside.simulated_s)),
        KeyValue::new("flash", format!("{} blocks of {block}, pages of {page}, mapped by {unit}", inside.blocks)),
        KeyValue::new(
            "write amplification",
            match inside.write_amplification {
                Some(factor) => format!("{factor:.3}"),
                None if inside.nand.page_programs > 0 => {
                    "not known: nothing written since the card was switched on".into()
                }
                None => "nothing written yet".into(),
            },
        ),
    ]);
    if inside.worn_out {
        section.note(Tone::Bad, "The card is worn out: it is read-only.");
    }
    let mut table = Table::new([("area", Align::Left), ("sectors", Align::Right), ("size", Align::Right)]);
    for area in &inside.areas {
        table.row([
            Cell::from(area.area.as_str()),
            Cell::from(area.sectors.to_string()),
            Cell::from(Bytes(area.sectors * SECTOR_BYTES).to_string()),
        ]);
    }
    section.push(table);
    let since = "Pages and blocks are counted by the flash, over its whole life; everything else by the translation layer, \
since the card was switched on: as in a real card, its counts do not survive power.";
    document.section("layer", "Translation layer").push(layer(&inside.ftl, &inside.nand)).note(Tone::Muted, since);
    let section = document.section("wear", "Wear");
    let life = [inside.life_time_a, inside.life_time_b, inside.pre_eol_info];
    section.push(super::health(&inside.health, if inside.is_sd { [None; 3] } else { life.map(Some) }));
    section.push(charts::wear(&inside.wear.histogram));
    document.section("blocks", "Block map").push(charts::blocks(&inside.block_map));
    document
}

/// Event counts of the layers and the flash, without zero counts.
pub(super) fn layer(ftl: &FtlStats, nand: &Counters) -> Vec<KeyValue> {
    let rows = [
        ("units written by the host", ftl.host_units, ""),
        (
            "units copied",
            ftl.copied_units,
            "by garbage collection, folding, merging, wear levelling and pages of the log",
        ),
        ("units of padding", ftl.padding_units, "to fill pages that had to be written"),
        ("blocks collected", ftl.collections, ""),
        ("blocks folded", ftl.folds, "from the SLC cache"),
        ("full merges", ftl.full_merges, "whole allocation unit copied"),
        ("partial merges", ftl.partial_merges, "rest of an allocation unit copied"),
        ("switch merges", ftl.switch_merges, "nothing copied"),
        ("blocks moved to level wear", ftl.wear_moves, ""),
        ("blocks refreshed", ftl.refreshes, "read often, or old data"),
        ("mapping pages missed", ftl.map_misses, "each costs a read"),
        ("mapping pages written", ftl.map_writes, ""),
        ("units trimmed", ftl.trimmed_units, ""),
        ("blocks replaced", ftl.replaced_blocks, "went bad"),
        ("stalls", ftl.foreground_stalls, "requests that waited for room"),
        ("pages read", nand.page_reads, ""),
        ("pages programmed", nand.page_programs, ""),
        ("blocks erased", nand.erases, ""),
        ("programs failed", nand.program_failures, ""),
        ("erases failed", nand.erase_failures, ""),
    ];
    let happened = rows.into_iter().filter(|(_, number, _)| *number > 0);
    happened
        .map(|(name, number, note)| {
            let row = KeyValue::new(name, count(number));
            if note.is_empty() { row } else { row.note(note) }
        })
        .collect()
}
