//! A bus under stress.

use emmc_analysis::bus::{BusReport, PinPlace, Shown, mhz};

use crate::{Align, Document, Table};

/// The result of a stress of a bus.
pub fn bus(report: &BusReport) -> Document {
    let mut document = Document::new(format!("Bus of {}", report.disk));
    document.subtitle = Some(format!("{}.", report.verdict));
    let mut table = Table::new([
        ("clock", Align::Right),
        ("result", Align::Left),
        ("reads", Align::Right),
        ("MiB", Align::Right),
        ("MB/s", Align::Right),
        ("errors", Align::Left),
    ]);
    for round in &report.rounds {
        let shown = match round.shown {
            Shown::Clean => "clean",
            Shown::Errors => "errors",
            Shown::CannotTell => "cannot tell",
        };
        let rate = if round.seconds > 0.0 { round.bytes as f64 / round.seconds / 1e6 } else { 0.0 };
        table.row([
            round.clock_hz.or(round.asked_hz).map_or_else(|| "?".into(), mhz),
            shown.into(),
            round.reads.to_string(),
            (round.bytes >> 20).to_string(),
            format!("{rate:.1}"),
            round.errors.clone(),
        ]);
    }
    document.section("clocks", "Clocks").push(table);
    if !report.pins.is_empty() {
        let section = document.section("pins", "To run it slower");
        let mut table = Table::new([("where", Align::Left), ("line", Align::Left), ("effect", Align::Left)]);
        for pin in &report.pins {
            let place = match (pin.place, pin.remove) {
                (PinPlace::DeviceTree, false) => "device tree, add",
                (PinPlace::DeviceTree, true) => "device tree, remove",
                (PinPlace::KernelParameter, _) => "kernel parameter",
            };
            table.row([place.into(), pin.line.clone(), pin.effect.clone()]);
        }
        section.push(table);
    }
    if !report.notes.is_empty() {
        let section = document.section("notes", "Notes");
        for note in &report.notes {
            section.paragraph(format!("{note}."));
        }
    }
    document
}
