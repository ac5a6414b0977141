//! What speaks against a card.

use emmc_analysis::trust::Trust;

use crate::{Align, Document, Table};

/// The verdict on a card.
pub fn trust(of: &str, trust: &Trust) -> Document {
    let mut document = Document::new(format!("Trust in {of}"));
    document.subtitle = Some(format!("{}.", trust.verdict));
    let section = document.section("findings", "What speaks against it");
    if trust.findings.is_empty() {
        section.paragraph("Nothing.");
    } else {
        section.push(trust.findings.clone());
    }
    let looked = if trust.witnesses.is_empty() { "nothing".into() } else { trust.witnesses.join(", ") };
    document.section("witnesses", "What was looked at").paragraph(format!("{looked}."));
    if let Some(test) = &trust.test {
        let good = test.blocks - test.wrong - test.unreadable;
        document.section("test", "The file of the test").paragraph(format!(
            "{}: {} blocks of 4 KiB, {good} as written, {} wrong, {} unreadable.",
            test.file, test.blocks, test.wrong, test.unreadable
        ));
    }
    if !trust.log.is_empty() {
        let mut table = Table::new([("lines", Align::Right), ("first", Align::Left)]);
        for lines in trust.log.values() {
            table.row([lines.count.to_string(), lines.first.clone()]);
        }
        document.section("log", "In the kernel's log").push(table);
    }
    document
}
