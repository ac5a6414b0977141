//! The comparison of two sources as a document.

use emmc_analysis::comparison::{BitDifference, Comparison, Difference};
use emmc_regs::Persistence;

use crate::{Align, Cell, Document, Section, Table, Tone};

/// Two sources, field by field, and bit by bit where the bits of a field differ in persistence.
pub fn comparison(comparison: &Comparison) -> Document {
    let mut document = Document::new("Comparison");
    let section = document.section("differences", "Differences");
    let (word, compared) =
        (if comparison.persistent_only { "persistent difference" } else { "difference" }, comparison.compared);
    match comparison.differences.len() {
        0 => section.paragraph(format!("No {word} in {compared} fields that both sources know.")),
        count if comparison.persistent_only => {
            section.paragraph(format!("{count} of {compared} fields that both sources know differ in persistent bits."))
        }
        count => section.paragraph(format!("{count} of {compared} fields that both sources know differ.")),
    };
    if !comparison.differences.is_empty() {
        section.push(differences(&comparison.differences));
        explain(&comparison.differences, section);
    }
    left_out(&comparison.left_out, section);
    for (id, title, only) in
        [("only-a", "Only A knows", &comparison.only_a), ("only-b", "Only B knows", &comparison.only_b)]
    {
        let named: Vec<String> = only.iter().map(|one| format!("{}.{}", one.register, one.name)).collect();
        let is_plain = |name: &&String| !name.contains('[') && !name.ends_with("RESERVED");
        let list: Vec<&str> = named.iter().filter(is_plain).map(String::as_str).collect();
        let arrays = named.len() - list.len();
        if !named.is_empty() {
            let more =
                if arrays > 0 { format!(", and {arrays} vendor, context or reserved bytes") } else { String::new() };
            document.section(id, title).paragraph(format!("{}{more}.", list.join(", ")));
        }
    }
    document
}

fn differences(list: &[Difference]) -> Table {
    let mut table = Table::new([
        ("register", Align::Left),
        ("field", Align::Left),
        ("A", Align::Left),
        ("B", Align::Left),
        ("kept", Align::Left),
    ]);
    for one in list {
        let place = format!("{}[{}]", one.register, one.offset);
        if is_whole(one) {
            let side = |raw: Option<u64>, value: &Option<String>| match (raw, value) {
                (Some(raw), Some(value)) => format!("{raw:#04x}  {value}"),
                _ => "unknown".to_owned(),
            };
            table.row([
                Cell::from(place),
                Cell::from(one.name.as_ref()),
                Cell::from(side(one.raw_a, &one.value_a)),
                Cell::from(side(one.raw_b, &one.value_b)),
                kept(one.persistence),
            ]);
            continue;
        }
        for bits in &one.bits {
            table.row([
                Cell::from(place.as_str()),
                Cell::from(format!("{}.{}", one.name, bits_name(bits))),
                Cell::from(bits.raw_a.to_string()),
                Cell::from(bits.raw_b.to_string()),
                kept(bits.persistence),
            ]);
        }
    }
    table
}

/// Whether one row is enough for a field: it lists every differing bit, and all are equally persistent.
fn is_whole(one: &Difference) -> bool {
    let listed = one.bits.iter().fold(0, |mask, bits| mask | (bits.raw_a ^ bits.raw_b) << bits.lo);
    let differing = one.raw_a.zip(one.raw_b).map_or(0, |(a, b)| a ^ b);
    one.bits.iter().all(|bits| bits.persistence == one.persistence) && listed == differing
}

fn bits_name(bits: &BitDifference) -> String {
    match &bits.name {
        Some(name) => name.to_string(),
        None if bits.hi == bits.lo => format!("bit {}", bits.lo),
        None => format!("bits {}:{}", bits.hi, bits.lo),
    }
}

fn kept(persistence: Persistence) -> Cell {
    match persistence {
        Persistence::OneTime => Cell::new("forever (one-time)", Tone::Warn),
        Persistence::OneTimeOnceCommitted => Cell::new("forever once committed", Tone::Warn),
        Persistence::Kept => Cell::new("over power cycles", Tone::Plain),
        Persistence::UntilPowerCycle => Cell::new("until a power cycle", Tone::Muted),
        Persistence::UntilReset => Cell::new("until a reset", Tone::Muted),
        Persistence::NotSpecified => Cell::new("not specified", Tone::Muted),
    }
}

/// Explanation of the words of the last column.
fn explain(list: &[Difference], section: &mut Section) {
    let has = |persistence| list.iter().any(|one| one.bits.iter().any(|bits| bits.persistence == persistence));
    if has(Persistence::OneTimeOnceCommitted) {
        section.note(
            Tone::Muted,
            "Once committed: PARTITION_SETTING_COMPLETED makes these settings permanent; without it a power cycle drops them.",
        );
    }
    if has(Persistence::NotSpecified) {
        section.note(
            Tone::Muted,
            "Not specified: the standard does not define how persistent the value is (a state, reserved or vendor bits).",
        );
    }
}

fn left_out(list: &[Difference], section: &mut Section) {
    let names = |wanted: fn(Persistence) -> bool| -> Vec<String> {
        let field =
            |one: &Difference| one.bits.iter().any(|bits| wanted(bits.persistence)).then(|| one.name.to_string());
        list.iter().filter_map(field).collect()
    };
    for (names, why) in [
        (names(Persistence::is_volatile), "in bits that a power cycle clears"),
        (
            names(|persistence| persistence == Persistence::NotSpecified),
            "in bits whose persistence the standard does not define",
        ),
    ] {
        const SHOWN: usize = 8;
        if !names.is_empty() {
            let rest = names.len().saturating_sub(SHOWN);
            let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
            let list = names[..names.len() - rest].join(", ");
            let count = match names.len() {
                1 => "1 field differs".to_owned(),
                count => format!("{count} fields differ"),
            };
            section.note(Tone::Muted, format!("Left out: {count} {why}: {list}{more}."));
        }
    }
}
