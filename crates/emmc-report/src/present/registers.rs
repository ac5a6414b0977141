//! Registers as documents.

use emmc_analysis::registers::{RegisterRow, Registers};

use super::{anomaly_table, sources, sources_line};
use crate::{Align, Block, Cell, Document, KeyValue, Table, Tone};

/// Every register in its own section; `all` keeps vendor and array bytes that are zero.
pub fn registers(shown: &Registers, all: bool, full: bool) -> Document {
    let mut document = Document::new("Registers");
    document.subtitle = Some(sources_line(&shown.sources));
    anomalies(shown, &mut document);
    super::statements::sections(&shown.card, !shown.fields.is_empty(), &mut document);
    let mut names: Vec<&'static str> = Vec::new();
    for row in &shown.fields {
        if !names.contains(&row.register) {
            names.push(row.register);
        }
    }
    for register in names {
        let rows = shown.fields.iter().filter(|row| row.register == register);
        let (kept, hidden): (Vec<_>, Vec<_>) = rows.partition(|row| all || !is_silent(row));
        let section = document.section(register.to_lowercase().replace('_', "-"), register);
        if register == "EXT_CSD" && shown.ext_csd_known_bytes.is_some_and(|known| known < 512) {
            let known = shown.ext_csd_known_bytes.unwrap_or_default();
            section
                .note(Tone::Notice, format!("This source has {known} of 512 bytes; the others are unknown, not zero."));
        }
        section.push(if full { table(&kept) } else { one_line_each(&kept) });
        if !hidden.is_empty() {
            section.note(Tone::Muted, format!("{} vendor and context bytes are zero; --all shows them.", hidden.len()));
        }
    }
    sources(&shown.sources, &mut document);
    document
}

/// One field, with all facts from the table.
pub fn field(shown: &Registers) -> Document {
    let mut document = Document::new(shown.fields.first().map_or("Field".to_owned(), |row| row.name.to_string()));
    document.subtitle = Some(sources_line(&shown.sources));
    for row in &shown.fields {
        let id = format!("{}-{}", row.register.to_lowercase(), row.offset);
        let section = document.section(id, format!("{} {}", row.register, place(row)));
        let mut pairs = vec![KeyValue::new("value", row.value_text()), KeyValue::new("raw", row.raw_hex())];
        if let Some(access) = &row.access {
            pairs.push(KeyValue::new("access", access.as_str()));
        }
        if let Some(danger) = row.danger {
            pairs.push(KeyValue::new("effect of a write", Cell::new(danger, Tone::Warn)));
        }
        if let Some(what) = row.what {
            pairs.push(KeyValue::new("what", what));
        }
        section.push(pairs);
    }
    anomalies(shown, &mut document);
    document
}

fn anomalies(shown: &Registers, document: &mut Document) {
    if !shown.anomalies.is_empty() {
        document.section("anomalies", "Anomalies").push(anomaly_table(&shown.anomalies));
    }
}

/// Position, name, number and meaning, cut to the width.
fn one_line_each(rows: &[&RegisterRow]) -> Block {
    let place_title = if rows.first().is_some_and(|row| row.register == "EXT_CSD") { "byte" } else { "bits" };
    let columns =
        [(place_title, Align::Right), ("field", Align::Left), ("raw", Align::Right), ("meaning", Align::Left)];
    let mut table = Table::new(columns).one_line();
    for row in rows {
        table.row([place(row), row.name.to_string(), row.raw_hex(), row.value_text()]);
    }
    table.into()
}

fn table(rows: &[&RegisterRow]) -> Block {
    let ext_csd = rows.first().is_some_and(|row| row.register == "EXT_CSD");
    let place_title = if ext_csd { "byte" } else { "bits" };
    let mut columns =
        vec![(place_title, Align::Right), ("field", Align::Left), ("raw", Align::Right), ("value", Align::Left)];
    if ext_csd {
        columns.push(("access", Align::Left));
    }
    let mut table = Table::new(columns);
    for row in rows {
        let one_time = row.danger.is_some_and(|danger| danger.starts_with("one-time"));
        let tone = if one_time { Tone::Warn } else { Tone::Muted };
        let mut cells = vec![
            Cell::from(place(row)),
            Cell::from(row.name.as_ref()),
            Cell::from(row.raw_hex()),
            Cell::from(row.value_text()),
        ];
        if ext_csd {
            let access = row.access.clone().unwrap_or_default();
            cells.push(Cell::new(if one_time { format!("{access} once") } else { access }, tone));
        }
        table.row(cells);
    }
    table.into()
}

fn place(row: &RegisterRow) -> String {
    let last = match row.register {
        "EXT_CSD" => row.offset + row.width_bits / 8 - 1,
        _ => (row.offset + row.width_bits).saturating_sub(1),
    };
    if last == row.offset { row.offset.to_string() } else { format!("{last}:{}", row.offset) }
}

fn is_silent(row: &RegisterRow) -> bool {
    row.raw == 0 && row.name.contains('[')
}
