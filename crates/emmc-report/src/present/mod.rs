//! Results of the analysis as documents: what is said first, what in a table, what in a chart.
//!
//! Absent on purpose: any figure that the analysis did not compute.

mod health;
mod plan;
mod registers;

use emmc_port::Origin;

pub use health::{HealthParts, health_sections};
pub use plan::hwpart_plan;
pub use registers::{comparison, field, registers};

use crate::{Document, Tone};

/// Where the data came from, on one line.
fn sources_line(sources: &[Origin]) -> String {
    sources.iter().map(|origin| origin.name.as_str()).collect::<Vec<_>>().join(" + ")
}

/// What a reader should know of the sources, as a last section; none where there is nothing to know.
pub fn sources(sources: &[Origin], document: &mut Document) {
    if sources.iter().all(|origin| origin.notes.is_empty()) {
        return;
    }
    let section = document.section("sources", "Sources");
    for origin in sources {
        for note in &origin.notes {
            section.note(Tone::Muted, format!("{}: {note}", origin.name));
        }
    }
}
