//! Trims: the status of a card's, and advice.

use emmc_analysis::trim::{TrimAdvice, TrimStatus};

use crate::{Align, Document, KeyValue, Table, Tone};

/// The status of trims.
pub fn trim_status(status: &TrimStatus) -> Document {
    let disk = status.stack.layers.first().map_or("", |disk| disk.name.as_str());
    let mut document = Document::new(format!("Trims of {disk}"));
    document.subtitle = Some(status.verdict.clone());
    let section = document.section("findings", "Findings");
    if status.findings.is_empty() {
        section.paragraph("Nothing is mounted, and nothing speaks against trims.");
    }
    section.push(status.findings.clone());
    let section = document.section("way", "The way to the card");
    if status.reach.is_empty() {
        section.paragraph("No filesystem and no swap space of this disk is in use.");
    } else {
        let mut table = Table::new([
            ("mounted at", Align::Left),
            ("filesystem", Align::Left),
            ("layers", Align::Left),
            ("trimmed by", Align::Left),
            ("reaches the card", Align::Left),
        ]);
        for reach in &status.reach {
            let reaches = match (&reach.blocked_by, reach.reaches) {
                (Some(by), _) => format!("no: {by}"),
                (None, Some(true)) => "yes".into(),
                (None, _) => "unknown".into(),
            };
            let by = if reach.trimmed_by.is_empty() { "nobody".into() } else { reach.trimmed_by.join(", ") };
            table.row([
                reach.mounted_at.clone().unwrap_or_else(|| "swap".into()),
                reach.fstype.clone().unwrap_or_default(),
                reach.path.join(" > "),
                by,
                reaches,
            ]);
        }
        section.push(table);
    }
    if let Some(command) = &status.command {
        let section = document.section("command", "What Linux sends");
        let argument = command.argument.map_or(String::new(), |argument| format!(" (CMD38, argument {argument:#x})"));
        let mut pairs = vec![KeyValue::new("command", format!("{}{argument}", command.name)).note(command.why.clone())];
        if !command.unaligned.is_empty() {
            pairs.push(KeyValue::new("unaligned ranges", command.unaligned));
        }
        pairs.push(KeyValue::new("secure discard", if command.secure { "yes" } else { "no" }));
        section.push(pairs);
    }
    let section = document.section("limits", "Limits of each layer");
    let mut table = Table::new([
        ("layer", Align::Left),
        ("largest discard", Align::Right),
        ("granularity", Align::Right),
        ("written", Align::Right),
        ("discarded", Align::Right),
    ]);
    let size = |bytes: Option<u64>| bytes.map_or_else(|| "unknown".into(), |bytes| emmc_units::Bytes(bytes).rounded());
    for layer in &status.stack.layers {
        let name = layer.mapped_name.as_ref().map_or(layer.name.clone(), |name| format!("{} ({name})", layer.name));
        let largest = match layer.discard_max_bytes {
            Some(0) => "none".into(),
            bytes => size(bytes),
        };
        let granularity = size(layer.discard_granularity_bytes);
        table.row([name, largest, granularity, size(layer.written_bytes), size(layer.discarded_bytes)]);
    }
    section.push(table);
    section.note(Tone::Muted, "Written and discarded: since the boot, or since the layer exists.");
    document
}

/// What trims from now on.
pub fn trim_advice(disk: &str, advice: &TrimAdvice) -> Document {
    let mut document = Document::new(format!("Trims of {disk} from now on"));
    document.subtitle = Some(advice.what.clone());
    let section = document.section("do", "What to do");
    section.paragraph(format!("{}.", advice.what));
    if let Some(command) = &advice.command {
        section.code("sh", command.clone());
    }
    for file in &advice.files {
        section.paragraph(format!("/{}:", file.path));
        section.code("ini", file.text.clone());
    }
    if let Some(then) = &advice.then {
        section.paragraph("Then:");
        section.code("sh", then.clone());
    }
    if !advice.fstab.is_empty() {
        let section = document.section("fstab", "Or: at each deletion");
        section.paragraph("The option `discard`, in /etc/fstab. The file is only shown here, never changed.");
        let mut table =
            Table::new([("mounted at", Align::Left), ("options now", Align::Left), ("with discard", Align::Left)]);
        for change in &advice.fstab {
            let now = change.options.clone().unwrap_or_else(|| "no such line".into());
            table.row([change.point.clone(), now, change.with_discard.clone()]);
        }
        section.push(table);
    }
    if !advice.remarks.is_empty() {
        let section = document.section("remarks", "Remarks");
        for remark in &advice.remarks {
            section.note(Tone::Notice, remark.clone());
        }
    }
    document
}
