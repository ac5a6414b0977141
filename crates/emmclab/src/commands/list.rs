//! `list`: the cards of this machine.

use emmc_linux::{CardList, ListedCard};
use emmc_regs::CardKind;
use emmc_regs::ext_csd::LifeTime;
use emmc_report::{Align, Document, Table, Tone};

use crate::CommandResult;
use crate::cli::ListArgs;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) const SCHEMA: &str = "emmclab.list/1";

pub(crate) fn run(args: &ListArgs, output: &mut Output) -> CommandResult {
    let list = emmc_linux::list(args.tree.sysroot.as_deref())?;
    output.print(SCHEMA, &list, present)?;
    Ok(Exit::Good)
}

fn present(list: &CardList) -> Document {
    let mut document = Document::new("Cards");
    let section = document.section("cards", "eMMC and SD cards of this machine");
    if list.cards.is_empty() {
        section.paragraph(
            "No card found: no /sys/block/mmcblkN. A saved file is a source too, see `emmclab show --help`.",
        );
        return document;
    }
    let mut table = Table::new([
        ("device", Align::Left),
        ("kind", Align::Left),
        ("name", Align::Left),
        ("made by", Align::Left),
        ("size", Align::Right),
        ("life used", Align::Left),
        ("mounted", Align::Left),
    ]);
    for card in &list.cards {
        let word = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".into());
        let kind = match card.kind {
            Some(CardKind::Emmc) => "eMMC",
            Some(CardKind::Sd) => "SD",
            None => "unknown",
        };
        table.row([
            card.device.clone(),
            kind.to_owned(),
            word(&card.name),
            word(&card.manufacturer),
            card.size_bytes.map_or_else(|| "unknown".into(), |size| size.rounded()),
            life(card),
            card.mounted.join(" "),
        ]);
    }
    section.push(table);
    section.note(
        Tone::Muted,
        "Life used is from the last probe of the card; `emmclab health DEVICE` reads the card itself.",
    );
    document
}

fn life(card: &ListedCard) -> String {
    let bands: Vec<String> = [card.life_time_a, card.life_time_b]
        .into_iter()
        .flatten()
        .filter_map(|raw| LifeTime(raw).used_percent())
        .map(|(lower, upper)| upper.map_or_else(|| format!("past {lower} %"), |upper| format!("{lower}-{upper} %")))
        .collect();
    if bands.is_empty() { "unknown".into() } else { bands.join(", ") }
}
