//! Results of the analysis as documents: text, tables and charts.
//!
//! Absent on purpose: figures that the analysis did not compute.

#[cfg(feature = "bench")]
mod advise;
#[cfg(feature = "bench")]
mod bench;
mod boot_size;
mod bus;
mod capacity;
mod change;
#[cfg(feature = "bench")]
mod compare;
mod comparison;
mod health;
#[cfg(feature = "twin")]
mod life;
#[cfg(feature = "sim")]
mod pipeline;
mod plan;
#[cfg(feature = "bench")]
mod probe;
mod registers;
#[cfg(feature = "sim")]
mod sim;
mod statements;
mod study;
#[cfg(feature = "trace")]
mod trace;
#[cfg(feature = "trace")]
mod trace_charts;
#[cfg(feature = "trace")]
mod trace_compare;
#[cfg(feature = "trace")]
mod trace_counts;
#[cfg(feature = "trace")]
mod trace_time;
#[cfg(feature = "trace")]
mod trace_who;
mod trim;
mod trust;
mod vendor;
#[cfg(feature = "twin")]
mod what_if;

use emmc_port::Origin;
use emmc_regs::ext_csd::Anomaly;

pub use self::plan::hwpart_plan;
#[cfg(feature = "bench")]
pub use advise::{system_advice, worth};
#[cfg(feature = "bench")]
pub use bench::{bench, with_benches};
pub use boot_size::boot_size;
pub use bus::bus;
pub use capacity::capacity;
pub use change::{plan, standing};
#[cfg(feature = "bench")]
pub use compare::{compared, imported};
pub use comparison::comparison;
pub use health::{HealthParts, health_sections};
#[cfg(feature = "twin")]
pub use life::{life, ranking};
#[cfg(feature = "sim")]
pub use pipeline::pipeline;
#[cfg(feature = "bench")]
pub use probe::{ProbeSubject, probe};
pub use registers::{field, registers};
#[cfg(feature = "sim")]
pub use sim::{inside, sim_run};
pub use study::{study, study_in_brief, study_in_full};
#[cfg(feature = "trace")]
pub use trace::{trace, with_trace};
#[cfg(feature = "trace")]
pub use trace_charts::trace_page;
#[cfg(feature = "trace")]
pub use trace_compare::trace_compared;
#[cfg(feature = "trace")]
pub use trace_who::{trace_live, trace_who};
pub use trim::{trim_advice, trim_status};
pub use trust::trust;
pub use vendor::vendor_sections;
#[cfg(feature = "twin")]
pub use what_if::{what_if, with_what_if};

use crate::{Align, Cell, Document, Table, Tone};

/// The sources, on one line; a file with several forms is named once.
pub fn sources_line(sources: &[Origin]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for origin in sources {
        let name = if origin.name == "-" { "standard input" } else { origin.name.as_str() };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" + ")
}

/// Notes on the sources as the last section; none if there are no notes.
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

/// Register values that break the standard or contradict each other.
fn anomaly_table(anomalies: &[Anomaly]) -> Table {
    let mut table =
        Table::new([("field", Align::Left), ("byte", Align::Right), ("found", Align::Left), ("expected", Align::Left)]);
    for anomaly in anomalies {
        table.row([
            Cell::from(anomaly.field),
            Cell::from(anomaly.offset.to_string()),
            Cell::new(anomaly.found.as_str(), Tone::Warn),
            Cell::from(anomaly.expected.as_str()),
        ]);
    }
    table
}
